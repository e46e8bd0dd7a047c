//! Which paths share a bottleneck (Choreo, sections 3.3.2 and 4.3).
//!
//! A path A to B shares one with C to D if A to B gets much less while both carry a transfer. Where that happens says what
//! kind of network it is: if transfers from one source always take from each other and others never do, each source is
//! limited by itself, which is a hose.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::numbers::{deviation, mean};

/// "Decreases significantly": by more than this share ...
pub const FALL: f64 = 0.2;
/// ... and by more than this many standard deviations of what the path gets alone. Both ours; the paper names no number.
pub const SIGMAS: f64 = 3.0;
/// Windows of a transfer alone that it takes to know its noise.
const LEAST_WINDOWS: usize = 3;
/// The share of experiments that may go against what "never" and "always" say. Ours.
const SELDOM: f64 = 0.1;

/// A path, by hosts: from, to.
pub type Path = (usize, usize);

/// What a path got alone and beside another.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Mean alone, in bits per second.
    pub alone_bps: f64,
    /// Mean beside the other.
    pub beside_bps: f64,
    /// How far windows of the transfer alone lie apart: one standard deviation, in bits per second.
    pub noise_bps: f64,
    /// The share by which it fell; negative if it rose.
    pub fall: f64,
    /// Whether that is significant, so that the two share a bottleneck.
    pub shares: bool,
}

/// Compares the throughput of a path in windows of time, alone and while another carries a transfer.
///
/// # Errors
///
/// [`ProbeError::Nothing`] if there are too few windows to know the noise, or nothing arrived.
pub fn compare(alone_bps: &[f64], beside_bps: &[f64]) -> Result<Comparison, ProbeError> {
    let enough = alone_bps.len() >= LEAST_WINDOWS;
    let means = mean(alone_bps).zip(mean(beside_bps)).zip(deviation(alone_bps)).filter(|_| enough);
    let Some(((alone_bps, beside_bps), noise_bps)) = means else {
        let message = format!("{} windows of a transfer alone: too few to know its noise", alone_bps.len());
        return Err(ProbeError::Nothing(message));
    };
    if alone_bps <= 0.0 {
        return Err(ProbeError::Nothing("nothing arrived of a transfer alone".to_owned()));
    }
    let fell_bps = alone_bps - beside_bps;
    let fall = fell_bps / alone_bps;
    let shares = fall > FALL && fell_bps > SIGMAS * noise_bps;
    Ok(Comparison { alone_bps, beside_bps, noise_bps, fall, shares })
}

/// Rule 1: whether two paths meet at a bottleneck on the link out of a host or its rack. `rack[host]` is its rack.
pub fn meet_at_rack(a: Path, b: Path, rack: &[usize]) -> bool {
    a.0 == b.0 || meet_above(a, b, rack)
}

/// Rule 2: whether two paths may meet at a bottleneck on the link out of a subtree: both begin in it and neither ends in
/// it. They may be routed through different switches still. `subtree[host]` is its subtree.
pub fn may_meet_at_subtree(a: Path, b: Path, subtree: &[usize]) -> bool {
    meet_above(a, b, subtree)
}

fn meet_above(a: Path, b: Path, group: &[usize]) -> bool {
    let from = group[a.0];
    group[b.0] == from && group[a.1] != from && group[b.1] != from
}

/// Two paths to be tried at once.
pub type Question = (Path, Path);

/// Pairs of paths between four distinct hosts, as many as said or as there are, drawn by a seed.
pub fn between_four(hosts: usize, count: usize, seed: u64) -> Vec<Question> {
    let fits = |((a, b), (c, d)): &Question| {
        // Each pair of paths once, whichever is named first.
        a < c && a != b && c != d && b != c && a != d && b != d
    };
    draw(hosts, count, seed, fits)
}

/// Pairs of paths from one source to two destinations, as many as said or as there are, drawn by a seed.
pub fn from_one(hosts: usize, count: usize, seed: u64) -> Vec<Question> {
    let fits = |((a, b), (c, d)): &Question| a == c && a != b && a != d && b < d;
    draw(hosts, count, seed, fits)
}

/// Hosts up to which all questions are listed before some are drawn.
const LISTED: usize = 16;

fn draw(hosts: usize, count: usize, seed: u64, fits: impl Fn(&Question) -> bool) -> Vec<Question> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    if hosts > LISTED {
        let mut drawn = BTreeSet::new();
        let mut questions = Vec::new();
        // Beyond that many hosts there are tens of thousands, and one in three of what is drawn or more fits one order.
        for _ in 0..count.saturating_mul(1000) {
            if questions.len() == count {
                break;
            }
            let [a, b, c, d] = [0; 4].map(|_: usize| random.random_range(0..hosts));
            let candidates = [((a, b), (c, d)), ((a, b), (a, d))];
            let question = candidates.into_iter().find(|question| fits(question));
            questions.extend(question.filter(|&question| drawn.insert(question)));
        }
        return questions;
    }
    let paths = || (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
    let mut all: Vec<Question> =
        paths().flat_map(|one| paths().map(move |other| (one, other))).filter(|q| fits(q)).collect();
    let count = count.min(all.len());
    for at in 0..count {
        let other = random.random_range(at..all.len());
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// One question for each rack that can tell whether its link upwards is a bottleneck: two of its hosts send out of it, to
/// two hosts elsewhere. What is found for these stands for all paths out of the rack.
pub fn out_of_racks(racks: &[Vec<usize>]) -> Vec<(usize, Question)> {
    let ask = |(rack, hosts): (usize, &Vec<usize>)| {
        let others = racks.iter().enumerate().filter(|&(other, _)| other != rack);
        let outside: Vec<usize> = others.flat_map(|(_, hosts)| hosts.iter().copied()).take(2).collect();
        match (&hosts[..], &outside[..]) {
            (&[a, c, ..], &[b, d]) => Some((rack, ((a, b), (c, d)))),
            _ => None,
        }
    };
    racks.iter().enumerate().filter_map(ask).collect()
}

/// What an experiment with two paths at once came to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// The two paths.
    pub question: Question,
    /// Whether the first fell significantly.
    pub shares: bool,
    /// What both got together, as a share of what the first got alone.
    pub sum: f64,
}

/// What kind of network it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NetworkKind")]
pub enum Kind {
    /// Each source has a rate of its own that its paths share: the sum out of it stays what it was.
    Hose,
    /// Each path has a rate of its own.
    Pipe,
    /// Paths without a common end take from each other: links inside are the bottleneck.
    Inside,
    /// The experiments do not agree.
    Mixed,
}

/// The protocol of section 4.3, summed up.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Protocol {
    /// Experiments between four distinct hosts, and how many of them took from each other.
    pub between_four: (usize, usize),
    /// Experiments from one source, and how many of them took from each other.
    pub from_one: (usize, usize),
    /// Mean of what two transfers from one source got together, as a share of one alone.
    pub sum: Option<f64>,
    /// What that makes of the network; none where either kind of experiment is missing.
    pub kind: Option<Kind>,
}

