//! Reads of what was written: a Poisson process of requests for a part of a block that is on disk by then.
//!
//! What is read depends on what a run has written, and so on its policy. What can be drawn beforehand is: when, by whom, and
//! of three numbers from 0 to 1, which of the blocks that are there, which of its copies or chunks, and which others in
//! their place. Each is a function of the seed and of the read's own number, so that two policies see the same reads, of the same
//! blocks as nearly as what they have written by then allows. Nothing is kept of a read before it is asked for.

use std::fmt;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bandwidth, Bytes, Cluster, HostId, Nanos};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Workload;
use super::settings::{Factor, positive};
use super::source::Loaded;
use crate::stage::random::{Draws, Kind};

const READ: Kind = Kind::named("reads.read");

/// Reads of one source at most: each is a row of the results.
const MOST_READS: f64 = 10_000_000.0;

/// What the draws of a read are for.
const GAP: u64 = 0;
const BLOCK: u64 = 1;
const READER: u64 = 2;
const HOLDER: u64 = 3;
const OTHERS: u64 = 4;

/// Reads of blocks that were written in the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// What all readers ask for together, in the mean, if each read is of `size`. Either this or `per_second` is given.
    pub rate: Option<Bandwidth>,
    /// How many reads a second, in the mean: 0 to 1000000.
    pub per_second: Option<Factor>,
    /// What is read of a block, or of a chunk of it; all of it where that is less.
    #[serde(deserialize_with = "positive")]
    pub size: Bytes,
    /// The hosts that read, each as often as any other.
    #[serde(default)]
    pub readers: Readers,
    /// Exponent of Zipf's law by which blocks are chosen, 0 to 4. At 0 all are read alike; else what is first in the order of
    /// files is read most.
    #[serde(default = "none")]
    pub skew: Factor,
    /// When it begins.
    #[serde(default)]
    pub start: Nanos,
    /// How long it goes on; to the end of the run if not given.
    pub duration: Option<Nanos>,
    /// Whether a chunk that does not come is made up for by others of its stripe; not if not given.
    pub degraded: Option<Degraded>,
}

/// Degraded reads (Hotspots section 3.4): a client that cannot have a chunk fetches others of the stripe, as many as there
/// are data chunks, and computes it from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// How long a chunk is waited for, unless its host is known to be down.
    pub after: Nanos,
}

/// Hosts by name: `all`, or hosts, racks, pods and tags; one of them or a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct Readers(Vec<String>);

/// The name of all hosts.
const ALL: &str = "all";

fn none() -> Factor {
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
    /// The hosts, in the order of their numbers, each once.
    fn hosts(&self, cluster: &Cluster) -> Result<Arc<[HostId]>, String> {
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
                        "several of a host, a rack and a tag have this name; expected names of one kind";
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
    /// Generates `horizon` seconds for `cluster`.
    pub fn generate(&self, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        let per_second = self.check()?;
        let start = self.start.as_secs_f64();
        let end = self.duration.map_or(horizon, |duration| (start + duration.as_secs_f64()).min(horizon));
        let expected = per_second * (end - start).max(0.0);
        if expected > MOST_READS {
            let field = if self.rate.is_some() { "rate" } else { "per_second" };
            let message = format!(
                "{expected:.1e} reads: more than {MOST_READS:.0}; expected less, or a shorter `duration`"
            );
            return Err(wrong(field, message));
        }
        let stream = ReadStream {
            start,
            end,
            per_second,
            size: self.size,
            skew: self.skew.get(),
            degraded_after: self.degraded.map(|degraded| degraded.after.as_secs_f64()),
            readers: self.readers.hosts(cluster).map_err(|message| wrong("readers", message))?,
            draws: Draws::new(seed, READ),
        };
        let (mut count, mut last) = (0, stream.start);
        while let Some(at) = stream.arrival(count, last) {
            (count, last) = (count + 1, at);
        }
        let degraded = self.degraded.map_or(String::new(), |it| format!(", degraded after {}", it.after));
        let provenance = format!(
            "reads, generated: {count} reads of {} by {} hosts, from {start} s to {end} s{degraded}",
            self.size,
            stream.readers.len()
        );
        let workload = Workload { reads: vec![stream], ..Workload::default() };
        Ok(Loaded { workload, provenance })
    }

    /// How many reads a second, if the settings are in order.
    fn check(&self) -> Result<f64, InputError> {
        let per_second = match (self.rate, self.per_second) {
            (Some(rate), None) => rate.0 as f64 / 8.0 / self.size.0 as f64,
            (None, Some(per_second)) => per_second.get(),
            (None, None) => return Err(wrong("rate", "missing: expected this or `per_second`")),
            (Some(_), Some(_)) => return Err(wrong("per_second", "beside `rate`: expected one of the two")),
        };
        if self.skew.get() > 4.0 {
            return Err(wrong("skew", format!("{}: expected 0 to 4", self.skew.get())));
        }
        if self.degraded.is_some_and(|degraded| degraded.after.0 == 0) {
            return Err(wrong("degraded.after", "0s: must be positive"));
        }
        Ok(per_second)
    }
}

/// An error about the settings of this source.
fn wrong(field: &str, message: impl fmt::Display) -> InputError {
    InputError::new("reads", message).in_field(field)
}

/// Reads of one source, each by its number.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadStream {
    /// When they begin, in seconds.
    pub start: f64,
    /// Before when they are asked for, in seconds.
    pub end: f64,
    /// How many a second, in the mean.
    pub per_second: f64,
    /// What is read of a block or chunk.
    pub size: Bytes,
    /// Exponent of Zipf's law by which blocks are chosen.
    pub skew: f64,
    /// How long a chunk is waited for before others are read in its place, in seconds.
    pub degraded_after: Option<f64>,
    /// The hosts that read.
    pub readers: Arc<[HostId]>,
    draws: Draws,
}

impl ReadStream {
    /// When the `number`th read comes, if that is before the end; `last` is when the one before it did, or the start.
    pub fn arrival(&self, number: u64, last: f64) -> Option<f64> {
        let gap = -(-self.draws.draw(number, GAP)).ln_1p() / self.per_second;
        Some(last + gap).filter(|&at| at < self.end)
    }

    /// Who asks for it.
    pub fn reader(&self, number: u64) -> HostId {
        self.readers[one_of(self.readers.len(), self.draws.draw(number, READER))]
    }

    /// Where in what is written its block lies, as a share from 0 to 1.
    pub fn block(&self, number: u64) -> f64 {
        self.draws.draw(number, BLOCK)
    }

    /// Which of `count` copies or chunks it is of.
    pub fn holder(&self, number: u64, count: usize) -> usize {
        one_of(count, self.draws.draw(number, HOLDER))
    }

    /// By which other chunks take the place of one: those with the least of these. `chunk` is a position in the stripe.
    pub fn rank(&self, number: u64, chunk: usize) -> f64 {
        self.draws.draw(number, OTHERS + chunk as u64)
    }
}

/// One of `count` things by a draw from 0 to 1.
fn one_of(count: usize, draw: f64) -> usize {
    ((draw * count as f64) as usize).min(count.saturating_sub(1))
}
