//! Number of states of a chain, and their rates: a mixture of Poisson distributions, fitted to the counts of intervals.
//!
//! The counts of a process with one rate are Poisson counts. A component is added as long as it raises the likelihood of
//! the counts by more than the penalty of the Bayesian information criterion (Schwarz, Annals of Statistics 1978), which
//! finds the number of components of a mixture if there are enough counts (Keribin, Sankhya 2000). Likelihoods are
//! maximised by expectation and maximisation (Dempster, Laird and Rubin 1977). Each mixture starts from the one before,
//! with one component divided; so nothing is random.

/// Least rate of a component, in requests per interval, so that its logarithm is finite.
const LEAST_RATE: f64 = 1e-12;
/// Cells per unit of the square root of a count. The deviation of the root of a Poisson count is one half, so a cell is a
/// quarter of a deviation wide.
const CELLS: f64 = 8.0;
/// Most rounds of a mixture that is compared with others, and of the best of them.
const ROUNDS: (usize, usize) = (30, 500);
/// A mixture is found when a round raises the logarithm of its likelihood by less than this.
const GAIN: f64 = 1e-4;
/// The search ends after this number of components in a row without a better criterion.
const PATIENCE: usize = 2;

/// A Poisson distribution of a mixture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Component {
    /// Its share of the intervals.
    pub share: f64,
    /// Mean requests per interval; above 0.
    pub rate: f64,
}

/// Intervals with about the same count.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cell {
    /// Mean requests per interval.
    count: f64,
    /// Number of intervals.
    weight: f64,
}

/// A mixture and the logarithm of its likelihood, up to a constant of the counts.
struct Mixture {
    components: Vec<Component>,
    likelihood: f64,
}

/// Components of counts.
pub(super) struct Found {
    /// At least one.
    pub components: Vec<Component>,
    /// True if counts tell more than one component apart: the integrated completed likelihood (Biernacki, Celeux and
    /// Govaert, IEEE Transactions on Pattern Analysis and Machine Intelligence 2000) prefers them to one. It charges the
    /// entropy of the components of each count in addition.
    pub apart: bool,
}

/// Components that the counts carry, at most `most`. `counts` has pairs of requests per whole interval, and the length of
/// the interval relative to a whole one.
pub(super) fn components(counts: impl Iterator<Item = (f64, f64)>, most: usize) -> Found {
    let cells = cells(counts);
    let intervals: f64 = cells.iter().map(|cell| cell.weight).sum();
    let mean = cells.iter().map(|cell| cell.weight * cell.count).sum::<f64>() / intervals;
    let mut mixture = settled(&cells, vec![Component { share: 1.0, rate: mean.max(LEAST_RATE) }], 1);
    // A mixture of n components has n rates and n - 1 shares.
    let criterion = |mixture: &Mixture| {
        let free = 2 * mixture.components.len() - 1;
        mixture.likelihood - 0.5 * free as f64 * intervals.max(1.0).ln()
    };
    let one = criterion(&mixture);
    let mut best = (one, mixture.components.clone());
    let mut apart = false;
    while mixture.components.len() < most.min(cells.len()) {
        let Some(next) = divided(&cells, &mixture.components) else { break };
        mixture = next;
        let value = criterion(&mixture);
        apart |= value - entropy(&cells, &mixture.components) > one;
        if value > best.0 {
            best = (value, mixture.components.clone());
        } else if mixture.components.len() >= best.1.len() + PATIENCE {
            break;
        }
    }
    Found { components: best.1, apart }
}

/// Entropy of the components of all intervals, given their counts.
fn entropy(cells: &[Cell], components: &[Component]) -> f64 {
    let posterior = Posterior::new(cells, components);
    let of_row = |row: &[f64]| -> f64 {
        row.iter().filter(|share| **share > 0.0).map(|share| -share * share.ln()).sum()
    };
    let rows = posterior.shares.chunks(components.len());
    cells.iter().zip(rows).map(|(cell, row)| cell.weight * of_row(row)).sum()
}

