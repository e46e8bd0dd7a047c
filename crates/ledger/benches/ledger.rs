//! Speed of the ledger for samples, commits, releases and reads. The cluster of Sinbad section 7.1 has 3,000 hosts in
//! 150 racks, and the loads of its rack links are sums over their hosts.

use std::time::{Duration, Instant};

use leeward_fabric::{Bytes, Cluster, DomainId, Endpoint, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Demand, Entry, Fade, Ledger, LedgerSettings, Missing, Owner, OwnerKind, Sample, Scratch, Sign,
    Transaction,
};
use leeward_testing::clusters::{self, ledger_with, racks_of_twenty};

const RACKS: u32 = 150;
const HOSTS: u32 = 3_000;
const SECOND: u64 = 1_000_000_000;
/// Commits timed together: few, so that most batches run without interruption.
const BATCH: u64 = 50;
/// Minimum duration of each measurement.
const MIN_DURATION: Duration = Duration::from_millis(400);

fn main() {
    println!("{:<58} {:>14} {:>12}", "3,000 hosts, 150 racks", "per second", "each");
    for pods in [0, 5] {
        let shape = if pods == 0 { "sums of racks" } else { "sums of racks and 5 pods" };
        let cluster = cluster(pods);
        report(&format!("report in order, {shape} (samples)"), &cluster, Missing::Strict, |_| {});
        if pods == 0 {
            report("report in order, missing: sinbad (samples)", &cluster, Missing::Sinbad, |_| {});
            report("report, egress before ingress (samples)", &cluster, Missing::Strict, |samples| {
                samples.sort_by_key(|sample| sample.resource.0 % 2);
            });
            report("report, windows that end apart (samples)", &cluster, Missing::Strict, |samples| {
                for sample in samples {
                    sample.window.1.0 += u64::from(sample.resource.0.wrapping_mul(2_654_435_761) >> 12);
                }
            });
        }
    }
    let cluster = cluster(0);
    one_by_one(&cluster);
    commits(&cluster, "commit and release a block, all 10 hops (pairs)", block);
    commits(&cluster, "commit and release a block, selected links (pairs)", selected);
    commits(&cluster, "commit, start and release a task (triples)", task);
    reads(&cluster);
}

fn cluster(pods: u32) -> Cluster {
    let mut text = racks_of_twenty(RACKS);
    if pods > 0 {
        text += &format!("pods: {pods}\npod_oversubscription: 2\n");
    }
    clusters::cluster(&text)
}

fn ledger(cluster: &Cluster, missing: Missing) -> Ledger {
    ledger_with(cluster, &LedgerSettings { missing, ..LedgerSettings::default() })
}

/// Reports of all host links over one second.
fn samples(second: u64) -> Vec<Sample> {
    let window = (Nanos(second * SECOND), Nanos((second + 1) * SECOND));
    let load = |resource: u32| Load(i64::from(resource.wrapping_mul(2_654_435_761) >> 8) * 40);
    (0..2 * HOSTS)
        .map(|r| Sample { resource: ResourceId(r), window, load: load(r), guaranteed: None })
        .collect()
}

/// Repeats `work` with an increasing number; prints the median time of each of its `parts`, because other programs
/// interrupt some runs.
#[allow(clippy::disallowed_methods)] // A benchmark may read a clock.
fn measure(name: &str, parts: usize, mut work: impl FnMut(u64)) {
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < MIN_DURATION {
        let started = Instant::now();
        work(times.len() as u64);
        times.push(started.elapsed());
    }
    print(name, times, parts);
}

fn print(name: &str, mut times: Vec<Duration>, parts: usize) {
    times.sort();
    let each = times[times.len() / 2].as_secs_f64() / parts as f64;
    println!("{name:<58} {:>12.2} M {:>9.1} ns", 1e-6 / each, 1e9 * each);
}

fn report(name: &str, cluster: &Cluster, missing: Missing, arrange: impl Fn(&mut [Sample])) {
    let mut ledger = ledger(cluster, missing);
    let mut samples = samples(0);
    arrange(&mut samples);
    measure(name, samples.len(), |_| {
        let discarded =
            ledger.report(&samples, samples.iter().map(|sample| sample.window.1).max().unwrap_or_default());
        assert_eq!(discarded, Default::default());
        for sample in &mut samples {
            sample.window = (Nanos(sample.window.0.0 + SECOND), Nanos(sample.window.1.0 + SECOND));
        }
    });
}

/// Each host's agent sends a report of its own two links.
#[allow(clippy::disallowed_methods)] // As above.
fn one_by_one(cluster: &Cluster) {
    let mut ledger = ledger(cluster, Missing::Strict);
    let mut times = Vec::new();
    let mut second = 0;
    while times.iter().sum::<Duration>() < MIN_DURATION {
        for rack in samples(second).chunks(2 * (HOSTS / RACKS) as usize) {
            let started = Instant::now();
            for host in rack.chunks(2) {
                ledger.report(host, Nanos((second + 1) * SECOND));
            }
            times.push(started.elapsed());
        }
        second += 1;
    }
    print("report host by host (samples)", times, 2 * (HOSTS / RACKS) as usize);
}

