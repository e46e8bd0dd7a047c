//! Settings of polling.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Prometheus that is asked for counters of ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrometheusSettings {
    /// Its address, such as `http://prom:9090`.
    pub url: Option<String>,
    /// A map file: what to ask for, and which ports are which links. `leeward hotspots` takes the same.
    pub map: Option<String>,
    /// A file that says who asks and whom to trust, as promtool's `--http.config.file` does.
    pub http: Option<String>,
    /// Time between two rounds of questions, at most the interval; by default that.
    pub every: Option<Nanos>,
    /// How long one answer may take.
    pub timeout: Nanos,
}

impl Default for PrometheusSettings {
    fn default() -> Self {
        let timeout = Nanos(10 * Nanos::SECOND.0);
        PrometheusSettings { url: None, map: None, http: None, every: None, timeout }
    }
}
