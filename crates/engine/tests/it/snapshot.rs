//! Snapshots: hypothetical decisions beside real ones.

use leeward_engine::{
    CommittedDecision, Engine, EngineSnapshot, HistorySettings, Input, Policies, Rates, Ruling, SnapshotScope,
};
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::{Owner, OwnerKind, Sample, Scratch};
use leeward_placement::replicas::{self, Chain, ReplicaRequest, ReplicasSpec};
use leeward_placement::tasks::{self, AppRequest, Assignment, Class, Peer, Task, TaskId, Traffic, Transfer};
use leeward_placement::{Explain, JobId, Refusal};
use leeward_testing::clusters::{self, racks_of_four};
use proptest::prelude::*;

const NOW: Nanos = Nanos(10 * Nanos::SECOND.0);

fn cluster() -> Cluster {
    clusters::cluster(&racks_of_four(5, "[{read: 50MB/s, write: 50MB/s, capacity: 1TB}]"))
}

/// An engine with these policies, whose links have reported loads of these shares of their capacities.
fn engine(cluster: &Cluster, shares: &[u8], blocks: &str, apps: &str) -> Engine {
    let ledger = clusters::ledger(cluster);
    let policies = Policies {
        replicas: Some(replicas::REGISTRY.make(blocks, "").expect("a policy of the registry")),
        tasks: Some(tasks::REGISTRY.make(apps, "").expect("a policy of the registry")),
        ..Policies::default()
    };
    let mut engine = Engine::new(ledger, policies, 7, Explain::Top(8));
    let links = cluster.fabric.all_resources();
    let links = links.filter(|&link| cluster.fabric.kind(link) != ResourceKind::Device);
    let sample = |(index, resource): (usize, ResourceId)| {
        let capacity = cluster.capacities.get(resource).0;
        let load = Load(capacity / 100 * i64::from(shares[index % shares.len()]));
        Sample { resource, window: (Nanos(NOW.0 - Nanos::SECOND.0), NOW), load, guaranteed: None }
    };
    let samples: Vec<Sample> = links.enumerate().map(sample).collect();
    engine.report(NOW, &samples, &mut Vec::new());
    engine
}

fn place_block(engine: &mut Engine, request: ReplicaRequest) -> Result<CommittedDecision<Chain>, Refusal> {
    engine
        .place_replicas(NOW, 1, request, Ruling::default(), &mut Vec::new())
        .expect("the engine decides at once")
}

fn place_app(engine: &mut Engine, request: AppRequest) -> Result<CommittedDecision<Assignment>, Refusal> {
    engine.place_app(NOW, request, Ruling::default(), &mut Vec::new())
}

/// A snapshot without the load of one owner.
fn without(kind: OwnerKind, id: u64) -> SnapshotScope {
    SnapshotScope { job: Some(JobId(9)), without: Some(Owner { kind, id }) }
}

fn task(egress: u64, ingress: u64) -> Task {
    let mut task = Task::default();
    task.egress[Class::BestEffort as usize] = Traffic::steady(egress);
    task.ingress[Class::BestEffort as usize] = Traffic::steady(ingress);
    task
}

