//! Buckets that are chosen for one workload, without regard to other workloads. They are the baselines that
//! WorkloadCompactor is compared to (SLO section 5.3.1).

use super::error::CurveError;
use super::rb::RbCurve;
use crate::token_bucket::TokenBucket;

impl RbCurve {
    /// Effective bandwidth: the lowest rate at which a shaper without burst delays no request by more than `deadline`
    /// seconds. This rate is the supremum over t of alpha(t) / (t + deadline). The matching bucket has burst 0. For a
    /// single stage, the deadline is the SLO.
    ///
    /// # Errors
    /// Fails if `deadline` is not finite, not above 0, or so short that the rate overflows.
    pub fn effective_bandwidth(&self, deadline: f64) -> Result<f64, CurveError> {
        if !deadline.is_finite() || deadline <= 0.0 {
            return Err(CurveError::Deadline(deadline));
        }
        // The supremum is at a vertex of alpha, or it is the mean rate, the limit for long intervals.
        let rates = self.intervals().map(|interval| interval.work / (interval.seconds + deadline));
        let rate = rates.fold(self.floor(), f64::max);
        if rate.is_finite() { Ok(rate) } else { Err(CurveError::Deadline(deadline)) }
    }

    /// Knee of the curve: the bucket with the smallest r + b on the normalised curve. Division of rates and bursts by a
    /// capacity does not move the knee, so the knee is the same for any unit of work. The knee is the vertex at which
    /// the relevant intervals become longer than a second. The rate is never below the mean rate.
    pub fn knee(&self) -> TokenBucket {
        let candidates = self.vertices().map(|bucket| bucket.rate().max(self.floor()));
        let buckets = candidates.map(|rate| TokenBucket::raw(rate, self.burst_from(rate)));
        // Of buckets with the same sum, the one with the lowest rate is taken.
        let least = buckets.min_by(|a, b| {
            (a.rate() + a.burst()).total_cmp(&(b.rate() + b.burst())).then(a.rate().total_cmp(&b.rate()))
        });
        least.expect("a curve has a vertex")
    }

    /// The bucket at `multiple` times the mean rate, with the burst of the curve at that rate (k x average).
    ///
    /// # Errors
    /// Fails if the trace has no mean rate. Fails if `multiple` is below 1, not finite, or so large that the rate
    /// overflows.
    pub fn at_mean(&self, multiple: f64) -> Result<TokenBucket, CurveError> {
        let mean = self.mean_rate().ok_or(CurveError::NoMean)?;
        let rate = multiple * mean;
        if !rate.is_finite() || multiple < 1.0 {
            return Err(CurveError::Multiple(multiple));
        }
        Ok(TokenBucket::raw(rate, self.burst_from(rate)))
    }
}
