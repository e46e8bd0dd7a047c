//! Capacities of links that several paths share, from experiments with two transfers at a time.
//!
//! A transfer gets its max-min fair share of the links that it crosses: its path alone, its source if sources are
//! limited, and the links out of its rack and its subtree. An experiment for one rack gives the capacity of the rack's
//! link directly: the sum of both rates. Where links overlap, as the link of a subtree does with those of its racks, the
//! capacities are fitted to all experiments by least squares. A link that the others explain is left out: two racks
//! behind one full link of their subtree show the same fall as two full links of the racks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bottleneck::Path;
use crate::rules::{Level, leaves};

/// Number of rounds of the fit. Each round sets one capacity after another, so a few rounds settle links that overlap.
const ROUNDS: usize = 50;
/// Growth of the root mean square error, relative to the rates alone, up to which a link counts as explained by the
/// others. Only the experiments count in which several transfers cross the link: others would hide a link that few
/// experiments cross. The value is a choice of this project; it is above the error of a bulk transfer.
const EXPLAINED: f64 = 0.02;

/// A group of hosts whose paths out share a link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Group {
    /// Kind of the group.
    pub level: Level,
    /// Hosts of the group.
    pub hosts: Vec<usize>,
}

/// A shared link with its capacity.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SharedLink {
    /// Hosts whose paths to others cross the link.
    pub group: Group,
    /// Capacity in bits per second.
    pub rate_bps: f64,
}

/// A transfer in an experiment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// Path of the transfer.
    pub path: Path,
    /// Rate of the path alone, in bits per second; infinite if not measured.
    pub alone_bps: f64,
    /// Rate beside the other transfers, in bits per second.
    pub rate_bps: f64,
}

/// Transfers that ran at the same time.
pub type Observation = Vec<Flow>;

/// Fits the capacities of the links out of `groups` to experiments. `sources_share` says that all paths of a source
/// share its rate. Groups without an experiment, and groups that the others explain, are left out.
pub fn fit(groups: &[Group], observations: &[Observation], sources_share: bool) -> Vec<SharedLink> {
    let model = Model { observations, sources: source_rates(observations, sources_share) };
    let start = |group: &Group| {
        let sums = observations.iter().filter_map(|flows| {
            let crossing = flows.iter().filter(|flow| leaves(&group.hosts, flow.path));
            let (count, sum) = crossing.fold((0, 0.0), |(count, sum), flow| (count + 1, sum + flow.rate_bps));
            (count > 1).then_some(sum)
        });
        Some(SharedLink { group: group.clone(), rate_bps: sums.reduce(f64::max)? })
    };
    let mut links = model.settle(groups.iter().filter_map(start).collect());
    // Small groups first: the link of a subtree explains those of its racks, not the reverse.
    let mut order: Vec<Group> = links.iter().map(|link| link.group.clone()).collect();
    order.sort_by_key(|group| group.hosts.len());
    for group in order {
        let others: Vec<_> = links.iter().filter(|link| link.group != group).cloned().collect();
        let others = model.settle(others);
        let meet =
            |flows: &Observation| flows.iter().filter(|flow| leaves(&group.hosts, flow.path)).count() > 1;
        if model.error(&others, meet) <= model.error(&links, meet) + EXPLAINED {
            links = others;
        }
    }
    links
}

/// Rate of each source: the greatest rate of its paths alone. Empty if sources do not share.
fn source_rates(observations: &[Observation], sources_share: bool) -> BTreeMap<usize, f64> {
    let mut rates = BTreeMap::new();
    for flow in observations.iter().flatten().filter(|flow| sources_share && flow.alone_bps.is_finite()) {
        let rate = rates.entry(flow.path.0).or_insert(flow.alone_bps);
        *rate = flow.alone_bps.max(*rate);
    }
    rates
}

struct Model<'a> {
    observations: &'a [Observation],
    sources: BTreeMap<usize, f64>,
}

