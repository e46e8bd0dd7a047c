//! Placements per second: of the coordinator alone, of the task that owns it, and of the whole service over loopback
//! HTTP with a few persistent connections. Each decision is durable before its reply (group commit), in a file or, if
//! installed, in PostgreSQL. The cluster is the one of Sinbad section 7.1: 3,000 hosts. Every link has reports and
//! load. Client and service share the machine's cores, so the HTTP rate includes both.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use leeward_engine::Engine;
use leeward_fabric::{Bytes, Cluster, Fabric, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_placement::{Explain, replicas};
use leeward_records::{PlacementSpec, ReplicasSpec};
use leeward_service::{
    Addresses, Completion, Coordinator, Handle, Limits, NewCluster, Placement, Report, TelemetryState,
};
use leeward_store::{Database, Durability, Postgres, Sqlite, Store};
use leeward_testing::bench;
use leeward_testing::clusters::{cluster, ledger, racks_of_twenty};
use leeward_testing::postgres;
use serde_json::json;
use support::{Numbers, Server, frozen_clock, labels, samples, service_on};

/// Racks of twenty hosts.
const RACKS: u32 = 150;
const PLACEMENTS: u64 = 40_000;
const NOW: Nanos = Nanos(10 * Nanos::SECOND.0);
const CONNECTIONS: u64 = 4;

fn main() {
    let cluster = cluster(&racks_of_twenty(RACKS));
    println!(
        "{:<44} {:>12} {:>12} {:>12} {:>14}",
        "3,000 hosts", "placements/s", "p50", "p99", "vs. the task"
    );
    let (coordinator, coordinator_times) = coordinator_alone(&cluster);
    let (task, task_times) = task_alone(&cluster);
    print("the coordinator alone", coordinator, task, coordinator_times);
    print(&format!("the task, {CONNECTIONS} clients"), task, task, task_times);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, durability) in [("process", Durability::Process), ("power", Durability::Power)] {
        let store = Sqlite::open(&folder.path().join(name), durability, 1_000_000).expect("a new file");
        let (rate, times) = whole_service(&cluster, Box::new(store));
        print(&format!("the service, {CONNECTIONS} connections, durable: {name}"), rate, task, times);
    }
    let Some(server) = postgres::Server::start("on") else { return };
    let database = Database::read(&server.url(&server.database()), None).expect("a valid URL");
    let store = Postgres::open(database, Durability::Process, 1_000_000).expect("the database is available");
    let (rate, times) = whole_service(&cluster, Box::new(store));
    print(&format!("the service, {CONNECTIONS} connections, PostgreSQL"), rate, task, times);
}

/// Prints a rate, its ratio to the task's rate, and latency percentiles.
fn print(name: &str, rate: f64, task: f64, mut micros: Vec<f64>) {
    micros.sort_unstable_by(f64::total_cmp);
    let (p50, p99) = (micros[micros.len() / 2], micros[micros.len() * 99 / 100]);
    bench::record(&format!("service, {name}"), "placements/s", rate);
    bench::record(&format!("service, {name}, p99"), "us", p99);
    println!("{name:<44} {rate:>12.0} {p50:>9.1} us {p99:>9.1} us {:>14.2}", rate / task);
}

fn report(cluster: &Cluster) -> Report {
    let fabric = &cluster.fabric;
    let links = fabric.all_resources().filter(|&link| fabric.kind(link) != ResourceKind::Device);
    let load = |link: ResourceId| {
        let capacity = cluster.capacities.get(link).0;
        (link, Load((i64::from(link.0.wrapping_mul(2_654_435_761) >> 8) * capacity) >> 24))
    };
    Report {
        window: (Nanos(9 * Nanos::SECOND.0), NOW),
        loads: samples((Nanos(9 * Nanos::SECOND.0), NOW), links.map(load)),
        ..Report::default()
    }
}

fn coordinator_with_reports<A: Addresses>(cluster: &Cluster) -> Coordinator<A> {
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let engine = Engine::new(ledger(cluster), policy, 1, Explain::Top(8));
    let mut coordinator = Coordinator::new(engine, labels(), Limits::default());
    coordinator.report(NOW, report(cluster)).expect("a valid report");
    coordinator
}

