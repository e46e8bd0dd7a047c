//! Errors of settings.

/// Invalid settings of a server or of a workload.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum ShapingError {
    /// A cap on requests that lets none start.
    #[error("{cap} 0: expected at least 1, or no request could start")]
    Cap {
        /// Name of the cap.
        cap: &'static str,
    },
    /// A priority that is reserved for requests over their limits.
    #[error(
        "priority 4294967295: expected at most 4294967294; the last one is for requests over their limits"
    )]
    Priority,
    /// A weight that gives no share.
    #[error("weight {0}: expected a finite number above 0")]
    Weight(f64),
    /// A limit that would let nothing pass in the long run.
    #[error("a limit of rate {0}: expected above 0")]
    Rate(f64),
    /// The server has no such workload, or no longer.
    #[error("the server has no such workload")]
    Workload,
}
