//! The model of transfer rates that a decision used.

/// Model of transfer rates: it defines the links that count, and the rate of one more transfer on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// On a hose mesh, counts the links into hosts too.
    pub into_hosts: bool,
    /// Computes rates from the number of flows only, as C / (N + 1) with N flows on a link of capacity C, and ignores
    /// telemetry.
    pub flows_only: bool,
}
