//! A model of a trace: Zhu's thesis, section 4.2.4, after the LAMBDA algorithm of Heyman and Lucantoni.
//!
//! Requests are counted per interval. An interval belongs to the state whose rate fits its count; the chain has the
//! transitions of the intervals; each state has the sizes of the requests in its intervals.

use super::error::ModelError;
use super::intervals::Intervals;
use super::levels::Levels;
use super::model::{Mmpp, Sigma};
use super::sizes::Sizes;
use super::state::{Requests, State};
use crate::number_format::format_number;

/// Most intervals of a trace.
const MOST_INTERVALS: f64 = 1e7;

/// One request of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// Seconds from the start of the trace.
    pub at: f64,
    /// Work of the request.
    pub work: f64,
}

/// Distribution fitted to the sizes of a state's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeModel {
    /// An exponential of the same mean, as the released code does.
    Exponential,
    /// A hyperexponential of the same mean and variance.
    Hyperexponential,
    /// The observed sizes, reduced to at most this many atoms that bound their generating function.
    Empirical(usize),
}

/// Method to derive states and transitions from the intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chain {
    /// As released: every level is a state, visited or not, at the level's rate. The chain need not return to its
    /// first state. At most one request per step.
    Published,
    /// Visited states only. The trace runs to its end and back again, so that each state's stationary probability is
    /// its share of the trace and its sojourn time that of the trace, and the chain is reversible, which has a small
    /// sigma ([`Sigma::Stationary`]). No state's rate is below the mean of its intervals, so that the model's mean
    /// work is never below the trace's; the rate of intervals without a request is 0. Requests of a step are Poisson.
    /// The rest of a trace after whole intervals belongs to the last of them. A trace shorter than an interval is one
    /// shorter interval: its rate is relative to its duration.
    ///
    /// The backward run does not lower rho if steps are short against the sojourn times. For any chain, E exp(theta
    /// A) is then at most that of the symmetric part of its matrix, in the inner product weighted by its stationary
    /// distribution, and that is the matrix of this chain.
    Closed,
}

/// Settings of a fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FitSettings {
    /// Length of an interval, in seconds.
    pub interval: f64,
    /// Length of a step of the model, in seconds.
    pub step: f64,
    /// Requests within this many seconds of the first of them become one request of their total work, so that a batch
    /// stays a batch. Zero merges none.
    pub batch: f64,
    /// Most states.
    pub states: usize,
    /// Standard deviations that a state covers on either side of its rate.
    pub deviations: f64,
    /// Distribution of sizes.
    pub sizes: SizeModel,
    /// Method for states and transitions.
    pub chain: Chain,
    /// Definition of sigma in the model.
    pub sigma: Sigma,
}

impl FitSettings {
    /// The constants of the released code, for comparison: intervals of 1 s, steps of 10 us, up to 10 states of two
    /// deviations (the thesis says 5), exponential sizes, sigma zero.
    pub fn published() -> FitSettings {
        FitSettings {
            interval: 1.0,
            step: 1e-5,
            batch: 0.0,
            states: 10,
            deviations: 2.0,
            sizes: SizeModel::Exponential,
            chain: Chain::Published,
            sigma: Sigma::Zero,
        }
    }

    /// Checks that the settings are in range.
    ///
    /// # Errors
    /// The first setting out of range.
    pub fn check(&self) -> Result<(), FitError> {
        let fault = |name, value, expected| Err(FitError::Setting { name, value, expected });
        for (name, value) in
            [("interval", self.interval), ("step", self.step), ("deviations", self.deviations)]
        {
            if !(value.is_finite() && value > 0.0) {
                return fault(name, value, "positive and finite");
            }
        }
        // A default setting was not given by the user, so the error does not name it.
        let default = FitSettings::default();
        if !(self.batch >= 0.0 && self.batch <= self.interval) {
            return match self.batch == default.batch {
                true => {
                    fault("interval", self.interval, "no less than the batch, 1 ms unless another is given")
                }
                false => fault("batch", self.batch, "not negative and no longer than the interval"),
            };
        }
        if self.step > self.interval {
            return match self.step == default.step {
                true => {
                    fault("interval", self.interval, "no less than the step, 10 us unless another is given")
                }
                false => fault("step", self.step, "no longer than the interval"),
            };
        }
        if self.states == 0 || self.states > super::MAX_STATES {
            return fault("states", self.states as f64, "1 to 16");
        }
        Ok(())
    }
}

impl Default for FitSettings {
    fn default() -> FitSettings {
        FitSettings {
            interval: 0.1,
            step: 1e-5,
            batch: 1e-3,
            states: 10,
            deviations: 2.0,
            sizes: SizeModel::Empirical(32),
            chain: Chain::Closed,
            sigma: Sigma::Stationary,
        }
    }
}

/// Errors of the model: model over trace, minus 1. Zero is a perfect fit, negative is too little. Means of a trace
/// are over the time from its start to its last request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FitDeviation {
    /// Error of the mean number of requests, with a batch as one.
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

