//! Bottleneck survey: runs transfers on two paths at the same time to find paths that slow each other down.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::mesh::check_hosts;
use super::{Host, ProgressObserver, join, transfer};
use crate::bottleneck::{
    Comparison, PairResult, Path, PathPair, Protocol, between_four, compare, from_one, summarize,
};
use crate::control::Secret;
use crate::error::ProbeError;
use crate::rules::{Level, leaves, out_of_racks, out_of_subtrees};
use crate::shared_links::{Flow, Group, Observation, SharedLink, fit};
use crate::topology::Topology;
use crate::train::{Limits, Transfer};
use crate::transfer_report::TransferReport;

/// Slots per window for comparing throughput. The window is a quarter of a second, over which TCP's variations average
/// out.
const WINDOW: usize = 25;
/// Time by which the second transfer is longer than the first. The second transfer starts earlier and ends later.
const LONGER_NS: u64 = 2 * EARLIER_NS;
/// Time for which the second transfer runs alone before the first begins and after it ends.
pub const EARLIER_NS: u64 = 250_000_000;
/// Least number of hosts of a search: two paths from one source.
pub const BOTTLENECK_HOSTS: usize = 3;
/// Shortest transfer with enough windows for an estimate of its noise.
const LEAST_NS: u64 = 1_500_000_000;

/// Experiment with two simultaneous transfers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experiment {
    /// The two paths, by hosts.
    pub pair: PathPair,
    /// Rate of the first transfer alone and beside the second.
    pub comparison: Comparison,
    /// Sum of both rates relative to the first transfer's rate alone.
    pub sum: f64,
}

/// Result for the link out of a rack or subtree.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupUplink {
    /// Kind of the group.
    pub level: Level,
    /// Rack or subtree, by number.
    pub number: usize,
    /// Experiment that represents all paths out of the group.
    pub experiment: Experiment,
    /// True if the link is a bottleneck that such paths share.
    pub bottleneck: bool,
}

/// Relation of the paths out of one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sources {
    /// The paths share one rate: most experiments from one source show a fall.
    Shared,
    /// Each path has its own rate: most experiments show no fall.
    Separate,
    /// No experiment tells, or as many show a fall as do not.
    Unknown,
}

/// Bottlenecks of a network.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bottlenecks {
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Experiments with pairs of paths between four distinct hosts.
    pub between_four: Vec<Experiment>,
    /// Experiments with pairs of paths from one source.
    pub from_one: Vec<Experiment>,
    /// Summary of the experiments.
    pub protocol: Protocol,
    /// Links out of racks and subtrees, if they are known.
    pub uplinks: Vec<GroupUplink>,
    /// Shared bottlenecks with their capacities, fitted to all experiments.
    pub shared_links: Vec<SharedLink>,
    /// Errors that prevented transfers; their experiments are left out.
    pub errors: Vec<String>,
}

/// Checks that transfers are long enough for experiments, and that the longer second transfers are not too long.
///
/// # Errors
///
/// Returns [`ProbeError::Setting`] for a duration out of range.
pub fn check_bottlenecks(each: &Transfer) -> Result<(), ProbeError> {
    longer(each).check(&Limits::default())?;
    if each.duration_ns < LEAST_NS {
        let message = format!("{} s: expected at least 1.5 s", each.duration_ns as f64 / 1e9);
        return Err(ProbeError::setting("duration_ns", message));
    }
    Ok(())
}

/// Transfer that starts before the given transfer and ends after it.
fn longer(each: &Transfer) -> Transfer {
    Transfer { duration_ns: each.duration_ns.saturating_add(LONGER_NS), ..*each }
}

/// Pairs of paths to test: drawn between four hosts, drawn from one source, and out of racks and subtrees.
struct Plan {
    four: Vec<PathPair>,
    one: Vec<PathPair>,
    out: Vec<(Level, usize, PathPair)>,
}

impl Plan {
    fn new(hosts: usize, topology: Option<&Topology>, count: usize, seed: u64) -> Plan {
        let (four, one) = (between_four(hosts, count, seed), from_one(hosts, count, seed));
        Plan { four, one, out: topology.map(out_of_groups).unwrap_or_default() }
    }

    fn pairs(&self) -> impl Iterator<Item = &PathPair> {
        self.four.iter().chain(&self.one).chain(self.out.iter().map(|(_, _, pair)| pair))
    }

    /// Paths that are measured alone: the first one of each pair.
    fn paths(&self) -> BTreeSet<Path> {
        self.pairs().map(|&(path, _)| path).collect()
    }

    fn steps(&self) -> usize {
        self.paths().len() + self.pairs().count()
    }
}

/// Number of steps of a search for bottlenecks with these arguments.
pub fn bottleneck_steps(hosts: usize, topology: Option<&Topology>, count: usize, seed: u64) -> usize {
    Plan::new(hosts, topology, count, seed).steps()
}

