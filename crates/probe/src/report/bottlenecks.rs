//! Reports of searches for shared bottlenecks.

use schemars::JsonSchema;
use serde::Serialize;

use super::Topology;
use crate::bottleneck::Kind;
use crate::control::Secret;
use crate::error::ProbeError;
use crate::mesh::shared_link_name;
use crate::rules::Level;
use crate::shared_links;
use crate::survey::{self, Experiment, GroupUplink, HopMeasurement, Host, ProgressObserver};
use crate::train::Transfer;

/// Two ends of a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Ends {
    /// Source host.
    pub from: String,
    /// Destination host.
    pub to: String,
}

/// Rate of a transfer alone and beside another.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tried")]
pub struct PairResult {
    /// Path of the transfer.
    pub path: Ends,
    /// Path of the other transfer.
    pub beside: Ends,
    /// Rate alone, in bits per second.
    pub alone_bps: f64,
    /// Rate beside the other transfer, in bits per second.
    pub beside_bps: f64,
    /// Standard deviation of the windows of the transfer alone, in bits per second.
    pub noise_bps: f64,
    /// Relative fall of the rate; negative if it rose.
    pub fall: f64,
    /// Sum of both rates relative to the rate alone.
    pub sum: f64,
    /// True if the fall is significant, so that the two paths share a bottleneck.
    pub shares: bool,
}

/// Result for the uplink of a rack.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Uplink {
    /// Rack, by number.
    pub rack: usize,
    /// True if paths out of the rack share the uplink as a bottleneck.
    pub bottleneck: bool,
    /// Experiment that represents all paths out of the rack.
    pub experiment: PairResult,
}

/// Result for the link out of a subtree of several racks.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SubtreeUplink {
    /// Subtree, by number.
    pub subtree: usize,
    /// True if paths out of the subtree share its link as a bottleneck.
    pub bottleneck: bool,
    /// Experiment that represents all paths out of the subtree.
    pub experiment: PairResult,
}

/// A link that paths share as a bottleneck, as in the cluster file of a mesh.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredSharedLink")]
pub struct SharedLink {
    /// Name of the link.
    pub name: String,
    /// Kind of the group of hosts.
    pub level: Level,
    /// Hosts whose paths to others cross the link.
    pub hosts: Vec<String>,
    /// Capacity in bits per second, fitted to all experiments.
    pub rate_bps: f64,
}

/// Paths that slow each other down.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Bottlenecks {
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Experiments with pairs of paths between four distinct hosts.
    pub between_four: Vec<PairResult>,
    /// Experiments with pairs of paths from one source.
    pub from_one: Vec<PairResult>,
    /// Number of experiments between four hosts with a significant fall.
    pub between_four_share: usize,
    /// Number of experiments from one source with a significant fall.
    pub from_one_share: usize,
    /// Mean sum of the rates of two transfers from one source, relative to the rate of one alone.
    pub sum: Option<f64>,
    /// Kind of network, by all experiments; null if either type of drawn experiment is missing.
    pub kind: Option<Kind>,
    /// Uplinks of racks, if hops were counted.
    pub uplinks: Vec<Uplink>,
    /// Links out of subtrees of several racks, if hops were counted.
    pub subtrees: Vec<SubtreeUplink>,
    /// Links that paths share as bottlenecks, with their capacities. A bottleneck that others explain is left out.
    pub shared_links: Vec<SharedLink>,
    /// Errors that prevented transfers; their experiments are left out.
    pub errors: Vec<String>,
    /// Position of the hosts by hop counts; null if hops were not counted.
    pub topology: Option<Topology>,
}

/// Parameters of a bottleneck survey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BottleneckOptions {
    /// Transfer of each experiment.
    pub each: Transfer,
    /// Number of pairs of paths between four hosts, and of pairs from one source.
    pub pairs: usize,
    /// Seed for drawing the pairs.
    pub seed: u64,
    /// If true, also counts hops, so that the survey tests the links out of racks and subtrees.
    pub hops: bool,
}

/// Searches for paths that slow each other down.
///
/// # Errors
///
/// Fails as [`survey::bottlenecks`] and [`survey::topology`] do.
pub fn bottlenecks(
    hosts: &[Host],
    options: &BottleneckOptions,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Bottlenecks, ProbeError> {
    let BottleneckOptions { each, pairs, seed, hops } = options;
    let placed = super::count_hops(*hops, hosts, secret, progress)?;
    let topology = placed.as_ref().map(|placed| &placed.topology);
    let found = survey::bottlenecks(hosts, topology, each, *pairs, *seed, secret, progress)?;
    Ok(Bottlenecks::new(hosts, &found, placed.as_ref()))
}

impl Bottlenecks {
    /// Reports a search for bottlenecks.
    pub(super) fn new(
        hosts: &[Host],
        found: &survey::Bottlenecks,
        placed: Option<&HopMeasurement>,
    ) -> Bottlenecks {
        let name = |host: usize| hosts[host].name.clone();
        let ends = |(from, to): (usize, usize)| Ends { from: name(from), to: name(to) };
        let result = |one: &Experiment| PairResult {
            path: ends(one.pair.0),
            beside: ends(one.pair.1),
            alone_bps: one.comparison.alone_bps,
            beside_bps: one.comparison.beside_bps,
            noise_bps: one.comparison.noise_bps,
            fall: one.comparison.fall,
            sum: one.sum,
            shares: one.comparison.shares,
        };
        let of = |level| found.uplinks.iter().filter(move |one| one.level == level);
        let uplink = |one: &GroupUplink| Uplink {
            rack: one.number,
            bottleneck: one.bottleneck,
            experiment: result(&one.experiment),
        };
        let subtree = |one: &GroupUplink| SubtreeUplink {
            subtree: one.number,
            bottleneck: one.bottleneck,
            experiment: result(&one.experiment),
        };
        let shared = |link: &shared_links::SharedLink| {
            let hosts: Vec<String> = link.group.hosts.iter().map(|&host| name(host)).collect();
            let first = hosts.first().map_or("", |host| host);
            let (level, rate_bps) = (link.group.level, link.rate_bps);
            SharedLink { name: shared_link_name(level, first), level, hosts, rate_bps }
        };
        Bottlenecks {
            hosts: hosts.to_vec(),
            between_four: found.between_four.iter().map(result).collect(),
            from_one: found.from_one.iter().map(result).collect(),
            between_four_share: found.protocol.between_four.1,
            from_one_share: found.protocol.from_one.1,
            sum: found.protocol.sum,
            kind: found.protocol.kind,
            uplinks: of(Level::Rack).map(uplink).collect(),
            subtrees: of(Level::Subtree).map(subtree).collect(),
            shared_links: found.shared_links.iter().map(shared).collect(),
            errors: found.errors.clone(),
            topology: placed.map(|placed| Topology::new(hosts, placed)),
        }
    }
}