/// Groups counts whose difference is small against the deviation of a Poisson count.
fn cells(counts: impl Iterator<Item = (f64, f64)>) -> Vec<Cell> {
    let mut sorted: Vec<(f64, f64)> = counts.collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let cell = |count: f64| (CELLS * count.sqrt()).floor();
    let near = |one: &(f64, f64), other: &(f64, f64)| cell(one.0) == cell(other.0);
    let sum = |group: &[(f64, f64)]| {
        let weight: f64 = group.iter().map(|&(_, length)| length).sum();
        let requests: f64 = group.iter().map(|&(count, length)| count * length).sum();
        Cell { count: requests / weight, weight }
    };
    sorted.chunk_by(near).map(sum).collect()
}

/// The best mixture with one component more than `components`.
fn divided(cells: &[Cell], components: &[Component]) -> Option<Mixture> {
    let posterior = Posterior::new(cells, components);
    let halves = (0..components.len()).filter_map(|at| {
        // The component as two: of the counts below its rate, and of the others.
        let mut sums = [(0.0, 0.0); 2];
        for (cell, shares) in cells.iter().zip(posterior.shares.chunks(components.len())) {
            let half = &mut sums[usize::from(cell.count > components[at].rate)];
            half.0 += cell.weight * shares[at];
            half.1 += cell.weight * shares[at] * cell.count;
        }
        let weight = sums[0].0 + sums[1].0;
        let half = |(part, requests): (f64, f64)| Component {
            share: components[at].share * part / weight,
            rate: (requests / part).max(LEAST_RATE),
        };
        let [low, high] = sums.map(half);
        let valid = [low, high].iter().all(|half| half.share > 0.0 && half.rate.is_finite());
        let mut more = components.to_vec();
        more[at] = low;
        more.push(high);
        valid.then_some(more)
    });
    // Intervals with the largest count, which may be too few to move the halves of a component.
    let peak = cells.last().map(|&Cell { count, weight }| {
        let share = weight / cells.iter().map(|cell| cell.weight).sum::<f64>();
        let others = components.iter().map(|of| Component { share: of.share * (1.0 - share), ..*of });
        others.chain([Component { share, rate: count.max(LEAST_RATE) }]).collect::<Vec<Component>>()
    });
    let tried = halves.chain(peak).map(|start| settled(cells, start, ROUNDS.0));
    let first = tried.reduce(|best, next| if next.likelihood > best.likelihood { next } else { best })?;
    Some(settled(cells, first.components, ROUNDS.1))
}

/// Maximises the likelihood from a start, for at most `rounds` rounds.
fn settled(cells: &[Cell], mut components: Vec<Component>, rounds: usize) -> Mixture {
    let intervals: f64 = cells.iter().map(|cell| cell.weight).sum();
    let mut likelihood = f64::NEG_INFINITY;
    for _ in 0..rounds {
        let posterior = Posterior::new(cells, &components);
        let gain = posterior.likelihood - likelihood;
        likelihood = posterior.likelihood;
        if gain < GAIN {
            break;
        }
        for (at, component) in components.iter_mut().enumerate() {
            let mut sums = (0.0, 0.0);
            for (cell, shares) in cells.iter().zip(posterior.shares.chunks(posterior.components)) {
                sums.0 += cell.weight * shares[at];
                sums.1 += cell.weight * shares[at] * cell.count;
            }
            component.share = sums.0 / intervals;
            // A component without intervals keeps its rate, and its share of 0.
            if sums.0 > 0.0 {
                component.rate = (sums.1 / sums.0).max(LEAST_RATE);
            }
        }
    }
    Mixture { components, likelihood }
}

/// Shares of the components in each cell.
struct Posterior {
    /// A row for each cell, with an entry for each component.
    shares: Vec<f64>,
    components: usize,
    likelihood: f64,
}