/// All task policies, except for the exact one: random runs solve too many programs for it.
fn app_policies() -> impl Strategy<Value = &'static str> {
    prop::sample::select(tasks::REGISTRY.names().filter(|&name| name != "choreo-exact").collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Right after a decision, a snapshot without it leads a policy to the same decision. A query changes nothing.
    #[test]
    fn a_snapshot_without_a_decision_reproduces_it(
        shares in prop::collection::vec(0_u8..95, 7..40),
        before in prop::collection::vec((1_u64..1 << 28, 0_u32..20), 0..6),
        size in 1_u64..1 << 28, writer in 0_u32..20, tasks in 1_usize..4,
        blocks in prop::sample::select(replicas::REGISTRY.names().collect::<Vec<_>>()), apps in app_policies(),
    ) {
        let cluster = cluster();
        let mut engine = engine(&cluster, &shares, blocks, apps);
        let block = |size: u64, writer: u32, id: u64| {
            let writer = Some(cluster.fabric.host_name(HostId(writer)).to_owned());
            let spec = ReplicasSpec { writer, ..ReplicasSpec::new(Bytes(size)) };
            spec.request(&cluster.fabric, id).expect("a right request")
        };
        for (id, (size, writer)) in (100..).zip(before) {
            drop(place_block(&mut engine, block(size, writer, id)));
        }
        let request = block(size, writer, 1);
        if let Ok(placed) = place_block(&mut engine, request.clone()) {
            let (epoch, hosts) = (engine.ledger().epoch(), placed.decision.choice);
            let policy = replicas::REGISTRY.make(blocks, "").expect("a policy");
            let snapshot = engine.snapshot(without(OwnerKind::File, 1));
            let decision = snapshot.replicas(policy.as_ref(), &request, &hosts);
            prop_assert_eq!(decision.map(|decision| decision.choice), Ok(hosts));
            prop_assert_eq!(engine.ledger().epoch(), epoch);
        }
        let request = AppRequest { id: 2, job: JobId(9), tasks: vec![task(50_000_000, 20_000_000); tasks], ..AppRequest::default() };
        if let Ok(placed) = place_app(&mut engine, request.clone()) {
            let hosts = placed.decision.choice;
            let policy = tasks::REGISTRY.make(apps, "").expect("a policy");
            let snapshot = engine.snapshot(without(OwnerKind::App, 2));
            let decision = snapshot.tasks(policy.as_ref(), &request, &hosts);
            prop_assert_eq!(decision.map(|decision| decision.choice), Ok(hosts));
        }
    }

    /// The rating of a host is the load of the fullest link that the task would cross. The choice of a policy has the
    /// best rating within its step. Peers add their traffic, and never improve a host.
    #[test]
    fn ratings_match_the_choice_of_the_policy(
        shares in prop::collection::vec(0_u8..95, 7..40),
        egress in 0_u64..400_000_000, ingress in 0_u64..400_000_000, peer in 0_u32..20,
        to_peer in 0_u64..400_000_000, from_peer in 0_u64..400_000_000,
    ) {
        let cluster = cluster();
        let mut engine = engine(&cluster, &shares, "uniform", "utp");
        let request = AppRequest { id: 1, job: JobId(1), tasks: vec![task(egress, ingress)], ..AppRequest::default() };
        let hosts: Vec<HostId> = cluster.fabric.all_hosts().collect();
        let ratings = engine.score_hosts(&request, &[], &hosts).expect("utp rates hosts");
        let peers = [Peer { host: HostId(peer), egress_bps: to_peer, ingress_bps: from_peer }];
        let with_peers = engine.score_hosts(&request, &peers, &hosts).expect("utp rates hosts");
        let snapshot = engine.snapshot(SnapshotScope::default()).score_hosts(&request, &peers, &hosts);
        prop_assert_eq!(snapshot.as_ref(), Some(&with_peers));
        let mut scratch = Scratch::default();
        let view = engine.ledger().view(NOW, &mut scratch);
        for (host, (rating, with_peers)) in hosts.iter().zip(ratings.iter().zip(&with_peers)) {
            let rack = cluster.fabric.rack_of(*host);
            let loaded = |link: Option<ResourceId>, bps: u64| {
                view.utilization_with(link.expect("a tree"), Load(bps as i64)).expect("a known load")
            };
            let up = loaded(cluster.fabric.out_of_domain(rack), egress);
            let down = loaded(cluster.fabric.into_domain(rack), ingress);
            prop_assert_eq!(rating.loaded, up.max(down));
            prop_assert!(rating.refused.is_none() && rating.limit.is_some());
            prop_assert!(with_peers.loaded >= rating.loaded);
            if *host == HostId(peer) {
                prop_assert_eq!(with_peers.loaded, rating.loaded, "on the same host nothing is sent");
            }
        }
        let best = ratings.iter().map(|rating| rating.loaded).fold(f64::INFINITY, f64::min);
        let placed = place_app(&mut engine, request).expect("enough room");
        let chosen = ratings[placed.decision.choice[0].index()].loaded;
        prop_assert!(chosen <= best + 0.02, "{chosen} and {best}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An app that was decided on a snapshot has the same hosts and ledger entries as an app that was decided at once,
    /// unless one of its hosts closes meanwhile.
    #[test]
    fn an_app_decided_on_a_snapshot_gets_the_same_hosts(
        shares in prop::collection::vec(0_u8..95, 7..40), tasks in 2_usize..6, bytes in 1_u64..1 << 30, closed in any::<bool>(),
        apps in app_policies(),
    ) {
        let cluster = cluster();
        let transfer = |to| Transfer { from: 0, to, bytes: Bytes(bytes), phase: 0 };
        let request = AppRequest {
            id: 3, job: JobId(9), tasks: vec![task(50_000_000, 20_000_000); tasks],
            transfers: (1..tasks as u32).map(transfer).collect(), ..AppRequest::default()
        };
        let mut at_once = engine(&cluster, &shares, "uniform", apps);
        let mut by_snapshot = engine(&cluster, &shares, "uniform", apps);
        let scope = SnapshotScope { job: Some(JobId(9)), without: None };
        let on_snapshot = by_snapshot.snapshot(scope).place(&request, Ruling::default());
        let placed = place_app(&mut at_once, request.clone());
        let Ok(decision) = on_snapshot else {
            prop_assert!(placed.is_err());
            return Ok(());
        };
        if closed {
            by_snapshot.handle(NOW, Input::Drain(decision.0.choice[tasks - 1], true), &mut Vec::new());
        }
        let epoch = by_snapshot.ledger().epoch();
        let committed = by_snapshot.commit_decision(NOW, &request, &request.tasks, decision, &mut Vec::new());
        if closed {
            prop_assert!(committed.is_none() && by_snapshot.ledger().epoch() == epoch);
        } else {
            prop_assert_eq!(committed, placed.ok());
            prop_assert_eq!(by_snapshot.ledger().sums_bytes(), at_once.ledger().sums_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tasks with traffic in any directions, on few hosts, in a job whose observed traffic may exceed the stated. The
    /// entries of each task are its own: after a decision at once, on a snapshot, and after a restart.
    #[test]
    fn each_task_has_the_entries_of_its_own_traffic(
        stated in prop::collection::vec((0_u64..3, 0_u64..3), 1..6), seen in (0_u64..3, 0_u64..3),
        transfers in any::<bool>(),
    ) {
        const STEP: u64 = 10_000_000;
        // One host takes all tasks.
        let cluster = clusters::cluster("racks: 1\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1\ncpus: 64\n");
        let new_engine = || {
            let policies = Policies {
                tasks: tasks::REGISTRY.make("borg", "").ok(),
                history: Some(HistorySettings { window: Nanos(3_600 * Nanos::SECOND.0), percentile: 0.98 }),
                ..Policies::default()
            };
            let mut engine = Engine::new(clusters::ledger(&cluster), policies, 7, Explain::Off);
            let earlier = AppRequest { id: 1, job: JobId(9), tasks: vec![Task::default()], ..AppRequest::default() };
            place_app(&mut engine, earlier).expect("enough room");
            let rates = Rates { egress_bps: seen.0 * STEP, ingress_bps: seen.1 * STEP };
            engine.handle(NOW, Input::Rates(&[(TaskId { app: 1, index: 0 }, rates)]), &mut Vec::new());
            engine
        };
        let task = |&(egress, ingress): &(u64, u64)| task(egress * STEP, ingress * STEP);
        let transfer = |to| Transfer { from: 0, to, bytes: Bytes(1 << 20), phase: 0 };
        let request = AppRequest {
            id: 3, job: JobId(9), tasks: stated.iter().map(task).collect(),
            transfers: (1..stated.len() as u32).filter(|_| transfers).map(transfer).collect(),
            ..AppRequest::default()
        };
        // Directions in which each task has an entry: those with stated or observed traffic.
        let expected = stated.iter().map(|task| {
            [task.0 > 0 || seen.0 > 0, task.1 > 0 || seen.1 > 0]
        });
        let expected: Vec<[bool; 2]> = expected.collect();
        let egress = cluster.fabric.egress(HostId(0)).expect("a tree");
        let directions = |engine: &Engine| {
            let mut directions = vec![[false; 2]; stated.len()];
            for (entry, task) in engine.task_entries(3) {
                let entry = engine.ledger().entry(entry).expect("an entry of a running app");
                let leaves = entry.hops.iter().any(|hop| hop.resource == egress);
                let own = &mut directions[task as usize][usize::from(!leaves)];
                assert!(!std::mem::replace(own, true), "two entries for one direction");
            }
            directions
        };
        let mut at_once = new_engine();
        place_app(&mut at_once, request.clone()).expect("enough room");
        prop_assert_eq!(&directions(&at_once), &expected);

        let mut by_snapshot = new_engine();
        let decided = by_snapshot.with_history(request.clone());
        let scope = SnapshotScope { job: Some(JobId(9)), without: None };
        let decision = by_snapshot.snapshot(scope).place(&decided, Ruling::default()).expect("enough room");
        let placed = by_snapshot.commit_decision(NOW, &request, &decided.tasks, decision, &mut Vec::new());
        prop_assert!(placed.is_some());
        prop_assert_eq!(&directions(&by_snapshot), &expected);

        let (tasks, mut restarted) = (at_once.task_entries(3), new_engine());
        let entries = at_once.entries_of(3).into_iter().map(|id| {
            (tasks.get(&id).copied(), at_once.ledger().entry(id).expect("an entry of a running app").clone())
        });
        let hosts = vec![HostId(0); stated.len()];
        restarted.resume_app(NOW, &request, &hosts, entries.collect()).expect("hosts of the fabric");
        prop_assert_eq!(&directions(&restarted), &expected);
    }
}

#[test]
fn unsuitable_hosts_have_a_reason_and_others_are_rated() {
    let cluster = cluster();
    let mut engine = engine(&cluster, &[10], "uniform", "leeward");
    engine.handle(NOW, Input::Drain(HostId(3), true), &mut Vec::new());
    engine.handle(NOW, Input::Health(HostId(7), false), &mut Vec::new());
    let request = AppRequest { tasks: vec![task(1, 1)], ..AppRequest::default() };
    let ratings = engine.score_hosts(&request, &[], &[3, 7, 11].map(HostId)).expect("leeward rates hosts");
    let refused: Vec<_> = ratings.iter().map(|rating| rating.refused.map(|why| why.text())).collect();
    assert_eq!(refused, [Some("the host is draining"), Some("the host is down"), None]);
    let mut random = self::engine(&cluster, &[10], "uniform", "random");
    assert_eq!(random.score_hosts(&request, &[], &[HostId(1)]), None);
}

#[test]
fn a_snapshot_is_immutable() {
    let mut engine = engine(&cluster(), &[10], "uniform", "leeward");
    let snapshot = engine.snapshot(SnapshotScope::default());
    engine.handle(NOW, Input::Drain(HostId(3), true), &mut Vec::new());
    let open = |snapshot: &EngineSnapshot| {
        let request = AppRequest { tasks: vec![task(1, 1)], ..AppRequest::default() };
        let ratings = snapshot.score_hosts(&request, &[], &[HostId(3)]).expect("leeward rates hosts");
        ratings[0].refused.is_none()
    };
    assert!(open(&snapshot) && !open(&engine.snapshot(SnapshotScope::default())));
}