/// A chain from one host through the disks of two others.
fn block(cluster: &Cluster, number: u64) -> Entry {
    let host = |n: u64| HostId((number.wrapping_mul(7919).wrapping_add(n * 1543) % u64::from(HOSTS)) as u32);
    let mut hops = Vec::new();
    let chain =
        [Endpoint::Host(host(0)), Endpoint::DeviceWrite(host(1), 0), Endpoint::DeviceWrite(host(2), 0)];
    cluster.fabric.path(&chain, &mut hops);
    Entry {
        owner: Owner { kind: OwnerKind::File, id: number },
        hops,
        demand: Demand::Elastic { bytes: Bytes(256 << 20), flows: 1, cap_bps: Some(400_000_000) },
        sign: Sign::Adds,
        fade: Fade::AtNextWindow,
        starts: None,
    }
}

/// The same block with only the chosen links counted (Sinbad pseudocode 2): into two racks and two hosts.
fn selected(cluster: &Cluster, number: u64) -> Entry {
    let block = block(cluster, number);
    let hops = [2, 3, 7, 8].into_iter().filter_map(|index| block.hops.get(index).copied()).collect();
    Entry { hops, ..block }
}

/// A task with traffic out of its rack and into it.
fn task(cluster: &Cluster, number: u64) -> Entry {
    let host = HostId((number * 7919 % u64::from(HOSTS)) as u32);
    let mut hops = Vec::new();
    let other = DomainId((number % u64::from(RACKS)) as u32);
    cluster.fabric.path(&[Endpoint::Domain(other), Endpoint::Host(host)], &mut hops);
    Entry {
        demand: Demand::Stream { mean_bps: 50_000_000, peak_bps: 80_000_000 },
        fade: Fade::WithEstimator,
        hops,
        ..block(cluster, number)
    }
}

/// Commits entries, keeps some thousands of them, and releases the oldest.
#[allow(clippy::disallowed_methods)] // As above.
fn commits(cluster: &Cluster, name: &str, entry: impl Fn(&Cluster, u64) -> Entry) {
    let mut ledger = ledger(cluster, Missing::Strict);
    ledger.report(&samples(0), Nanos(SECOND));
    let mut pending = std::collections::VecDeque::new();
    let (mut times, mut count) = (Vec::new(), 0u64);
    while times.iter().sum::<Duration>() < MIN_DURATION {
        let batch: Vec<_> = (0..BATCH).map(|n| entry(cluster, count + n)).collect();
        let started = Instant::now();
        for entry in batch {
            let now = Nanos(SECOND + count * 50_000);
            let starts = entry.fade == Fade::WithEstimator;
            let transaction = Transaction { add: vec![entry], ..Transaction::default() };
            let ids = ledger.commit(transaction, now).expect("best effort commits");
            if starts {
                ledger.mark_started(ids[0], now);
            }
            pending.extend(ids);
            if pending.len() > 4000 {
                ledger.release(&[pending.pop_front().expect("a pending entry")], now);
            }
            count += 1;
        }
        times.push(started.elapsed());
        let now = SECOND + count * 50_000;
        if count % 20_000 == 0 {
            // A window's report removes the items that wait for it.
            ledger.report(&samples(now / SECOND - 1), Nanos(now));
        }
    }
    print(name, times, BATCH as usize);
}

fn reads(cluster: &Cluster) {
    let mut ledger = ledger(cluster, Missing::Strict);
    ledger.report(&samples(0), Nanos(SECOND));
    let mut scratch = Scratch::default();
    let mut view = ledger.view(Nanos(SECOND), &mut scratch);
    (0..100).for_each(|number| view.add(&block(cluster, number)));
    let racks: Vec<_> =
        cluster.fabric.all_racks().filter_map(|rack| cluster.fabric.into_domain(rack)).collect();
    let mut sum = 0;
    measure("expected_capacity of each rack's downlink (reads)", racks.len(), |_| {
        sum += racks.iter().filter_map(|&link| view.expected_capacity(link)).map(|load| load.0).sum::<i64>();
    });
    measure("residual of each rack's downlink (reads)", racks.len(), |_| {
        sum += racks.iter().map(|&link| view.residual(link).0).sum::<i64>();
    });
    let hosts: Vec<_> = cluster.fabric.all_hosts().filter_map(|host| cluster.fabric.ingress(host)).collect();
    measure("expected_capacity of each host's ingress (reads)", hosts.len(), |_| {
        sum += hosts.iter().filter_map(|&link| view.expected_capacity(link)).map(|load| load.0).sum::<i64>();
    });
    measure("residual of each host's ingress (reads)", hosts.len(), |_| {
        sum += hosts.iter().map(|&link| view.residual(link).0).sum::<i64>();
    });
    std::hint::black_box(sum);
}
