//! Reports of surveys for programs and people: hosts by name, and times in seconds. Commands and the service use the
//! same reports.

mod bottlenecks;

use schemars::JsonSchema;
use serde::Serialize;

use crate::control::{Place, Secret};
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::mesh::{Parts, Shape};
use crate::survey::{self, HopMeasurement, Host, ProgressObserver, Sources};
use crate::train::Train;

pub use bottlenecks::{
    BottleneckOptions, Bottlenecks, Ends, PairResult, SharedLink, SubtreeUplink, Uplink, bottlenecks,
};

/// Measurement of a path by a train. If it failed, all fields except `from`, `to` and `error` are null.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredPath")]
pub struct Path {
    /// Source host.
    pub from: String,
    /// Destination host.
    pub to: String,
    /// Throughput of one TCP connection, in bits per second.
    pub rate_bps: Option<f64>,
    /// Rate of the train alone, without the bound under loss.
    pub train_bps: Option<f64>,
    /// Bound under loss; null without loss.
    pub bound_bps: Option<f64>,
    /// Rate at which the sender sent packets.
    pub sent_bps: Option<f64>,
    /// True if the sender was the limit; the path's rate is then at least this value.
    pub sender_limited: Option<bool>,
    /// True if the train overflowed a queue.
    pub overran: Option<bool>,
    /// Share of packets that the network lost.
    pub loss: Option<f64>,
    /// Round-trip time in seconds.
    pub rtt_s: Option<f64>,
    /// Standard deviation of the rates of single bursts relative to their mean.
    pub spread: Option<f64>,
    /// Number of packets sent.
    pub sent: Option<u64>,
    /// Number of distinct packets received.
    pub received: Option<u64>,
    /// Number of packets that overflowed the receiver's socket buffer.
    pub overrun: Option<u64>,
    /// Reason for a failed measurement; null on success.
    pub error: Option<String>,
}

/// Measurements of all paths between hosts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredMesh")]
pub struct Mesh {
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Every ordered pair, by its first host and then its second.
    pub paths: Vec<Path>,
    /// Position of the hosts by hop counts; null if hops were not counted.
    pub topology: Option<Topology>,
    /// Paths that slow each other down; null if the survey did not search for them.
    pub bottlenecks: Option<Bottlenecks>,
    /// Text of a cluster file; null if a path could not be measured.
    pub cluster: Option<String>,
}

/// Position of hosts by hop counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredTopology")]
pub struct Topology {
    /// Hosts.
    pub hosts: Vec<String>,
    /// Hops from each host to each other; null without a reply, and from a host to itself.
    pub hops: Vec<Vec<Option<u8>>>,
    /// Hosts of each rack.
    pub racks: Vec<Vec<String>>,
    /// Hosts under each aggregation switch.
    pub subtrees: Vec<Vec<String>>,
    /// Pairs of hosts that do not fit a tree.
    pub misfits: Vec<Misfit>,
}

/// A pair of hosts that does not fit a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Misfit {
    /// First host.
    pub from: String,
    /// Second host.
    pub to: String,
    /// Number of hops; null without a reply.
    pub hops: Option<u8>,
    /// Description of the contradiction.
    pub why: String,
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

    /// Reports a measured path.
    pub fn measured(from: &str, to: &str, estimate: &Estimate) -> Path {
        Path::new(from, to, Some(estimate), None)
    }
}

