//! Settings of `sinbad` and `sinbad-file`.

use leeward_fabric::{Bandwidth, Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `sinbad`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SinbadSettings {
    /// Blocks smaller than this go to the default policy (pseudocode 1, line 2). Default 256MiB: full blocks
    /// only.
    pub threshold: Bytes,
    /// q: interval for which blocks wait to be decided together. Default 0s, at once; 1s under `sinbad-file`.
    pub interval: Option<Nanos>,
    /// Number of racks for the copies besides the first. Default 1 as in the paper's text; 2 follows
    /// pseudocode 2 for three copies.
    #[serde(deserialize_with = "super::remote_racks")]
    #[schemars(range(min = 1))]
    pub remote_racks: u8,
    /// Links to which a chosen block's load is charged until the next report.
    pub hysteresis: Hysteresis,
    /// DiskWriteCap: largest write rate of a copy. Default: the rate of the cluster's fastest device; for the ranking of
    /// hosts, each host's own rate.
    pub disk_write_cap: Option<Bandwidth>,
    /// Behaviour if no candidate's load is known.
    pub without_telemetry: WithoutTelemetry,
    /// Among links with room for a copy at DiskWriteCap, takes the one with the least room instead of any. The paper
    /// rejects this rule (section 6.3); it is here for comparison. Default false.
    pub best_fit: bool,
    /// Orders waiting blocks by job instead of by file: jobs whose longest writer has the fewest remaining blocks come
    /// first, and in a job the longest writer (the makespan of section 8). Only for `sinbad-file`. Default false.
    pub makespan: bool,
}

/// Links to which a chosen block's load is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hysteresis {
    /// The link chosen at each level (pseudocode 2, line 23).
    #[default]
    Selected,
    /// Every link of the transfer (the text of section 6.2).
    All,
}

/// Behaviour if no candidate's load is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithoutTelemetry {
    /// Refuse the request with this reason.
    #[default]
    Refuse,
    /// Place as the default policy does.
    Default,
}

impl Default for SinbadSettings {
    fn default() -> Self {
        SinbadSettings {
            threshold: Bytes(256 << 20),
            interval: None,
            remote_racks: 1,
            hysteresis: Hysteresis::Selected,
            disk_write_cap: None,
            without_telemetry: WithoutTelemetry::Refuse,
            best_fit: false,
            makespan: false,
        }
    }
}
