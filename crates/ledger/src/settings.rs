//! Settings of the estimator, for the operator. Defaults come from the papers where the papers state one.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for turning samples into estimates.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerSettings {
    /// Time between reports. Default 1 s (Sinbad section 6.2).
    pub interval: Nanos,
    /// Weight of a report that covers one interval. Default 0.2 (Sinbad section 6.2).
    pub alpha: f64,
    /// Meaning of a missing report.
    pub missing: Missing,
    /// Estimate before the first report.
    pub initial: Initial,
    /// Time that a report may be late before it counts as missing. Default half an interval.
    pub grace: Option<Nanos>,
    /// Under `missing: strict`, number of intervals without a report after which a resource is unknown. Default 3.
    pub unknown_after: f64,
    /// If true, the excess of a stream's peak over its mean stays pending until release. Default off (Hotspots section
    /// 5.1): a stream counts with its peak when it is placed, and with its measured rate later.
    pub hold_peak: bool,
    /// Share of a resource's capacity that best-effort work may fill. Default 1.
    pub limit: f64,
    /// Share of a resource's capacity that may be reserved. Default 1.
    pub reservable: f64,
    /// Utilization above which a resource is hot. Default 0.75 (Hotspots section 3.1).
    pub hot: f64,
}

/// Meaning of a missing report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// The resource becomes unknown and takes no best-effort work.
    #[default]
    Strict,
    /// The paper's rule: each missing report counts as a report of a full resource (Sinbad section 6.2). One missing
    /// report moves the estimate by alpha of the gap to capacity.
    Sinbad,
}

/// Start of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Initial {
    /// At the first report.
    #[default]
    First,
    /// At zero (Sinbad section 6.2).
    Zero,
}

/// A setting out of its range.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field}: {value}: expected {expected}")]
pub struct SettingsError {
    /// The setting.
    pub field: &'static str,
    /// The rejected value.
    pub value: String,
    /// Description of valid values.
    pub expected: &'static str,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            interval: Nanos::SECOND,
            alpha: 0.2,
            missing: Missing::Strict,
            initial: Initial::First,
            grace: None,
            unknown_after: 3.0,
            hold_peak: false,
            limit: 1.0,
            reservable: 1.0,
            hot: 0.75,
        }
    }
}

impl LedgerSettings {
    /// Checks that the estimator works with these settings.
    ///
    /// # Errors
    ///
    /// Fails if a setting is out of its range; the error names the setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        let share = |field, value: f64| {
            let error = SettingsError { field, value: value.to_string(), expected: "a share in (0, 1]" };
            if value > 0.0 && value <= 1.0 { Ok(()) } else { Err(error) }
        };
        share("alpha", self.alpha)?;
        share("limit", self.limit)?;
        share("reservable", self.reservable)?;
        share("hot", self.hot)?;
        if self.interval.0 == 0 {
            let value = self.interval.to_string();
            return Err(SettingsError { field: "interval", value, expected: "a positive time" });
        }
        if !(self.unknown_after.is_finite() && self.unknown_after >= 1.0) {
            let value = self.unknown_after.to_string();
            return Err(SettingsError { field: "unknown_after", value, expected: "at least 1 interval" });
        }
        Ok(())
    }

    pub(crate) fn grace(&self) -> Nanos {
        self.grace.unwrap_or(Nanos(self.interval.0 / 2))
    }

    /// The time for which a report counts: afterwards a resource without a new one is unknown, under `missing: strict`.
    pub fn known_for(&self) -> Nanos {
        Nanos((self.unknown_after * self.interval.0 as f64) as u64)
    }

    /// The weight of a report that ends `dt` after the last one: gaps do not slow the filter.
    pub(crate) fn weight(&self, dt: Nanos) -> f64 {
        if dt == self.interval {
            self.alpha
        } else {
            1.0 - (1.0 - self.alpha).powf(dt.0 as f64 / self.interval.0 as f64)
        }
    }
}
