//! The safety margin: workloads as if they brought more than they do.

use leeward_calculus::{ArrivalCurve, TokenBucket};

use leeward_fabric::input::shown;

use super::super::workload::Workload;

/// An invalid margin.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MarginError {
    /// The margin itself.
    #[error("margin {}: must be finite and not negative (0.1 is 10 %)", shown(*.0))]
    Margin(f64),
    /// More work than a number holds.
    #[error(
        "workload `{workload}`: with a margin of {} its work at {stage} is more than a number holds",
        shown(*.margin)
    )]
    Work {
        /// The workload.
        workload: String,
        /// The margin.
        margin: f64,
        /// The stage.
        stage: &'static str,
    },
}

/// The workload if each of its requests weighed `1 + margin` times what it does: rates and bursts are scaled (SLO section
/// 5.4.2, where r-b curves are scaled by 1.1 before the SLOs of held-out halves hold). The profiled tails are not, and neither
/// are models.
///
/// # Errors
/// An invalid margin, or one that makes the work more than a number holds.
pub fn with_margin(workload: &Workload, margin: f64) -> Result<Workload, MarginError> {
    if !margin.is_finite() || margin < 0.0 {
        return Err(MarginError::Margin(margin));
    }
    let mut scaled = workload.clone();
    for demand in &mut scaled.demands {
        let more = |bucket: &TokenBucket| {
            TokenBucket::new(bucket.rate() * (1.0 + margin), bucket.burst() * (1.0 + margin))
        };
        let buckets: Result<Vec<TokenBucket>, _> = demand.arrivals.buckets().iter().map(more).collect();
        let largest = demand.largest * (1.0 + margin);
        let (workload, stage) = (workload.name.clone(), demand.stage.name());
        let beyond = MarginError::Work { workload, margin, stage };
        match buckets.ok().filter(|_| largest.is_finite()).and_then(|buckets| ArrivalCurve::new(&buckets)) {
            Some(arrivals) => (demand.arrivals, demand.largest) = (arrivals, largest),
            None => return Err(beyond),
        }
    }
    Ok(scaled)
}
