//! The model of transfer rates that a decision used.

/// Model of transfer rates: the counted links, and the rate of one more transfer on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// On a hose mesh, counts the links into hosts too.
    pub into_hosts: bool,
    /// Counts flows alone, C / (N + 1), and ignores telemetry.
    pub flows_only: bool,
}
