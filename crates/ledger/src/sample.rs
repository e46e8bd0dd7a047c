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
    /// Samples with a window that ends no later than an accepted window.
    pub stale: u64,
    /// Samples with a negative load, or with a window that is empty, ends before its start, or ends more than an
    /// interval after now.
    pub invalid: u64,
    /// Samples of a resource that the fabric does not have.
    pub unknown: u64,
    /// Samples of a host that is known to be down.
    pub down: u64,
}

impl DiscardedSamples {
    /// Number of all rejected samples.
    pub fn total(&self) -> u64 {
        self.stale + self.invalid + self.unknown + self.down
    }
}
