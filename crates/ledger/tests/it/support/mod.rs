//! Shared test fixtures: small clusters and plain entries.
use leeward_fabric::{BITS_PER_BYTE, Bytes, Fabric, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Fade, Ledger, Owner, OwnerKind, Sample, Scratch, Sign, View};

pub const MBPS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Two pods of two racks of two hosts, each with a disk, and priorities on every link.
pub const TREE: &str = "racks: 4\nhosts_per_rack: 2\nnic: 1Gbps\nrack_link: 1500Mbps\npods: 2\npod_link: 2Gbps\n\
                        priorities: 8\ndevices: [{read: 100MB/s, write: 50MB/s}]\n";

/// The link into the first rack.
pub fn downlink(fabric: &Fabric) -> ResourceId {
    fabric.into_domain(leeward_fabric::DomainId(0)).expect("a tree")
}

pub fn ingress(fabric: &Fabric, host: u32) -> ResourceId {
    fabric.ingress(HostId(host)).expect("a tree")
}

pub fn sample(resource: ResourceId, window: (u64, u64), load: i64) -> Sample {
    Sample { resource, window: (Nanos(window.0), Nanos(window.1)), load: Load(load), guaranteed: None }
}

/// Work of `rate` on links that fades with the estimator.
pub fn stream(resources: &[ResourceId], rate: u64) -> Entry {
    Entry {
        owner: Owner { kind: OwnerKind::Job, id: 1 },
        hops: resources.iter().map(|&resource| Hop { resource, work: BITS_PER_BYTE }).collect(),
        demand: Demand::Stream { mean_bps: rate, peak_bps: rate },
        sign: Sign::Adds,
        fade: Fade::WithEstimator,
        starts: None,
    }
}

pub fn block(resources: &[ResourceId], bytes: u64, cap: Option<u64>) -> Entry {
    let demand = Demand::Elastic { bytes: Bytes(bytes), flows: 1, cap_bps: cap };
    Entry { demand, ..stream(resources, 0) }
}

/// All numbers of a view for one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    pub measured: Option<Load>,
    pub guaranteed: Option<Load>,
    pub expected_capacity: Option<Load>,
    pub residual: Load,
    pub share: Load,
    pub utilization: Option<f64>,
    pub unreserved: Option<Load>,
    pub flows: f64,
    pub version: u32,
    pub promises: usize,
    pub since: (bool, Nanos, Option<Nanos>, Nanos),
}

pub fn reading(view: &View<'_>, resource: ResourceId) -> Reading {
    Reading {
        measured: view.measured(resource),
        guaranteed: view.measured_guaranteed(resource),
        expected_capacity: view.expected_capacity(resource),
        residual: view.residual(resource),
        share: view.share(resource, 2),
        utilization: view.utilization_with(resource, Load(0)),
        unreserved: view.unreserved(resource).ok(),
        flows: view.flows(resource),
        version: view.version(resource),
        promises: view.envelopes(resource).map_or(0, <[_]>::len),
        since: (
            view.is_derived(resource),
            view.measured_until(resource),
            view.hot_since(resource),
            view.time_to_report(resource),
        ),
    }
}

/// All numbers of a ledger for all its resources.
pub fn readings(ledger: &Ledger, now: u64) -> Vec<Reading> {
    let mut scratch = Scratch::default();
    let view = ledger.view(Nanos(now), &mut scratch);
    view.fabric().all_resources().map(|resource| reading(&view, resource)).collect()
}

/// Fails unless two readings are the same except for the order in which fractions were added up. A what-if does not
/// change promises and their version.
pub fn assert_close(a: &Reading, b: &Reading) {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0) || a == b;
    let loads = |r: &Reading| {
        [Some(r.residual), Some(r.share), r.measured, r.guaranteed, r.expected_capacity, r.unreserved]
    };
    let same = loads(a).iter().zip(loads(b)).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => a.0.abs_diff(b.0) <= 1,
        (a, b) => *a == b,
    });
    let utilization = match (a.utilization, b.utilization) {
        (Some(a), Some(b)) => near(a, b),
        (a, b) => a == b,
    };
    assert!(same && utilization && near(a.flows, b.flows) && a.since == b.since, "{a:?}\n{b:?}");
}
