//! Invalid settings of a connection.

use leeward_fabric::Nanos;

/// Invalid settings.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// A setting is 0 and must be above 0.
    #[error("{name}: 0: must be above 0")]
    Zero {
        /// Name of the setting.
        name: &'static str,
    },
    /// A factor of reTCP is out of its range.
    #[error("{name}: {value}: must be {expected}")]
    Factor {
        /// Name of the factor.
        name: &'static str,
        /// The given value.
        value: f64,
        /// Valid range.
        expected: &'static str,
    },
    /// The largest timeout is below another one.
    #[error("max_timeout: {max}: must not be below {name}, which is {other}")]
    Timeouts {
        /// Largest timeout.
        max: Nanos,
        /// Name of the other timeout.
        name: &'static str,
        /// Value of the other timeout.
        other: Nanos,
    },
}
