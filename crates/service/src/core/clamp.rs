//! Bounds on reported values. A link carries at most its capacity in the cluster, and a host stores at most its storage.
//! A faulty reporter may report any value. Without the bound, the estimate of the link would need many intervals to
//! recover, and the sums of racks and averages over hosts would be wrong for other hosts too.
//!
//! The bound is the cluster's capacity, and not a speed from the same report: a reporter must not choose its own bound.

use leeward_fabric::{Bytes, Load};

use super::reply::CLAMPED;
use super::request::{HostReport, Report};
use super::{Addresses, Coordinator};

/// Excess over the bound, as a factor, that the inaccuracy of a measurement explains.
const TOLERANCE: f64 = 1.05;

/// Values that exceeded their bounds by more than the tolerance.
#[derive(Default)]
pub(super) struct Clamped {
    /// Number of values.
    pub count: u64,
    /// Names of the first links and hosts.
    pub names: Vec<String>,
}

impl Clamped {
    /// Adds the values of `other`.
    pub fn add(&mut self, other: Clamped) {
        self.count += other.count;
        let free = CLAMPED.saturating_sub(self.names.len());
        self.names.extend(other.names.into_iter().take(free));
    }

    /// Returns the bounded value, and records the name if the excess is no inaccuracy.
    fn bound(&mut self, value: u64, most: u64, name: impl FnOnce() -> String) -> u64 {
        if value as f64 > most as f64 * TOLERANCE {
            self.count += 1;
            if self.names.len() < CLAMPED {
                self.names.push(name());
            }
        }
        value.min(most)
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Bounds the loads of a report by the capacities of their links.
    pub(super) fn clamp_loads(&mut self, report: &mut Report, clamped: &mut Clamped) {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        for sample in &mut report.loads {
            let lost = || self.engine.capacity_before_loss(sample.resource);
            let most = self.readings.full(sample.resource).or_else(lost);
            let most = most.unwrap_or_else(|| view.capacity(sample.resource));
            if sample.load <= most {
                continue;
            }
            // A stale sample changes nothing, so its value does not matter.
            if ledger.is_news(sample, self.now) {
                clamped.bound(sample.load.0 as u64, most.0 as u64, || fabric.resource_name(sample.resource));
            }
            sample.load = Load(sample.load.0.min(most.0));
        }
    }

    /// Bounds the stored bytes of a host by its storage in the cluster, and by its reported storage.
    pub(super) fn clamp_stored(&self, state: HostReport, clamped: &mut Clamped) -> HostReport {
        let fabric = self.fabric();
        let reported = state.storage.or(self.hosts.storage(state.host));
        let storage = [fabric.storage(state.host), reported].into_iter().flatten().min();
        let Some((stored, storage)) = state.stored.zip(storage) else { return state };
        let stored = clamped.bound(stored.0, storage.0, || fabric.host_name(state.host).to_owned());
        HostReport { stored: Some(Bytes(stored)), ..state }
    }
}