/// Writers alternate between distant hosts.
fn writer(fabric: &Fabric, number: u64) -> &str {
    fabric.host_name(HostId((number * 7919 % 3_000) as u32))
}

fn placement(fabric: &Fabric, number: u64) -> Placement {
    let writer = Some(writer(fabric, number).to_owned());
    let spec = ReplicasSpec { size: Bytes(256 << 20), replicas: 3, writer, ..ReplicasSpec::default() };
    let spec = PlacementSpec::Replicas(spec);
    Placement { spec, caller: None, lasts: None, reference: None, digest: None }
}

fn coordinator_alone(cluster: &Cluster) -> (f64, Vec<f64>) {
    let mut coordinator = coordinator_with_reports::<Numbers>(cluster);
    let mut times = Vec::with_capacity(PLACEMENTS as usize);
    let start = Instant::now();
    for number in 0..PLACEMENTS {
        let started = Instant::now();
        coordinator.place(NOW, placement(&cluster.fabric, number), 0);
        times.push(started.elapsed().as_secs_f64() * 1e6);
        let is_placed = |completion| matches!(completion, Completion::Place(_, Ok(_)));
        assert!(coordinator.completions().all(is_placed), "the cluster has room");
    }
    (PLACEMENTS as f64 / start.elapsed().as_secs_f64(), times)
}

fn task_alone(cluster: &Cluster) -> (f64, Vec<f64>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (copy, store) = (cluster.clone(), Sqlite::in_memory().expect("an in-memory store opens"));
        let make = Box::new(move |_: &Cluster, _: bool| coordinator_with_reports(&copy));
        let file = NewCluster::read("bench", &racks_of_twenty(RACKS)).expect("a valid cluster");
        let (store, telemetry) = (Box::new(store), TelemetryState::default());
        let opened = Handle::open(make, file, store, frozen_clock(), "bench".into(), telemetry).await;
        let (handle, actor) = opened.expect("an empty store");
        tokio::spawn(actor);
        let start = Instant::now();
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|client| {
                let (handle, fabric) = (handle.clone(), cluster.fabric.clone());
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    for number in (client..PLACEMENTS).step_by(CONNECTIONS as usize) {
                        let started = Instant::now();
                        let reply = handle.call(placement(&fabric, number), fabric.clone()).await;
                        times.push(started.elapsed().as_secs_f64() * 1e6);
                        assert!(reply.is_ok(), "the cluster has room");
                    }
                    times
                })
            })
            .collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.await.expect("a client does not panic"));
        }
        (PLACEMENTS as f64 / start.elapsed().as_secs_f64(), times)
    })
}

fn whole_service(cluster: &Cluster, store: Box<dyn Store>) -> (f64, Vec<f64>) {
    let server = Server::start(service_on(&racks_of_twenty(RACKS), "", frozen_clock(), store));
    let fabric = &cluster.fabric;
    let loads = report(cluster).loads;
    let links: Vec<(String, f64)> =
        loads.iter().map(|one| (fabric.resource_name(one.resource), one.load.0 as f64)).collect();
    server.report(&links);
    let place = |connection: u64| {
        let (agent, url) = (support::agent(), server.url("/v1/place/replicas"));
        let mut times = Vec::new();
        for number in (connection..PLACEMENTS / 2).step_by(CONNECTIONS as usize) {
            let body = json!({ "size": "256MiB", "writer": writer(fabric, number) }).to_string();
            let started = Instant::now();
            let sent = agent.post(&url).header("content-type", "application/json").send(body);
            let mut response = sent.expect("the server answers");
            response.body_mut().read_to_string().expect("text");
            times.push(started.elapsed().as_secs_f64() * 1e6);
            assert_eq!(response.status(), 201);
        }
        times
    };
    let start = Instant::now();
    let times: Vec<f64> = std::thread::scope(|scope| {
        let placers: Vec<_> = (0..CONNECTIONS)
            .map(|at| {
                let place = &place;
                scope.spawn(move || place(at))
            })
            .collect();
        placers.into_iter().flat_map(|placer| placer.join().expect("the placement succeeds")).collect()
    });
    (times.len() as f64 / start.elapsed().as_secs_f64(), times)
}
