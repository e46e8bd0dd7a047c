//! Safety margin: scales the demand of workloads up.

use leeward_calculus::{ArrivalCurve, TokenBucket};

use leeward_fabric::input::format_number;

use super::super::workload::Workload;

/// Invalid margin.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum MarginError {
    /// The margin is negative or not finite.
    #[error("margin {}: must be finite and not negative (0.1 is 10 %)", format_number(*.0))]
    Margin(f64),
    /// The scaled work exceeds the range of floating-point numbers.
    #[error(
        "workload `{workload}`: with a margin of {}, its work at {stage} exceeds the range of numbers",
        format_number(*.margin)
    )]
    Work {
        /// Name of the workload.
        workload: String,
        /// The margin.
        margin: f64,
        /// Name of the stage.
        stage: &'static str,
    },
}

/// Scales each request of a workload to `1 + margin` times its work: rates and bursts grow by this factor.
/// SLO section 5.4.2 scales r-b curves by 1.1 to keep the SLOs of held-out halves. Profiled tails and models
/// stay unscaled.
///
/// # Errors
/// [`MarginError`] for an invalid margin, or for work that it scales beyond the range of numbers.
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
