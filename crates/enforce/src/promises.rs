//! Promises of a host: the workloads whose packets leave it, as a plain value.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Promised workloads whose packets leave a host. A client sends requests, and a server answers; a host may be both.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPromises {
    /// Name of the host in the cluster.
    pub host: String,
    /// Version of the promises, for an acknowledgement; `None` for those of a file.
    #[serde(default)]
    pub version: Option<u64>,
    /// The workloads.
    pub workloads: Vec<WorkloadPromise>,
    /// Notes about promises that are enforced otherwise than their file says, each with the name of its workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One direction of a workload at a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadPromise {
    /// Name of the workload.
    pub name: String,
    /// Direction of the packets.
    pub direction: Direction,
    /// Source addresses of the packets; empty for all addresses of the interface.
    #[serde(default)]
    pub own: Vec<IpAddr>,
    /// Destination addresses of the packets.
    pub peers: Vec<IpAddr>,
    /// Priority, 0 first; those from 6 on share a level. `None` for best effort.
    #[serde(default)]
    pub priority: Option<u32>,
    /// Token buckets that hold at once; empty without a limit.
    #[serde(default)]
    pub buckets: Vec<Bucket>,
}

/// Direction of a workload's packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the server: the stage `network-in`.
    ToServer,
    /// From the server to the client: the stage `network-out`.
    ToClient,
}

impl Direction {
    /// Name in files and results.
    pub fn name(self) -> &'static str {
        match self {
            Direction::ToServer => "to-server",
            Direction::ToClient => "to-client",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Rate in bytes per second.
    pub rate: f64,
    /// Burst in bytes.
    pub burst: f64,
}

/// A workload that the enforcer cannot enforce. Its packets count as best effort.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// Name of the workload.
    pub workload: String,
    /// Reason, and the remedy.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not enforced: {}", self.workload, self.why)
    }
}