/// Searches for bottlenecks, one experiment at a time. Runs up to `count` experiments between four distinct hosts and
/// up to `count` from one source (section 4.3), drawn by the seed. If the topology is known, runs one more for each rack,
/// and one for each subtree of several racks (section 3.3.2, rules 1 and 2). After the first successful transfer, later failures do not end the survey.
///
/// # Errors
///
/// Returns the error of the first transfer; [`ProbeError::Nothing`] if no experiment succeeded;
/// [`ProbeError::Stopped`] if the caller stops the survey.
pub fn bottlenecks(
    hosts: &[Host],
    topology: Option<&Topology>,
    each: &Transfer,
    count: usize,
    seed: u64,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Bottlenecks, ProbeError> {
    check_hosts(hosts, BOTTLENECK_HOSTS)?;
    check_bottlenecks(each)?;
    let longer = longer(each);
    let plan = Plan::new(hosts.len(), topology, count, seed);
    let steps = plan.steps();
    let mut done = 0;
    let (mut alone, mut errors) = (BTreeMap::new(), Vec::new());
    let carry =
        |path: Path, what: &Transfer| transfer(&hosts[path.0].place(), &hosts[path.1].address, what, secret);
    for path in plan.paths() {
        match carry(path, each) {
            Ok(transferred) => drop(alone.insert(path, transferred)),
            Err(error) if alone.is_empty() => return Err(error),
            Err(error) => errors.push(error.to_string()),
        }
        done += 1;
        progress(done, steps)?;
    }
    let mut experiment = |pair: &PathPair| -> Option<Result<Experiment, ProbeError>> {
        let (first, second) = *pair;
        let result = alone.get(&first).map(|alone| {
            let (beside, other) = thread::scope(|scope| {
                let other = scope.spawn(|| carry(second, &longer));
                thread::sleep(Duration::from_nanos(EARLIER_NS));
                let beside = carry(first, each);
                (beside, join(other.join()))
            });
            Experiment::of(*pair, alone, &beside?, &other?)
        });
        done += 1;
        if let Err(stopped) = progress(done, steps) {
            return Some(Err(stopped));
        }
        match result? {
            Ok(experiment) => Some(Ok(experiment)),
            Err(error) => {
                errors.push(error.to_string());
                None
            }
        }
    };
    let mut all =
        |pairs: &[PathPair]| pairs.iter().filter_map(&mut experiment).collect::<Result<Vec<_>, _>>();
    let (between_four, from_one) = (all(&plan.four)?, all(&plan.one)?);
    let uplinks = plan.out.iter().filter_map(|&(level, number, pair)| {
        let result = experiment(&pair)?;
        Some(result.map(|experiment| {
            let bottleneck = experiment.comparison.shares;
            GroupUplink { level, number, experiment, bottleneck }
        }))
    });
    let uplinks = uplinks.collect::<Result<Vec<_>, ProbeError>>()?;
    let nothing = between_four.is_empty() && from_one.is_empty() && uplinks.is_empty();
    if let Some(why) = errors.first().filter(|_| nothing) {
        return Err(ProbeError::Nothing(why.clone()));
    }
    let out_of_groups: Vec<_> = uplinks.iter().map(|uplink| uplink.experiment.clone()).collect();
    let protocol = protocol(&between_four, &from_one, &out_of_groups);
    let alone: BTreeMap<Path, f64> =
        alone.into_iter().map(|(path, transferred)| (path, transferred.rate_bps())).collect();
    let (hosts, shared_links) = (hosts.to_vec(), Vec::new());
    let mut result = Bottlenecks { hosts, between_four, from_one, protocol, uplinks, shared_links, errors };
    if let Some(topology) = topology {
        result.shared_links = result.fit_shared_links(topology, &alone);
    }
    Ok(result)
}

/// Experiments for each rack and each subtree of several racks: the number of the group, and two paths out of it.
fn out_of_groups(topology: &Topology) -> Vec<(Level, usize, PathPair)> {
    let racks = out_of_racks(&topology.racks).into_iter().map(|(number, pair)| (Level::Rack, number, pair));
    let subtrees = out_of_subtrees(&topology.racks, &topology.subtrees);
    let subtrees = subtrees.into_iter().map(|(number, pair)| (Level::Subtree, number, pair));
    racks.chain(subtrees).collect()
}

impl Bottlenecks {
    /// Whether the paths of a source share its rate, by the majority of the experiments from one source. Experiments
    /// whose two paths share a link of a rack or subtree say nothing.
    pub fn sources(&self, topology: Option<&Topology>) -> Sources {
        let full = |path: Path| {
            let found = self.uplinks.iter().filter(|uplink| uplink.bottleneck);
            let mut groups = found.filter_map(|uplink| Some(group_of(topology?, uplink).hosts));
            groups.any(|hosts| leaves(&hosts, path))
        };
        let counted = || self.from_one.iter().filter(|one| !(full(one.pair.0) && full(one.pair.1)));
        let share = counted().filter(|one| one.comparison.shares).count();
        match (2 * share).cmp(&counted().count()) {
            Ordering::Greater => Sources::Shared,
            Ordering::Less => Sources::Separate,
            Ordering::Equal => Sources::Unknown,
        }
    }

    /// Fits the capacities of the links that their experiments show to be bottlenecks.
    fn fit_shared_links(&self, topology: &Topology, alone: &BTreeMap<Path, f64>) -> Vec<SharedLink> {
        let full = self.uplinks.iter().filter(|uplink| uplink.bottleneck);
        let groups: Vec<Group> = full.map(|uplink| group_of(topology, uplink)).collect();
        let out = self.uplinks.iter().map(|uplink| &uplink.experiment);
        let observe = |experiment: &Experiment| -> Observation {
            let (first, second) = experiment.pair;
            let Comparison { alone_bps, beside_bps, .. } = experiment.comparison;
            let other_bps = (experiment.sum * alone_bps - beside_bps).max(0.0);
            let second_alone = alone.get(&second).copied().unwrap_or(f64::INFINITY);
            vec![
                Flow { path: first, alone_bps, rate_bps: beside_bps },
                Flow { path: second, alone_bps: second_alone, rate_bps: other_bps },
            ]
        };
        // If it is unknown whether a source limits its paths, their falls say nothing about links.
        let sources = self.sources(Some(topology));
        let from_one = self.from_one.iter().filter(|_| sources != Sources::Unknown);
        let observations: Vec<_> = self.between_four.iter().chain(from_one).chain(out).map(observe).collect();
        fit(&groups, &observations, sources == Sources::Shared)
    }
}

/// The hosts of a rack or subtree.
fn group_of(topology: &Topology, uplink: &GroupUplink) -> Group {
    let groups = match uplink.level {
        Level::Rack => &topology.racks,
        Level::Subtree => &topology.subtrees,
    };
    Group { level: uplink.level, hosts: groups[uplink.number].clone() }
}

impl Experiment {
    /// Evaluates three transfers of any kind: the first path alone, the first path beside the second, and the second
    /// path, which began [`EARLIER_NS`] earlier.
    ///
    /// # Errors
    ///
    /// Fails as [`compare`] does.
    pub fn of(
        pair: PathPair,
        alone: &TransferReport,
        beside: &TransferReport,
        other: &TransferReport,
    ) -> Result<Experiment, ProbeError> {
        let comparison = compare(&alone.windows_bps(WINDOW), &beside.windows_bps(WINDOW))?;
        let sum = (beside.rate_bps() + other.rate_beside(beside, EARLIER_NS)) / comparison.alone_bps;
        Ok(Experiment { pair, comparison, sum })
    }
}

/// Summarizes experiments between four hosts, from one source, and out of racks and subtrees.
pub fn protocol(
    between_four: &[Experiment],
    from_one: &[Experiment],
    out_of_groups: &[Experiment],
) -> Protocol {
    let results = |experiments: &[Experiment]| -> Vec<PairResult> {
        let one =
            |one: &Experiment| PairResult { pair: one.pair, shares: one.comparison.shares, sum: one.sum };
        experiments.iter().map(one).collect()
    };
    summarize(&results(between_four), &results(from_one), &results(out_of_groups))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn experiment(pair: PathPair, shares: bool) -> Experiment {
        let (beside_bps, fall) = if shares { (50.0, 0.5) } else { (100.0, 0.0) };
        let comparison = Comparison { alone_bps: 100.0, beside_bps, noise_bps: 0.0, fall, shares };
        Experiment { pair, comparison, sum: beside_bps / 50.0 }
    }

    proptest! {
        #[test]
        fn sources_share_by_a_majority_of_the_experiments_that_tell(
            falls in prop::collection::vec(any::<bool>(), 0..12), hidden in 0..4_usize,
        ) {
            // Hosts 0 and 1 are behind a full link, so their experiments tell nothing about sources.
            let topology = Topology {
                racks: vec![vec![0, 1], vec![2, 3], vec![4, 5]],
                subtrees: vec![(0..6).collect()],
                misfits: vec![],
            };
            let mut from_one: Vec<_> = falls.iter().map(|&fall| experiment(((2, 4), (2, 5)), fall)).collect();
            from_one.extend(vec![experiment(((0, 2), (0, 4)), true); hidden]);
            let out = experiment(((0, 2), (1, 4)), true);
            let uplink = GroupUplink { level: Level::Rack, number: 0, experiment: out, bottleneck: true };
            let found = Bottlenecks {
                hosts: vec![], between_four: vec![], protocol: protocol(&[], &from_one, &[]), from_one,
                uplinks: vec![uplink], shared_links: vec![], errors: vec![],
            };
            let fell = falls.iter().filter(|fall| **fall).count();
            let expected = match (fell, falls.len() - fell) {
                (yes, no) if yes > no => Sources::Shared,
                (yes, no) if yes < no => Sources::Separate,
                _ => Sources::Unknown,
            };
            prop_assert_eq!(found.sources(Some(&topology)), expected);
        }
    }
}
