//! Test of a trace for a load that changes over its time.
//!
//! The sections of a trace whose load does not change are in no order. Two tests look for one: reverse arrangements for a
//! trend (Mann, Econometrica 1945; Bendat and Piersol, Random Data, section 4.5), with the exact law of all orders; and the
//! rescaled range for long periods of more or less load (Feller, Annals of Mathematical Statistics 1951; Kuiper,
//! Indagationes Mathematicae 1960), with the law for many sections. Neither needs a distribution of the loads.

use super::activity::Activity;
use super::sections::{SECTIONS, sections};

/// Relative deviation of values that are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Result of the test of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stationarity {
    /// p-value: the probability that sections in no order are as ordered as those of the trace, at most.
    pub p: f64,
    /// Work per second in the first and in the second half of the sections.
    pub halves: [f64; 2],
}

impl Stationarity {
    /// Largest p-value of a trace that counts as not stationary: one stationary trace of a thousand does.
    pub const SIGNIFICANT: f64 = 1e-3;

    /// True if the load changes over the trace by more than chance.
    pub fn is_rejected(&self) -> bool {
        self.p < Stationarity::SIGNIFICANT
    }
}

/// Tests requests and work of a trace; `None` for a trace of less than 130 intervals.
pub fn stationarity(activity: &Activity) -> Option<Stationarity> {
    // The trace has the first and the last interval only in part.
    let inner = |amounts: &[f64]| -> Option<Vec<f64>> {
        let whole = amounts.get(1..amounts.len().checked_sub(1)?)?;
        Some(sections(whole)?.map(|section| section.iter().sum()).collect())
    };
    let (requests, work) = (inner(activity.requests())?, inner(activity.work())?);
    let least = [&requests, &work].map(|sums| trend(sums).min(range(sums)));
    // Four tests: the smallest of four p-values, times four (Bonferroni).
    let p = (4.0 * least[0].min(least[1])).min(1.0);
    let seconds = ((activity.work().len() - 2) / SECTIONS * SECTIONS / 2) as f64 * activity.interval();
    let half = |sections: &[f64]| sections.iter().sum::<f64>() / seconds;
    Some(Stationarity { p, halves: [half(&work[..SECTIONS / 2]), half(&work[SECTIONS / 2..])] })
}

/// Probability of as many, or as few, reverse arrangements: pairs with the larger value first. Equal values count half.
fn trend(values: &[f64]) -> f64 {
    let count = values.len();
    let mut reverse = 0.0;
    for (at, one) in values.iter().enumerate() {
        for other in &values[at + 1..] {
            reverse += if one > other {
                1.0
            } else if one == other {
                0.5
            } else {
                0.0
            };
        }
    }
    // Probabilities of 0, 1, ... reverse arrangements of random orders: a further value is before 0, 1, ... others.
    let mut law = vec![1.0];
    for values in 2..=count {
        let mut next = vec![0.0; law.len() + values - 1];
        for (at, probability) in law.iter().enumerate() {
            next[at..at + values].iter_mut().for_each(|entry| *entry += probability / values as f64);
        }
        law = next;
    }
    let mean = (law.len() - 1) as f64 / 2.0;
    let distance = (reverse - mean).abs();
    let as_far = law.iter().enumerate().filter(|(at, _)| (*at as f64 - mean).abs() >= distance - 1e-9);
    as_far.map(|(_, probability)| probability).sum::<f64>().min(1.0)
}

/// Probability of as large a range of the sums of the first 1, 2, ... values about their mean, in deviations of the whole
/// sum, by the limit for many values. Single sums cover less than the limit, so the probability is rather too large.
fn range(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    let (mut sum, mut least, mut most) = (0.0, 0.0_f64, 0.0_f64);
    for value in values {
        sum += value - mean;
        (least, most) = (least.min(sum), most.max(sum));
    }
    let scaled = (most - least) / (count * variance).sqrt();
    // Equal values have no range, and a variance of rounding errors. Below 0.4, the probability is 1 up to a millionth,
    // and the series needs more terms.
    if variance.sqrt() <= ROUNDING * mean.abs() || scaled.is_nan() || scaled < 0.4 {
        return 1.0;
    }
    let term = |k: i32| {
        let square = f64::from(k * k) * scaled * scaled;
        2.0 * (4.0 * square - 1.0) * (-2.0 * square).exp()
    };
    (1..=20).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1e-3), "{a} {b}");
    }

    #[test]
    fn p_values_of_few_values_are_those_of_all_their_orders() {
        // One of six orders of three values has no reverse arrangement, and one has three.
        close(trend(&[1.0, 2.0, 3.0]), 2.0 / 6.0);
        close(trend(&[2.0, 1.0, 3.0]), 1.0);
        // Two of 24 orders of four values have 0 or 6; six more have 1 or 5.
        close(trend(&[4.0, 3.0, 2.0, 1.0]), 2.0 / 24.0);
        close(trend(&[1.0, 2.0, 4.0, 3.0]), 8.0 / 24.0);
        for equal in [5.0, 0.1, 1e18 / 3.0] {
            close(trend(&[equal; 32]), 1.0);
            close(range(&[equal; 32]), 1.0);
        }
    }

    #[test]
    fn one_of_all_orders_of_32_values_rises_and_one_falls() {
        let rising: Vec<f64> = (0..32).map(f64::from).collect();
        let factorial: f64 = (1..=32).map(f64::from).product();
        assert!((trend(&rising) * factorial / 2.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_range_is_that_of_its_law() {
        // A step in the middle of 32 values: a range of half the root of 31 deviations.
        let step: Vec<f64> = (0..32).map(|at| f64::from(at / 16)).collect();
        let square: f64 = 31.0 / 4.0;
        close(range(&step), 2.0 * (4.0 * square - 1.0) * (-2.0 * square).exp());
        // One section of more work, and an alternation, are no longer periods.
        let mut peak = [1.0; 32];
        peak[20] = 100.0;
        assert!(range(&peak) > 0.8, "{}", range(&peak));
        assert!(range(&(0..32).map(|at| f64::from(at % 2)).collect::<Vec<_>>()) > 0.99);
        // The 95th percentile of Kuiper's law is 1.747.
        let law = |v: f64| 2.0 * (4.0 * v * v - 1.0) * (-2.0 * v * v).exp();
        assert!((law(1.747) - 0.05).abs() < 2e-4);
    }
}
