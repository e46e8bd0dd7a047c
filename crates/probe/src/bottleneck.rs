//! Bottleneck detection: decides which paths share a bottleneck (Choreo, sections 3.3.2 and 4.3).
//!
//! The path A to B shares a bottleneck with the path C to D if the rate of A to B falls significantly while both paths
//! carry a transfer. The pattern of such falls shows the kind of network. If transfers from one source always slow each
//! other down, and other transfers never do, each source has its own limit: a hose.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::numbers::{deviation, mean};

/// Relative fall that a rate must exceed to be significant. The value is a choice of this project; the paper gives no
/// number.
pub const FALL: f64 = 0.2;
/// Number of standard deviations of the rate alone that a significant fall must exceed too. The value is a choice of
/// this project.
pub const SIGMAS: f64 = 3.0;
/// Minimum number of windows of the transfer alone for an estimate of its noise.
const LEAST_WINDOWS: usize = 3;
/// Largest share of experiments that may contradict "never" and "always". The value is a choice of this project.
const TOLERANCE: f64 = 0.1;

/// A path: the numbers of its source host and its destination host.
pub type Path = (usize, usize);

/// Rate of a path alone and beside another transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Mean rate alone, in bits per second.
    pub alone_bps: f64,
    /// Mean rate beside the other transfer, in bits per second.
    pub beside_bps: f64,
    /// Standard deviation of the windows of the transfer alone, in bits per second.
    pub noise_bps: f64,
    /// Relative fall of the rate; negative if it rose.
    pub fall: f64,
    /// True if the fall is significant, so that the two paths share a bottleneck.
    pub shares: bool,
}

/// Compares the throughput of a path in time windows, alone and while another path carries a transfer.
///
/// # Errors
///
/// Returns [`ProbeError::Nothing`] for fewer than three windows, or if nothing arrived.
pub fn compare(alone_bps: &[f64], beside_bps: &[f64]) -> Result<Comparison, ProbeError> {
    let enough = alone_bps.len() >= LEAST_WINDOWS;
    let means = mean(alone_bps).zip(mean(beside_bps)).zip(deviation(alone_bps)).filter(|_| enough);
    let Some(((alone_bps, beside_bps), noise_bps)) = means else {
        let message =
            format!("{} windows of a transfer alone: too few to estimate its noise", alone_bps.len());
        return Err(ProbeError::Nothing(message));
    };
    if alone_bps <= 0.0 {
        return Err(ProbeError::Nothing("no data of the transfer alone arrived".to_owned()));
    }
    let fell_bps = alone_bps - beside_bps;
    let fall = fell_bps / alone_bps;
    let shares = fall > FALL && fell_bps > SIGMAS * noise_bps;
    Ok(Comparison { alone_bps, beside_bps, noise_bps, fall, shares })
}

/// Two paths to test at the same time.
pub type PathPair = (Path, Path);

/// Draws up to `count` pairs of paths between four distinct hosts, by a seed; fewer if not enough exist.
pub fn between_four(hosts: usize, count: usize, seed: u64) -> Vec<PathPair> {
    let fits = |((a, b), (c, d)): &PathPair| {
        // Lists each pair of paths once, in one order.
        a < c && a != b && c != d && b != c && a != d && b != d
    };
    draw(hosts, count, seed, fits)
}

/// Draws up to `count` pairs of paths from one source to two destinations, by a seed; fewer if not enough exist.
pub fn from_one(hosts: usize, count: usize, seed: u64) -> Vec<PathPair> {
    let fits = |((a, b), (c, d)): &PathPair| a == c && a != b && a != d && b < d;
    draw(hosts, count, seed, fits)
}

/// Largest number of hosts for which all pairs are listed before the draw.
const MOST_LISTED: usize = 16;

fn draw(hosts: usize, count: usize, seed: u64, fits: impl Fn(&PathPair) -> bool) -> Vec<PathPair> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    if hosts > MOST_LISTED {
        let mut drawn = BTreeSet::new();
        let mut pairs = Vec::new();
        // This many hosts have thousands of pairs, and at least one draw in three is valid.
        for _ in 0..count.saturating_mul(1000) {
            if pairs.len() == count {
                break;
            }
            let [a, b, c, d] = [0; 4].map(|_: usize| random.random_range(0..hosts));
            let candidates = [((a, b), (c, d)), ((a, b), (a, d))];
            let pair = candidates.into_iter().find(|pair| fits(pair));
            pairs.extend(pair.filter(|&pair| drawn.insert(pair)));
        }
        return pairs;
    }
    let paths = || (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
    let mut all: Vec<PathPair> =
        paths().flat_map(|a| paths().map(move |b| (a, b))).filter(|pair| fits(pair)).collect();
    let count = count.min(all.len());
    for index in 0..count {
        let other = random.random_range(index..all.len());
        all.swap(index, other);
    }
    all.truncate(count);
    all
}

/// Result of an experiment with two paths at the same time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairResult {
    /// The two paths.
    pub pair: PathPair,
    /// True if the rate of the first path fell significantly.
    pub shares: bool,
    /// Sum of both rates relative to the first path's rate alone.
    pub sum: f64,
}

/// Kind of network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NetworkKind")]
pub enum Kind {
    /// Each source has a rate that all its paths share: the sum of the rates of two paths equals the rate of one path
    /// alone.
    Hose,
    /// Each path has its own rate.
    Pipe,
    /// Paths without a common end slow each other down: links inside the network are the bottleneck.
    Inside,
    /// The experiments contradict each other.
    Mixed,
}

