//! `eclipse`: greedy choice of the day that serves the most demand per time.
//!
//! Each day is the matching and the length with the largest `served / (length + night)` (Eclipse, SIGMETRICS 2016).
//! Candidate lengths are those at which the day serves an entry of the remaining demand completely. The best matching
//! of a longer day serves at least as much and, apart from fractions of bytes, at most proportionally more. So two
//! evaluated lengths bound all lengths between them, and most lengths are never tried.

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::times::{Times, check_unit};
use super::{CircuitsError, Guarantees, Scheduler};
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `eclipse`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EclipseSettings {
    /// If true, no day is shorter than the network's minimum day. Default false: the cost of nights alone makes days
    /// long.
    pub keep_min_day: bool,
    /// Unit of day lengths; night, week and minimum day must be multiples of it. Default 1us, or less if the network's
    /// times require it.
    pub unit: Option<Nanos>,
}

/// The `eclipse` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Eclipse(EclipseSettings);

const NAME: &str = "eclipse";

pub(super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "greedy: each day is the one that serves the most demand per time",
    source: "Eclipse (SIGMETRICS 2016)",
    schema: schema::<EclipseSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: EclipseSettings = settings(NAME, text)?;
    check_unit(NAME, parsed.unit)?;
    Ok(Box::new(Eclipse(parsed)))
}

impl Scheduler for Eclipse {
    fn name(&self) -> &str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees { within_week: true, min_day: self.0.keep_min_day, all_pairs: false }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let times = Times::of(NAME, network, self.0.unit, demand.racks())?;
        let shortest = if self.0.keep_min_day { times.min_day.max(1) } else { 1 };
        let mut choice = Choice::new(demand, network, times);
        let (mut days, mut time) = (Vec::new(), times.week);
        while time >= times.night + shortest {
            let Some(length) = choice.best(shortest, time - times.night) else { break };
            let matching = choice.take(length);
            let matching = Matching::new(matching)
                .map_err(|error| CircuitsError::Matching { day: days.len(), error })?;
            days.push(Day { matching, length: times.nanos(length) });
            time -= times.night + length;
        }
        Ok(Schedule::new(demand.racks(), network.night(), days)?)
    }
}

/// Search for the best day for the remaining demand.
struct Choice<'a> {
    racks: usize,
    network: &'a Network,
    times: Times,
    left: Vec<i64>,
    weights: Vec<i64>,
    assignment: Assignment,
    /// Candidate lengths in ascending order.
    lengths: Vec<u64>,
    /// Best day so far: the demand it serves, its length, and the destination of each source.
    best: (i64, u64),
    destinations: Vec<u32>,
}

impl Choice<'_> {
    fn new<'a>(demand: &DemandMatrix, network: &'a Network, times: Times) -> Choice<'a> {
        let racks = demand.racks();
        // A pair never gets more than a week's bytes. Without the excess, sums stay small.
        let most = network.carries(network.week());
        let cut = |&bytes: &u64| bytes.min(most) as i64;
        Choice {
            racks,
            network,
            times,
            left: demand.bytes().iter().map(cut).collect(),
            weights: vec![0; racks * racks],
            assignment: Assignment::new(racks),
            lengths: Vec::new(),
            best: (0, 1),
            destinations: Vec::with_capacity(racks),
        }
    }

    /// Best length from `shortest` to `longest`; `None` if no demand is left.
    fn best(&mut self, shortest: u64, longest: u64) -> Option<u64> {
        let times = self.times;
        self.lengths.clear();
        let wanted = self.left.iter().filter(|&&bytes| bytes > 0);
        let takes = |&bytes: &i64| times.units_for(self.network, bytes as u64).clamp(shortest, longest);
        self.lengths.extend(wanted.map(takes));
        self.lengths.sort_unstable();
        self.lengths.dedup();
        let last = self.lengths.len().checked_sub(1)?;
        self.best = (0, 1);
        // The longest length is first, so that it wins ties.
        let high = self.served(last);
        let low = if last > 0 { self.served(0) } else { high };
        self.between((0, low), (last, high));
        Some(self.best.1)
    }

    /// Tries the lengths between two evaluated ones, except those that cannot be better.
    fn between(&mut self, low: (usize, i64), high: (usize, i64)) {
        if high.0 - low.0 < 2 || !self.may_be_better(low, high) {
            return;
        }
        let middle = low.0 + (high.0 - low.0) / 2;
        let middle = (middle, self.served(middle));
        // The longer half is first, so that the longest length wins ties.
        self.between(middle, high);
        self.between(low, middle);
    }

    /// Returns true if a length between two others may serve more per time than the best one. Such a length serves at
    /// most as much as the longer length. Apart from a fraction of a byte per circuit, it serves at most proportionally
    /// more than the shorter length. The bound is highest where these two limits meet.
    fn may_be_better(&self, (low, low_served): (usize, i64), (_, high_served): (usize, i64)) -> bool {
        if low_served == 0 {
            return high_served > 0;
        }
        let night = self.times.night as f64;
        let low = self.lengths[low] as f64;
        let meet = (low * high_served as f64 / (low_served + self.racks as i64) as f64).max(low);
        let (served, length) = self.best;
        // The factor slightly exceeds the possible rounding error.
        high_served as f64 / (meet + night) * (1.0 + 1e-12) > served as f64 / (length as f64 + night)
    }

    /// Bytes that a circuit carries in `length`.
    fn carries(&self, length: u64) -> i64 {
        self.network.carries(self.times.nanos(length)) as i64
    }

    /// Demand that the best matching of a length serves. Stores the matching if no earlier one was better.
    fn served(&mut self, at: usize) -> i64 {
        let length = self.lengths[at];
        let carries = self.carries(length);
        for (weight, &left) in self.weights.iter_mut().zip(&self.left) {
            *weight = left.min(carries);
        }
        let served = self.assignment.solve(&self.weights);
        let with_night = |length: u64| i128::from(length + self.times.night);
        if i128::from(served) * with_night(self.best.1) > i128::from(self.best.0) * with_night(length) {
            self.best = (served, length);
            self.destinations.clear();
            self.destinations.extend_from_slice(self.assignment.column_of());
        }
        served
    }

    /// Serves the best day and returns its circuits by destination, without circuits that carry nothing.
    fn take(&mut self, length: u64) -> Vec<Option<u32>> {
        let carries = self.carries(length);
        let mut sources = vec![None; self.racks];
        for (source, &destination) in (0..).zip(&self.destinations) {
            let left = &mut self.left[source as usize * self.racks + destination as usize];
            if *left > 0 {
                sources[destination as usize] = Some(source);
                *left -= (*left).min(carries);
            }
        }
        sources
    }
}
