//! What surveys found, as programs and people are told: by names of hosts, with times in seconds. Commands and the service say
//! the same.

use schemars::JsonSchema;
use serde::Serialize;

use crate::bottleneck::Kind;
use crate::control::{Place, Secret};
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::mesh::Shape;
use crate::survey::{self, Experiment, Host, Placed, Progress};
use crate::train::{Train, Transfer};

/// What a train said of a path; all but its ends is null if it could not be measured.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredPath")]
pub struct Path {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Throughput of one TCP connection.
    pub rate_bps: Option<f64>,
    /// The rate of the train alone, without the bound under loss.
    pub train_bps: Option<f64>,
    /// The bound under loss; null without loss.
    pub bound_bps: Option<f64>,
    /// At what rate the sender put packets out.
    pub sent_bps: Option<f64>,
    /// Whether the sender was the limit: the path's rate is then this or more.
    pub sender_limited: Option<bool>,
    /// Whether the train overran a queue.
    pub overran: Option<bool>,
    /// Share of packets that the network lost.
    pub loss: Option<f64>,
    /// The round trip.
    pub rtt_s: Option<f64>,
    /// How far rates of single bursts lie apart: their deviation over their mean.
    pub spread: Option<f64>,
    /// Packets sent.
    pub sent: Option<u64>,
    /// Packets received.
    pub received: Option<u64>,
    /// Packets that the receiver was too slow to take in.
    pub overrun: Option<u64>,
    /// Why it could not be measured; null if it was.
    pub error: Option<String>,
}

/// Every path between hosts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredMesh")]
pub struct Mesh {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Every ordered pair, by its first host and then its second.
    pub paths: Vec<Path>,
    /// Where hops place the hosts; null if they were not counted.
    pub topology: Option<Topology>,
    /// The text of a cluster file; null if a path could not be measured.
    pub cluster: Option<String>,
}

/// Where hops place hosts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredTopology")]
pub struct Topology {
    /// The hosts.
    pub hosts: Vec<String>,
    /// From each host to each; null where nothing answered, and from a host to itself.
    pub hops: Vec<Vec<Option<u8>>>,
    /// Hosts of each rack.
    pub racks: Vec<Vec<String>>,
    /// Hosts under each aggregation switch.
    pub subtrees: Vec<Vec<String>>,
    /// What fits no tree.
    pub misfits: Vec<Misfit>,
}

/// A pair of hosts that fits no tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Misfit {
    /// The first.
    pub from: String,
    /// The second.
    pub to: String,
    /// Hops that were counted; null if nothing answered.
    pub hops: Option<u8>,
    /// What is odd about it.
    pub why: String,
}

/// Two ends of a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Ends {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
}

/// A transfer alone, and beside another.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Tried {
    /// Its path.
    pub path: Ends,
    /// That of the other.
    pub beside: Ends,
    /// What it got alone.
    pub alone_bps: f64,
    /// What it got beside the other.
    pub beside_bps: f64,
    /// How far windows of the transfer alone lie apart: one deviation.
    pub noise_bps: f64,
    /// The share by which it fell; negative if it rose.
    pub fall: f64,
    /// What both got together, as a share of what it got alone.
    pub sum: f64,
    /// Whether it fell significantly, so that the two share a bottleneck.
    pub shares: bool,
}

/// What is known of the link out of a rack.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Uplink {
    /// The rack, by number.
    pub rack: usize,
    /// Whether paths out of the rack share it as a bottleneck.
    pub bottleneck: bool,
    /// The experiment that stands for all paths out of the rack.
    pub experiment: Tried,
}

/// Which paths take from each other.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Bottlenecks {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Pairs of paths between four distinct hosts.
    pub between_four: Vec<Tried>,
    /// Pairs of paths from one source.
    pub from_one: Vec<Tried>,
    /// How many between four take from each other.
    pub between_four_share: usize,
    /// How many from one source do.
    pub from_one_share: usize,
    /// What two from one source got together in the mean, as a share of one alone.
    pub sum: Option<f64>,
    /// What kind of network it is; null where either kind of experiment is missing.
    pub kind: Option<Kind>,
    /// The links out of racks, where hops were counted.
    pub uplinks: Vec<Uplink>,
    /// What kept transfers from being carried, if anything did; their experiments are left out.
    pub errors: Vec<String>,
    /// Where hops place the hosts; null if they were not counted.
    pub topology: Option<Topology>,
}

impl Path {
    fn new(from: &str, to: &str, estimate: Option<&Estimate>, error: Option<&str>) -> Path {
        Path {
            from: from.to_owned(),
            to: to.to_owned(),
            rate_bps: estimate.map(|one| one.rate_bps),
            train_bps: estimate.map(|one| one.train_bps),
            bound_bps: estimate.and_then(|one| one.bound_bps),
            sent_bps: estimate.and_then(|one| one.sent_bps),
            sender_limited: estimate.map(|one| one.sender_limited),
            overran: estimate.map(|one| one.overran),
            loss: estimate.map(|one| one.loss),
            rtt_s: estimate.and_then(|one| one.rtt_ns).map(|ns| ns as f64 / 1e9),
            spread: estimate.and_then(|one| one.spread),
            sent: estimate.map(|one| one.sent),
            received: estimate.map(|one| one.received),
            overrun: estimate.map(|one| one.overrun),
            error: error.map(str::to_owned),
        }
    }

