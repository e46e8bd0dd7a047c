//! Trains of packets and limits of hosts in a scenario file.

use leeward_fabric::{Bandwidth, Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::Limit;
use crate::workload::{Place, Train};

/// A train of packets. The defaults gave good results on EC2 (Choreo, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainFile {
    /// Source host as `[rack, host]`, both from 0.
    pub from: [u32; 2],
    /// Destination host as `[rack, host]`.
    pub to: [u32; 2],
    /// Start of the first burst. Default 0s.
    #[serde(default)]
    pub start: Nanos,
    /// Number of bursts. Default 10.
    #[serde(default = "ten")]
    pub bursts: u32,
    /// Packets per burst. Default 200.
    #[serde(default = "two_hundred")]
    pub packets: u32,
    /// Bytes of a packet without headers. Default 1472.
    #[serde(default = "payload")]
    pub payload: u32,
    /// Pause between bursts. Default 1ms.
    #[serde(default = "gap")]
    pub gap: Nanos,
}

fn ten() -> u32 {
    10
}

fn two_hundred() -> u32 {
    200
}

fn payload() -> u32 {
    1472
}

fn gap() -> Nanos {
    Nanos(1_000_000)
}

impl TrainFile {
    pub(crate) fn train(&self) -> Train {
        let [source, destination] = [self.from, self.to].map(|[rack, host]| Place { rack, host });
        let TrainFile { start, bursts, packets, payload, gap, .. } = *self;
        Train { source, destination, start, bursts, packets, payload, gap }
    }
}

/// Rate limit of a host by a token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitFile {
    /// Host as `[rack, host]`, both from 0.
    pub host: [u32; 2],
    /// Long-term rate.
    pub rate: Bandwidth,
    /// Bytes that pass at the NIC's rate after an idle time. Default 0B.
    #[serde(default)]
    pub bucket: Bytes,
}

impl LimitFile {
    pub(crate) fn limit(&self) -> Limit {
        let [rack, host] = self.host;
        Limit { host: Place { rack, host }, rate: self.rate, bucket: self.bucket.0 }
    }
}
