//! Shared settings of sources: checked numbers, the window of a trace, number formats of provenance lines.

use std::fmt;
use std::num::NonZeroU8;

use leeward_fabric::{Bandwidth, Bytes, Cluster, HostId, Nanos, RackKind, Shape};
use leeward_placement::replicas::{Coding, Layout};
use rand::RngExt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A factor or a rate in the settings of a source: a number from 0 to a million.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Factor(f64);

/// A share of a whole in the settings of a source: a number from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

macro_rules! checked_number {
    ($name:ident, $most:literal, $expected:literal) => {
        impl $name {
            /// Returns the number if it is in range.
            pub const fn new(number: f64) -> Option<Self> {
                if number >= 0.0 && number <= $most { Some($name(number)) } else { None }
            }

            /// The number.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = String;

            fn try_from(number: f64) -> Result<Self, String> {
                Self::new(number).ok_or_else(|| format!("{number}: expected {}", $expected))
            }
        }

        impl From<$name> for f64 {
            fn from(number: $name) -> f64 {
                number.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "number", "minimum": 0, "maximum": $most, "description": $expected })
            }
        }
    };
}

checked_number!(Factor, 1e6, "a number from 0 to 1e6");
checked_number!(Share, 1.0, "a share from 0 to 1");

impl Factor {
    /// Neutral factor.
    pub const ONE: Factor = Factor(1.0);

    /// Default of factors: 1.
    pub(crate) fn one() -> Factor {
        Factor::ONE
    }
}

impl Share {
    /// Default of shares: 1, the whole.
    pub(crate) fn all() -> Share {
        Share(1.0)
    }
}

/// Rate of an undisturbed task: that of a disk (Sinbad section 7.1: 50 MB/s).
pub(crate) const DISK: Bandwidth = Bandwidth(400_000_000);

/// Blocks of 256 MiB, as in Sinbad's evaluation.
pub(crate) fn default_block() -> Bytes {
    Bytes(256 << 20)
}

/// Three copies, the default of the file systems that Sinbad studies.
pub(crate) fn default_replicas() -> NonZeroU8 {
    NonZeroU8::new(3).expect("three is not zero")
}

/// Returns the number of hosts that hold a part of each block, and the layout.
pub(crate) fn copies(replicas: NonZeroU8, coding: Option<Coding>) -> (u8, Layout) {
    match coding {
        None => (replicas.get(), Layout::Chain),
        Some(coding) => (coding.chunks(), coding.layout()),
    }
}

/// Checks that each copy of a block, or each chunk, can have its own host.
pub(crate) fn enough_hosts(cluster: &Cluster, replicas: u8, layout: Layout) -> Result<(), String> {
    let (hosts, things) =
        (cluster.fabric.host_count(), if layout == Layout::Chain { "copies" } else { "chunks" });
    if usize::from(replicas) <= hosts {
        return Ok(());
    }
    Err(format!(
        "{replicas} {things} of a block, each on a host of its own, but the cluster has {hosts} hosts"
    ))
}

/// The part of a trace that a run uses. Its times count from the beginning of the window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Window {
    from: f64,
    length: f64,
}

impl Window {
    /// Creates a window from `from` on, for `duration` or until the end of the run, whichever is first.
    pub fn new(from: Nanos, duration: Option<Nanos>, horizon: f64) -> Window {
        let duration = duration.map_or(f64::INFINITY, Nanos::as_secs_f64);
        Window { from: from.as_secs_f64(), length: duration.min(horizon) }
    }

    /// Returns the time of a trace event in the run, in seconds, if it is in the window.
    pub fn place(&self, seconds: f64) -> Option<f64> {
        self.hold(seconds).filter(|_| seconds >= self.from)
    }

    /// Returns the time of a lasting state. A state that began before the window holds from the window's beginning on.
    pub fn hold(&self, seconds: f64) -> Option<f64> {
        let placed = (seconds - self.from).max(0.0);
        (placed < self.length).then_some(placed)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length.is_finite() {
            write!(f, "{} s to {} s of it", self.from, self.from + self.length)
        } else {
            write!(f, "from {} s on", self.from)
        }
    }
}

/// Deserializes a size that must not be zero; serde's message then has the location.
pub(crate) fn positive<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    match Bytes::deserialize(deserializer)? {
        Bytes(0) => Err(serde::de::Error::custom("0B: must be positive")),
        bytes => Ok(bytes),
    }
}

/// Deserializes a rate that must not be zero.
pub(crate) fn positive_rate<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Bandwidth, D::Error> {
    match Bandwidth::deserialize(deserializer)? {
        Bandwidth(0) => Err(serde::de::Error::custom("0bps: must be positive")),
        rate => Ok(rate),
    }
}

/// Rounds bytes of a scaled quantity; `None` for more bytes than any run could move.
pub(crate) fn whole_bytes(bytes: f64) -> Option<u64> {
    // Up to 2^53 every whole number of bytes is exact.
    (0.0..=9e15).contains(&bytes).then(|| bytes.round() as u64)
}

/// Returns the hosts that tasks run on, in order of number: all except the hosts of disk racks; if there are no others, all
/// hosts.
pub(crate) fn task_hosts(cluster: &Cluster) -> Vec<HostId> {
    let fabric = &cluster.fabric;
    let runs_tasks = |host: &HostId| fabric.rack_kind(fabric.rack_of(*host)) != RackKind::Disk;
    let hosts: Vec<HostId> = fabric.all_hosts().filter(runs_tasks).collect();
    if hosts.is_empty() { fabric.all_hosts().collect() } else { hosts }
}

/// Draws one of `hosts` uniformly.
pub(crate) fn draw_host(hosts: &[HostId], random: &mut impl rand::Rng) -> HostId {
    // A cluster has at least one host.
    hosts[random.random_range(0..hosts.len())]
}

/// Rejects flows between racks on a cluster whose racks have no links; the message recommends `instead`.
pub(crate) fn check_rack_links(cluster: &Cluster, instead: &str) -> Result<(), String> {
    match cluster.fabric.shape() {
        Shape::Tree => Ok(()),
        _ => Err(format!("this cluster is a mesh, whose racks have no links; use {instead}")),
    }
}

/// Formats an amount of data: three digits and a unit.
pub(crate) fn amount(bytes: u128) -> String {
    let units = [("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let bytes = bytes as f64;
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let number = bytes / unit;
            let decimals = 2_usize.saturating_sub(number.log10() as usize);
            format!("{number:.decimals$} {name}")
        }
        None => format!("{bytes} B"),
    }
}
