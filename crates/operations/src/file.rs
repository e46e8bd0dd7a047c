//! Scenario file of operations: YAML or JSON, with quantities that have units.

use std::fmt;

use leeward_fabric::cluster::ClusterSource;
use leeward_fabric::input::one_line;
use leeward_fabric::{Bandwidth, Bytes, Nanos};
use leeward_placement::replicas::Coding;
use leeward_registry::PolicySpec;
use leeward_workloads::{Degraded, Factor, Readers};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A scenario of operations: a cluster, its media, and the jobs that read and write there.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationsFile {
    /// Name of the scenario.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// The cluster, a tree: the path of its file, relative to this file, or its fields.
    pub cluster: ClusterSource,
    /// Buffers, marks and delays of links.
    #[serde(default)]
    pub network: NetworkFile,
    /// TCP settings of hosts.
    #[serde(default)]
    pub tcp: TcpFile,
    /// Classes of service. Default: one class.
    #[serde(default)]
    pub classes: Vec<ClassFile>,
    /// Media of servers. Each host has each of them.
    pub media: Vec<MediumFile>,
    /// Chunks of files that a policy places before the run.
    pub chunks: Option<ChunksFile>,
    /// Kinds of operations.
    pub operations: Vec<OperationFile>,
    /// Kinds of jobs.
    pub jobs: Vec<JobFile>,
    /// Changes of links.
    #[serde(default)]
    pub events: Vec<EventFile>,
    /// Duration of the run.
    pub horizon: Nanos,
    /// Initial time that records leave out. Default 0s.
    #[serde(default)]
    pub warmup: Nanos,
    /// Length of a window of telemetry. Default 30s, as in the paper (section 4.1).
    #[serde(default = "thirty_seconds")]
    pub sample: Nanos,
    /// Seed of random draws. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
}

fn thirty_seconds() -> Nanos {
    Nanos(30 * Nanos::SECOND.0)
}

fn one() -> u64 {
    1
}

fn single() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// Buffers, marks and delays.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkFile {
    /// Propagation delay of each link. Default 1us.
    pub delay: Nanos,
    /// Bytes that wait at most at each port of a switch. Default 2MB.
    pub buffer: Bytes,
    /// Waiting bytes of a class from which a port marks its packets (ECN). Default 100KB; null for no marks.
    pub mark_at: Option<Bytes>,
    /// Largest number of bytes of a connection in the queue of its host; the rest waits in the socket. Default 128KiB.
    pub host_limit: Bytes,
}

impl Default for NetworkFile {
    fn default() -> NetworkFile {
        NetworkFile {
            delay: Nanos(1_000),
            buffer: Bytes(2_000_000),
            // About 65 packets of 1,500 bytes, for ports of 10 Gb/s (DCTCP, SIGCOMM 2010, section 3.5).
            mark_at: Some(Bytes(100_000)),
            host_limit: Bytes(128 << 10),
        }
    }
}

/// TCP settings. The defaults are DCTCP with the timeouts of a datacenter.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpFile {
    /// Congestion control. Default dctcp.
    pub control: ControlFile,
    /// If true, segments of reno and cubic are ECN-capable (those of dctcp always are). Default false.
    pub ecn: bool,
    /// Largest payload of a segment, in bytes. Default 8948.
    pub mss: u32,
    /// Size of the first window, in segments. Default 10.
    pub initial_window: u32,
    /// If true, an idle window shrinks to the first window. Default true.
    pub restart_after_idle: bool,
    /// If true, a probe is sent after two round trips without an acknowledgement. Default true.
    pub tail_probe: bool,
    /// Shortest wait before a probe. Default 1ms.
    pub min_probe: Nanos,
    /// Additional wait before a probe if a single segment is outstanding. Default 1ms.
    pub lone_probe: Nanos,
    /// Retransmission timeout before the first round-trip sample. Default 10ms.
    pub initial_timeout: Nanos,
    /// Smallest margin of the retransmission timeout above the round trip. Default 5ms.
    pub min_timeout: Nanos,
    /// Largest retransmission timeout. Default 1s.
    pub max_timeout: Nanos,
    /// Number of segments per acknowledgement. Default 2.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement. Default 500us.
    pub ack_delay: Nanos,
}

impl Default for TcpFile {
    fn default() -> TcpFile {
        TcpFile {
            control: ControlFile::Dctcp,
            ecn: false,
            mss: leeward_tcp::MSS,
            initial_window: 10,
            restart_after_idle: true,
            tail_probe: true,
            min_probe: Nanos(1_000_000),
            lone_probe: Nanos(1_000_000),
            initial_timeout: Nanos(10_000_000),
            min_timeout: Nanos(5_000_000),
            max_timeout: Nanos::SECOND,
            ack_every: 2,
            ack_delay: Nanos(500_000),
        }
    }
}

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlFile {
    /// Additive increase and halving.
    Reno,
    /// A cubic function of the time since the last loss.
    Cubic,
    /// Reductions by the share of marked bytes; requires `network.mark_at`.
    Dctcp,
}

/// A class of service.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Name of the class, such as PC.
    pub name: String,
    /// Weight of the class in ports of switches: 1 to 1000.
    pub weight: u32,
}

/// Media of servers, such as their disks or their memory.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumFile {
    /// Name of the medium.
    pub name: String,
    /// Rate of reads alone.
    pub read: Bandwidth,
    /// Rate of writes alone.
    pub write: Bandwidth,
    /// Time of an access before its bytes, such as the seek of a disk. Default 0s.
    #[serde(default)]
    pub access: Nanos,
    /// Number of accesses at once, 1 to 1000. Default 1.
    #[serde(default = "single")]
    pub parallel: u32,
    /// Time that the server processes each operation. Default 0s.
    #[serde(default)]
    pub processing: Nanos,
    /// Rate at which the server processes the bytes of an operation. Default: in no time.
    pub processing_rate: Option<Bandwidth>,
    /// Bytes of writes that a cache holds until they are on the device. Default: writes end on the device.
    pub cache: Option<Bytes>,
}

