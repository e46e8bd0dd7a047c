//! A model of a trace.
//!
//! Requests are counted per interval, and each interval belongs to a state. The chain has the transitions of the
//! intervals, and each state has the sizes of the requests in its intervals. Requests that come as a Poisson process are
//! one state (not in the thesis).

use super::error::FitError;
use super::poisson::is_poisson;
use super::replay::{Replays, lifted};
use super::request::{Request, merge};
use super::settings::{Chain, FitSettings, SizeModel};
use super::states::States;
use crate::mmpp::{Mmpp, Requests, Sizes, State};

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
    /// Length of the counted intervals, in seconds.
    pub interval: f64,
    /// Duration of a batch, in seconds; 0 if each request counts for itself.
    pub batch: f64,
    /// Factor of all rates, at least 1, so that the model's bounds hold for the trace served alone. Always 1 for
    /// [`Chain::Published`], and for a Poisson process, whose trace exceeds a bound only by chance.
    pub lift: f64,
}

/// Fits a model to `trace`, in order of time.
///
/// With [`Chain::Closed`], the bound of the model on a percentile of requests is at least the latency of the trace, served
/// alone by a server of constant rate, first come, first served. This holds for the loads and percentiles that are
/// replayed: mean loads of 2 to 60 %, and the percentiles 90, 99, 99.9 and 99.99, as far as the trace has requests beyond
/// them.
///
/// # Errors
///
/// Fails if the trace is empty or invalid, if a setting is out of range, or if the result is no valid model.
pub fn fit(trace: &[Request], settings: &FitSettings) -> Result<Fit, FitError> {
    check(trace, settings)?;
    let end = trace[trace.len() - 1].at;
    let is_poisson = settings.chain == Chain::Closed && is_poisson(trace, settings);
    let batch = if is_poisson { 0.0 } else { settings.batch };
    let requests = merge(trace, batch);
    let states = match settings.chain {
        Chain::Published => States::of_levels(&requests, end, settings),
        Chain::Closed if is_poisson => States::one(&requests, end, settings),
        Chain::Closed => States::of_counts(&requests, end, settings),
    };
    let mut works: Vec<Vec<f64>> = vec![Vec::new(); states.rates.len()];
    for request in &requests {
        works[states.of[states.intervals.index(request.at)]].push(request.work);
    }
    let sizes: Vec<Sizes> = works.iter().map(|works| sizes_of(works, settings.sizes)).collect();
    let transitions = transitions(&states, settings);
    let per_step = settings.step / states.intervals.seconds();
    let model_at = |factor: f64| {
        let state = |(rate, sizes): (&f64, &Sizes)| {
            let mean = rate * factor * per_step;
            let requests = match settings.chain {
                Chain::Published => Requests::Bernoulli(mean),
                Chain::Closed => Requests::Poisson(mean),
            };
            State { requests, sizes: sizes.clone() }
        };
        let states = states.rates.iter().zip(&sizes).map(state).collect();
        Mmpp::new(settings.step, states, &transitions, settings.sigma)
    };
    let (model, lift) = match settings.chain {
        Chain::Closed if !is_poisson => {
            let seconds = if end > 0.0 { end } else { settings.interval };
            lifted(&Replays::new(trace, seconds), model_at)?
        }
        _ => (model_at(1.0)?, 1.0),
    };
    let deviation = deviation(&model, &requests, &states, settings);
    Ok(Fit { model, deviation, interval: states.intervals.seconds(), batch, lift })
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
fn transitions(states: &States, settings: &FitSettings) -> Vec<Vec<f64>> {
    let States { intervals, rates, of: state_of } = states;
    let mut matrix = vec![vec![0.0; rates.len()]; rates.len()];
    let mut time_in = vec![0.0; rates.len()];
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
        let steps = time_in[from] * intervals.seconds() / settings.step;
        // The released code counts whole steps, and loses one step if rounding makes the quotient too small.
        let steps = if settings.chain == Chain::Published { steps.floor().max(1.0) } else { steps.max(1.0) };
        row[from] = 0.0;
        row.iter_mut().for_each(|count| *count /= steps);
        row[from] = 1.0 - row.iter().sum::<f64>();
    }
    matrix
}

fn deviation(model: &Mmpp, requests: &[Request], states: &States, settings: &FitSettings) -> FitDeviation {
    let States { intervals, of: state_of, .. } = states;
    // The model's distribution of time over states equals the trace's. For a closed chain, it is the stationary
    // distribution.
    let steps = intervals.seconds() / settings.step;
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