/// Summary of the protocol of section 4.3.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Protocol {
    /// Number of experiments between four distinct hosts, and number of those with a significant fall.
    pub between_four: (usize, usize),
    /// Number of experiments from one source, and number of those with a significant fall.
    pub from_one: (usize, usize),
    /// Mean sum of the rates of two transfers from one source, relative to the rate of one alone.
    pub sum: Option<f64>,
    /// Number of experiments out of racks and subtrees, and number of those with a significant fall.
    pub out_of_groups: (usize, usize),
    /// Resulting kind of network; `None` if either type of drawn experiment is missing.
    pub kind: Option<Kind>,
}

/// Summarizes experiments between four hosts, from one source, and out of racks and subtrees. Up to one in ten drawn
/// experiments may contradict the others. An experiment out of a rack or subtree stands for all paths out of it, so a
/// single one with a fall shows that the network is limited inside.
pub fn summarize(
    between_four: &[PairResult],
    from_one: &[PairResult],
    out_of_groups: &[PairResult],
) -> Protocol {
    let count = |results: &[PairResult]| (results.len(), results.iter().filter(|one| one.shares).count());
    let share = |(all, falls): (usize, usize)| (all > 0).then(|| falls as f64 / all as f64);
    let (four, one, groups) = (count(between_four), count(from_one), count(out_of_groups));
    let sum = mean(&from_one.iter().map(|one| one.sum).collect::<Vec<_>>());
    let kind = share(four).zip(share(one)).zip(sum).map(|((four, one), sum)| match () {
        () if four > TOLERANCE || groups.1 > 0 => Kind::Inside,
        () if one >= 1.0 - TOLERANCE && (sum - 1.0).abs() <= FALL => Kind::Hose,
        () if one <= TOLERANCE => Kind::Pipe,
        () => Kind::Mixed,
    });
    Protocol { between_four: four, from_one: one, out_of_groups: groups, sum, kind }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fall_counts_if_it_is_large_and_beyond_the_noise() {
        let shares = |alone: &[f64], beside: &[f64]| compare(alone, beside).unwrap().shares;
        assert!(shares(&[99.0, 100.0, 101.0], &[50.0, 51.0]));
        assert!(!shares(&[99.0, 100.0, 101.0], &[85.0]), "a fall of 15 % is not significant");
        assert!(!shares(&[60.0, 100.0, 140.0], &[50.0]), "the fall is within the noise");
        assert!(!shares(&[99.0, 100.0, 101.0], &[120.0]));
        assert!(compare(&[1.0, 2.0], &[1.0]).is_err());
        assert!(compare(&[0.0; 4], &[1.0]).is_err());
        assert!(compare(&[1.0; 4], &[]).is_err());
    }

    fn results(shares: impl IntoIterator<Item = bool>, sum: f64) -> Vec<PairResult> {
        shares.into_iter().map(|shares| PairResult { pair: ((0, 1), (0, 2)), shares, sum }).collect()
    }

    #[test]
    fn kinds_of_networks_are_recognised() {
        let kind = |four: &[PairResult], one: &[PairResult]| summarize(four, one, &[]).kind;
        let (never, always) = (results([false; 20], 2.0), results([true; 20], 1.0));
        assert_eq!(kind(&never, &always), Some(Kind::Hose));
        assert_eq!(kind(&never, &never), Some(Kind::Pipe));
        assert_eq!(kind(&always, &always), Some(Kind::Inside));
        assert_eq!(kind(&never, &results((0..20).map(|i| i % 2 == 0), 1.3)), Some(Kind::Mixed));
        assert_eq!(kind(&never, &results([true; 20], 0.5)), Some(Kind::Mixed));
        assert_eq!((kind(&[], &always), kind(&never, &[])), (None, None));
        // A bottleneck out of one rack is enough, even if no drawn pair of paths meets there.
        let racks = [results([false], 2.0), results([true], 1.0)].concat();
        assert_eq!(summarize(&never, &always, &racks).kind, Some(Kind::Inside));
        assert_eq!(summarize(&never, &always, &racks[..1]).kind, Some(Kind::Hose));
    }

    proptest! {
        #[test]
        fn pairs_are_valid_and_distinct(hosts in 0..40_usize, count in 0..40_usize, seed: u64) {
            let four = between_four(hosts, count, seed);
            let one = from_one(hosts, count, seed);
            for &((a, b), (c, d)) in &four {
                prop_assert_eq!(BTreeSet::from([a, b, c, d]).len(), 4);
                prop_assert!([a, b, c, d].iter().all(|&host| host < hosts));
            }
            for &((a, b), (c, d)) in &one {
                prop_assert!(a == c && BTreeSet::from([a, b, d]).len() == 3 && b.max(d).max(a) < hosts);
            }
            let n = hosts;
            let all_four = if n < 4 { 0 } else { n * (n - 1) * (n - 2) * (n - 3) / 2 };
            let all_one = if n < 3 { 0 } else { n * (n - 1) * (n - 2) / 2 };
            for (pairs, all) in [(&four, all_four), (&one, all_one)] {
                prop_assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
                prop_assert_eq!(pairs.len(), count.min(all));
            }
            prop_assert_eq!(between_four(hosts, count, seed), four);
        }
    }
}
