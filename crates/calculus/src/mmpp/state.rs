//! The states of a chain: arrivals in a step spent in each.

use super::error::ModelError;
use super::sizes::Sizes;

/// Number of requests in one step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Requests {
    /// One request with this probability, otherwise none (the released code's choice).
    Bernoulli(f64),
    /// A Poisson number with this mean.
    Poisson(f64),
}

impl Requests {
    /// Mean number of requests per step.
    pub fn mean(self) -> f64 {
        match self {
            Requests::Bernoulli(mean) | Requests::Poisson(mean) => mean,
        }
    }
}

/// One state of the chain: arrivals in a step spent in it.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// Requests in the step.
    pub requests: Requests,
    /// Work of each request, independent of the other requests.
    pub sizes: Sizes,
}

impl Requests {
    /// Probability of a step with requests.
    #[inline]
    pub(super) fn any(self) -> f64 {
        match self {
            Requests::Bernoulli(probability) => probability,
            Requests::Poisson(rate) => -(-rate).exp_m1(),
        }
    }
}

impl State {
    /// Mean work per step.
    pub fn mean(&self) -> f64 {
        self.requests.mean() * self.sizes.mean()
    }

    /// E exp(theta X) - 1 of the work X of a step, and its derivative.
    #[inline]
    pub(super) fn growth(&self, theta: f64) -> (f64, f64) {
        let (size, slope) = self.sizes.growth(theta);
        match self.requests {
            Requests::Bernoulli(probability) => (probability * size, probability * slope),
            Requests::Poisson(rate) => {
                let growth = (rate * size).exp_m1();
                (growth, (growth + 1.0) * rate * slope)
            }
        }
    }
}

/// Checks the requests and sizes of each state.
pub(super) fn check_states(states: &[State]) -> Result<(), ModelError> {
    for (at, state) in states.iter().enumerate() {
        let requests = state.requests.mean();
        let most = if matches!(state.requests, Requests::Bernoulli(_)) { 1.0 } else { f64::MAX };
        if !(0.0..=most).contains(&requests) {
            return Err(ModelError::Requests { state: at, requests });
        }
        if let Some(fault) = state.sizes.fault() {
            return Err(ModelError::Sizes { state: at, fault });
        }
    }
    Ok(())
}
