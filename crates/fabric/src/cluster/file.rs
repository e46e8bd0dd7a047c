//! The fields of a cluster file, as written. `values` parses single fields; `resolve` combines them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Count, Duplex, Listing, Name, Rate, Ratio};
use crate::input::{Spanned, one_line};
use crate::units::{Bandwidth, Bytes, Cost, Cpus, Nanos};
use crate::{RackKind, Shape};

/// A cluster: a tree of racks and optional pods, or a mesh of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// Name of the cluster.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// `tree` (racks, optional pods, a non-blocking core), `pipe` (a mesh with a rate for each ordered pair of hosts)
    /// or `hose` (a mesh limited only at the hosts).
    #[serde(default)]
    pub shape: Shape,
    /// Number of racks, or a list of them. On a mesh, racks only group hosts.
    #[schemars(with = "Option<Listing<RackFile>>")]
    pub racks: Option<Spanned<Listing<RackFile>>>,
    /// Number of hosts of each rack without its own `hosts`.
    #[schemars(with = "Option<Count>")]
    pub hosts_per_rack: Option<Spanned<Count>>,
    /// Hosts of a mesh without racks: their number, or a list.
    #[schemars(with = "Option<Listing<HostFile>>")]
    pub hosts: Option<Spanned<Listing<HostFile>>>,
    /// Rate of each host's network interface.
    #[schemars(with = "Option<Duplex>")]
    pub nic: Option<Spanned<Duplex>>,
    /// Total rate of a rack's interfaces divided by the rate of its uplink (and downlink). Replaces `rack_link`.
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
    /// Rate of each rack's uplink and downlink. Replaces `oversubscription`.
    #[schemars(with = "Option<Duplex>")]
    pub rack_link: Option<Spanned<Duplex>>,
    /// Number of pods, or a list of them. Racks that name no pod are distributed evenly, in order.
    #[schemars(with = "Option<Listing<PodFile>>")]
    pub pods: Option<Spanned<Listing<PodFile>>>,
    /// Total rate of a pod's rack uplinks divided by the rate of the pod's uplink. Replaces `pod_link`.
    #[schemars(with = "Option<Ratio>")]
    pub pod_oversubscription: Option<Spanned<Ratio>>,
    /// Rate of each pod's uplink and downlink. Replaces `pod_oversubscription`.
    #[schemars(with = "Option<Duplex>")]
    pub pod_link: Option<Spanned<Duplex>>,
    /// Main use of the racks without their own `kind`.
    #[serde(default)]
    pub kind: RackKind,
    /// Devices of each host without its own `devices`.
    #[serde(default)]
    #[schemars(with = "Vec<DeviceFile>")]
    pub devices: Vec<Spanned<DeviceFile>>,
    /// Processors for tasks on each host without its own `cpus`; unlimited if absent.
    pub cpus: Option<Cpus>,
    /// Memory for tasks on each host without its own `memory`; unlimited if absent.
    pub memory: Option<Bytes>,
    /// Cost of each host with tasks without its own `cost`, per hour, in any unit of money. Default 0.
    pub cost: Option<Cost>,
    /// Round-trip times of small messages between hosts; unknown if absent.
    #[schemars(with = "Option<RoundTripFile>")]
    pub rtt: Option<Spanned<RoundTripFile>>,
    /// Rate of the ordered pairs of hosts that `pairs` does not list, on a `pipe` mesh.
    #[schemars(with = "Option<Bandwidth>")]
    pub pair: Option<Spanned<Rate>>,
    /// Pairs of a mesh with their own rate. On a `hose` mesh, the rates of the hosts apply too.
    #[serde(default)]
    #[schemars(with = "Vec<PairFile>")]
    pub pairs: Vec<Spanned<PairFile>>,
    /// Links of a mesh that several paths share, such as the uplink of a rack.
    #[serde(default)]
    #[schemars(with = "Vec<SharedLinkFile>")]
    pub shared_links: Vec<Spanned<SharedLinkFile>>,
    /// Traffic of others on links, as probes count it.
    #[serde(default)]
    #[schemars(with = "Vec<CrossTrafficFile>")]
    pub cross_traffic: Vec<Spanned<CrossTrafficFile>>,
    /// Number of strict-priority classes that every resource enforces, at most 255. Without this field, no rate can be
    /// reserved.
    #[schemars(with = "Option<Count>")]
    pub priorities: Option<Spanned<Count>>,
}