/// A trace or settings that no model fits.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FitError {
    /// No request.
    #[error("a trace without a request: there is nothing to fit")]
    Empty,
    /// An invalid request, or one earlier than the previous one.
    #[error(
        "request {index} at {} s with work {}: times must rise from 0, work must be finite and not negative", format_number(*.at), format_number(*.work)
    )]
    Request {
        /// Index of the request, from 0.
        index: usize,
        /// Time of the request.
        at: f64,
        /// Work of the request.
        work: f64,
    },
    /// A setting out of range.
    #[error("{name} {}: must be {expected}", format_number(*.value))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The rejected value.
        value: f64,
        /// Description of valid values.
        expected: &'static str,
    },
    /// More intervals than the limit.
    #[error("{} intervals: at most 1e7; take the time from the first request, or longer intervals", format_number(*.0))]
    Long(f64),
    /// The numbers give an invalid model: a Bernoulli step with more than one request, for example.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Fits a model to `trace`, in order of time.
///
/// # Errors
///
/// Fails if the trace is empty or invalid, if a setting is out of range, or if the result is no valid model.
pub fn fit(trace: &[Request], settings: &FitSettings) -> Result<Fit, FitError> {
    check(trace, settings)?;
    let requests = merge(trace, settings.batch);
    let last = trace[trace.len() - 1].at;
    let intervals = Intervals::new(last, settings.interval, settings.chain);
    let counts = intervals.sums(requests.iter().map(|request| (request.at, 1.0)));
    let low = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let high = counts.iter().copied().fold(0.0, f64::max);
    let mut levels = Levels::new(low, high, settings.states, settings.deviations);
    let mut state_of: Vec<usize> = counts.iter().map(|&count| levels.state_of(count)).collect();
    if settings.chain == Chain::Closed {
        close(&mut levels, &mut state_of, &counts, &intervals);
    }
    let mut sizes: Vec<Vec<f64>> = vec![Vec::new(); levels.rates.len()];
    for request in &requests {
        sizes[state_of[intervals.of(request.at)]].push(request.work);
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

/// Merges the requests of a batch into one, at the time of the first.
fn merge(trace: &[Request], batch: f64) -> Vec<Request> {
    let mut merged: Vec<Request> = Vec::new();
    for &request in trace {
        match merged.last_mut() {
            Some(first) if request.at - first.at < batch => first.work += request.work,
            _ => merged.push(request),
        }
    }
    merged
}

/// Drops levels without intervals, and raises the others to the mean of their intervals. A level with only idle
/// intervals is idle. (At the level's own rate it would bring requests without work, and a percentile over requests
/// would count them.)
fn close(levels: &mut Levels, state_of: &mut [usize], counts: &[f64], intervals: &Intervals) {
    let mut sums = vec![(0.0, 0.0); levels.rates.len()];
    for ((&state, count), length) in state_of.iter().zip(counts).zip(intervals.lengths()) {
        sums[state].0 += length;
        sums[state].1 += count * length;
    }
    let visited: Vec<usize> = (0..sums.len()).filter(|&state| sums[state].0 > 0.0).collect();
    let lifted = |&at: &usize| {
        let (intervals, requests) = sums[at];
        if requests > 0.0 { levels.rates[at].max(requests / intervals) } else { 0.0 }
    };
    levels.rates = visited.iter().map(lifted).collect();
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

/// Counts transitions over the steps spent in a state; the remaining probability is that of staying.
fn transitions(
    state_of: &[usize],
    states: usize,
    intervals: &Intervals,
    settings: &FitSettings,
) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; states]; states];
    let mut kept = vec![0.0; states];
    for (&state, length) in state_of.iter().zip(intervals.lengths()) {
        kept[state] += length;
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
        let steps = kept[from] * settings.interval / settings.step;
        // The released code counts whole steps, and loses one where rounding makes the quotient fall short.
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
    // The model's distribution of time over states is that of the trace, which is the stationary one for a closed
    // chain.
    let steps = settings.interval / settings.step;
    let spent = |of: &dyn Fn(&State) -> f64| -> f64 {
        let brings = |(&state, length): (&usize, f64)| of(&model.states()[state]) * steps * length;
        state_of.iter().zip(intervals.lengths()).map(brings).sum::<f64>() / intervals.lengths().sum::<f64>()
    };
    let over = |model: f64, trace: f64| if trace > 0.0 { model / trace - 1.0 } else { 0.0 };
    let mean = |total: f64| total / intervals.in_trace();
    let heaviest = model.states().iter().map(State::mean).fold(0.0, f64::max);
    let works = || requests.iter().map(|request| (request.at, request.work));
    FitDeviation {
        requests: over(spent(&|state| state.requests.mean()), mean(requests.len() as f64)),
        work: over(spent(&State::mean), mean(works().map(|(_, work)| work).sum())),
        peak: over(heaviest * steps, intervals.sums(works()).into_iter().fold(0.0, f64::max)),
    }
}
