//! Calibration: choice of the train for measurements of a network (Choreo, section 4.1, figure 6).
//!
//! The survey sends every train of a grid on some paths, and compares the train's rate with the rate of a bulk
//! transfer. Up to a point, longer trains are more accurate. The choice is the cheapest train whose error is close to
//! the smallest.

use serde::{Deserialize, Serialize};

use crate::numbers::{deviation, mean};
use crate::train::Train;

/// Margin by which the mean error of a train, as a share of the rate, may exceed the smallest mean error. The value is
/// a choice of this project: the paper observes "diminishing returns" and gives no number.
pub const SLACK: f64 = 0.02;

/// A train and its error on each path, as a share of the bulk transfer's rate.
#[derive(Clone, PartialEq, Debug)]
pub struct TrainErrors {
    /// Train.
    pub train: Train,
    /// `|train - bulk| / bulk` for each path.
    pub errors: Vec<f64>,
}

/// Score of a train of the grid.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Score {
    /// Train.
    pub train: Train,
    /// Number of paths measured.
    pub paths: usize,
    /// Mean error.
    pub mean: f64,
    /// Standard deviation of the errors; `None` for one path.
    pub deviation: Option<f64>,
}

/// Grid of the paper's figure 6: K of 10, 20 and 50 bursts, B from 50 to 4,000 packets.
pub fn grid(base: &Train) -> Vec<Train> {
    let packets = [50, 100, 200, 500, 1000, 2000, 4000];
    let one = |bursts| packets.map(|packets| Train { bursts, packets, ..*base });
    [10, 20, 50].into_iter().flat_map(one).collect()
}

/// Scores trains and returns the index of the cheapest one (by bytes, then by total pause) among the trains with a mean
/// error within [`SLACK`] of the smallest. Ignores trains without any result; returns `None` if no train is left.
pub fn choose(results: &[TrainErrors]) -> Option<(Vec<Score>, usize)> {
    let score = |one: &TrainErrors| {
        let (train, paths) = (one.train, one.errors.len());
        mean(&one.errors).map(|mean| Score { train, paths, mean, deviation: deviation(&one.errors) })
    };
    let scores: Vec<Score> = results.iter().filter_map(score).collect();
    let least = scores.iter().map(|score| score.mean).min_by(f64::total_cmp)?;
    let good = |&index: &usize| scores[index].mean <= least + SLACK;
    let cost = |train: &Train| (train.total_bytes(), u64::from(train.bursts) * train.gap_ns);
    let best = (0..scores.len()).filter(good).min_by_key(|&index| (cost(&scores[index].train), index))?;
    Some((scores, best))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cheapest_accurate_train_is_chosen() {
        let errors = [0.30, 0.20, 0.11, 0.10, 0.09, 0.095, 0.10];
        let results: Vec<_> = grid(&Train::default())[..7]
            .iter()
            .zip(errors)
            .map(|(&train, error)| TrainErrors { train, errors: vec![error, error] })
            .collect();
        let (scores, best) = choose(&results).unwrap();
        assert_eq!((scores.len(), scores[best].train.packets, scores[best].deviation), (7, 200, Some(0.0)));
        assert_eq!(choose(&[]), None);
    }

    proptest! {
        #[test]
        fn no_cheaper_train_is_as_accurate(errors in prop::collection::vec(0.0..1.0, 21)) {
            let trains = grid(&Train::default()).into_iter().zip(errors);
            let results: Vec<_> = trains.map(|(train, error)| TrainErrors { train, errors: vec![error] }).collect();
            let (scores, best) = choose(&results).unwrap();
            let least = scores.iter().map(|score| score.mean).fold(f64::INFINITY, f64::min);
            prop_assert!(scores[best].mean <= least + SLACK);
            for score in scores.iter().filter(|score| score.mean <= least + SLACK) {
                prop_assert!(score.train.total_bytes() >= scores[best].train.total_bytes());
            }
        }
    }
}