/// A rack, or `count` identical racks.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RackFile {
    /// Name of the rack; `r` and its number if absent.
    pub name: Option<Name>,
    /// Number of identical racks, which are named by number.
    pub count: Option<Count>,
    /// Pod of the rack.
    #[schemars(with = "Option<Name>")]
    pub pod: Option<Spanned<Name>>,
    /// Main use of the rack's hosts.
    pub kind: Option<RackKind>,
    /// Number of hosts, or a list of them.
    pub hosts: Option<Listing<HostFile>>,
    /// Rate of the network interface of each host of the rack.
    pub nic: Option<Duplex>,
    /// Rate of the rack's uplink and downlink, for example if the rack lost half its uplinks.
    pub link: Option<Duplex>,
    /// Total rate of the rack's interfaces divided by the rate of its uplink (and downlink).
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
    /// Fault domain of the rack; the name of the rack if absent. Racks with the same fault domain fail together.
    pub fault_domain: Option<Name>,
    /// Tags of all hosts of the rack.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Labels of all hosts of the rack.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Devices of the rack's hosts.
    #[schemars(with = "Option<Vec<DeviceFile>>")]
    pub devices: Option<Vec<Spanned<DeviceFile>>>,
    /// Processors for tasks on each host of the rack.
    pub cpus: Option<Cpus>,
    /// Memory for tasks on each host of the rack.
    pub memory: Option<Bytes>,
    /// Cost of each host of the rack with tasks, per hour.
    pub cost: Option<Cost>,
}

/// A host in a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Name of the host.
    pub name: Name,
    /// Rate of the host's interface.
    pub nic: Option<Duplex>,
    /// Tags in addition to the rack's.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Labels in addition to the rack's. A label of the host replaces the rack's label of the same key.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Devices of the host.
    #[schemars(with = "Option<Vec<DeviceFile>>")]
    pub devices: Option<Vec<Spanned<DeviceFile>>>,
    /// Processors of the host for tasks.
    pub cpus: Option<Cpus>,
    /// Memory of the host for tasks.
    pub memory: Option<Bytes>,
    /// Cost of the host with tasks, per hour.
    pub cost: Option<Cost>,
}

/// A pod in a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodFile {
    /// Name of the pod.
    pub name: Name,
    /// Rate of the pod's uplink and downlink.
    pub link: Option<Duplex>,
    /// Total rate of the uplinks of the pod's racks divided by the rate of the pod's uplink.
    #[schemars(with = "Option<Ratio>")]
    pub oversubscription: Option<Spanned<Ratio>>,
}

/// A disk or SSD. Reads and writes share the time of the device.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    /// Name of the device, unique within the host; `disk` and its number if absent.
    pub name: Option<Name>,
    /// Rate of reads alone; 1/rate is the service time of a byte.
    #[schemars(with = "Bandwidth")]
    pub read: Rate,
    /// Rate of writes alone.
    #[schemars(with = "Bandwidth")]
    pub write: Rate,
    /// Storage capacity; unlimited if absent.
    pub capacity: Option<Bytes>,
    /// Type of the storage, such as `ssd` or `archive`. Requests name it to get copies on such devices only.
    #[serde(rename = "type")]
    pub storage: Option<Name>,
}

/// Round-trip times of small messages between hosts. Two hosts have the time of the smallest group that has both.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundTripFile {
    /// Between hosts of one rack.
    pub rack: Option<Nanos>,
    /// Between hosts of one pod.
    pub pod: Option<Nanos>,
    /// Between any hosts.
    pub network: Option<Nanos>,
}

/// The rate of one ordered pair of hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairFile {
    /// Sending host.
    pub from: Name,
    /// Receiving host.
    pub to: Name,
    /// Rate from the sending to the receiving host.
    #[schemars(with = "Bandwidth")]
    pub rate: Rate,
    /// True if both hosts are virtual machines on one machine: the path crosses no other link.
    #[serde(default)]
    pub same_machine: bool,
    /// Round-trip time of small messages between the hosts. The larger one counts in both directions.
    pub rtt: Option<Nanos>,
}

/// A link of a mesh that several paths share, with the paths: one of `out_of`, `into` and `paths`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedLinkFile {
    /// Name of the link; not the name of a host.
    pub name: Name,
    /// Rate of the link, which all its paths share.
    #[schemars(with = "Bandwidth")]
    pub rate: Rate,
    /// Hosts, or racks with all their hosts: every path from them to another host crosses the link.
    pub out_of: Option<Vec<Name>>,
    /// Hosts, or racks with all their hosts: every path to them from another host crosses the link.
    pub into: Option<Vec<Name>>,
    /// Paths that cross the link.
    pub paths: Option<Vec<PathFile>>,
}

/// Traffic of others on a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrossTrafficFile {
    /// Name of the link, such as `h0>h1`, `h0:egress` or `r0:uplink`.
    pub link: String,
    /// Number of connections that always send and share the link evenly with new transfers; positive.
    #[schemars(range(min = 0.0))]
    pub connections: f64,
}

/// A path between two hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathFile {
    /// Sending host.
    pub from: Name,
    /// Receiving host.
    pub to: Name,
}
