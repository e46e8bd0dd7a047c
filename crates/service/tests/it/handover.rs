//! A coordinator that takes over from another one of the same process, after a change of the cluster.

use leeward_engine::{Engine, HistorySettings, Policies, Rates};
use leeward_fabric::input::Files;
use leeward_fabric::{Cluster, Load, Nanos, ResourceId};
use leeward_placement::Explain;
use leeward_placement::tasks::{self, App, TaskId};
use leeward_records::{Clock, Origin, PlacementSpec, TasksSpec};
use leeward_service::{
    Channels, Coordinator, Handle, Limits, NewCluster, Placement, Release, Report, TelemetryState,
};
use leeward_store::Sqlite;
use leeward_testing::clusters::ledger;

use crate::support::{labels, samples};

const GBPS: i64 = 1_000_000_000;

fn coordinator(cluster: &Cluster) -> Coordinator<Channels> {
    let policies = Policies {
        tasks: tasks::REGISTRY.make("utp-proactive", "").ok(),
        history: Some(HistorySettings { window: Nanos(3_600 * Nanos::SECOND.0), percentile: 0.98 }),
        ..Policies::default()
    };
    Coordinator::new(Engine::new(ledger(cluster), policies, 7, Explain::Off), labels(), Limits::default())
}

/// A task of the job `crawl`, which states 1 Gb/s.
fn crawl() -> Placement {
    let text = r#"{"tasks": [{"name": "t", "cpus": 1, "egress": {"mean": "1Gbps", "peak": "1Gbps"}}]}"#;
    let app = App::from_text("app", text, &Files::default()).expect("a valid app");
    let spec = PlacementSpec::Tasks(TasksSpec::of(&app, Some("crawl".to_owned()), Vec::new()));
    Placement { spec, caller: None, lasts: None, reference: None, digest: None }
}

/// A service of one process, and its clock.
struct Service {
    handle: Handle,
    clock: Clock,
}

impl Service {
    /// Reports all links as idle, and rates of tasks.
    async fn report(&self, tasks: Vec<(TaskId, Rates)>) {
        let (fabric, now) = (self.handle.last_snapshot().fabric.clone(), self.clock.now());
        let window = (now.since(Nanos::SECOND), now);
        let links = (0..fabric.link_count() as u32).map(|link| (ResourceId(link), Load(0)));
        let report = Report { window, loads: samples(window, links), tasks, ..Report::default() };
        self.handle.call(report, fabric).await.expect("a valid report");
    }

    /// Places a task of the job. Returns its decision, and the load on links out of hosts that came with it, in Gb/s.
    async fn place(&self) -> (leeward_records::DecisionId, f64) {
        let before = self.pending().await;
        let fabric = self.handle.last_snapshot().fabric.clone();
        let placed = self.handle.call(crawl(), fabric).await.expect("enough room");
        (placed.record.id, (self.pending().await - before) as f64 / GBPS as f64)
    }

    async fn pending(&self) -> i64 {
        let snapshot = self.handle.snapshot().await.expect("the actor runs");
        let fabric = &snapshot.fabric;
        let egress: Vec<_> = fabric.all_hosts().filter_map(|host| fabric.egress(host)).collect();
        snapshot.links.iter().filter(|link| egress.contains(&link.link)).map(|link| link.pending.0).sum()
    }
}

#[test]
fn a_change_of_the_cluster_keeps_the_observed_traffic_of_jobs() {
    let text =
        |cpus: u32| format!("{{racks: 2, hosts_per_rack: 4, nic: 10Gbps, rack_link: 40Gbps, cpus: {cpus}}}");
    let new = |cpus: u32| NewCluster::read("c.yaml", &text(cpus)).expect("a valid cluster");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (store, clock) = (Sqlite::in_memory().expect("an in-memory store opens"), Clock::system());
        let make = Box::new(|cluster: &Cluster, _: bool| coordinator(cluster));
        let telemetry = TelemetryState::default();
        let opened = Handle::open(make, new(16), Box::new(store), clock.clone(), "test".into(), telemetry);
        let (handle, actor) = opened.await.expect("an empty store");
        let actor = tokio::spawn(actor);
        let service = Service { handle, clock };
        service.report(Vec::new()).await;
        let (first, placed) = service.place().await;
        assert!((placed - 1.0).abs() < 0.01, "{placed}: nothing was seen yet");
        let rates = Rates { egress_bps: 6_000_000_000, ingress_bps: 0 };
        service.report(vec![(TaskId { app: first.0, index: 0 }, rates)]).await;
        // One job ends before the change, and one runs through it.
        let fabric = service.handle.last_snapshot().fabric.clone();
        service.handle.call(Release(first), fabric).await.expect("a decision");
        for cpus in [17, 18] {
            let changed = NewCluster { origin: Origin::Request, ..new(cpus) };
            service.handle.change_cluster(changed).await.expect("the store takes the cluster");
            service.report(Vec::new()).await;
            let (_, placed) = service.place().await;
            assert!((6.0..6.4).contains(&placed), "{placed} Gb/s after the change to {cpus} processors");
        }
        drop(service);
        actor.await.expect("the actor ends");
    });
}
