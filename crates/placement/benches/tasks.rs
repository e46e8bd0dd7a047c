//! Time to place apps on meshes, and the completion of their transfers. Time of one score for a thousand candidates.
//! Time to place apps of several sizes on 10,000 hosts, compared with the policy's own cost estimate and with the time
//! to copy the state.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use leeward_fabric::{Bytes, Cluster, Cpus, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Fade, Ledger, Owner, OwnerKind, Sample, Scratch, Sign, Transaction};
use leeward_placement::tasks::{self, AppRequest, Estimate, Task, TaskPolicy, Traffic, Transfer, completion};
use leeward_placement::{Context, Explain, JobId, Pool};
use leeward_registry::{Registration, splitmix};
use leeward_testing::bench;
use leeward_testing::clusters::{cluster, ledger};

fn main() {
    apps();
    scores();
    long_requests();
}

/// Policies that place as another one: `utp-reactive` places as `borg`, and `utp-proactive` places as `utp`.
const SAME: [&str; 2] = ["utp-reactive", "utp-proactive"];

/// All policies, except those of [`SAME`] and those in `without`.
fn policies(without: &[&str]) -> impl Iterator<Item = &'static Registration<dyn TaskPolicy>> {
    tasks::REGISTRY.iter().filter(move |one| !SAME.contains(&one.name) && !without.contains(&one.name))
}

fn mesh(shape: &str, hosts: usize) -> Cluster {
    let mut text = format!("shape: {shape}\ncpus: 4\nhosts:\n");
    for host in 0..hosts {
        let nic = format!(", nic: {{up: {}Mbps, down: 10Gbps}}", 300 + splitmix(host as u64) % 800);
        text += &format!("  - {{name: h{host}{}}}\n", if shape == "hose" { &nic } else { "" });
    }
    if shape == "pipe" {
        text += "pair: 1Gbps\n";
    }
    let mut cluster = cluster(&text);
    if shape == "pipe" {
        for resource in cluster.fabric.all_resources() {
            let rate = 300 + splitmix(u64::from(resource.0)) % 800;
            cluster.capacities.set(resource, Load(rate as i64 * 1_000_000));
        }
    }
    cluster
}

/// Tasks of 0.5 to 4 processors, each with about `degree` transfers, enough to fill half of the hosts.
fn app(count: u32, degree: u32) -> AppRequest {
    let task = |at| Task { cpus: Cpus(500 + splitmix(at) % 7 * 500), ..Task::default() };
    let mut transfers = std::collections::BTreeMap::new();
    for at in 0..u64::from(count * degree) {
        let (from, to) =
            ((splitmix(at) % u64::from(count)) as u32, (splitmix(at ^ 1 << 40) % u64::from(count)) as u32);
        if from != to {
            transfers.insert((from, to), Bytes(1_000_000 + splitmix(at ^ 2 << 40) % 1_000_000_000));
        }
    }
    AppRequest {
        tasks: (0..u64::from(count)).map(task).collect(),
        transfers: transfers
            .into_iter()
            .map(|((from, to), bytes)| Transfer { from, to, bytes, phase: 0 })
            .collect(),
        ..AppRequest::default()
    }
}

fn apps() {
    println!(
        "{:>6} {:>6} {:>9} {:>16} {:>12} {:>12}",
        "shape", "tasks", "transfers", "policy", "time", "completion"
    );
    for (shape, hosts, count, degree) in [
        ("hose", 100, 100, 8),
        ("pipe", 100, 100, 8),
        ("hose", 1000, 1000, 8),
        ("pipe", 1000, 1000, 8),
        ("hose", 1000, 1000, 200),
    ] {
        let cluster = mesh(shape, hosts);
        let (ledger, pool) = (ledger(&cluster), Pool::new(cluster.fabric.clone()));
        let app = app(count, degree);
        // `choreo-exact` would not finish for apps of this size. `utp` ranks links of racks, and a mesh has none.
        for registration in policies(&["choreo-exact", "utp"]) {
            let name = registration.name;
            let policy = (registration.make)("").expect("a policy with default settings");
            let mut scratch = Scratch::default();
            let view = &mut ledger.view(Nanos(0), &mut scratch);
            let mut context = Context { view, pool: &pool, seed: 1, explain: Explain::Off };
            let begin = Instant::now();
            let answer = policy.place(std::slice::from_ref(&app), &mut context).remove(0);
            let time = begin.elapsed().as_secs_f64() * 1e3;
            let choice: Vec<HostId> = answer.expect("half of the room is free").choice;
            let seconds = completion(context.view, &app.transfers, &choice, Estimate::default()).seconds;
            let transfers = app.transfers.len();
            let title = format!("app, {shape}, {hosts} hosts, {count} tasks, {transfers} transfers, {name}");
            bench::record(&title, "ms", time);
            println!("{shape:>6} {count:>6} {transfers:>9} {name:>16} {time:>9.2} ms {seconds:>10.1} s");
        }
    }
}

/// Ledger and pool of `racks` racks of 20 hosts with load on all links.
fn informed(racks: u32, cpus: u32) -> (Ledger, Pool) {
    let text =
        format!("racks: {racks}\nhosts_per_rack: 20\nnic: 10Gbps\noversubscription: 4\ncpus: {cpus}\n");
    let cluster = cluster(&text);
    let mut ledger = ledger(&cluster);
    let sample_of = |resource: ResourceId| {
        let capacity = cluster.capacities.get(resource).0 as u64;
        let load = Load((capacity / 1000 * (splitmix(u64::from(resource.0)) % 900)) as i64);
        Sample { resource, window: (Nanos(0), Nanos::SECOND), load, guaranteed: None }
    };
    let samples: Vec<Sample> = cluster.fabric.all_resources().map(sample_of).collect();
    ledger.report(&samples, Nanos::SECOND);
    (ledger, Pool::new(cluster.fabric))
}