impl Topology {
    /// Reports the position of hosts by hop counts.
    pub fn new(hosts: &[Host], placed: &HopMeasurement) -> Topology {
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

/// Measures a path with several trains, one after another.
///
/// # Errors
///
/// Returns the error of a failed train, and [`ProbeError::Stopped`] if the caller stops the survey.
pub fn path(
    from: (&str, &Place),
    to: (&str, &str),
    train: &Train,
    times: usize,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Vec<Path>, ProbeError> {
    let mut paths = Vec::new();
    for number in 0..times {
        paths.push(Path::measured(from.0, to.0, &survey::train(from.1, to.1, train, secret)?));
        progress(number + 1, times)?;
    }
    Ok(paths)
}

/// Parameters of a mesh survey and of its cluster file.
#[derive(Clone, PartialEq, Debug)]
pub struct MeshOptions {
    /// Train for each path.
    pub train: Train,
    /// Maximum number of simultaneous trains.
    pub at_once: usize,
    /// If true, also counts hops, so that the cluster file has racks.
    pub hops: bool,
    /// Search for shared bottlenecks, for the cluster file; `None` for none.
    pub bottlenecks: Option<BottleneckOptions>,
    /// Shape of the cluster file; `None` for the shape that the search for bottlenecks finds, or a pipe without a search.
    pub shape: Option<Shape>,
    /// Name of the cluster.
    pub name: String,
}

/// Measures every path between hosts, and then searches for bottlenecks if requested.
///
/// # Errors
///
/// Fails as [`survey::mesh`], [`survey::topology`] and [`survey::bottlenecks`] do. The failure of a single path is no
/// error.
pub fn mesh(
    hosts: &[Host],
    options: &MeshOptions,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Mesh, ProbeError> {
    let wanted = options.bottlenecks.as_ref();
    if wanted.is_some() {
        survey::check_hosts(hosts, survey::BOTTLENECK_HOSTS)?;
    }
    let hops = options.hops || wanted.is_some_and(|wanted| wanted.hops);
    let placed = count_hops(hops, hosts, secret, progress)?;
    let topology = placed.as_ref().map(|placed| &placed.topology);
    // Both surveys are one for the observer.
    let more =
        wanted.map_or(0, |wanted| survey::bottleneck_steps(hosts.len(), topology, wanted.pairs, wanted.seed));
    let mut first = |done, total| progress(done, total + more);
    let meshed = survey::mesh(hosts, &options.train, options.at_once, secret, &mut first)?;
    let search = |wanted: &BottleneckOptions| {
        let BottleneckOptions { each, pairs, seed, .. } = wanted;
        let before = meshed.paths.len();
        let mut second = |done, total| progress(before + done, before + total);
        survey::bottlenecks(hosts, topology, each, *pairs, *seed, secret, &mut second)
    };
    let found = wanted.map(search).transpose()?;
    let path = |path: &survey::PathMeasurement| {
        let (from, to) = path.pair;
        Path::new(&hosts[from].name, &hosts[to].name, path.estimate.as_ref(), path.error.as_deref())
    };
    // A pipe has only the measured rates. A hose adds limits of sources, which must have been found.
    let shape = options.shape.unwrap_or(match found.as_ref().map(|found| found.sources(topology)) {
        Some(Sources::Shared) => Shape::Hose,
        Some(Sources::Separate | Sources::Unknown) | None => Shape::Pipe,
    });
    let parts = Parts {
        racks: topology.map(|topology| topology.racks.clone()),
        same_machine: placed.as_ref().map(HopMeasurement::same_machine).unwrap_or_default(),
        shared_links: found.as_ref().map(|found| found.shared_links.clone()).unwrap_or_default(),
        rtts_ns: meshed.rtts_ns(),
    };
    Ok(Mesh {
        hosts: hosts.to_vec(),
        paths: meshed.paths.iter().map(path).collect(),
        topology: placed.as_ref().map(|placed| Topology::new(hosts, placed)),
        bottlenecks: found.as_ref().map(|found| Bottlenecks::new(hosts, found, placed.as_ref())),
        cluster: meshed.mesh().cluster(&options.name, shape, &parts).ok(),
    })
}

/// Counts hops before a survey, if requested. Progress counts only the steps of the survey, so the callback gets 0
/// completed steps here. An error of the callback stops the count.
fn count_hops(
    wanted: bool,
    hosts: &[Host],
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Option<HopMeasurement>, ProbeError> {
    let mut observer = |_, total| progress(0, total);
    wanted.then(|| survey::topology(hosts, secret, &mut observer)).transpose()
}
