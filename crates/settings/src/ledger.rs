//! Settings of the ledger in the settings file: those of [`LedgerSettings`] without the interval, which stands beside
//! them because it is also the interval of agents.

use leeward_fabric::Nanos;
use leeward_ledger::{Initial, LedgerSettings, Missing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Estimates of loads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerOptions {
    /// Weight of a report that covers one interval, above 0 and at most 1.
    pub alpha: f64,
    /// Meaning of a missing report.
    pub missing: Missing,
    /// Estimate before the first report.
    pub initial: Initial,
    /// Time that a report may be late before it counts as missing; null for half an interval.
    pub grace: Option<Nanos>,
    /// Under `missing: strict`, number of intervals without a report after which a link is unknown.
    pub unknown_after: f64,
    /// If true, the excess of a stream's peak over its mean stays reserved until its end.
    pub hold_peak: bool,
    /// Share of a link's capacity that best-effort work may fill.
    pub limit: f64,
    /// Share of a link's capacity that guarantees may reserve.
    pub reservable: f64,
    /// Utilization above which a link is hot.
    pub hot: f64,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        let LedgerSettings {
            alpha,
            missing,
            initial,
            grace,
            unknown_after,
            hold_peak,
            limit,
            reservable,
            hot,
            ..
        } = LedgerSettings::default();
        LedgerOptions { alpha, missing, initial, grace, unknown_after, hold_peak, limit, reservable, hot }
    }
}

impl LedgerOptions {
    /// Settings of a ledger with this report interval.
    pub fn with_interval(&self, interval: Nanos) -> LedgerSettings {
        let LedgerOptions {
            alpha,
            missing,
            initial,
            grace,
            unknown_after,
            hold_peak,
            limit,
            reservable,
            hot,
        } = self.clone();
        LedgerSettings {
            interval,
            alpha,
            missing,
            initial,
            grace,
            unknown_after,
            hold_peak,
            limit,
            reservable,
            hot,
        }
    }
}
