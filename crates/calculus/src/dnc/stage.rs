//! The closed form for one queue with one bucket per workload.

use super::operators::Overload;
use crate::number_format::format_number;
use crate::token_bucket::TokenBucket;

/// Reason why a queue has no bound.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum StageError {
    /// An invalid capacity.
    #[error("capacity {}: must be finite and above 0", format_number(*.0))]
    Capacity(f64),
    /// The guaranteed rates exceed the capacity.
    #[error(transparent)]
    Overload(#[from] Overload),
}

/// Returns the largest delay, in seconds, of the workloads of `priority` at one queue of `capacity`. Priority 0 is
/// served first. Each of `workloads` has a priority and stays within its bucket. Workloads of the same priority are
/// served in order of arrival (SLO equation 5.1):
///
/// ```text
/// (sum of b of `priority` and higher priorities) / (capacity - sum of r of higher priorities)
/// ```
///
/// The burst of a bucket includes the work of a whole request. For several stages with their own buckets, the bounds
/// add up.
///
/// Only tests call this function: the thesis's equation is an independent reference for the analyses of networks, for
/// the bounds of systems, and for the request simulator.
///
/// # Errors
/// Returns an error for an invalid capacity. Returns [`Overload`] if the rates of `priority` and higher priorities
/// exceed the capacity, or if higher priorities leave no rate.
pub fn stage_delay(
    capacity: f64,
    workloads: &[(u32, TokenBucket)],
    priority: u32,
) -> Result<f64, StageError> {
    if !capacity.is_finite() || capacity <= 0.0 {
        return Err(StageError::Capacity(capacity));
    }
    let (mut higher, mut own, mut bursts) = (0.0, 0.0, 0.0);
    for (other, bucket) in workloads.iter().filter(|(other, _)| *other <= priority) {
        *(if *other < priority { &mut higher } else { &mut own }) += bucket.rate();
        bursts += bucket.burst();
    }
    let served = capacity - higher;
    let delay = bursts / served;
    if own > served || served <= 0.0 || !delay.is_finite() {
        return Err(Overload { load: higher + own, service: capacity }.into());
    }
    Ok(delay)
}
