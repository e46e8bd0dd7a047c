//! How a rack's uplink compares with what it stores: the classes of CCP (Hotspots sections 4.3 and 5.2).

use leeward_fabric::{Bandwidth, DomainId};
use leeward_ledger::View;

use crate::Pool;

/// How many times the guideline, or its inverse, still matches it: +-10 %. The paper gives no number.
const TOLERANCE: f64 = 0.1;
const BYTES_PER_TB: f64 = 1e12;

/// Uplink capacity over storage capacity, against the provisioning guideline. The higher, the better served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum UplinkClass {
    /// Less uplink than the guideline asks for.
    Low,
    /// As much.
    Medium,
    /// More.
    High,
}

/// How much uplink storage should have, in bit/s for each byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guideline(f64);

impl Guideline {
    /// So much for each TB; if not said, what the racks of the cluster have in the mean. `None` where no rack states
    /// what it stores.
    pub fn of(per_tb: Option<Bandwidth>, pool: &Pool, view: &View<'_>) -> Option<Guideline> {
        let (mut uplinks, mut stored) = (0.0, 0.0);
        for rack in pool.fabric().all_racks() {
            let Some((uplink, storage)) = of_rack(rack, pool, view) else { continue };
            uplinks += uplink;
            stored += storage;
        }
        let mean = (stored > 0.0).then(|| uplinks / stored)?;
        Some(Guideline(per_tb.map_or(mean, |rate| rate.as_load().0 as f64 / BYTES_PER_TB)))
    }

    /// The class of a rack, as its uplink is believed to be. One without storage or uplink is of the middle class.
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
