//! Report to a controller and its reply.

use leeward_fabric::Bytes;
use serde::{Deserialize, Serialize};

/// Body of `POST /v1/reports`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Start of the window, RFC 3339.
    pub from: String,
    /// End of the window.
    pub until: String,
    /// Traffic of the host's links.
    pub links: [Link; 2],
    /// Work of its devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    /// Storage of the host, if the agent reads volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStorage>,
    /// Traffic of the host's pods, if it was read for this report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodTraffic>,
    /// Measurement endpoint of the host, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Storage of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HostStorage {
    /// Name of the host.
    pub host: String,
    /// Used bytes of its volumes.
    pub stored: Bytes,
    /// Capacity of its volumes.
    pub storage: Bytes,
}

/// Mean traffic of a pod.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PodTraffic {
    /// UID of the pod.
    pub pod: String,
    /// Name of the host.
    pub host: String,
    /// Traffic out of the pod, in bits per second.
    pub egress_bps: u64,
    /// Traffic into the pod, in bits per second.
    pub ingress_bps: u64,
}

/// Measurement endpoint of a host, at the source address of its reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Probe {
    /// Name of the host.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Mean traffic of a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Link {
    /// Name of the link, `r3h7:egress`.
    pub link: String,
    /// Load in bits per second.
    pub load_bps: f64,
    /// Speed of the link's interfaces in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bps: Option<u64>,
    /// Bytes queued for sending at the end of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
}

/// Work of a device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Device {
    /// Name of the device, `r3h7:disk0`.
    pub device: String,
    /// Share of the time in which the device was busy.
    pub busy: f64,
    /// Bits read per second.
    pub read_bps: f64,
    /// Bits written per second.
    pub write_bps: f64,
    /// Mean number of requests in the device.
    pub queue: f64,
    /// Number of requests in the device at the end of the window.
    pub in_flight: u64,
}

/// Reply to an accepted report.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Acceptance {
    /// Number of links with new data.
    pub links: u64,
    /// Number of parts without new data.
    #[serde(default)]
    pub skipped: SkippedParts,
    /// Devices that the cluster does not have.
    #[serde(default)]
    pub unknown_devices: Vec<String>,
    /// Links and hosts with values above their capacity, which the controller bounded.
    #[serde(default)]
    pub clamped_names: Vec<String>,
    /// Time that the controller expects between two reports, in seconds; `None` from an earlier controller.
    pub interval_s: Option<f64>,
}

/// Parts of a report without new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SkippedParts {
    /// Parts whose window ends at or before the controller's last data.
    pub stale: u64,
    /// Parts of a host that is down.
    pub down: u64,
}
