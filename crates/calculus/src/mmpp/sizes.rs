//! Distribution of the work of one request, with its moment generating function M(theta) = E exp(theta X).

/// `exp` counts as infinite above this exponent; a bound with a larger exponent would be useless.
const LARGEST_EXPONENT: f64 = 500.0;

/// The distribution of the work of one request.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// Exponential with this mean; a mean of zero is a request without work.
    Exponential {
        /// Mean work.
        mean: f64,
    },
    /// With probability `first`, exponential with mean `means.0`, otherwise with mean `means.1`.
    Hyperexponential {
        /// The probability of the first branch.
        first: f64,
        /// The mean work of either branch.
        means: (f64, f64),
    },
    /// Finitely many sizes: (probability, work).
    Empirical {
        /// Probabilities, which sum to 1, with their sizes.
        atoms: Vec<(f64, f64)>,
    },
}

impl Sizes {
    /// A hyperexponential distribution with the mean and the squared coefficient of variation c2 of `sample`. Its means
    /// are balanced as in the thesis' released fit: branches of means `mean * c2` and `mean / 2`. Exponential if c2 is
    /// below 1.
    pub(crate) fn hyperexponential(sample: &[f64]) -> Sizes {
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count.max(1.0);
        let spread = sample.iter().map(|work| (work - mean) * (work - mean)).sum::<f64>();
        let c2 = spread / (count - 1.0) / (mean * mean);
        if c2.is_finite() && c2 >= 1.0 {
            Sizes::Hyperexponential { first: 1.0 / (2.0 * c2 - 1.0), means: (mean * c2, mean / 2.0) }
        } else {
            Sizes::Exponential { mean }
        }
    }

    /// At most `atoms` (at least 2) sizes between the smallest and the largest of `sample`, which must not be empty. A
    /// size between two atoms is split between these atoms, with the same mean. M is convex in the size, so M of the
    /// result is never below M of the sample.
    pub(crate) fn empirical(sample: &[f64], atoms: usize) -> Sizes {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let steps = atoms.max(2) - 1;
        let mut points: Vec<f64> = (0..=steps).map(|at| sorted[at * last / steps]).collect();
        points.dedup();
        let mut weights = vec![0.0; points.len()];
        let mut above = 0;
        for &work in &sorted {
            while points[above] < work {
                above += 1;
            }
            if above == 0 {
                weights[0] += 1.0;
                continue;
            }
            let share = (work - points[above - 1]) / (points[above] - points[above - 1]);
            weights[above] += share;
            weights[above - 1] += 1.0 - share;
        }
        let count = sorted.len() as f64;
        let atoms = weights.iter().zip(&points).filter(|(weight, _)| **weight > 0.0);
        Sizes::Empirical { atoms: atoms.map(|(weight, &work)| (weight / count, work)).collect() }
    }

    /// Mean work of a request.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Exponential { mean } => *mean,
            Sizes::Hyperexponential { first, means } => first * means.0 + (1.0 - first) * means.1,
            Sizes::Empirical { atoms } => atoms.iter().map(|(weight, work)| weight * work).sum(),
        }
    }

    /// Upper limit of theta: M is infinite from here on, or too large to be useful.
    pub fn limit(&self) -> f64 {
        match self {
            Sizes::Exponential { mean } => 1.0 / mean,
            Sizes::Hyperexponential { means, .. } => 1.0 / means.0.max(means.1),
            Sizes::Empirical { atoms } => {
                LARGEST_EXPONENT / atoms.iter().map(|&(_, work)| work).fold(0.0, f64::max)
            }
        }
    }

    /// M(theta) - 1 and its derivative by theta, for 0 < theta < `limit`. The 1 is subtracted analytically, so that
    /// small theta lose no precision.
    pub(super) fn growth(&self, theta: f64) -> (f64, f64) {
        match self {
            Sizes::Exponential { mean } => exponential(*mean, theta),
            Sizes::Hyperexponential { first, means } => {
                let (one, two) = (exponential(means.0, theta), exponential(means.1, theta));
                let rest = 1.0 - first;
                (first * one.0 + rest * two.0, first * one.1 + rest * two.1)
            }
            Sizes::Empirical { atoms } => atoms.iter().fold((0.0, 0.0), |(value, slope), &(weight, work)| {
                let growth = (theta * work).exp_m1();
                (value + weight * growth, slope + weight * work * (growth + 1.0))
            }),
        }
    }

    /// The problem with these sizes; `None` if they are valid.
    pub(super) fn fault(&self) -> Option<String> {
        let amount = |work: f64| work.is_finite() && work >= 0.0;
        let share = |part: f64| (0.0..=1.0).contains(&part);
        match self {
            Sizes::Exponential { mean } => {
                (!amount(*mean)).then(|| format!("mean size {mean}: must be finite and not negative"))
            }
            Sizes::Hyperexponential { first, means } => {
                (!share(*first) || !amount(means.0) || !amount(means.1)).then(|| {
                    format!(
                        "sizes of mean {} with probability {first}, else {}: means must be finite and not \
                         negative, the probability in [0, 1]",
                        means.0, means.1
                    )
                })
            }
            Sizes::Empirical { atoms } => {
                let total: f64 = atoms.iter().map(|&(weight, _)| weight).sum();
                if let Some((weight, work)) =
                    atoms.iter().find(|&&(weight, work)| !share(weight) || !amount(work))
                {
                    Some(format!(
                        "size {work} with probability {weight}: the size must be finite and not negative, the \
                         probability in [0, 1]"
                    ))
                } else {
                    let close = (total - 1.0).abs() <= 1e-9;
                    (!close).then(|| format!("probabilities of sizes that sum to {total}: must sum to 1"))
                }
            }
        }
    }
}

fn exponential(mean: f64, theta: f64) -> (f64, f64) {
    let left = 1.0 - theta * mean;
    (theta * mean / left, mean / (left * left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fewer_atoms_keep_the_mean_and_never_lower_the_moments(
            sample in prop::collection::vec(0.0..100.0f64, 1..200), atoms in 2usize..20, theta in 1e-4..0.2f64,
        ) {
            let exact = sample.iter().map(|work| (theta * work).exp_m1()).sum::<f64>() / sample.len() as f64;
            let mean = sample.iter().sum::<f64>() / sample.len() as f64;
            let sizes = Sizes::empirical(&sample, atoms);
            prop_assert!(sizes.fault().is_none());
            prop_assert!((sizes.mean() - mean).abs() <= 1e-9 * (1.0 + mean));
            prop_assert!(sizes.growth(theta).0 >= exact * (1.0 - 1e-9));
        }
    }

    #[test]
    fn a_hyperexponential_has_the_mean_and_the_variation_of_its_sample() {
        let sample = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 41.0];
        let Sizes::Hyperexponential { first, means } = Sizes::hyperexponential(&sample) else {
            panic!("a spread sample is not exponential")
        };
        let mean: f64 = 5.0;
        let second = 2.0 * (first * means.0 * means.0 + (1.0 - first) * means.1 * means.1);
        let variance = sample.iter().map(|work| (work - mean) * (work - mean)).sum::<f64>() / 9.0;
        assert!((first * means.0 + (1.0 - first) * means.1 - mean).abs() < 1e-12);
        assert!((second - mean * mean - variance).abs() < 1e-9 * variance);
    }
}
