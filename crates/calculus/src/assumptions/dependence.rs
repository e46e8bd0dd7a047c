//! Test of traces for bursts that coincide.
//!
//! The covariance of the requests of two independent traces is zero on average in every section of their common time. The
//! test is Student's, with the covariances of 32 sections: it holds for sections of different variances and heavy tails
//! (Ibragimov and Mueller, Journal of Business and Economic Statistics 2010). One pair of bursts that meet by chance is
//! in one section, and raises the deviation of the sections as it raises their mean.

use super::activity::Activity;
use super::sections::{SECTIONS, sections};
use super::student::at_least;

/// Most intervals of the common time of two traces in a test.
const MOST_INTERVALS: usize = 1024;
/// A second test has intervals longer by two to this power, for bursts that follow one another instead of coinciding.
const LONGER: u32 = 2;
/// Largest p-value of dependent traces, for all pairs together.
const SIGNIFICANT: f64 = 0.01;
/// Least correlation of dependent traces: below it, bursts of the two together exceed those of independent traces by less
/// than a twentieth.
const LEAST_CORRELATION: f64 = 0.1;

/// Two traces whose bursts coincide by more than chance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dependence {
    /// Indices of the traces, the lower first.
    pub traces: (usize, usize),
    /// Correlation of their requests per interval.
    pub correlation: f64,
    /// p-value for all tested pairs together: the probability that independent traces have such a pair, at most.
    pub p: f64,
}

/// Tests pairs of traces, and returns the dependent ones. `is_open` selects the pairs, by their indices, the lower first.
/// Pairs without a long common time are not tested.
pub fn dependences(traces: &[&Activity], is_open: impl Fn(usize, usize) -> bool) -> Vec<Dependence> {
    let levels: Vec<Vec<Activity>> = traces.iter().map(|trace| levels(trace)).collect();
    let mut found = Vec::new();
    let mut tests = 0_usize;
    for (other, second) in levels.iter().enumerate() {
        let earlier = levels[..other].iter().enumerate();
        for (one, first) in earlier.filter(|&(one, _)| is_open(one, other)) {
            let outcomes = test_pair(first, second);
            tests += outcomes.len();
            let least = outcomes.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
            found.extend(least.map(|(correlation, p)| Dependence { traces: (one, other), correlation, p }));
        }
    }
    // Each test of each pair counts (Bonferroni).
    found.iter_mut().for_each(|pair| pair.p = (pair.p * tests as f64).min(1.0));
    found.retain(|pair| pair.p < SIGNIFICANT && pair.correlation >= LEAST_CORRELATION);
    found
}

/// The trace in its own intervals, and in longer ones as long as there can be sections.
fn levels(trace: &Activity) -> Vec<Activity> {
    let next = |last: &Activity| sections(last.requests()).map(|_| last.coarser());
    std::iter::successors(Some(trace.of_requests()), next).collect()
}

/// Correlations and p-values of the tests of a pair.
fn test_pair(one: &[Activity], other: &[Activity]) -> Vec<(f64, f64)> {
    let at = |level: u32| at_level(one, level).zip(at_level(other, level));
    let mut level = one[0].level().max(other[0].level());
    let mut outcomes = Vec::new();
    while let Some((first, second)) = at(level) {
        let (first, second) = common(first, second);
        if first.len() > MOST_INTERVALS {
            level += 1;
            continue;
        }
        outcomes.extend(test(first, second));
        if outcomes.len() != 1 {
            break;
        }
        level += LONGER;
    }
    outcomes
}

/// The trace in intervals of a level, if there are any.
fn at_level(levels: &[Activity], level: u32) -> Option<&Activity> {
    let index = level.checked_sub(levels.first()?.level())?;
    levels.get(usize::try_from(index).ok()?)
}

/// Requests of two traces in their common intervals.
fn common<'a>(one: &'a Activity, other: &'a Activity) -> (&'a [f64], &'a [f64]) {
    let from = one.first().max(other.first());
    let end = |trace: &Activity| trace.first() + trace.requests().len() as u64;
    let to = end(one).min(end(other)).max(from);
    let part = |trace: &'a Activity| -> &'a [f64] {
        let at = |number: u64| (number - trace.first()) as usize;
        trace.requests().get(at(from)..at(to)).unwrap_or(&[])
    };
    (part(one), part(other))
}

/// Correlation of two series, and the p-value of a covariance above zero; `None` for few intervals, and for a series
/// that does not vary.
fn test(one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    let pairs: Vec<(&[f64], &[f64])> = sections(one)?.zip(sections(other)?).collect();
    let count: usize = pairs.iter().map(|pair| pair.0.len()).sum();
    let mean = |sum: f64| sum / count as f64;
    let first = mean(pairs.iter().map(|pair| pair.0.iter().sum::<f64>()).sum());
    let second = mean(pairs.iter().map(|pair| pair.1.iter().sum::<f64>()).sum());
    let (mut variances, mut sums) = ((0.0, 0.0), Vec::with_capacity(SECTIONS));
    for (one, other) in pairs {
        let mut sum = 0.0;
        for (x, y) in one.iter().zip(other) {
            sum += (x - first) * (y - second);
            variances.0 += (x - first) * (x - first);
            variances.1 += (y - second) * (y - second);
        }
        sums.push(sum);
    }
    let total: f64 = sums.iter().sum();
    let correlation = total / (variances.0 * variances.1).sqrt();
    let average = total / SECTIONS as f64;
    let spread: f64 = sums.iter().map(|sum| (sum - average) * (sum - average)).sum();
    let deviation = (spread / (SECTIONS * (SECTIONS - 1)) as f64).sqrt();
    let t = average / deviation;
    // Sections that are all alike have no deviation; a series that does not vary has no correlation.
    (correlation.is_finite() && !t.is_nan())
        .then(|| (correlation, if t > 0.0 { at_least(t, SECTIONS - 1) } else { 1.0 }))
}
