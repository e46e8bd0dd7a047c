//! Time of one decision of each replica policy on two cluster sizes, compared with `uniform`. Every link is reported
//! and busy. `uniform` ignores load, so it is the baseline.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Sample, Scratch};
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Context, Explain, Pool, Refusal};
use leeward_testing::bench;
use leeward_testing::clusters::{cluster, ledger, racks_of_twenty};

const DECISIONS: usize = 20_000;

fn main() {
    println!(
        "{:>8} {:>6} {:>12} {:>10} {:>10} {:>10} {:>12}",
        "hosts", "racks", "policy", "p50", "p99", "mean", "x uniform"
    );
    for racks in [150, 5_000] {
        let mut uniform = f64::NAN;
        for policy in replicas::REGISTRY.names() {
            let Some((p50, p99, mean)) = measure(racks, policy) else {
                println!("{:>8} {racks:>6} {policy:>12} places only on hosts with storage", racks * 20);
                continue;
            };
            if policy == "uniform" {
                uniform = mean;
            }
            let (hosts, ratio) = (racks * 20, mean / uniform);
            bench::record(&format!("decision, {policy}, {hosts} hosts, p99"), "us", p99);
            println!(
                "{hosts:>8} {racks:>6} {policy:>12} {p50:>7.2} us {p99:>7.2} us {mean:>7.2} us {ratio:>12.2}"
            );
        }
    }
}

/// Median, 99th percentile and average time of a decision and its commit, in microseconds; `None` if the policy requires
/// storage, which the hosts do not have.
fn measure(racks: u32, policy: &str) -> Option<(f64, f64, f64)> {
    let cluster = cluster(&racks_of_twenty(racks));
    let mut ledger = ledger(&cluster);
    let samples: Vec<Sample> = (0..cluster.fabric.resource_count() as u32)
        .map(|resource| {
            let capacity = cluster.capacities.get(ResourceId(resource)).0;
            let load = Load((i64::from(resource.wrapping_mul(2_654_435_761) >> 8) * capacity) >> 24);
            Sample {
                resource: ResourceId(resource),
                window: (Nanos(0), Nanos::SECOND),
                load,
                guaranteed: None,
            }
        })
        .collect();
    ledger.report(&samples, Nanos::SECOND);
    let pool = Pool::new(cluster.fabric.clone());
    let policy = replicas::REGISTRY.make(policy, "").expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let hosts = cluster.fabric.host_count() as u64;
    let mut times = Vec::with_capacity(DECISIONS);
    for id in 0..DECISIONS as u64 {
        // A report per second and four blocks per second for 3,000 hosts: a few thousand blocks are active at once.
        let now = Nanos(1_000_000_000 + id * 50_000);
        let request = ReplicaRequest {
            id,
            file: id,
            writer: Some(HostId((id * 7919 % hosts) as u32)),
            size: Bytes(256 << 20),
            replicas: 3,
            layout: Layout::Chain,
            fault_domains: 1,
            blocks_left: 1,
            job: None,
            constraints: Constraints::default(),
        };
        let begin = Instant::now();
        let decision = {
            let view = &mut ledger.view(now, &mut scratch);
            let mut context = Context { view, pool: &pool, seed: 1, explain: Explain::Off };
            policy.place(std::slice::from_ref(&request), &mut context).remove(0)
        };
        let decision = match decision {
            Err(Refusal::NoStorage) => return None,
            decision => decision.expect("a cluster with room"),
        };
        let entries = ledger.commit(decision.change, now).expect("best effort commits");
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        if id % 4 != 0 {
            ledger.release(&entries, now);
        }
    }
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    times.sort_unstable_by(f64::total_cmp);
    Some((times[times.len() / 2], times[times.len() * 99 / 100], mean))
}
