//! Gain of an app's placement over random placements: whether the network matters to the app (Choreo, sections 6.2 and
//! 7.1).
//!
//! Choreo does not help apps that are short, because a measurement takes longer than their transfers, and apps whose
//! traffic is uniform, because every placement is as good as another. Both show in the forecast: the time that the
//! placement saves over a random one is small, absolutely or relatively.

use leeward_ledger::View;

use super::random::assign;
use super::{AppRequest, completion};
use crate::estimate::Estimate;
use crate::{Context, Explain, Pool};

/// Number of random placements; their median counts.
const PLACEMENTS: u64 = 21;
/// Time of a round of trains in a measurement of the network, in seconds. A train takes less than a second (Choreo,
/// section 4.1).
const ROUND_S: f64 = 1.0;
/// Share of the random placement's time below which a gain does not count. The value is a choice of this project; it is
/// the error of a packet train (Choreo, section 4.1: 4 % and 9 %).
const LEAST_SHARE: f64 = 0.05;

/// Use of measurements for an app.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// The placement saves more time than a measurement takes.
    Worthwhile,
    /// The placement saves less time than a measurement takes.
    Short,
    /// The placement saves hardly any time, as for uniform traffic.
    Uniform,
}

/// Forecast of an app under random placement, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// Median completion time of random placements.
    pub random_s: f64,
    /// Time that a measurement of all paths takes.
    pub survey_s: f64,
}

impl Gain {
    /// Forecasts random placements of an app on an unchanged view. `None` for an app without transfers, and if no random
    /// placement is found or one of half of them never completes.
    pub fn of(
        request: &AppRequest,
        pool: &Pool,
        view: &mut View<'_>,
        estimate: Estimate,
        seed: u64,
    ) -> Option<Gain> {
        let mut times = Vec::new();
        for draw in (0..PLACEMENTS).filter(|_| request.has_traffic()) {
            let seed = seed.wrapping_add(draw);
            let context = Context { view: &mut *view, pool, seed, explain: Explain::Off };
            if let Ok(hosts) = assign(request, &context) {
                times.push(completion(context.view, &request.transfers, &hosts, estimate).seconds);
            }
        }
        times.sort_by(f64::total_cmp);
        let random_s = times.get(times.len() / 2).copied().filter(|seconds| seconds.is_finite())?;
        // Each host takes part in one train of a round, so all ordered pairs take two rounds for each other host.
        let others = pool.fabric().host_count().saturating_sub(1);
        Some(Gain { random_s, survey_s: 2.0 * others as f64 * ROUND_S })
    }

    /// Use of measurements for a placement with this completion time.
    pub fn measurements(&self, completion_s: f64) -> Use {
        let saved_s = self.random_s - completion_s;
        match () {
            () if saved_s <= LEAST_SHARE * self.random_s => Use::Uniform,
            () if saved_s <= self.survey_s => Use::Short,
            () => Use::Worthwhile,
        }
    }
}
