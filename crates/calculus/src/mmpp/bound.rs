//! The bound on the arrivals of a model.

/// rho and sigma at one theta: E exp(theta A(n)) <= exp(theta (rho n + sigma)).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// Rate, in work per step.
    pub rho: f64,
    /// Burst, in work.
    pub sigma: f64,
}
