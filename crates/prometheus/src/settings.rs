//! Settings of the polling of Prometheus.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Prometheus to poll for counters of ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrometheusSettings {
    /// Address of the server, such as `http://prom:9090`.
    pub url: Option<String>,
    /// Map file: the series to query, and the link of each port. `leeward hotspots` reads the same file.
    pub map: Option<String>,
    /// HTTP client configuration: credentials and trusted authorities, in the format of promtool's
    /// `--http.config.file`.
    pub http: Option<String>,
    /// Polling interval, at most the report interval. The default is the report interval.
    pub every: Option<Nanos>,
    /// Timeout of one query.
    pub timeout: Nanos,
}

impl Default for PrometheusSettings {
    fn default() -> Self {
        let timeout = Nanos(10 * Nanos::SECOND.0);
        PrometheusSettings { url: None, map: None, http: None, every: None, timeout }
    }
}
