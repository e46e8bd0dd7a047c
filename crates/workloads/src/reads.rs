//! Reads of written blocks: a Poisson process of requests for a part of a block on disk.
//!
//! The read blocks depend on the writes of the run, and so on its policy. The other properties are drawn in advance:
//! time and reader, and three numbers from 0 to 1. The numbers choose the block among those written, the copy or chunk,
//! and its replacements. Each is a function of the seed and of the read's own number. Two policies thus see the same
//! reads. The blocks are the same as far as the policies' writes allow. Reads use no memory before their request.

use std::fmt;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bandwidth, Bytes, Cluster, HostId, Nanos};
use leeward_registry::random::{Draws, Kind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::{Loaded, Workload};
use crate::read_stream::ReadStream;
use crate::settings::{Factor, positive};

const READ: Kind = Kind::named("reads.read");

/// Largest number of reads of one source; each is a row of the results.
const MOST_READS: f64 = 10_000_000.0;

/// Reads of blocks written in the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// Mean total rate of all readers, if each read is of `size`. Give exactly one of `rate` and `per_second`.
    pub rate: Option<Bandwidth>,
    /// Mean number of reads per second: 0 to 1000000.
    pub per_second: Option<Factor>,
    /// Bytes read of a block, or of one of its chunks; a smaller block or chunk is read completely.
    #[serde(deserialize_with = "positive")]
    pub size: Bytes,
    /// Hosts that read, each equally often.
    #[serde(default)]
    pub readers: Readers,
    /// Exponent of Zipf's law over blocks, 0 to 4. At 0, all blocks are read equally often; otherwise the first blocks
    /// in the order of files are read most.
    #[serde(default = "zero")]
    pub skew: Factor,
    /// Start time.
    #[serde(default)]
    pub start: Nanos,
    /// Duration; default is up to the end of the run.
    pub duration: Option<Nanos>,
    /// Replacement of missing chunks by other chunks of the stripe; no replacement if absent.
    pub degraded: Option<Degraded>,
}

/// Degraded reads (Hotspots section 3.4): a client computes a missing chunk from other chunks of the stripe. It fetches
/// as many of them as the stripe has data chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// Time to wait for a chunk, unless its host is known to be down.
    pub after: Nanos,
}

/// Hosts by name: `all`, or hosts, racks, pods and tags; one name or a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct Readers(Vec<String>);

/// Name of all hosts.
const ALL: &str = "all";

fn zero() -> Factor {
    Factor::new(0.0).expect("zero is in range")
}

impl Default for Readers {
    fn default() -> Self {
        Readers(vec![ALL.into()])
    }
}

impl<'de> Deserialize<'de> for Readers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadersVisitor)
    }
}

struct ReadersVisitor;

impl<'de> Visitor<'de> for ReadersVisitor {
    type Value = Readers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`all`, the name of a host, rack, pod or tag, or a list of such names")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Readers, E> {
        Ok(Readers(vec![name.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Readers, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = sequence.next_element()? {
            names.push(name);
        }
        if names.is_empty() {
            return Err(de::Error::custom("an empty list: expected at least one name"));
        }
        Ok(Readers(names))
    }
}

impl JsonSchema for Readers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Readers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`all`, or names of hosts, racks, pods and tags.",
            "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }]
        })
    }
}

impl Readers {
    /// Returns the hosts in the order of their numbers, each once.
    ///
    /// # Errors
    /// Returns a message for an unknown or ambiguous name.
    pub fn hosts(&self, cluster: &Cluster) -> Result<Arc<[HostId]>, String> {
        let fabric = &cluster.fabric;
        let mut hosts: Vec<HostId> = Vec::new();
        for name in &self.0 {
            if name == ALL {
                hosts.extend(fabric.all_hosts());
                continue;
            }
            let tag = fabric.tag_mask(name);
            match (fabric.host(name), fabric.domain(name), tag) {
                (Some(host), None, None) => hosts.push(host),
                (None, Some(domain), None) => hosts.extend(fabric.hosts(domain).map(HostId)),
                (None, None, Some(tag)) => {
                    hosts.extend(fabric.all_hosts().filter(|&host| fabric.tags(host) & tag != 0));
                }
                (None, None, None) => {
                    return Err(format!("`{}`: no host, rack, pod or tag of this cluster", excerpt(name)));
                }
                _ => {
                    let message =
                        "more than one host, rack, pod or tag has this name; expected an unambiguous name";
                    return Err(format!("`{}`: {message}", excerpt(name)));
                }
            }
        }
        hosts.sort();
        hosts.dedup();
        Ok(hosts.into())
    }
}

impl Reads {
    /// Generates `horizon` seconds of reads for `cluster`.
    ///
    /// # Errors
    /// Returns an error for invalid settings, unknown readers, or too many reads.
    pub fn generate(&self, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        let per_second = self.check()?;
        let start = self.start.as_secs_f64();
        let end = self.duration.map_or(horizon, |duration| (start + duration.as_secs_f64()).min(horizon));
        let expected = per_second * (end - start).max(0.0);
        if expected > MOST_READS {
            let field = if self.rate.is_some() { "rate" } else { "per_second" };
            let message = format!(
                "{expected:.1e} reads: more than {MOST_READS:.0}; expected fewer, or a shorter `duration`"
            );
            return Err(invalid(field, message));
        }
        let stream = ReadStream {
            start,
            end,
            per_second,
            size: self.size,
            skew: self.skew.get(),
            degraded_after: self.degraded.map(|degraded| degraded.after.as_secs_f64()),
            readers: self.readers.hosts(cluster).map_err(|message| invalid("readers", message))?,
            draws: Draws::new(seed, READ),
        };
        let (mut count, mut last) = (0, stream.start);
        while let Some(at) = stream.arrival(count, last) {
            (count, last) = (count + 1, at);
        }
        let degraded =
            self.degraded.map_or(String::new(), |degraded| format!(", degraded after {}", degraded.after));
        let provenance = format!(
            "reads, generated: {count} reads of {} by {} hosts, from {start} s to {end} s{degraded}",
            self.size,
            stream.readers.len()
        );
        let workload = Workload { reads: vec![stream], ..Workload::default() };
        Ok(Loaded { workload, provenance })
    }

    /// Checks the settings and returns the number of reads per second.
    fn check(&self) -> Result<f64, InputError> {
        let per_second = match (self.rate, self.per_second) {
            (Some(rate), None) => rate.bytes_per_second() / self.size.0 as f64,
            (None, Some(per_second)) => per_second.get(),
            (None, None) => return Err(invalid("rate", "missing: expected this or `per_second`")),
            (Some(_), Some(_)) => {
                return Err(invalid("per_second", "beside `rate`: expected one of the two"));
            }
        };
        if self.skew.get() > 4.0 {
            return Err(invalid("skew", format!("{}: expected 0 to 4", self.skew.get())));
        }
        if self.degraded.is_some_and(|degraded| degraded.after.0 == 0) {
            return Err(invalid("degraded.after", "0s: must be positive"));
        }
        Ok(per_second)
    }
}

/// Creates an error about the settings of this source.
fn invalid(field: &str, message: impl fmt::Display) -> InputError {
    InputError::new("reads", message).in_field(field)
}
