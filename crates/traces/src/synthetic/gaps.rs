//! Gaps between the requests of a synthetic trace: independent, or correlated.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};
use serde::Deserialize;

use super::{ShapeError, check};

/// Correlation of gaps, which makes bursts of bursts: a Markov-modulated Poisson process with a short and a long mean
/// gap. A gap has the kind of the gap before it, or a new kind. Both kinds together have the requested mean and C^2.
///
/// Gaps that are k gaps apart have the correlation `persistence^k * (C^2 - 1) / (2 C^2)`. Over a long time, the variance
/// of the number of requests over its mean is `C^2 + (C^2 - 1) * persistence / (1 - persistence)`. With independent gaps
/// it is C^2.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Rate of requests in a burst, as a multiple of the mean rate; above 1.
    pub height: f64,
    /// Probability that a gap keeps the kind of the gap before it without a new draw; from 0 to below 1.
    pub persistence: f64,
}

/// Gaps of mean 1.
pub(super) enum Gaps {
    Constant,
    Gamma(Gamma<f64>),
    Exponential,
    /// Probability of the first branch.
    Hyperexponential(f64),
    Correlated(Correlated),
}

/// State of correlated gaps.
pub(super) struct Correlated {
    /// Mean gap in a burst, and outside of bursts.
    means: [f64; 2],
    /// Probability that a new kind is that of a burst.
    share: f64,
    persistence: f64,
    /// True if the last gap was in a burst; `None` before the first gap.
    in_burst: Option<bool>,
}

impl Gaps {
    /// Gaps with this C^2, independent without `bursts`.
    pub(super) fn new(c2: f64, bursts: Option<Bursts>) -> Result<Gaps, ShapeError> {
        check("gap_c2", c2, (0.0..=1e6).contains(&c2), "0 to 1e6")?;
        if let Some(bursts) = bursts {
            return Correlated::new(c2, bursts).map(Gaps::Correlated);
        }
        Ok(match c2 {
            0.0 => Gaps::Constant,
            1.0 => Gaps::Exponential,
            c2 if c2 < 1.0 => {
                // A gap with so small a variance could not be distinguished from a constant gap.
                let error = ShapeError { field: "gap_c2", number: c2, expected: "0, or 1e-9 and more" };
                let c2 = (c2 >= 1e-9).then_some(c2).ok_or(error.clone())?;
                Gaps::Gamma(Gamma::new(1.0 / c2, c2).map_err(|_| error)?)
            }
            c2 => Gaps::Hyperexponential((1.0 + ((c2 - 1.0) / (c2 + 1.0)).sqrt()) / 2.0),
        })
    }

    /// The next gap.
    pub(super) fn draw(&mut self, random: &mut ChaCha8Rng) -> f64 {
        match self {
            Gaps::Constant => 1.0,
            Gaps::Gamma(gamma) => gamma.sample(random),
            Gaps::Exponential => random.sample(Exp1),
            Gaps::Hyperexponential(first) => {
                let share = if random.random::<f64>() < *first { *first } else { 1.0 - *first };
                random.sample::<f64, _>(Exp1) / (2.0 * share)
            }
            Gaps::Correlated(correlated) => correlated.draw(random),
        }
    }
}

impl Correlated {
    fn new(c2: f64, Bursts { height, persistence }: Bursts) -> Result<Correlated, ShapeError> {
        check("gap_c2", c2, c2 > 1.0, "above 1 with bursts")?;
        check("height", height, height > 1.0 && height <= 1e6, "above 1, at most 1e6")?;
        check("persistence", persistence, (0.0..=0.9999).contains(&persistence), "0 to 0.9999")?;
        // With means m and M of shares 1 - q and q, mean 1 and C^2 give q (M - m) = 1 - m, and
        // q (1 - q) (M - m)^2 = (C^2 - 1) / 2, the variance of the means.
        let (short, variance) = (1.0 / height, (c2 - 1.0) / 2.0);
        let squared = (1.0 - short) * (1.0 - short);
        let long_share = squared / (squared + variance);
        let long = short + (1.0 - short) / long_share;
        Ok(Correlated { means: [short, long], share: 1.0 - long_share, persistence, in_burst: None })
    }

    fn draw(&mut self, random: &mut ChaCha8Rng) -> f64 {
        let (keep, kind): (f64, f64) = (random.random(), random.random());
        let in_burst = match self.in_burst {
            Some(in_burst) if keep < self.persistence => in_burst,
            _ => kind < self.share,
        };
        self.in_burst = Some(in_burst);
        random.sample::<f64, _>(Exp1) * self.means[usize::from(!in_burst)]
    }
}
