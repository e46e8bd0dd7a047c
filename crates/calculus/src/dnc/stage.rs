//! The closed form for one queue with one bucket a workload.

use super::operators::Overload;
use crate::shown::shown;
use crate::token_bucket::TokenBucket;

/// A queue that has no bound.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum StageError {
    /// An invalid capacity.
    #[error("capacity {}: must be finite and above 0", shown(*.0))]
    Capacity(f64),
    /// More is promised than there is.
    #[error(transparent)]
    Overload(#[from] Overload),
}

/// The largest delay at one queue of `capacity` for the workloads of `priority` (0 first), where each of `workloads` has a
/// priority and keeps within its bucket, and each priority is served in order of arrival (SLO equation 5.1):
///
/// ```text
/// (sum of b of its own priority and those before) / (capacity - sum of r of those before)
/// ```
///
/// A request's work is part of its bucket. For several stages, each with buckets of its own, the bounds add up.
///
/// # Errors
/// An invalid capacity; rates up to and with `priority` that exceed it, or leave nothing.
pub fn stage_delay(
    capacity: f64,
    workloads: &[(u32, TokenBucket)],
    priority: u32,
) -> Result<f64, StageError> {
    if !capacity.is_finite() || capacity <= 0.0 {
        return Err(StageError::Capacity(capacity));
    }
    let (mut before, mut own, mut bursts) = (0.0, 0.0, 0.0);
    for (of, bucket) in workloads.iter().filter(|(of, _)| *of <= priority) {
        *(if *of < priority { &mut before } else { &mut own }) += bucket.rate();
        bursts += bucket.burst();
    }
    let served = capacity - before;
    let delay = bursts / served;
    if own > served || served <= 0.0 || !delay.is_finite() {
        return Err(Overload { asked: before + own, served: capacity }.into());
    }
    Ok(delay)
}
