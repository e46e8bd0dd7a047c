//! Settings of replays in a workload file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of replays of the traces. Options of `leeward slo check` replace them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayFile {
    /// Order of requests at devices; `fifo` applies to links too. Default `priority`.
    pub order: OrderName,
    /// Draws the time without queueing of each request from the profile of its device. Otherwise a request alone takes
    /// its work. Default false.
    pub tails: bool,
    /// Seed of the drawn times. Default 1.
    pub seed: Option<u64>,
    /// Start of the traces. Default `recorded`.
    pub start: TraceStart,
}

/// Order of requests at devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// Strict priorities, in order of arrival within each.
    #[default]
    Priority,
    /// Order of arrival.
    Fifo,
    /// Equal shares of a device's time.
    Shares,
    /// Shares that feedback adjusts.
    Cake,
    /// Earliest deadline first.
    Deadline,
}

/// Start of the traces in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceStart {
    /// Traces keep the times between them: the earliest request of all is at time 0.
    #[default]
    Recorded,
    /// Each trace starts with its first request at time 0.
    Together,
}

impl OrderName {
    /// Name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OrderName::Priority => "priority",
            OrderName::Fifo => "fifo",
            OrderName::Shares => "shares",
            OrderName::Cake => "cake",
            OrderName::Deadline => "deadline",
        }
    }
}

impl TraceStart {
    /// Name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            TraceStart::Recorded => "recorded",
            TraceStart::Together => "together",
        }
    }
}
