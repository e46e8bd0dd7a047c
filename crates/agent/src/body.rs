//! What is sent to a controller, and what it answers.

use leeward_fabric::Nanos;
use serde::{Deserialize, Serialize};

/// The body of `POST /v1/reports`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Where the window begins, RFC 3339.
    pub from: String,
    /// Where it ends.
    pub until: String,
    /// What the host's links carried.
    pub links: [Link; 2],
    /// What its devices did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    /// Where it listens for measurements, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Where a host listens for measurements: at the address that its reports come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Probe {
    /// Its name.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// What a link carried in the mean.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Link {
    /// Its name, `r3h7:egress`.
    pub link: String,
    /// Bits per second.
    pub load_bps: f64,
    /// What its interfaces carry at most, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bps: Option<u64>,
    /// Bytes that wait to be sent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
}

/// What a device did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Device {
    /// Its name, `r3h7:disk0`.
    pub device: String,
    /// The share of the time in which it was busy.
    pub busy: f64,
    /// Bits read in a second.
    pub read_bps: f64,
    /// Bits written in a second.
    pub write_bps: f64,
    /// Requests that were with it in the mean.
    pub queue: f64,
    /// Requests that are with it at the end.
    pub in_flight: u64,
}

/// A report was taken in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Taken {
    /// How many of its links were news.
    pub links: u64,
    /// How many parts were not.
    #[serde(default)]
    pub skipped: Skipped,
    /// Devices that the cluster does not have.
    #[serde(default)]
    pub unknown_devices: Vec<String>,
}

/// Parts of a report that were no news.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Skipped {
    /// What ends no later than what is known.
    pub stale: u64,
    /// What is of a host that is known to be down.
    pub down: u64,
}

/// A report was not taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why, in words.
    pub why: String,
    /// After how long to come again, if the controller said so.
    pub after: Option<Nanos>,
}
