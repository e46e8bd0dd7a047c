//! Classes of racks by uplink per storage, as in CCP (Hotspots sections 4.3 and 5.2).

use leeward_fabric::{Bandwidth, DomainId};
use leeward_ledger::View;

use crate::Pool;

/// Tolerance around the guideline, as a share of it: 10 % either way. The paper gives no number.
const TOLERANCE: f64 = 0.1;
const BYTES_PER_TB: f64 = 1e12;

/// Ratio of uplink capacity to storage capacity, relative to the provisioning guideline. Higher is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum UplinkClass {
    /// Less uplink than the guideline.
    Low,
    /// About the guideline.
    Medium,
    /// More uplink than the guideline.
    High,
}

/// Provisioning guideline: uplink per storage, in bit/s per byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guideline(f64);

impl Guideline {
    /// Guideline from a rate per TB, by default the average of all racks. `None` if no rack has a known
    /// storage size.
    pub fn of(per_tb: Option<Bandwidth>, pool: &Pool, view: &View<'_>) -> Option<Guideline> {
        let mean = Guideline::mean(pool.fabric().all_racks(), pool, view)?;
        Some(per_tb.map_or(mean, |rate| Guideline(rate.as_load().0 as f64 / BYTES_PER_TB)))
    }

    /// Average over a fixed sample of `racks` racks of the cluster.
    pub fn of_sample(racks: usize, pool: &Pool, view: &View<'_>) -> Option<Guideline> {
        let count = pool.fabric().rack_count();
        if count <= racks {
            return Guideline::mean(pool.fabric().all_racks(), pool, view);
        }
        let nth = tour(0, count);
        Guideline::mean((0..racks).map(|step| DomainId(nth(step) as u32)), pool, view)
    }

    fn mean(racks: impl Iterator<Item = DomainId>, pool: &Pool, view: &View<'_>) -> Option<Guideline> {
        let (mut total_uplink, mut total_storage) = (0.0, 0.0);
        for (uplink, storage) in racks.filter_map(|rack| of_rack(rack, pool, view)) {
            total_uplink += uplink;
            total_storage += storage;
        }
        (total_storage > 0.0).then(|| Guideline(total_uplink / total_storage))
    }

    /// Class of a rack by its uplink capacity in the ledger. A rack without storage or uplink is Medium.
    pub fn class(self, rack: DomainId, pool: &Pool, view: &View<'_>) -> UplinkClass {
        let Some((uplink, storage)) = of_rack(rack, pool, view) else { return UplinkClass::Medium };
        let ratio = uplink / (storage * self.0);
        if ratio > 1.0 + TOLERANCE {
            UplinkClass::High
        } else if ratio < 1.0 - TOLERANCE {
            UplinkClass::Low
        } else {
            UplinkClass::Medium
        }
    }
}

/// Uplink capacity in bit/s and storage capacity in bytes of a rack that has both.
fn of_rack(rack: DomainId, pool: &Pool, view: &View<'_>) -> Option<(f64, f64)> {
    let uplink = view.capacity(pool.fabric().out_of_domain(rack)?).0 as f64;
    let storage = pool.storage(rack)?.0 as f64;
    (storage > 0.0).then_some((uplink, storage))
}

/// A permutation of `count` items: returns the item at each step. Neighbours seldom follow one another.
pub(super) fn tour(first: usize, count: usize) -> impl Fn(usize) -> usize {
    let golden = (count as f64 * 0.618) as usize;
    let stride = (golden.max(1)..).find(|&stride| gcd(stride, count) == 1).unwrap_or(1);
    move |step| (first + step * stride) % count
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