impl Posterior {
    fn new(cells: &[Cell], components: &[Component]) -> Posterior {
        let logarithms: Vec<(f64, f64, f64)> =
            components.iter().map(|of| (of.share.ln(), of.rate.ln(), of.rate)).collect();
        let mut shares = Vec::with_capacity(cells.len() * components.len());
        let mut likelihood = 0.0;
        for cell in cells {
            let from = shares.len();
            shares.extend(logarithms.iter().map(|&(share, rate, mean)| share + cell.count * rate - mean));
            let row = &mut shares[from..];
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|entry| *entry = (*entry - most).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry /= sum);
            likelihood += cell.weight * (most + sum.ln());
        }
        Posterior { shares, components: components.len(), likelihood }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in 0..1 that look random.
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Counts of intervals with the given mean requests.
    fn poisson(seed: u64, means: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
        let mut draw = uniform(seed);
        let mut count = |mean: f64| {
            let (mut requests, mut product) = (0.0, draw());
            while product > (-mean).exp() {
                requests += 1.0;
                product *= draw();
            }
            (requests, 1.0)
        };
        means.map(&mut count).collect()
    }

    fn rates(counts: &[(f64, f64)]) -> Vec<f64> {
        let mut rates: Vec<f64> = components(counts.iter().copied(), 10)
            .components
            .iter()
            .map(|component| component.rate)
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    #[test]
    fn poisson_counts_have_one_component_at_any_mean() {
        for mean in [0.05, 0.5, 5.0, 50.0] {
            for seed in 1..=10 {
                let counts = poisson(seed, (0..2000).map(|_| mean));
                let [rate] = rates(&counts)[..] else {
                    panic!("mean {mean}, seed {seed}: {:?}", rates(&counts))
                };
                assert!((rate / mean - 1.0).abs() < 0.5 / (mean * 2000.0).sqrt() * 10.0, "{mean}: {rate}");
            }
        }
    }

    #[test]
    fn two_rates_have_two_components_at_these_rates() {
        for seed in 1..=5 {
            for (low, high) in [(0.0, 3.0), (2.0, 8.0), (20.0, 60.0)] {
                let counts = poisson(seed, (0..2000).map(|at| if at % 5 == 0 { high } else { low }));
                let [first, second] = rates(&counts)[..] else {
                    panic!("{low} {high}: {:?}", rates(&counts))
                };
                assert!((first - low).abs() < 0.3 + 0.05 * low, "{low} {high}: {first} {second}");
                assert!((second / high - 1.0).abs() < 0.15, "{low} {high}: {first} {second}");
            }
        }
    }

    #[test]
    fn counts_tell_far_rates_apart_and_near_rates_not() {
        let apart = |low: f64, high: f64| {
            let counts = poisson(3, (0..4000).map(|at| if at / 100 % 2 == 0 { high } else { low }));
            components(counts.into_iter(), 10).apart
        };
        assert!(apart(0.0, 3.0) && apart(5.0, 40.0) && apart(320.0, 400.0));
        assert!(!apart(5.0, 6.0) && !apart(9.0, 9.0));
    }

    #[test]
    fn one_peak_among_many_intervals_is_a_component() {
        let mut counts = poisson(1, (0..2000).map(|_| 5.0));
        counts[700] = (60.0, 1.0);
        assert!((rates(&counts).last().unwrap() / 60.0 - 1.0).abs() < 0.05, "{:?}", rates(&counts));
    }

    #[test]
    fn constant_counts_and_single_intervals_have_one_component() {
        for counts in
            [vec![(7.0, 1.0); 500], vec![(0.0, 1.0)], vec![(1e6, 0.01)], vec![(3.0, 1.0), (4.0, 1.5)]]
        {
            assert_eq!(rates(&counts).len(), 1, "{counts:?}");
        }
    }

    #[test]
    fn large_counts_share_cells_without_a_loss_of_mean() {
        let counts: Vec<(f64, f64)> = (0..10_000).map(|at| (f64::from(at), 1.0)).collect();
        let cells = cells(counts.iter().copied());
        let mean = cells.iter().map(|cell| cell.count * cell.weight).sum::<f64>() / 10_000.0;
        assert!(cells.len() < 1000 && (mean - 4999.5).abs() < 1e-6, "{} {mean}", cells.len());
        // Small counts stay apart.
        assert!(cells[..10].iter().enumerate().all(|(at, cell)| cell.count == at as f64));
    }
}
