//! Format of the conformance vectors: a JSON file that programs in any language can read. Fields that end in `_ns` are
//! nanoseconds as strings. Fields that end in `_bps` are rates in bits per second. The document
//! `docs/reference/ledger-vectors.md` explains each field to authors of clients.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanoseconds as a string, because some JSON readers would round large numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ns(pub u64);

impl Serialize for Ns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Ns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ns, D::Error> {
        String::deserialize(deserializer)?.parse().map(Ns).map_err(serde::de::Error::custom)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct File {
    pub about: String,
    pub vectors: Vec<Vector>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Vector {
    pub name: String,
    pub about: String,
    /// Largest accepted deviation of a rate; 0 if the ledger adds only integers.
    pub tolerance_bps: f64,
    pub settings: Settings,
    pub cluster: Cluster,
    /// Resources whose numbers each step expects.
    pub read: Vec<u32>,
    pub steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Settings {
    pub interval_ns: Ns,
    pub alpha: f64,
    pub missing: String,
    pub initial: String,
    pub grace_ns: Ns,
    pub unknown_after: f64,
    pub hold_peak: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cluster {
    /// Capacity of each resource.
    pub capacities_bps: Vec<i64>,
    /// For each host: the link out of it and the link into it.
    pub hosts: Vec<[u32; 2]>,
    pub sums: Vec<SumRecord>,
    /// True if rates can be reserved.
    pub promises: bool,
}

/// A link without its own counter, and the links below it that add up to its load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SumRecord {
    pub resource: u32,
    pub of: Vec<u32>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    pub at_ns: Ns,
    pub op: Op,
    pub expect: Vec<Numbers>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Report(Vec<SampleRecord>),
    Commit(Change),
    Started { entry: String, start_ns: Ns },
    Believe { resource: u32, capacity_bps: i64 },
    Health { host: u32, up: bool },
    Advance {},
    View { add: Vec<EntryRecord>, without: Vec<OwnerRecord> },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SampleRecord {
    pub resource: u32,
    pub from_ns: Ns,
    pub until_ns: Ns,
    pub load_bps: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed_bps: Option<i64>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Change {
    pub add: Vec<EntryRecord>,
    pub release: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EntryRecord {
    /// Name of the entry in later steps.
    pub entry: String,
    pub owner: OwnerRecord,
    pub hops: Vec<HopRecord>,
    pub demand: DemandRecord,
    pub sign: SignRecord,
    pub fade: FadeRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_ns: Option<Ns>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OwnerRecord {
    pub kind: String,
    pub id: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HopRecord {
    pub resource: u32,
    /// Bits on the link per payload byte.
    pub work: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemandRecord {
    Elastic { bytes: u64, flows: u32, cap_bps: Option<u64> },
    Stream { mean_bps: u64, peak_bps: u64 },
    Envelope { mean_bps: u64, rate_bps: u64, burst_bits: f64, priority: u8 },
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignRecord {
    Adds,
    Relieves,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FadeRecord {
    AtNextWindow,
    WithEstimator,
    After { ttl_ns: Ns },
    Held,
}

/// Numbers of a view for one resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Numbers {
    pub resource: u32,
    pub measured_bps: Option<i64>,
    pub derived: bool,
    pub expected_capacity_bps: Option<i64>,
    pub residual_bps: i64,
    /// Rate that one new flow would get.
    pub share_bps: i64,
    /// Utilization without extra load.
    pub utilization: Option<f64>,
    pub unreserved_bps: Option<i64>,
    pub hot_since_ns: Option<Ns>,
}
