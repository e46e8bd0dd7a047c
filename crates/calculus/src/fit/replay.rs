//! Check of a model by replays of its trace.
//!
//! A model is not its trace: bursts within an interval, and loads that change slowly, are only in the trace. So the trace
//! is served alone, first come, first served, at several constant rates. A bound of the model below the latency that a
//! percentile of requests then has is not reliable. If there is one, the rates of all states rise by one factor, the
//! smallest (to a hundredth) with which all bounds hold. Where the load times the factor reaches the rate of the server,
//! the model has no bound and promises nothing, so a factor always exists.

use super::request::Request;
use crate::mmpp::{Mmpp, ModelError};
use crate::snc::Expressions;

/// Mean loads of the replays. At higher loads, the slowest changes of the load decide on latencies, and a trace has few
/// of them.
const LOADS: [f64; 7] = [0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6];
/// Shares of requests that may be later than a percentile, the largest first.
const EXCESSES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];
/// First increase of the rates that is tried, and the precision of the factor.
const FIRST_INCREASE: f64 = 0.05;
const PRECISION: f64 = 0.01;
/// Most increases, each twice the one before. After them, no load of `LOADS` has a bound.
const MOST_INCREASES: usize = 12;

/// Latency of the replayed trace.
struct Replay {
    /// Rate of the server, in work per second.
    rate: f64,
    /// Share of requests that are later than `seconds` at most.
    excess: f64,
    seconds: f64,
}

/// Latencies of a trace that is served alone.
pub(super) struct Replays(Vec<Replay>);

impl Replays {
    /// Replays a trace of the given duration. A trace without work has no latencies.
    pub fn new(trace: &[Request], seconds: f64) -> Replays {
        let mean = trace.iter().map(|request| request.work).sum::<f64>() / seconds;
        if !(mean.is_finite() && mean > 0.0) {
            return Replays(Vec::new());
        }
        let replays = LOADS.iter().flat_map(|load| replay(trace, mean / load));
        Replays(replays.filter(|replay| replay.rate.is_finite()).collect())
    }

    /// True if no bound of the model is below its replay.
    fn hold(&self, model: &Mmpp) -> bool {
        let mut arena = Expressions::new(model.step(), 1).expect("the step of a model is valid");
        arena.set_by_request(true);
        arena.set_blocks(true);
        let id = arena.model(model).expect("the step of the model is that of the arena");
        let arrivals = arena.arrivals(id, 0).expect("the arena has one group");
        self.0.iter().all(|&Replay { rate, excess, seconds }| {
            let server = arena.server(rate).expect("the rate is positive and finite");
            let latency = arena.latency(arrivals, server, 100.0 * (1.0 - excess));
            let latency = latency.expect("the percentile is between 0 and 100");
            latency.seconds().is_none_or(|bound| bound >= seconds)
        })
    }
}

/// Latencies at each percentile that the trace has requests beyond.
fn replay(trace: &[Request], rate: f64) -> Vec<Replay> {
    let mut free = 0.0_f64;
    let serve = |request: &Request| {
        free = free.max(request.at) + request.work / rate;
        free - request.at
    };
    let mut latencies: Vec<f64> = trace.iter().map(serve).collect();
    let count = latencies.len() as f64;
    let index = |excess: f64| ((count * (1.0 - excess)) as usize).min(trace.len() - 1);
    // Only the latest requests are sorted.
    let first = index(EXCESSES[0]);
    latencies.select_nth_unstable_by(first, f64::total_cmp);
    latencies[first..].sort_unstable_by(f64::total_cmp);
    let beyond = EXCESSES.into_iter().filter(|excess| count * excess >= 1.0);
    beyond.map(|excess| Replay { rate, excess, seconds: latencies[index(excess)] }).collect()
}

/// The model, with all rates times the smallest factor with which its bounds hold in the replays; and this factor.
pub(super) fn lifted(
    replays: &Replays,
    model_at: impl Fn(f64) -> Result<Mmpp, ModelError>,
) -> Result<(Mmpp, f64), ModelError> {
    let model = model_at(1.0)?;
    if replays.hold(&model) {
        return Ok((model, 1.0));
    }
    let (mut low, mut increase) = (1.0, FIRST_INCREASE);
    let mut high = (model_at(1.0 + increase)?, 1.0 + increase);
    for _ in 0..MOST_INCREASES {
        if replays.hold(&high.0) {
            break;
        }
        (low, increase) = (high.1, 2.0 * increase);
        high = (model_at(1.0 + increase)?, 1.0 + increase);
    }
    while high.1 - low > PRECISION {
        let middle = low + (high.1 - low) / 2.0;
        let model = model_at(middle)?;
        if replays.hold(&model) { high = (model, middle) } else { low = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mmpp::{Requests, Sigma, Sizes, State};

    const STEP: f64 = 1e-5;

    fn model(rate: f64) -> impl Fn(f64) -> Result<Mmpp, ModelError> {
        move |factor| {
            let requests = Requests::Poisson(rate * factor * STEP);
            let state = State { requests, sizes: Sizes::Empirical { atoms: vec![(1.0, 1.0)] } };
            Mmpp::new(STEP, vec![state], &[vec![1.0]], Sigma::Stationary)
        }
    }

    #[test]
    fn a_replay_has_the_latencies_of_first_come_first_served() {
        // Ten requests at once, each of a tenth of a second.
        let trace = [Request { at: 1.0, work: 1.0 }; 10];
        let replays = replay(&trace, 10.0);
        assert_eq!(replays.len(), 1);
        assert!((replays[0].seconds - 1.0).abs() < 1e-12 && replays[0].excess == 0.1);
    }

    #[test]
    fn a_model_whose_bounds_hold_is_not_lifted_and_another_by_just_enough() {
        // Batches of five requests, for a model of single ones.
        let trace: Vec<Request> = (0..2000).map(|at| Request { at: f64::from(at / 5), work: 1.0 }).collect();
        let replays = Replays::new(&trace, 399.0);
        let (sound, factor) = lifted(&replays, model(245.0)).unwrap();
        assert!(factor == 1.0 && replays.hold(&sound));
        let (sound, factor) = lifted(&replays, model(5.0)).unwrap();
        assert!(factor > 1.0 && replays.hold(&sound), "{factor}");
        assert!(!replays.hold(&model(5.0)(factor - 2.0 * PRECISION).unwrap()), "{factor}");
    }

    #[test]
    fn a_trace_without_work_or_duration_lifts_nothing() {
        for (trace, seconds) in [(vec![Request { at: 0.0, work: 0.0 }; 3], 1.0), (Vec::new(), 1.0)] {
            let (_, factor) = lifted(&Replays::new(&trace, seconds), model(1.0)).unwrap();
            assert_eq!(factor, 1.0);
        }
    }
}
