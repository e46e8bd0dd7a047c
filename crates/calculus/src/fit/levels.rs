//! Rates of the states, after the LAMBDA algorithm of Heyman and Lucantoni. From the largest count of an interval
//! downwards, each state covers `deviations` standard deviations of a Poisson count on either side of its rate.

/// Final accuracy of `deviations` when they are stretched to cover the range.
const DEVIATION_STEP: f64 = 0.01;

/// Rates in increasing order (requests per interval), and the deviations they cover.
pub(super) struct Levels {
    pub(super) rates: Vec<f64>,
    pub(super) deviations: f64,
}

impl Levels {
    /// Levels for counts between `low` and `high` (at least 1), with at most `states` states. If `states` levels with
    /// `deviations` do not reach below `low`, the deviations grow until they just cover the range. If the counts are so
    /// close together (a constant rate) that no level fits between them, there is one state at the largest count.
    pub(super) fn new(low: f64, high: f64, states: usize, deviations: f64) -> Levels {
        let mut rates = descend(low, high, states, deviations);
        let mut covered = deviations;
        if rates.len() == states {
            let (mut narrow, mut wide) = (0.0, high);
            while wide - narrow > DEVIATION_STEP {
                let middle = narrow + (wide - narrow) / 2.0;
                if lower_end(low, high, states, middle) > low { narrow = middle } else { wide = middle }
            }
            covered = narrow + (wide - narrow) / 2.0;
            rates = descend(low, high, states, covered);
            if rates.len() < states {
                covered = narrow;
                rates = descend(low, high, states, covered);
            }
        }
        if rates.is_empty() {
            rates.push(high);
        }
        rates.reverse();
        Levels { rates, deviations: covered }
    }

    /// State of an interval: the highest state with a range that begins below `count`.
    pub(super) fn state_of(&self, count: f64) -> usize {
        (1..self.rates.len())
            .rev()
            .find(|&state| count > self.rates[state] - self.deviations * self.rates[state].sqrt())
            .unwrap_or(0)
    }
}

/// Rates in decreasing order, until a rate is below `low`. If only the last of `states` rates is below `low`, it is
/// included.
fn descend(low: f64, high: f64, states: usize, deviations: f64) -> Vec<f64> {
    let root = (high + deviations * deviations / 4.0).sqrt() - deviations / 2.0;
    let mut rate = root * root;
    let mut rates = Vec::new();
    while rates.len() + 1 < states {
        if rate < low {
            return rates;
        }
        rates.push(rate);
        let root = rate.sqrt() - deviations;
        rate = root * root;
    }
    // The last level covers all lower counts. A single level below `low` is left out; the caller then uses `high`.
    if rates.len() + 1 == states && (states > 1 || rate >= low) {
        rates.push(rate);
    }
    rates
}

/// Lower end of the lowest state's range; minus infinity if fewer than `states` levels reach below `low`.
fn lower_end(low: f64, high: f64, states: usize, deviations: f64) -> f64 {
    let rates = descend(low, high, states, deviations);
    match rates.last() {
        Some(&rate) if rates.len() == states => rate - deviations * rate.sqrt(),
        _ => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_the_table_gives_valid_levels() {
        let table = [(0.0, 1.0), (20.0, 20.0), (99.0, 100.0), (50.0, 100.0), (0.0, 100.0), (0.0, 10_000.0)];
        for (low, high) in table {
            for states in [1, 2, 5, 10] {
                let levels = Levels::new(low, high, states, 2.0);
                assert!((1..=states).contains(&levels.rates.len()), "{low} {high} {states}");
                assert!(levels.rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0 && *rate <= high));
                assert!(levels.state_of(high) == levels.rates.len() - 1 || levels.rates.len() == 1);
                assert_eq!(levels.state_of(low.min(0.0)), 0);
            }
        }
    }
}
