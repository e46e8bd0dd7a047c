//! What the ledger keeps for each resource, in two tables: gauges, which a policy reads for every candidate, and
//! commitments, which it reads for few.

use std::collections::VecDeque;
use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;

use crate::EntryId;
use crate::pending::Pending;

/// What a candidate scan reads: small, and in order of resource id.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gauge {
    /// Believed capacity. Not negative.
    pub capacity: i64,
    /// The estimate after the last window.
    pub measured: f64,
    /// End of the last window, or when its host came up, if that was later: windows that end by then are stale.
    pub until: Nanos,
    /// Sum of bytes / time to the next report, of blocks placed since the last; not clamped.
    pub pressure: i64,
    /// Where the estimate comes from.
    pub source: Source,
}

/// Where a resource's estimate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Nothing was reported yet.
    None,
    /// Its own counter.
    Direct,
    /// The sum of those below it.
    Derived,
    /// Its host is known to be down: it carries nothing.
    Down,
}

/// What was committed to a resource, and what else its samples said.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Commitments {
    /// Best-effort rates not yet in telemetry.
    pub pending: Pending,
    /// Promised rates not yet in telemetry.
    pub pending_guaranteed: Pending,
    /// The blocks behind `Gauge::pressure`, and rates that leave with the next window, by entry.
    pub until_window: VecDeque<UntilWindow>,
    /// Elastic flows.
    pub flows: i64,
    /// Elastic flows that are not in the ledger, as measured.
    pub cross_flows: f64,
    /// Rates of streams and envelopes.
    pub inelastic: i64,
    /// Mean rates of envelopes.
    pub reserved_mean: i64,
    /// Reserved rates of envelopes.
    pub reserved_rate: i64,
    /// How often what may be promised changed.
    pub version: u32,
    /// The envelopes promised here, by entry.
    pub envelopes: Vec<Promise>,
    /// The part of the estimate in classes with a promise.
    pub measured_guaranteed: Option<f64>,
    /// Start of the last window.
    pub from: Nanos,
    /// The last sample as it came.
    pub latest: i64,
    /// Start of the first of the windows without a break in which it was hot.
    pub hot_since: Option<Nanos>,
    /// End of the last of them.
    pub hot_until: Nanos,
}

/// Something that the next window's report takes away.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct UntilWindow {
    pub entry: EntryId,
    pub committed: Nanos,
    /// End of the window that was next then.
    pub awaited: Nanos,
    pub pressure: i64,
    pub rate: i64,
    /// Whether the rate was promised.
    pub guaranteed: bool,
}

/// An envelope promised at a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Promise {
    /// The entry it is from.
    pub entry: EntryId,
    /// Strict priority, 0 first.
    pub priority: u8,
    /// All of them hold at once; bits and bit/s of payload.
    pub buckets: Arc<[TokenBucket]>,
    /// Native units of this resource for each payload byte.
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

    /// A copy that will see no window, and so need not know what it would take away.
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

    /// Takes away what `leaves`: its pressure, and its rate.
    pub fn drop_until_window(&mut self, gauge: &mut Gauge, leaves: impl Fn(&UntilWindow) -> bool) {
        let mut waiting = std::mem::take(&mut self.until_window);
        waiting.retain(|item| {
            let leaves = leaves(item);
            if leaves {
                self.let_go(gauge, item);
            }
            !leaves
        });
        self.until_window = waiting;
    }

    /// Takes away what of an entry still waits for the next window.
    pub fn drop_entry(&mut self, gauge: &mut Gauge, id: EntryId) {
        // They are in order of their entries, and most often the window has passed or the oldest entry leaves.
        let from = match self.until_window.front() {
            Some(oldest) if oldest.entry < id => self.until_window.partition_point(|item| item.entry < id),
            _ => 0,
        };
        while let Some(&item) = self.until_window.get(from).filter(|item| item.entry == id) {
            self.let_go(gauge, &item);
            self.until_window.remove(from);
        }
    }

    fn let_go(&mut self, gauge: &mut Gauge, item: &UntilWindow) {
        gauge.pressure -= item.pressure;
        self.pending(item.guaranteed).let_go(item.rate);
    }
}