    /// A path that was measured.
    pub fn measured(from: &str, to: &str, estimate: &Estimate) -> Path {
        Path::new(from, to, Some(estimate), None)
    }
}

impl Topology {
    /// Hosts as hops place them.
    pub fn new(hosts: &[Host], placed: &Placed) -> Topology {
        let name = |host: &usize| hosts[*host].name.clone();
        let groups =
            |groups: &[Vec<usize>]| groups.iter().map(|group| group.iter().map(name).collect()).collect();
        let misfits = placed.topology.misfits.iter().map(|one| Misfit {
            from: name(&one.pair.0),
            to: name(&one.pair.1),
            hops: one.hops,
            why: one.why.clone(),
        });
        Topology {
            hosts: hosts.iter().map(|host| host.name.clone()).collect(),
            hops: placed.hops.clone(),
            racks: groups(&placed.topology.racks),
            subtrees: groups(&placed.topology.subtrees),
            misfits: misfits.collect(),
        }
    }
}

/// Measures a path by trains, one after the other.
///
/// # Errors
///
/// Whatever keeps one of them from being measured; [`ProbeError::Stopped`].
pub fn path(
    from: (&str, &Place),
    to: (&str, &str),
    train: &Train,
    times: usize,
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<Vec<Path>, ProbeError> {
    let mut made = Vec::new();
    for number in 0..times {
        made.push(Path::measured(from.0, to.0, &survey::train(from.1, to.1, train, secret)?));
        progress(number + 1, times)?;
    }
    Ok(made)
}

/// What a mesh is measured with, and written down as.
#[derive(Clone, PartialEq, Debug)]
pub struct Meshing {
    /// The trains.
    pub train: Train,
    /// How many are on their way at a time.
    pub at_once: usize,
    /// Whether hops are counted too, so that the cluster has racks.
    pub hops: bool,
    /// Of the cluster.
    pub shape: Shape,
    /// Of the cluster.
    pub name: String,
}

/// Measures every path between hosts.
///
/// # Errors
///
/// Of [`survey::mesh`] and [`survey::topology`]; a path that cannot be measured is none.
pub fn mesh(
    hosts: &[Host],
    meshing: &Meshing,
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<Mesh, ProbeError> {
    let placed = counted(meshing.hops, hosts, secret, progress)?;
    let meshed = survey::mesh(hosts, &meshing.train, meshing.at_once, secret, progress)?;
    let racks = placed.as_ref().map(|placed| &placed.topology.racks[..]);
    let path = |path: &survey::Measured| {
        let (from, to) = path.pair;
        Path::new(&hosts[from].name, &hosts[to].name, path.estimate.as_ref(), path.error.as_deref())
    };
    Ok(Mesh {
        hosts: hosts.to_vec(),
        paths: meshed.paths.iter().map(path).collect(),
        topology: placed.as_ref().map(|placed| Topology::new(hosts, placed)),
        cluster: meshed.mesh().cluster(&meshing.name, meshing.shape, racks).ok(),
    })
}

/// What bottlenecks are looked for with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Looking {
    /// Each transfer.
    pub each: Transfer,
    /// Pairs of paths between four hosts, and as many from one source.
    pub pairs: usize,
    /// Draws them.
    pub seed: u64,
    /// Whether hops are counted too, so that the links out of racks are tried.
    pub hops: bool,
}

/// Looks for paths that take from each other.
///
/// # Errors
///
/// Of [`survey::bottlenecks`] and [`survey::topology`].
pub fn bottlenecks(
    hosts: &[Host],
    looking: &Looking,
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<Bottlenecks, ProbeError> {
    let Looking { each, pairs, seed, hops } = looking;
    let placed = counted(*hops, hosts, secret, progress)?;
    let racks = placed.as_ref().map(|placed| &placed.topology.racks[..]);
    let found = survey::bottlenecks(hosts, racks, each, *pairs, *seed, secret, progress)?;
    let ends =
        |(from, to): (usize, usize)| Ends { from: hosts[from].name.clone(), to: hosts[to].name.clone() };
    let tried = |one: &Experiment| Tried {
        path: ends(one.question.0),
        beside: ends(one.question.1),
        alone_bps: one.comparison.alone_bps,
        beside_bps: one.comparison.beside_bps,
        noise_bps: one.comparison.noise_bps,
        fall: one.comparison.fall,
        sum: one.sum,
        shares: one.comparison.shares,
    };
    let uplink = |one: &survey::RackUplink| Uplink {
        rack: one.rack,
        bottleneck: one.bottleneck,
        experiment: tried(&one.experiment),
    };
    Ok(Bottlenecks {
        hosts: hosts.to_vec(),
        between_four: found.between_four.iter().map(tried).collect(),
        from_one: found.from_one.iter().map(tried).collect(),
        between_four_share: found.protocol.between_four.1,
        from_one_share: found.protocol.from_one.1,
        sum: found.protocol.sum,
        kind: found.protocol.kind,
        uplinks: found.uplinks.iter().map(uplink).collect(),
        errors: found.errors,
        topology: placed.as_ref().map(|placed| Topology::new(hosts, placed)),
    })
}

/// Counts hops before a survey, where they are wanted: whoever wants to stop it is heard, and the steps told are those of the
/// survey.
fn counted(
    wanted: bool,
    hosts: &[Host],
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<Option<Placed>, ProbeError> {
    let mut heard = |_, total| progress(0, total);
    wanted.then(|| survey::topology(hosts, secret, &mut heard)).transpose()
}
