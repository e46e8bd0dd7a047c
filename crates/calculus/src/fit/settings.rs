//! Settings of a fit.

use super::error::FitError;
use crate::mmpp::{MAX_STATES, Sigma};

/// Distribution fitted to the sizes of a state's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeModel {
    /// An exponential distribution with the same mean, as in the released code.
    Exponential,
    /// A hyperexponential distribution with the same mean and variance.
    Hyperexponential,
    /// The observed sizes, reduced to at most this many atoms. The generating function of the atoms is an upper bound
    /// on the generating function of the sizes.
    Empirical(usize),
}

/// Method to derive states and transitions from the intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chain {
    /// As in the released code: every level is a state at the level's rate, even without intervals. The chain need not
    /// return to its first state. At most one request per step. Intervals are counted from 0 of the trace's own clock,
    /// so a first request in the middle of an interval changes the counts.
    Published,
    /// As many states as the counts carry. A mixture of Poisson distributions gives their number, by the Bayesian
    /// information criterion, and the most likely path through the intervals gives each interval a state. The rate of a
    /// state is the mean of its intervals; the rate of intervals without a request is 0. The chain follows the trace to
    /// its end and back again. Each state's stationary probability is then its share of the trace, and its sojourn time is
    /// the same as in the trace. The chain is reversible, which gives a small sigma ([`Sigma::Stationary`]). The model's
    /// mean work is never below the trace's. The number of requests per step is Poisson. The rest of a trace after its
    /// whole intervals belongs to the last whole interval. A trace shorter than an interval forms one shorter interval,
    /// with a rate relative to the duration of the trace.
    ///
    /// The backward run does not lower rho if steps are short compared to the sojourn times. For any chain, E exp(theta
    /// A) is then at most its value for the symmetric part of the chain's matrix. (The inner product is weighted by the
    /// stationary distribution.) The matrix of the closed chain is that symmetric part.
    Closed,
}

impl Chain {
    /// Time on the trace's clock at which intervals begin; `None` for the first request.
    pub(super) fn origin(self) -> Option<u64> {
        match self {
            Chain::Published => Some(0),
            Chain::Closed => None,
        }
    }
}

/// Settings of a fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FitSettings {
    /// Length of an interval, in seconds. With [`Chain::Closed`], the shortest length: as long as the counts do not tell
    /// states apart, intervals of twice the length are tried.
    pub interval: f64,
    /// Length of a step of the model, in seconds.
    pub step: f64,
    /// Duration of a batch, in seconds. The requests within this time after the first request of a batch become one
    /// request with their total work. Zero merges no requests.
    pub batch: f64,
    /// Maximum number of states.
    pub states: usize,
    /// Standard deviations that a state of [`Chain::Published`] covers on either side of its rate.
    pub deviations: f64,
    /// Distribution of sizes.
    pub sizes: SizeModel,
    /// Method for states and transitions.
    pub chain: Chain,
    /// Definition of sigma in the model.
    pub sigma: Sigma,
}

impl FitSettings {
    /// The constants of the released code, for comparison. Intervals last 1 s, steps last 10 us, and there are up to 10
    /// states of two deviations (the thesis says 5). Sizes are exponential, and sigma is zero.
    pub fn published() -> FitSettings {
        FitSettings {
            interval: 1.0,
            step: 1e-5,
            batch: 0.0,
            states: 10,
            deviations: 2.0,
            sizes: SizeModel::Exponential,
            chain: Chain::Published,
            sigma: Sigma::Zero,
        }
    }

    /// Checks that the settings are in range.
    ///
    /// # Errors
    /// The first setting out of range.
    pub fn check(&self) -> Result<(), FitError> {
        let fault = |name, value, expected| Err(FitError::Setting { name, value, expected });
        for (name, value) in
            [("interval", self.interval), ("step", self.step), ("deviations", self.deviations)]
        {
            if !(value.is_finite() && value > 0.0) {
                return fault(name, value, "positive and finite");
            }
        }
        // The user did not give a default setting, so the error does not name it.
        let default = FitSettings::default();
        if !(self.batch >= 0.0 && self.batch <= self.interval) {
            return match self.batch == default.batch {
                true => {
                    fault("interval", self.interval, "no less than the batch, 1 ms unless another is given")
                }
                false => fault("batch", self.batch, "not negative and no longer than the interval"),
            };
        }
        if self.step > self.interval {
            return match self.step == default.step {
                true => {
                    fault("interval", self.interval, "no less than the step, 10 us unless another is given")
                }
                false => fault("step", self.step, "no longer than the interval"),
            };
        }
        if self.states == 0 || self.states > MAX_STATES {
            return fault("states", self.states as f64, "1 to 16");
        }
        Ok(())
    }
}

impl Default for FitSettings {
    fn default() -> FitSettings {
        FitSettings {
            interval: 0.1,
            step: 1e-5,
            batch: 1e-3,
            states: 10,
            deviations: 2.0,
            sizes: SizeModel::Empirical(32),
            chain: Chain::Closed,
            sigma: Sigma::Stationary,
        }
    }
}
