//! A model of a trace: Zhu's thesis, section 4.2.4, after the LAMBDA algorithm of Heyman and Lucantoni.
//!
//! Requests are counted per interval. An interval belongs to the state with the rate that fits its count. The chain has
//! the transitions of the intervals, and each state has the sizes of the requests in its intervals. Requests that come as
//! a Poisson process are one state (not in the thesis).

use super::fit_error::FitError;
use super::fit_settings::{Chain, FitSettings, SizeModel};
use super::intervals::Intervals;
use super::levels::Levels;
use super::model::Mmpp;
use super::poisson::is_poisson;
use super::request::{Request, merge};
use super::sizes::Sizes;
use super::state::{Requests, State};

/// Maximum number of intervals of a trace.
const MOST_INTERVALS: f64 = 1e7;

/// Errors of the model: the model's value over the trace's value, minus 1. Zero is a perfect fit; a negative error
/// means that the model's value is too small. Means of a trace are over the time from its start to its last request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FitDeviation {
    /// Error of the mean number of requests; a batch counts as one request.
    pub requests: f64,
    /// Error of the mean work.
    pub work: f64,
    /// Error of the mean work of an interval in the heaviest state, relative to the heaviest interval.
    pub peak: f64,
}

/// A fitted model with its errors.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    /// The model.
    pub model: Mmpp,
    /// Errors of the model.
    pub deviation: FitDeviation,
}

/// Fits a model to `trace`, in order of time.
///
/// # Errors
///
/// Fails if the trace is empty or invalid, if a setting is out of range, or if the result is no valid model.
pub fn fit(trace: &[Request], settings: &FitSettings) -> Result<Fit, FitError> {
    check(trace, settings)?;
    let is_poisson = settings.chain == Chain::Closed && is_poisson(trace, settings);
    let requests = merge(trace, if is_poisson { 0.0 } else { settings.batch });
    let last = trace[trace.len() - 1].at;
    let intervals = Intervals::new(last, settings.interval, settings.chain);
    let counts = intervals.sums(requests.iter().map(|request| (request.at, 1.0)));
    let low = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let high = counts.iter().copied().fold(0.0, f64::max);
    let mut levels = match is_poisson {
        true => Levels { rates: vec![requests.len() as f64 / intervals.in_trace()], deviations: 0.0 },
        false => Levels::new(low, high, settings.states, settings.deviations),
    };
    let mut state_of: Vec<usize> = counts.iter().map(|&count| levels.state_of(count)).collect();
    if settings.chain == Chain::Closed {
        close(&mut levels, &mut state_of, &counts, &intervals);
    }
    let mut sizes: Vec<Vec<f64>> = vec![Vec::new(); levels.rates.len()];
    for request in &requests {
        sizes[state_of[intervals.index(request.at)]].push(request.work);
    }
    let per_step = settings.step / settings.interval;
    let states = levels
        .rates
        .iter()
        .zip(&sizes)
        .map(|(rate, sizes)| {
            let mean = rate * per_step;
            State {
                requests: match settings.chain {
                    Chain::Published => Requests::Bernoulli(mean),
                    Chain::Closed => Requests::Poisson(mean),
                },
                sizes: sizes_of(sizes, settings.sizes),
            }
        })
        .collect();
    let transitions = transitions(&state_of, levels.rates.len(), &intervals, settings);
    let model = Mmpp::new(settings.step, states, &transitions, settings.sigma)?;
    let deviation = deviation(&model, &requests, &state_of, &intervals, settings);
    Ok(Fit { model, deviation })
}

/// Fits a model to arrivals: pairs of (nanoseconds on the trace's own clock, work), in order of time. All commands fit by
/// this function, because the settings decide from which time intervals are counted: [`Chain::Closed`] counts from the
/// first request, [`Chain::Published`] from 0 of the clock.
///
/// # Errors
///
/// As [`fit`].
pub fn fit_nanos(
    arrivals: impl IntoIterator<Item = (u64, f64)>,
    settings: &FitSettings,
) -> Result<Fit, FitError> {
    let mut origin = settings.chain.origin();
    let request = |(at, work): (u64, f64)| {
        let since = i128::from(at) - i128::from(*origin.get_or_insert(at));
        Request { at: since as f64 / 1e9, work }
    };
    let trace: Vec<Request> = arrivals.into_iter().map(request).collect();
    fit(&trace, settings)
}

