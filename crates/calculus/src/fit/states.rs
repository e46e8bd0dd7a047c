//! The states of the intervals of a trace.

use super::intervals::Intervals;
use super::levels::Levels;
use super::mixture::components;
use super::path::{Count, path};
use super::request::Request;
use super::settings::{Chain, FitSettings};
use crate::mmpp::MAX_STATES;

/// Least number of intervals of a length that [`States::of_counts`] tries after the first.
const LEAST_INTERVALS: f64 = 64.0;

/// States with their rates, and the state of each interval.
pub(super) struct States {
    pub intervals: Intervals,
    /// Requests per whole interval of each state, ascending.
    pub rates: Vec<f64>,
    /// State of each interval.
    pub of: Vec<usize>,
}

impl States {
    /// States of the released code: levels over the range of the counts.
    pub fn of_levels(requests: &[Request], end: f64, settings: &FitSettings) -> States {
        let intervals = Intervals::new(end, settings.interval, Chain::Published);
        let counts = intervals.sums(requests.iter().map(|request| (request.at, 1.0)));
        let low = counts.iter().copied().fold(f64::INFINITY, f64::min);
        let high = counts.iter().copied().fold(0.0, f64::max);
        let levels = Levels::new(low, high, settings.states, settings.deviations);
        let of = counts.iter().map(|&count| levels.state_of(count)).collect();
        States { intervals, rates: levels.rates, of }
    }

    /// One state at the mean rate.
    pub fn one(requests: &[Request], end: f64, settings: &FitSettings) -> States {
        let intervals = Intervals::new(end, settings.interval, Chain::Closed);
        let rates = vec![requests.len() as f64 / intervals.in_trace()];
        let of = intervals.lengths().map(|_| 0).collect();
        States { intervals, rates, of }
    }

    /// States that the counts carry, over the shortest intervals whose counts tell more than one apart: those of the
    /// settings, of twice this length, and so on. Rates that change slowly and little do not show in short intervals. If
    /// no length tells states apart, the first one that carries more than one counts; else there is one state.
    pub fn of_counts(requests: &[Request], end: f64, settings: &FitSettings) -> States {
        if settings.states <= 1 {
            return States::one(requests, end, settings);
        }
        let mut seconds = settings.interval;
        let mut first = None;
        loop {
            let intervals = Intervals::new(end, seconds, Chain::Closed);
            let sums = intervals.sums(requests.iter().map(|request| (request.at, 1.0)));
            let counts: Vec<Count> = sums.into_iter().zip(intervals.lengths()).collect();
            let found = components(counts.iter().copied(), settings.states);
            if found.components.len() > 1 && (found.apart || first.is_none()) {
                let states = States::along(intervals, &counts, &path(&counts, &found.components));
                // A path through one state says no more than its mean.
                if states.rates.len() > 1 {
                    if found.apart {
                        return states;
                    }
                    first = Some(states);
                }
            }
            seconds *= 2.0;
            if end / seconds < LEAST_INTERVALS {
                return first.unwrap_or_else(|| States::one(requests, end, settings));
            }
        }
    }

    /// States of a path, without those that it does not visit: each at the mean of its intervals, in order of these.
    fn along(intervals: Intervals, counts: &[Count], path: &[u8]) -> States {
        let mut sums = [(0.0, 0.0); MAX_STATES];
        for (&(count, length), &state) in counts.iter().zip(path) {
            let sum = &mut sums[usize::from(state)];
            sum.0 += length;
            sum.1 += count * length;
        }
        let rate = |state: usize| sums[state].1 / sums[state].0;
        let mut visited: Vec<usize> = (0..sums.len()).filter(|&state| sums[state].0 > 0.0).collect();
        visited.sort_by(|&one, &other| rate(one).total_cmp(&rate(other)));
        let mut numbers = [0; MAX_STATES];
        for (number, &state) in visited.iter().enumerate() {
            numbers[state] = number;
        }
        let rates = visited.iter().map(|&state| rate(state)).collect();
        let of = path.iter().map(|&state| numbers[usize::from(state)]).collect();
        States { intervals, rates, of }
    }
}
