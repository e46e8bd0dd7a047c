//! The fields of a cluster file, as written. `values` says what stands in them, `resolve` what they mean together.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Count, Duplex, Listing, Name, Rate, Ratio};
use crate::input::{Spanned, one_line};
use crate::units::{Bandwidth, Bytes, Cpus};
use crate::{RackKind, Shape};

/// A cluster: a tree of racks and optional pods, or a mesh of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// What people call it.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// `tree` (racks, optional pods, a core that does not block), `pipe` (a mesh with a rate for each ordered
    /// pair of hosts) or `hose` (a mesh limited at the hosts only).
    #[serde(default)]
    pub shape: Shape,
    /// How many racks, or a list of them. On a mesh, racks only group hosts.
    #[schemars(with = "Option<Listing<RackFile>>")]
    pub racks: Option<Spanned<Listing<RackFile>>>,
    /// How many hosts each rack has unless it says otherwise.
    #[schemars(with = "Option<Count>")]
    pub hosts_per_rack: Option<Spanned<Count>>,
    /// The hosts of a mesh without racks: how many, or a list.
    #[schemars(with = "Option<Listing<HostFile>>")]
    pub hosts: Option<Spanned<Listing<HostFile>>>,
    /// Rate of each host's network interface.
    #[schemars(with = "Option<Duplex>")]
    pub nic: Option<Spanned<Duplex>>,
    /// Sum of a rack's interfaces over its uplink (and downlink). Instead of `rack_link`.
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
    /// Rate of each rack's uplink and downlink. Instead of `oversubscription`.
    #[schemars(with = "Option<Duplex>")]
    pub rack_link: Option<Spanned<Duplex>>,
    /// How many pods, or a list of them. Racks that name no pod are dealt out evenly, in order.
    #[schemars(with = "Option<Listing<PodFile>>")]
    pub pods: Option<Spanned<Listing<PodFile>>>,
    /// Sum of a pod's rack uplinks over the pod's uplink. Instead of `pod_link`.
    #[schemars(with = "Option<Ratio>")]
    pub pod_oversubscription: Option<Spanned<Ratio>>,
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
    /// Processors of each host for tasks, unless it says otherwise; without limit if not given.
    pub cpus: Option<Cpus>,
    /// Memory of each host for tasks, unless it says otherwise; without limit if not given.
    pub memory: Option<Bytes>,
    /// Rate of each ordered pair of hosts of a `pipe` mesh, unless `pairs` says otherwise.
    #[schemars(with = "Option<Bandwidth>")]
    pub pair: Option<Spanned<Rate>>,
    /// Pairs of a `pipe` mesh that differ.
    #[serde(default)]
    #[schemars(with = "Vec<PairFile>")]
    pub pairs: Vec<Spanned<PairFile>>,
    /// Strict-priority classes that every resource enforces, at most 255. Absent: none, and no rate can be reserved.
    #[schemars(with = "Option<Count>")]
    pub priorities: Option<Spanned<Count>>,
}

/// A rack, or `count` racks alike.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RackFile {
    /// Its name; `r` and its number if not given.
    pub name: Option<Name>,
    /// This many racks like this one, with names by number.
    pub count: Option<Count>,
    /// The pod it is in.
    #[schemars(with = "Option<Name>")]
    pub pod: Option<Spanned<Name>>,
    /// What it holds.
    pub kind: Option<RackKind>,
    /// How many hosts, or a list of them.
    pub hosts: Option<Listing<HostFile>>,
    /// Rate of its hosts' interfaces.
    pub nic: Option<Duplex>,
    /// Rate of its uplink and downlink: a rack that lost half its uplinks says so here.
    pub link: Option<Duplex>,
    /// Sum of its interfaces over its uplink (and downlink).
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
    /// What it fails together with: racks that name the same one are one fault domain. Its own name if not given.
    pub fault_domain: Option<Name>,
    /// Tags of all its hosts.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Devices of its hosts.
    #[schemars(with = "Option<Vec<DeviceFile>>")]
    pub devices: Option<Vec<Spanned<DeviceFile>>>,
    /// Processors of each of its hosts for tasks.
    pub cpus: Option<Cpus>,
    /// Memory of each of its hosts for tasks.
    pub memory: Option<Bytes>,
}

/// One host written out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Its name.
    pub name: Name,
    /// Rate of its interface.
    pub nic: Option<Duplex>,
    /// Tags besides its rack's.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Its devices.
    #[schemars(with = "Option<Vec<DeviceFile>>")]
    pub devices: Option<Vec<Spanned<DeviceFile>>>,
    /// Its processors for tasks.
    pub cpus: Option<Cpus>,
    /// Its memory for tasks.
    pub memory: Option<Bytes>,
}

/// One pod written out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodFile {
    /// Its name.
    pub name: Name,
    /// Rate of its uplink and downlink.
    pub link: Option<Duplex>,
    /// Sum of its racks' uplinks over its own.
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
}

/// A disk or SSD: one server of work, whose reads and writes share its time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    /// Its name within the host; `disk` and its number if not given.
    pub name: Option<Name>,
    /// Rate when it only reads; 1/rate is the service time of a byte.
    #[schemars(with = "Bandwidth")]
    pub read: Rate,
    /// Rate when it only writes.
    #[schemars(with = "Bandwidth")]
    pub write: Rate,
    /// What it can store; without limit if not given.
    pub capacity: Option<Bytes>,
}

/// The rate of one ordered pair of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairFile {
    /// Sending host.
    pub from: Name,
    /// Receiving host.
    pub to: Name,
    /// Rate from one to the other.
    #[schemars(with = "Bandwidth")]
    pub rate: Rate,
}