fn scores() {
    println!("\n{:>8} {:>7} {:>14} {:>10} {:>10}", "hosts", "sample", "policy", "p50", "p99");
    for (racks, sample) in [(50, 1000), (250, 1000), (5000, 100)] {
        let (ledger, pool) = informed(racks, 64);
        // Policies without the setting `sample` have no number of candidates.
        let has_sample =
            |one: &&Registration<dyn TaskPolicy>| (one.schema)()["properties"].get("sample").is_some();
        for registration in policies(&[]).filter(has_sample) {
            let name = registration.name;
            let policy = (registration.make)(&format!("sample: {sample}")).expect("a valid sample");
            let mut scratch = Scratch::default();
            let mut times = Vec::new();
            for id in 0..2000 {
                let mut task = Task { cpus: Cpus(1000), ..Task::default() };
                task.egress[1] = Traffic { mean_bps: 50_000_000, peak_bps: 200_000_000 };
                let request = AppRequest { id, tasks: vec![task], ..AppRequest::default() };
                let view = &mut ledger.view(Nanos::SECOND, &mut scratch);
                let mut context = Context { view, pool: &pool, seed: 1, explain: Explain::Off };
                let begin = Instant::now();
                let answer = policy.place(std::slice::from_ref(&request), &mut context).remove(0);
                times.push(begin.elapsed().as_secs_f64() * 1e6);
                answer.expect("enough room");
            }
            times.sort_unstable_by(f64::total_cmp);
            let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            bench::record(
                &format!("task, {name}, {sample} candidates of {} hosts, p99", racks * 20),
                "us",
                p99,
            );
            println!("{:>8} {sample:>7} {name:>14} {p50:>7.1} us {p99:>7.1} us", racks * 20);
        }
    }
}

/// Number of other entries in the ledger: about the entries of a few busy minutes.
const ENTRIES: u32 = 300_000;

/// One app on 10,000 hosts: a copy of the state, the decision, and its commit.
fn long_requests() {
    let (mut ledger, pool) = informed(500, 16);
    let entry = |number: u32| {
        let hops =
            [number % 10_000, number / 7 % 10_000].map(|link| Hop { resource: ResourceId(link), work: 8.0 });
        let demand = Demand::Elastic { bytes: Bytes(256 << 20), flows: 1, cap_bps: None };
        let owner = Owner { kind: OwnerKind::File, id: u64::from(number) };
        let (sign, fade) = (Sign::Adds, Fade::WithEstimator);
        Entry { owner, hops: hops.to_vec(), demand, sign, fade, starts: Some(Nanos::SECOND) }
    };
    let change = Transaction { add: (0..ENTRIES).map(entry).collect(), ..Transaction::default() };
    ledger.commit(change, Nanos::SECOND).expect("the transaction commits");
    let mut copied: Vec<f64> = (0..20)
        .map(|_| {
            let begin = Instant::now();
            let copy = (ledger.snapshot(Nanos::SECOND, None), pool.of_job(JobId(1)));
            let time = begin.elapsed().as_secs_f64() * 1e3;
            drop(copy);
            time
        })
        .collect();
    copied.sort_unstable_by(f64::total_cmp);
    println!("\na copy beside {ENTRIES} entries: {:.2} ms", copied[copied.len() / 2]);
    println!(
        "\n{:>16} {:>6} {:>10} {:>14} {:>12} {:>12} {:>12}",
        "policy", "tasks", "transfers", "est. lookups", "decided", "committed", "completion"
    );
    // Approximate number of transfers of each task, and the policies whose cost estimate is checked. `choreo-exact`
    // would not finish for apps of this size.
    let pairs =
        [0, 4].into_iter().flat_map(|degree| policies(&["choreo-exact"]).map(move |one| (degree, one)));
    for (degree, registration) in pairs {
        let name = registration.name;
        let policy = (registration.make)("").expect("a policy with default settings");
        for count in [1, 5, 20, 100, 300, 1000] {
            let mut times = Vec::new();
            let (mut transfers, mut lookups, mut seconds) = (0, 0, 0.0);
            for id in 0..5 {
                let mut request = AppRequest { id, ..app(count, degree) };
                for task in &mut request.tasks {
                    task.egress[1] = Traffic { mean_bps: 5_000_000, peak_bps: 20_000_000 };
                }
                (transfers, lookups) =
                    (request.transfers.len(), policy.cost_estimate(&request, ledger.fabric()));
                let mut scratch = Scratch::default();
                let view = &mut ledger.view(Nanos::SECOND, &mut scratch);
                let mut context = Context { view, pool: &pool, seed: 1, explain: Explain::Top(8) };
                let begin = Instant::now();
                let answer = policy.place(std::slice::from_ref(&request), &mut context).remove(0);
                let decided = begin.elapsed().as_secs_f64() * 1e3;
                let decision = answer.expect("enough room");
                seconds = completion(context.view, &request.transfers, &decision.choice, Estimate::default())
                    .seconds;
                let begin = Instant::now();
                let entries = ledger.commit(decision.change, Nanos::SECOND).expect("the transaction commits");
                let committed = begin.elapsed().as_secs_f64() * 1e3;
                ledger.release(&entries, Nanos::SECOND);
                times.push((decided, committed));
            }
            times.sort_unstable_by(|a, b| f64::total_cmp(&a.0, &b.0));
            let (decided, committed) = times[times.len() / 2];
            println!(
                "{name:>16} {count:>6} {transfers:>10} {lookups:>14} {decided:>9.2} ms {committed:>9.2} ms {seconds:>10.2} s"
            );
        }
    }
}