impl Model<'_> {
    /// Sets each capacity to its least-squares value, until no capacity changes.
    fn settle(&self, mut links: Vec<SharedLink>) -> Vec<SharedLink> {
        for _ in 0..ROUNDS {
            let mut change = 0.0_f64;
            for at in 0..links.len() {
                let Some(rate) = self.least_squares(&links, at) else { continue };
                change = change.max((rate / links[at].rate_bps - 1.0).abs());
                links[at].rate_bps = rate;
            }
            if change < 1e-9 {
                break;
            }
        }
        links
    }

    /// Least-squares capacity of a link, if the links that limit each transfer stay the same. A transfer that the link
    /// limits gets (c - f)/k: what f, the rate of the transfers with other limits, leaves to k transfers. `None` if the
    /// link limits no transfer.
    fn least_squares(&self, links: &[SharedLink], at: usize) -> Option<f64> {
        let (mut sum, mut weight) = (0.0, 0.0);
        for flows in self.observations {
            let allocation = self.allocate(links, flows);
            let crossing = || {
                flows.iter().zip(&allocation).filter(|(flow, _)| leaves(&links[at].group.hosts, flow.path))
            };
            let limited = || crossing().filter(|(_, (_, limit))| *limit == Some(at));
            let count = limited().count() as f64;
            if count > 0.0 {
                let seen: f64 = limited().map(|(flow, _)| flow.rate_bps).sum();
                let others = crossing().filter(|(_, (_, limit))| *limit != Some(at));
                let fixed: f64 = others.map(|(_, (rate, _))| rate).sum();
                sum += (seen + fixed) / count;
                weight += 1.0 / count;
            }
        }
        (weight > 0.0).then(|| sum / weight).filter(|rate| *rate > 0.0)
    }

    /// Root mean square difference of the model's rates from the measured ones, relative to the rates alone, in the
    /// experiments that count.
    fn error(&self, links: &[SharedLink], counts: impl Fn(&Observation) -> bool) -> f64 {
        let (mut squares, mut count) = (0.0, 0.0);
        for flows in self.observations.iter().filter(|flows| counts(flows)) {
            for (flow, (rate, _)) in flows.iter().zip(self.allocate(links, flows)) {
                let unit = if flow.alone_bps.is_finite() { flow.alone_bps } else { flow.rate_bps };
                if rate.is_finite() && unit > 0.0 {
                    squares += ((rate - flow.rate_bps) / unit).powi(2);
                    count += 1.0;
                }
            }
        }
        if count > 0.0 { f64::sqrt(squares / count) } else { 0.0 }
    }

    /// Max-min fair rates of simultaneous transfers, each with the number of the shared link that limits it.
    fn allocate(&self, links: &[SharedLink], flows: &[Flow]) -> Vec<(f64, Option<usize>)> {
        // Each limit: its number among the shared links, its capacity, and the transfers that cross it.
        let mut limits: Vec<(Option<usize>, f64, Vec<usize>)> = Vec::new();
        let crossing = |crosses: &dyn Fn(&Flow) -> bool| {
            (0..flows.len()).filter(|&at| crosses(&flows[at])).collect::<Vec<usize>>()
        };
        for (at, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.alone_bps.is_finite()) {
            limits.push((None, flow.alone_bps, vec![at]));
        }
        for (&source, &rate) in &self.sources {
            limits.push((None, rate, crossing(&|flow| flow.path.0 == source)));
        }
        for (number, link) in links.iter().enumerate() {
            limits.push((
                Some(number),
                link.rate_bps,
                crossing(&|flow| leaves(&link.group.hosts, flow.path)),
            ));
        }
        let mut rates = vec![(f64::INFINITY, None); flows.len()];
        let mut open = vec![true; flows.len()];
        loop {
            let share = |(_, capacity, members): &(Option<usize>, f64, Vec<usize>)| {
                let fixed: f64 = members.iter().filter(|&&at| !open[at]).map(|&at| rates[at].0).sum();
                let waiting = members.iter().filter(|&&at| open[at]).count();
                (waiting > 0).then(|| (capacity - fixed).max(0.0) / waiting as f64)
            };
            let shares = limits.iter().enumerate().filter_map(|(at, limit)| Some((share(limit)?, at)));
            let Some((share, tightest)) = shares.min_by(|one, other| one.0.total_cmp(&other.0)) else {
                return rates;
            };
            let (number, _, members) = &limits[tightest];
            for &at in members.iter().filter(|&&at| open[at]).copied().collect::<Vec<_>>().iter() {
                rates[at] = (share, *number);
                open[at] = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(level: Level, hosts: &[usize]) -> Group {
        Group { level, hosts: hosts.to_vec() }
    }

    /// Experiments on a network with these links, whose sources and paths have the rate 100.
    fn experiments(links: &[(&[usize], f64)], pairs: &[(Path, Path)], noise: &[f64]) -> Vec<Observation> {
        let truth: Vec<_> = links
            .iter()
            .map(|&(hosts, rate_bps)| SharedLink { group: group(Level::Rack, hosts), rate_bps })
            .collect();
        let mut noise = noise.iter().cycle();
        let run = |&(one, other): &(Path, Path)| {
            let paths = [one, other];
            let flows: Vec<_> =
                paths.iter().map(|&path| Flow { path, alone_bps: 100.0, rate_bps: 0.0 }).collect();
            let model = Model { observations: &[], sources: BTreeMap::new() };
            let alone = |flow: &Flow| model.allocate(&truth, std::slice::from_ref(flow))[0].0;
            let rates = model.allocate(&truth, &flows);
            let mut error = || 1.0 + noise.next().copied().unwrap_or(0.0);
            let seen = |(flow, (rate, _)): (&Flow, (f64, Option<usize>))| Flow {
                alone_bps: alone(flow) * error(),
                rate_bps: rate * error(),
                ..*flow
            };
            flows.iter().zip(rates).map(seen).collect()
        };
        pairs.iter().map(run).collect()
    }

    #[test]
    fn the_sum_of_both_rates_is_the_capacity_of_a_rack() {
        let seen = experiments(&[(&[0, 1], 60.0)], &[((0, 2), (1, 3))], &[]);
        let links = fit(&[group(Level::Rack, &[0, 1])], &seen, true);
        assert_eq!(links.len(), 1);
        assert!((links[0].rate_bps - 60.0).abs() < 1e-9, "{links:?}");
    }

    #[test]
    fn a_full_subtree_explains_the_falls_of_its_racks() {
        let racks = [&[0, 1][..], &[2, 3]];
        let pairs = [((0, 4), (1, 5)), ((2, 4), (3, 5)), ((0, 4), (2, 5))];
        let groups = [
            group(Level::Rack, racks[0]),
            group(Level::Rack, racks[1]),
            group(Level::Subtree, &[0, 1, 2, 3]),
        ];
        let seen = experiments(&[(&[0, 1, 2, 3], 60.0)], &pairs, &[]);
        let links = fit(&groups, &seen, true);
        assert_eq!(links.len(), 1, "{links:?}");
        assert_eq!(links[0].group.level, Level::Subtree);
        assert!((links[0].rate_bps - 60.0).abs() < 1e-6, "{links:?}");
        // One of the racks has a narrower link of its own.
        let seen = experiments(&[(&[0, 1, 2, 3], 60.0), (&[0, 1], 40.0)], &pairs, &[]);
        let links = fit(&groups, &seen, true);
        let rates: Vec<_> =
            links.iter().map(|link| (link.group.hosts.len(), link.rate_bps.round())).collect();
        assert_eq!(rates, [(2, 40.0), (4, 60.0)]);
    }

    #[test]
    fn falls_at_a_source_are_not_blamed_on_its_rack() {
        // Sources have the rate 100, and the link of the rack 120.
        let mut seen = experiments(&[(&[0, 1], 120.0)], &[((0, 2), (1, 3))], &[]);
        let half = |path| Flow { path, alone_bps: 100.0, rate_bps: 50.0 };
        seen.push(vec![half((0, 2)), half((0, 3))]);
        let links = fit(&[group(Level::Rack, &[0, 1])], &seen, true);
        assert!((links[0].rate_bps - 120.0).abs() < 1e-6, "{links:?}");
    }

    proptest! {
        #[test]
        fn fitted_capacities_are_near_the_true_ones(
            racks in (30.0..190.0_f64, 30.0..190.0_f64), subtree in 30.0..190.0_f64,
            noise in prop::collection::vec(-0.02..0.02_f64, 24),
        ) {
            let hosts = [&[0, 1][..], &[2, 3], &[0, 1, 2, 3]];
            let truth = [(hosts[0], racks.0), (hosts[1], racks.1), (hosts[2], subtree)];
            let pairs =
                [((0, 4), (1, 5)), ((2, 4), (3, 5)), ((0, 4), (2, 5)), ((1, 5), (3, 4)), ((1, 4), (2, 5)), ((0, 2), (1, 3))];
            let groups = [group(Level::Rack, hosts[0]), group(Level::Rack, hosts[1]), group(Level::Subtree, hosts[2])];
            let seen = experiments(&truth, &pairs, &noise);
            let links = fit(&groups, &seen, true);
            // The rates that the fitted links predict are near the true ones, which are what placement needs.
            let model = Model { observations: &seen, sources: source_rates(&seen, true) };
            let error = model.error(&links, |_| true);
            prop_assert!(error < 0.1, "{links:?} {error}");
        }

        #[test]
        fn a_planted_link_is_found_however_few_experiments_cross_it(
            rate in 30.0..185.0_f64, elsewhere in 1..100_usize, at in 0..100_usize,
        ) {
            let mut pairs = vec![((4, 6), (5, 7)); elsewhere];
            pairs.insert(at % (elsewhere + 1), ((0, 4), (1, 5)));
            let groups = [group(Level::Rack, &[0, 1]), group(Level::Rack, &[4, 5])];
            let seen = experiments(&[(&[0, 1], rate)], &pairs, &[]);
            let links = fit(&groups, &seen, true);
            prop_assert_eq!(links.len(), 1, "{:?}", &links);
            prop_assert_eq!(&links[0].group, &groups[0]);
            prop_assert!((links[0].rate_bps - rate).abs() < 1e-6, "{:?}", &links);
        }
    }
}