/// Chunks of files. A policy places them one stripe after another, on an idle network.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChunksFile {
    /// Replica policy, such as ccp.
    pub policy: PolicySpec,
    /// Number of stripes, 1 to 100000.
    pub stripes: u32,
    /// Erasure code of a stripe, such as 6+3.
    pub coding: Coding,
    /// Size of a chunk, for the storage that stripes take.
    pub size: Bytes,
}

/// Direction of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirectionFile {
    /// From the server to the worker.
    Read,
    /// From the worker to the server.
    Write,
}

/// A kind of operations.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationFile {
    /// Name of the kind.
    pub name: String,
    /// Direction.
    pub kind: DirectionFile,
    /// Name of the server's medium.
    pub medium: String,
    /// Bytes: one size, or the least and the most of sizes that are log-uniform.
    pub size: Sizes,
    /// Class of service. Default: the first.
    pub class: Option<String>,
    /// Servers, each equally often. Default: the hosts of the chunks.
    pub servers: Option<Readers>,
    /// Reads other chunks of the stripe if a chunk comes late; only of chunks.
    pub degraded: Option<Degraded>,
}

/// Sizes of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Least bytes.
    pub least: Bytes,
    /// Most bytes.
    pub most: Bytes,
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 1MB, or the least and the most such as [100KB, 1MB]")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Sizes, E> {
        let size: Bytes = text.parse().map_err(E::custom)?;
        Ok(Sizes { least: size, most: size })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sizes: A) -> Result<Sizes, A::Error> {
        let two = || de::Error::custom("expected the least and the most size");
        let least = sizes.next_element()?.ok_or_else(two)?;
        let most = sizes.next_element()?.ok_or_else(two)?;
        if sizes.next_element::<Bytes>()?.is_some() {
            return Err(two());
        }
        Ok(Sizes { least, most })
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size, or the least and the most.",
            "oneOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }
            ]
        })
    }
}

/// A kind of jobs. A job has `stages`, or is one stage with `workers`, `steps` and `repeat`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// Name of the kind.
    pub name: String,
    /// Mean number of jobs that arrive in a second, as a Poisson process. Give exactly one of `rate` and `concurrent`.
    pub rate: Option<Factor>,
    /// Number of jobs at any time: when one ends, the next begins.
    pub concurrent: Option<u32>,
    /// Hosts of workers, each equally often. Default: all.
    #[serde(default)]
    pub hosts: Readers,
    /// Stages, one after another.
    pub stages: Option<Vec<StageFile>>,
    /// Number of workers. Default 1.
    pub workers: Option<u32>,
    /// Steps of each worker, one after another.
    pub steps: Option<Vec<StepFile>>,
    /// Number of times that a worker follows its steps. Default 1.
    pub repeat: Option<u32>,
    /// Time from which jobs arrive. Default 0s.
    #[serde(default)]
    pub start: Nanos,
    /// Time until which jobs arrive. Default: the end of the run.
    pub end: Option<Nanos>,
    /// False for background, of which there are no records. Default true.
    #[serde(default = "yes")]
    pub record: bool,
}

/// A stage of a job. It ends with its last worker.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageFile {
    /// Number of workers, 1 to 65536. Default 1.
    #[serde(default = "single")]
    pub workers: u32,
    /// Steps of each worker, one after another.
    pub steps: Vec<StepFile>,
    /// Number of times that a worker follows its steps. Default 1.
    #[serde(default = "single")]
    pub repeat: u32,
}

/// A step of a worker: exactly one of `compute` and `operation`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepFile {
    /// Time of a computation.
    pub compute: Option<ComputeFile>,
    /// Name of a kind of operations.
    pub operation: Option<String>,
    /// Number of operations. Default 1.
    pub count: Option<u32>,
    /// Number of operations at once. Default 1.
    pub parallel: Option<u32>,
}

/// Time of a computation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ComputeFile {
    /// Mean.
    pub mean: Nanos,
    /// Squared coefficient of variation.
    pub c2: Factor,
}

/// Fields of a time with a variation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputeFields {
    mean: Nanos,
    c2: Factor,
}

impl<'de> Deserialize<'de> for ComputeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ComputeVisitor)
    }
}

struct ComputeVisitor;

impl<'de> Visitor<'de> for ComputeVisitor {
    type Value = ComputeFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 10ms, or its mean and variation such as {mean: 10ms, c2: 1}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ComputeFile, E> {
        let mean: Nanos = text.parse().map_err(E::custom)?;
        let c2 = Factor::new(0.0).ok_or_else(|| E::custom("zero is in range"))?;
        Ok(ComputeFile { mean, c2 })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ComputeFile, A::Error> {
        let ComputeFields { mean, c2 } = ComputeFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ComputeFile { mean, c2 })
    }
}

impl JsonSchema for ComputeFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ComputeFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time, or its mean and its squared coefficient of variation: 0, or 1 and more.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "mean": { "type": "string" }, "c2": { "type": "number", "minimum": 0 } },
                    "required": ["mean", "c2"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

/// A change of a link.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// Time of the change.
    pub at: Nanos,
    /// Link that changes, such as r3:uplink.
    pub link: String,
    /// New capacity of the link; above 0.
    pub capacity: Bandwidth,
}
