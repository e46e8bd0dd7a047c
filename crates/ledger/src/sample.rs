//! Telemetry samples.

use leeward_fabric::{Load, Nanos, ResourceId};

/// The mean load of a resource over a window of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The link or device.
    pub resource: ResourceId,
    /// Window of the measurement; the sample may arrive later.
    pub window: (Nanos, Nanos),
    /// Load in the resource's native unit of work per second.
    pub load: Load,
    /// The load of guaranteed classes, where counters separate classes.
    pub guaranteed: Option<Load>,
}

/// Rejected samples, counted by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiscardedSamples {
    /// Their window ends no later than one already accepted.
    pub stale: u64,
    /// Their window is empty, ends before it starts or ends more than an interval from now, or a load is negative.
    pub invalid: u64,
    /// The fabric has no such resource.
    pub unknown: u64,
    /// Their host is known to be down.
    pub down: u64,
}

impl DiscardedSamples {
    /// Number of all rejected samples.
    pub fn total(&self) -> u64 {
        self.stale + self.invalid + self.unknown + self.down
    }
}
