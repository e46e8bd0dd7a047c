//! Workloads with SLOs, as JSON.

use serde_json::{Value, json};

/// A workload with an SLO of `millis` milliseconds that takes `share` percent of a host's device.
pub fn form(name: &str, server: Option<&str>, millis: u64, share: u64) -> Value {
    let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
    let mut form = json!({
        "name": name, "client": "r0h0", "slo": { "percentile": 99, "latency": format!("{millis}ms") },
        "curves": {
            "network-in": link, "network-out": link,
            "storage": [{ "rate": format!("{share}%"), "burst": "4ms" }],
        },
        "unloaded": "100us",
    });
    if let Some(server) = server {
        form["server"] = server.into();
    }
    form
}
