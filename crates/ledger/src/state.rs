//! State of the ledger for each resource, in two tables. A policy reads the gauges for every candidate, and the
//! commitments for few.

use std::collections::VecDeque;
use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;

use crate::EntryId;
use crate::pending::Pending;

/// Fields for a scan over candidates: small, and in order of resource id.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gauge {
    /// Assumed capacity. Never negative.
    pub capacity: i64,
    /// Estimated load after the last window.
    pub measured: f64,
    /// End of the last window, or the time at which the host came up, if later. Windows that end by then are stale.
    pub until: Nanos,
    /// Sum of bytes / time to the next report, over the blocks placed since the last report; not clamped.
    pub pressure: i64,
    /// Source of the estimate.
    pub source: Source,
}

/// Source of a resource's estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// No report yet.
    None,
    /// The resource's own counter.
    Direct,
    /// The sum of the resources below it.
    Derived,
    /// A host that is known to be down: it carries nothing.
    Down,
}

/// Commitments at a resource, and further data from its samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Commitments {
    /// Best-effort rates not yet in telemetry.
    pub pending: Pending,
    /// Promised rates not yet in telemetry.
    pub pending_guaranteed: Pending,
    /// The blocks in `Gauge::pressure` and the rates that end with the next window, by entry.
    pub until_window: VecDeque<UntilWindow>,
    /// Elastic flows.
    pub flows: i64,
    /// Measured elastic flows that have no entry.
    pub cross_flows: f64,
    /// Rates of streams and envelopes.
    pub inelastic: i64,
    /// Mean rates of envelopes.
    pub reserved_mean: i64,
    /// Reserved rates of envelopes.
    pub reserved_rate: i64,
    /// Number of changes to the reservable rate.
    pub version: u32,
    /// The envelopes promised here, by entry.
    pub envelopes: Vec<Promise>,
    /// The part of the estimate in guaranteed classes.
    pub measured_guaranteed: Option<f64>,
    /// Start of the last window.
    pub from: Nanos,
    /// The last sample, unfiltered.
    pub latest: i64,
    /// Start of the current series of hot windows without a gap.
    pub hot_since: Option<Nanos>,
    /// End of the last window of that series.
    pub hot_until: Nanos,
}

/// Pressure or a rate that the report of the next window removes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct UntilWindow {
    pub entry: EntryId,
    pub committed: Nanos,
    /// End of the window that was next at the time of the commit.
    pub awaited: Nanos,
    pub pressure: i64,
    pub rate: i64,
    /// True if the rate was promised.
    pub guaranteed: bool,
}

/// An envelope promised at a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Promise {
    /// Entry of the envelope.
    pub entry: EntryId,
    /// Strict priority, 0 first.
    pub priority: u8,
    /// Token buckets in bits and bit/s of payload; the traffic conforms to all of them.
    pub buckets: Arc<[TokenBucket]>,
    /// Native units of this resource per payload byte.
    pub work: f64,
}

impl Gauge {
    pub fn new(capacity: i64) -> Self {
        Gauge { capacity: capacity.max(0), measured: 0.0, until: Nanos(0), pressure: 0, source: Source::None }
    }
}

impl Commitments {
    pub fn pending(&mut self, guaranteed: bool) -> &mut Pending {
        if guaranteed { &mut self.pending_guaranteed } else { &mut self.pending }
    }

    /// A copy for a snapshot. The copy receives no windows, so it needs no items that wait for one.
    pub fn without_items(&self) -> Commitments {
        let Commitments { ref pending, ref pending_guaranteed, ref envelopes, .. } = *self;
        Commitments {
            pending: pending.clone(),
            pending_guaranteed: pending_guaranteed.clone(),
            until_window: VecDeque::new(),
            envelopes: envelopes.clone(),
            ..*self
        }
    }

    /// Removes the pressure and the rates of the items for which `leaves` is true.
    pub fn drop_until_window(&mut self, gauge: &mut Gauge, leaves: impl Fn(&UntilWindow) -> bool) {
        let mut waiting = std::mem::take(&mut self.until_window);
        waiting.retain(|item| {
            let leaves = leaves(item);
            if leaves {
                self.cancel_hold(gauge, item);
            }
            !leaves
        });
        self.until_window = waiting;
    }

    /// Removes the items of an entry that still wait for the next window.
    pub fn drop_entry(&mut self, gauge: &mut Gauge, id: EntryId) {
        // Items are in order of their entries. Usually the window has passed, or the oldest entry leaves.
        let from = match self.until_window.front() {
            Some(oldest) if oldest.entry < id => self.until_window.partition_point(|item| item.entry < id),
            _ => 0,
        };
        while let Some(&item) = self.until_window.get(from).filter(|item| item.entry == id) {
            self.cancel_hold(gauge, &item);
            self.until_window.remove(from);
        }
    }

    fn cancel_hold(&mut self, gauge: &mut Gauge, item: &UntilWindow) {
        gauge.pressure -= item.pressure;
        self.pending(item.guaranteed).cancel_hold(item.rate);
    }
}
