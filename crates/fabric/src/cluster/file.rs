//! The fields of a cluster file, as written. Meaning is given to them in `build`.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::input::Spanned;
use crate::units::{Bandwidth, Bytes};
use crate::{RackKind, Shape};

/// A cluster: a tree of racks and optional pods, or a mesh of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// What people call it.
    pub name: Option<String>,
    /// `tree` (racks, optional pods, a core that does not block), `pipe` (a mesh with a rate for each ordered
    /// pair of hosts) or `hose` (a mesh limited at the hosts only).
    #[serde(default)]
    pub shape: Shape,
    /// How many racks, or a list of them. On a mesh, racks only group hosts.
    #[schemars(with = "Option<Listing<RackFile>>")]
    pub racks: Option<Spanned<Listing<RackFile>>>,
    /// How many hosts each rack has unless it says otherwise.
    #[schemars(with = "Option<u32>")]
    pub hosts_per_rack: Option<Spanned<u32>>,
    /// The hosts of a mesh without racks: how many, or a list.
    #[schemars(with = "Option<Listing<HostFile>>")]
    pub hosts: Option<Spanned<Listing<HostFile>>>,
    /// Rate of each host's network interface.
    #[schemars(with = "Option<Duplex>")]
    pub nic: Option<Spanned<Duplex>>,
    /// Sum of a rack's interfaces over its uplink (and downlink). Instead of `rack_link`.
    #[schemars(with = "Option<f64>")]
    pub oversubscription: Option<Spanned<f64>>,
    /// Rate of each rack's uplink and downlink. Instead of `oversubscription`.
    #[schemars(with = "Option<Duplex>")]
    pub rack_link: Option<Spanned<Duplex>>,
    /// How many pods (racks are dealt out evenly, in order), or a list of them (each rack then names its pod).
    #[schemars(with = "Option<Listing<PodFile>>")]
    pub pods: Option<Spanned<Listing<PodFile>>>,
    /// Sum of a pod's rack uplinks over the pod's uplink. Instead of `pod_link`.
    #[schemars(with = "Option<f64>")]
    pub pod_oversubscription: Option<Spanned<f64>>,
    /// Rate of each pod's uplink and downlink. Instead of `pod_oversubscription`.
    #[schemars(with = "Option<Duplex>")]
    pub pod_link: Option<Spanned<Duplex>>,
    /// What the racks hold unless they say otherwise.
    #[serde(default)]
    pub kind: RackKind,
    /// The devices of each host unless it says otherwise.
    #[serde(default)]
    #[schemars(with = "Vec<DeviceFile>")]
    pub devices: Vec<Spanned<DeviceFile>>,
    /// Rate of each ordered pair of hosts of a `pipe` mesh, unless `pairs` says otherwise.
    #[schemars(with = "Option<Bandwidth>")]
    pub pair: Option<Spanned<Bandwidth>>,
    /// Pairs of a `pipe` mesh that differ.
    #[serde(default)]
    #[schemars(with = "Vec<PairFile>")]
    pub pairs: Vec<Spanned<PairFile>>,
    /// Strict-priority classes that every resource enforces. Absent: none, and no rate can be reserved.
    pub priorities: Option<u8>,
}

/// A rack, or `count` racks alike.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RackFile {
    /// Its name; `r` and its number if not given.
    pub name: Option<String>,
    /// This many racks like this one, with names by number.
    pub count: Option<u32>,
    /// The pod it is in.
    pub pod: Option<String>,
    /// What it holds.
    pub kind: Option<RackKind>,
    /// How many hosts, or a list of them.
    pub hosts: Option<Listing<HostFile>>,
    /// Rate of its hosts' interfaces.
    pub nic: Option<Duplex>,
    /// Rate of its uplink and downlink: a rack that lost half its uplinks says so here.
    pub link: Option<Duplex>,
    /// Sum of its interfaces over its uplink (and downlink).
    pub oversubscription: Option<f64>,
    /// What it fails together with: racks that name the same one are one fault domain. Itself if not given.
    pub fault_domain: Option<String>,
    /// Tags of all its hosts.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Devices of its hosts.
    pub devices: Option<Vec<DeviceFile>>,
}

/// One host written out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Its name.
    pub name: String,
    /// Rate of its interface.
    pub nic: Option<Duplex>,
    /// Tags besides its rack's.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Its devices.
    pub devices: Option<Vec<DeviceFile>>,
}

/// One pod written out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodFile {
    /// Its name.
    pub name: String,
    /// Rate of its uplink and downlink.
    pub link: Option<Duplex>,
    /// Sum of its racks' uplinks over its own.
    pub oversubscription: Option<f64>,
}

/// A disk or SSD: one server of work, whose reads and writes share its time.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    /// Its name within the host; `disk` and its number if not given.
    pub name: Option<String>,
    /// Rate when it only reads; 1/rate is the service time of a byte.
    pub read: Bandwidth,
    /// Rate when it only writes.
    pub write: Bandwidth,
    /// What it can store; without limit if not given.
    pub capacity: Option<Bytes>,
}

/// The rate of one ordered pair of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairFile {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Rate from one to the other.
    pub rate: Bandwidth,
}

/// The two directions of a link: one rate for both, or `{up: ..., down: ...}` seen from the host or rack.
#[derive(Clone, Copy, Debug)]
pub struct Duplex {
    /// Away from the host or rack, towards the core.
    pub up: Bandwidth,
    /// Towards the host or rack.
    pub down: Bandwidth,
}

/// How many, or each written out.
pub enum Listing<T> {
    /// This many, all by default.
    Count(u32),
    /// These.
    Each(Vec<Spanned<T>>),
}

impl<'de> Deserialize<'de> for Duplex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DuplexVisitor)
    }
}

struct DuplexVisitor;

impl<'de> Visitor<'de> for DuplexVisitor {
    type Value = Duplex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate with its unit, such as 10Gbps, or {up: 10Gbps, down: 40Gbps}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duplex, E> {
        let rate: Bandwidth = text.parse().map_err(E::custom)?;
        Ok(Duplex { up: rate, down: rate })
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duplex, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duplex, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Duplex, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Duplex, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Directions {
            up: Bandwidth,
            down: Bandwidth,
        }
        let Directions { up, down } = Directions::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Duplex { up, down })
    }
}

impl JsonSchema for Duplex {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duplex".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rate = generator.subschema_for::<Bandwidth>();
        json_schema!({
            "description": "One rate for both directions, or one for each, seen from the host, rack or pod.",
            "oneOf": [rate, {
                "type": "object",
                "properties": { "up": rate, "down": rate },
                "required": ["up", "down"],
                "additionalProperties": false
            }]
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listing<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListingVisitor(PhantomData))
    }
}

struct ListingVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListingVisitor<T> {
    type Value = Listing<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count, or a list")
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Listing<T>, E> {
        u32::try_from(count).map(Listing::Count).map_err(|_| E::custom(format!("{count}: too many")))
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Listing<T>, E> {
        Err(E::custom(format!("{count}: expected a count of at least 1, or a list")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Listing<T>, A::Error> {
        let mut each = Vec::new();
        while let Some(item) = sequence.next_element()? {
            each.push(item);
        }
        Ok(Listing::Each(each))
    }
}

impl<T: JsonSchema> JsonSchema for Listing<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("CountOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({
            "description": "How many, or a list.",
            "oneOf": [{ "type": "integer", "minimum": 1 }, { "type": "array", "items": item, "minItems": 1 }]
        })
    }
}