fn check(trace: &[Request], settings: &FitSettings) -> Result<(), FitError> {
    settings.check()?;
    let mut before = 0.0;
    for (index, &Request { at, work }) in trace.iter().enumerate() {
        if !(at.is_finite() && at >= before && work.is_finite() && work >= 0.0) {
            return Err(FitError::Request { index, at, work });
        }
        before = at;
    }
    let intervals = before / settings.interval;
    if trace.is_empty() {
        Err(FitError::Empty)
    } else if intervals > MOST_INTERVALS {
        Err(FitError::Long(intervals))
    } else {
        Ok(())
    }
}

/// Drops levels without intervals, and raises the others to the mean of their intervals. A level with only idle
/// intervals gets the rate 0. (At the level's own rate, the state would bring requests without work, and a percentile
/// over requests would count them.)
fn close(levels: &mut Levels, state_of: &mut [usize], counts: &[f64], intervals: &Intervals) {
    let mut sums = vec![(0.0, 0.0); levels.rates.len()];
    for ((&state, count), length) in state_of.iter().zip(counts).zip(intervals.lengths()) {
        sums[state].0 += length;
        sums[state].1 += count * length;
    }
    let visited: Vec<usize> = (0..sums.len()).filter(|&state| sums[state].0 > 0.0).collect();
    let raised = |&state: &usize| {
        let (intervals, requests) = sums[state];
        if requests > 0.0 { levels.rates[state].max(requests / intervals) } else { 0.0 }
    };
    levels.rates = visited.iter().map(raised).collect();
    for state in state_of {
        *state = visited.partition_point(|at| at < state);
    }
}

fn sizes_of(sizes: &[f64], model: SizeModel) -> Sizes {
    match model {
        _ if sizes.is_empty() => Sizes::Exponential { mean: 0.0 },
        SizeModel::Exponential => Sizes::Exponential { mean: sizes.iter().sum::<f64>() / sizes.len() as f64 },
        SizeModel::Hyperexponential => Sizes::hyperexponential(sizes),
        SizeModel::Empirical(atoms) => Sizes::empirical(sizes, atoms),
    }
}

/// Transition probabilities: the transitions from a state, divided by the steps spent in it. The remainder is the
/// probability of staying.
fn transitions(
    state_of: &[usize],
    states: usize,
    intervals: &Intervals,
    settings: &FitSettings,
) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; states]; states];
    let mut time_in = vec![0.0; states];
    for (&state, length) in state_of.iter().zip(intervals.lengths()) {
        time_in[state] += length;
    }
    let closed = settings.chain == Chain::Closed;
    let first = closed.then_some(state_of[0]);
    for (&from, &to) in state_of.iter().zip(state_of[1..].iter().chain(first.iter())) {
        if closed {
            matrix[from][to] += 0.5;
            matrix[to][from] += 0.5;
        } else {
            matrix[from][to] += 1.0;
        }
    }
    for (from, row) in matrix.iter_mut().enumerate() {
        let steps = time_in[from] * settings.interval / settings.step;
        // The released code counts whole steps, and loses one step if rounding makes the quotient too small.
        let steps = if settings.chain == Chain::Published { steps.floor().max(1.0) } else { steps.max(1.0) };
        row[from] = 0.0;
        row.iter_mut().for_each(|count| *count /= steps);
        row[from] = 1.0 - row.iter().sum::<f64>();
    }
    matrix
}

fn deviation(
    model: &Mmpp,
    requests: &[Request],
    state_of: &[usize],
    intervals: &Intervals,
    settings: &FitSettings,
) -> FitDeviation {
    // The model's distribution of time over states equals the trace's. For a closed chain, it is the stationary
    // distribution.
    let steps = settings.interval / settings.step;
    let average = |per_step: &dyn Fn(&State) -> f64| -> f64 {
        let brings = |(&state, length): (&usize, f64)| per_step(&model.states()[state]) * steps * length;
        state_of.iter().zip(intervals.lengths()).map(brings).sum::<f64>() / intervals.lengths().sum::<f64>()
    };
    let over = |model: f64, trace: f64| if trace > 0.0 { model / trace - 1.0 } else { 0.0 };
    let mean = |total: f64| total / intervals.in_trace();
    let heaviest = model.states().iter().map(State::mean).fold(0.0, f64::max);
    let works = || requests.iter().map(|request| (request.at, request.work));
    FitDeviation {
        requests: over(average(&|state| state.requests.mean()), mean(requests.len() as f64)),
        work: over(average(&State::mean), mean(works().map(|(_, work)| work).sum())),
        peak: over(heaviest * steps, intervals.sums(works()).into_iter().fold(0.0, f64::max)),
    }
}
