//! Workloads at a server.

use leeward_calculus::TokenBucket;

use crate::error::ShapingError;

/// Settings of a workload at a server.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Priority, 0 first, for [`super::Order::Priority`]. Any number but the last one, 4294967295.
    pub priority: u32,
    /// Weight, for [`super::Order::Shares`]; finite and above 0.
    pub weight: f64,
    /// Rate limits, all enforced together; each has a rate above 0. Rates are in work per second.
    pub limits: Vec<TokenBucket>,
    /// Handling of requests over a limit.
    pub over: OverLimit,
}

/// Handling of requests over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OverLimit {
    /// Requests wait for tokens.
    #[default]
    Held,
    /// Requests also wait, but an otherwise idle server serves them, for the rest of the stage. They come after all
    /// priorities, in order of arrival. They take the available tokens, and never go below zero.
    Demoted,
}

/// Name of a workload at a server. The name of a removed workload is that of no later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkloadId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Workload {
    /// A workload without a promise: after all others, and without limits.
    pub fn best_effort() -> Workload {
        Workload { priority: u32::MAX - 1, weight: 1.0, limits: Vec::new(), over: OverLimit::Held }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns the first invalid one.
    pub fn check(&self) -> Result<(), ShapingError> {
        if self.priority == u32::MAX {
            return Err(ShapingError::Priority);
        }
        Workload::check_weight(self.weight)?;
        let invalid = self.limits.iter().find(|bucket| bucket.rate() <= 0.0);
        invalid.map_or(Ok(()), |bucket| Err(ShapingError::Rate(bucket.rate())))
    }

    pub(crate) fn check_weight(weight: f64) -> Result<(), ShapingError> {
        if weight > 0.0 && weight.is_finite() { Ok(()) } else { Err(ShapingError::Weight(weight)) }
    }
}