/// Sums up experiments between four hosts, and from one.
pub fn recognise(between_four: &[Tried], from_one: &[Tried]) -> Protocol {
    let count = |tried: &[Tried]| (tried.len(), tried.iter().filter(|one| one.shares).count());
    let share = |(all, some): (usize, usize)| (all > 0).then(|| some as f64 / all as f64);
    let (four, one) = (count(between_four), count(from_one));
    let sum = mean(&from_one.iter().map(|one| one.sum).collect::<Vec<_>>());
    let kind = share(four).zip(share(one)).zip(sum).map(|((four, one), sum)| match () {
        () if four > SELDOM => Kind::Inside,
        () if one >= 1.0 - SELDOM && (sum - 1.0).abs() <= FALL => Kind::Hose,
        () if one <= SELDOM => Kind::Pipe,
        () => Kind::Mixed,
    });
    Protocol { between_four: four, from_one: one, sum, kind }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fall_counts_if_it_is_large_and_beyond_the_noise() {
        let shares = |alone: &[f64], beside: &[f64]| compare(alone, beside).unwrap().shares;
        assert!(shares(&[99.0, 100.0, 101.0], &[50.0, 51.0]));
        assert!(!shares(&[99.0, 100.0, 101.0], &[85.0]), "15 % is not much");
        assert!(!shares(&[60.0, 100.0, 140.0], &[50.0]), "the path is as noisy");
        assert!(!shares(&[99.0, 100.0, 101.0], &[120.0]));
        assert!(compare(&[1.0, 2.0], &[1.0]).is_err());
        assert!(compare(&[0.0; 4], &[1.0]).is_err());
        assert!(compare(&[1.0; 4], &[]).is_err());
    }

    #[test]
    fn the_rules_of_racks_and_subtrees() {
        let rack = [0, 0, 0, 1, 1, 2];
        assert!(meet_at_rack((0, 1), (0, 2), &rack), "one source");
        assert!(meet_at_rack((0, 3), (1, 5), &rack), "out of one rack");
        assert!(!meet_at_rack((0, 2), (1, 5), &rack), "one stays inside");
        assert!(!meet_at_rack((0, 3), (5, 4), &rack), "two racks");
        assert!(!may_meet_at_subtree((0, 1), (0, 2), &rack));
        assert!(may_meet_at_subtree((0, 3), (1, 5), &rack));
    }

    #[test]
    fn one_question_stands_for_a_rack() {
        let asked = out_of_racks(&[vec![0, 1, 2], vec![3], vec![4, 5]]);
        assert_eq!(asked, [(0, ((0, 3), (1, 4))), (2, ((4, 0), (5, 1)))]);
        assert_eq!(out_of_racks(&[vec![0, 1, 2]]), []);
        let racks = [0, 0, 0, 1, 2, 2];
        assert!(asked.iter().all(|&(_, (one, other))| meet_at_rack(one, other, &racks)));
    }

    fn tried(shares: impl IntoIterator<Item = bool>, sum: f64) -> Vec<Tried> {
        shares.into_iter().map(|shares| Tried { question: ((0, 1), (0, 2)), shares, sum }).collect()
    }

    #[test]
    fn networks_are_recognised() {
        let kind = |four: &[Tried], one: &[Tried]| recognise(four, one).kind;
        let (never, always) = (tried([false; 20], 2.0), tried([true; 20], 1.0));
        assert_eq!(kind(&never, &always), Some(Kind::Hose));
        assert_eq!(kind(&never, &never), Some(Kind::Pipe));
        assert_eq!(kind(&always, &always), Some(Kind::Inside));
        assert_eq!(kind(&never, &tried((0..20).map(|i| i % 2 == 0), 1.3)), Some(Kind::Mixed));
        assert_eq!(kind(&never, &tried([true; 20], 0.5)), Some(Kind::Mixed));
        assert_eq!((kind(&[], &always), kind(&never, &[])), (None, None));
    }

    proptest! {
        #[test]
        fn questions_are_what_they_should_be_and_none_twice(hosts in 0..40_usize, count in 0..40_usize, seed: u64) {
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
            for (asked, all) in [(&four, all_four), (&one, all_one)] {
                prop_assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len());
                prop_assert_eq!(asked.len(), count.min(all));
            }
            prop_assert_eq!(between_four(hosts, count, seed), four);
        }
    }
}
