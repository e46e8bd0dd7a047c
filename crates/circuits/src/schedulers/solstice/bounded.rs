//! `solstice`: the longest days first, with as many circuits as demand keeps busy, until the week is full.
//!
//! As in Solstice (CoNEXT 2015), all circuits of a day have at least a threshold of demand. The threshold halves when
//! too few circuits reach it. As in Etalon, days have a minimum length and must fit into a week.
//!
//! Deviations:
//!
//! * Matchings need not be perfect. If Etalon's solver finds no perfect matching, one ring is up for the week. This
//!   scheduler continues with the racks that have demand.
//! * Demand is therefore not stuffed. Instead, ports with more remaining demand are matched first.
//! * A matching that gives fewer than half the racks a circuit waits for a lower threshold.
//! * Racks that a matching leaves out are paired by the largest demand between them.
//! * A day has the length that serves the most demand per time, as in Eclipse.
//! * Time left at the end goes to the days with circuits that can use it.

use std::cmp::Reverse;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::matcher::{Matcher, NONE};
use super::super::times::{Times, check_unit};
use super::super::{CircuitsError, Guarantees, Scheduler};
use super::fill;
use crate::demand::sums;
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `solstice`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SolsticeSettings {
    /// If true, pairs of an overloaded port get max-min fair shares of it, as in Etalon. Default false: circuits carry
    /// as many bytes as they can.
    pub fair: bool,
    /// Unit of day lengths; night, week and minimum day must be multiples of it. Default 1us, or less if the network's
    /// times require it.
    pub unit: Option<Nanos>,
}

/// The `solstice` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Solstice(SolsticeSettings);

const NAME: &str = "solstice";

pub(in super::super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "the longest days first, with as many circuits as demand keeps busy, within a week",
    source: "Solstice (CoNEXT 2015), bounded as in Etalon",
    schema: schema::<SolsticeSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: SolsticeSettings = settings(NAME, text)?;
    check_unit(NAME, parsed.unit)?;
    Ok(Box::new(Solstice(parsed)))
}

impl Scheduler for Solstice {
    fn name(&self) -> &str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees { within_week: true, min_day: true, all_pairs: false }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        let times = Times::of(NAME, network, self.0.unit, racks)?;
        let units: Vec<u64> = match self.0.fair {
            true => fill::align(&fill::water_fill(racks, demand.bytes(), times.budget()), times.unit_bytes),
            // A day that is slightly too long (by less than a unit) is better than a day that is too short.
            false => demand.bytes().iter().map(|bytes| bytes.div_ceil(times.unit_bytes)).collect(),
        };
        let mut week = Week::new(racks, times, &units);
        let mut threshold = times.first_threshold();
        while threshold > 0 && week.has_room() {
            week.fill(threshold);
            threshold /= 2;
        }
        week.stretch();
        let day = |(day, plan): (usize, DayPlan)| {
            let matching =
                Matching::new(plan.sources).map_err(|error| CircuitsError::Matching { day, error })?;
            Ok(Day { matching, length: times.nanos(plan.length) })
        };
        let days = week.days.into_iter().enumerate().map(day).collect::<Result<_, CircuitsError>>()?;
        Ok(Schedule::new(racks, network.night(), days)?)
    }
}

/// A day: the source of each destination, and its length without its night.
struct DayPlan {
    sources: Vec<Option<u32>>,
    length: u64,
}

/// A week under construction. All values are in units of time.
struct Week {
    racks: usize,
    times: Times,
    /// Demand that remains after the days, row by row of destinations, and its sums.
    left: Vec<u64>,
    of_destination: Vec<u64>,
    /// Remaining time of the week.
    time: u64,
    matcher: Matcher,
    order: Vec<usize>,
    source_of: Vec<u32>,
    free: Vec<usize>,
    pairs: Vec<(u64, usize, usize)>,
    days: Vec<DayPlan>,
}

impl Week {
    fn new(racks: usize, times: Times, by_source: &[u64]) -> Week {
        let mut left = vec![0; racks * racks];
        for (source, row) in by_source.chunks_exact(racks).enumerate() {
            for (destination, &entry) in row.iter().enumerate() {
                left[destination * racks + source] = entry;
            }
        }
        Week {
            racks,
            times,
            of_destination: sums(racks, &left).0,
            left,
            time: times.week,
            matcher: Matcher::new(racks),
            order: (0..racks).collect(),
            source_of: vec![NONE; racks],
            free: Vec::with_capacity(racks),
            pairs: Vec::new(),
            days: Vec::new(),
        }
    }

    fn shortest(&self) -> u64 {
        self.times.min_day.max(1)
    }

    fn has_room(&self) -> bool {
        self.time >= self.times.night + self.shortest()
    }

    /// Adds days of circuits that each have at least `threshold` of demand, as long as at least half the racks have
    /// such a circuit. At the last threshold, it continues as long as any rack has one.
    fn fill(&mut self, threshold: u64) {
        self.matcher.set_edges(&self.left, |entry| entry >= threshold);
        let enough = if threshold == 1 { 1 } else { self.racks.div_ceil(2) };
        while self.has_room() {
            self.order.sort_by_key(|&destination| Reverse(self.of_destination[destination]));
            if self.matcher.extend(self.order.iter().copied()) < enough {
                return;
            }
            self.source_of.copy_from_slice(self.matcher.source_of());
            self.pair_others();
            let length = self.best_length();
            self.take(length, threshold);
        }
    }

    /// Pairs racks without a circuit, by the largest demand between them.
    fn pair_others(&mut self) {
        self.free.clear();
        self.free.extend((0..self.racks).filter(|&source| self.matcher.is_free(source)));
        if self.free.is_empty() {
            return;
        }
        self.pairs.clear();
        for destination in (0..self.racks).filter(|&destination| self.source_of[destination] == NONE) {
            let row = &self.left[destination * self.racks..][..self.racks];
            let wanted = self.free.iter().filter(|&&source| row[source] > 0);
            self.pairs.extend(wanted.map(|&source| (row[source], destination, source)));
        }
        self.pairs.sort_unstable_by_key(|&(left, destination, source)| (Reverse(left), destination, source));
        for &(_, destination, source) in &self.pairs {
            if self.source_of[destination] == NONE && self.free.binary_search(&source).is_ok() {
                self.source_of[destination] = source as u32;
                self.free.retain(|&other| other != source);
            }
        }
    }

    /// Length at which the chosen circuits serve the most demand per time, including the night before.
    fn best_length(&mut self) -> u64 {
        let (night, racks) = (self.times.night, self.racks);
        let chosen = self.source_of.iter().enumerate().filter(|&(_, &source)| source != NONE);
        let mut wants: Vec<u64> = chosen.map(|(to, &from)| self.left[to * racks + from as usize]).collect();
        wants.sort_unstable();
        let mut best = (0u64, 1u64);
        let (mut whole, mut cut) = (0u64, wants.len() as u64);
        for &want in &wants {
            let length = want.clamp(self.shortest(), self.time - night);
            // Circuits with at most this demand are served completely, and each of the others for this length.
            let served = whole.saturating_add(cut.saturating_mul(want.min(length)));
            let better = u128::from(served) * u128::from(best.1 + night)
                > u128::from(best.0) * u128::from(length + night);
            if better {
                best = (served, length);
            }
            whole = whole.saturating_add(want);
            cut -= 1;
        }
        best.1
    }

    /// Adds a day of the chosen circuits.
    fn take(&mut self, length: u64, threshold: u64) {
        let mut sources = vec![None; self.racks];
        for (destination, &source) in self.source_of.iter().enumerate().filter(|&(_, &source)| source != NONE)
        {
            let left = &mut self.left[destination * self.racks + source as usize];
            let served = length.min(*left);
            *left -= served;
            self.of_destination[destination] -= served;
            sources[destination] = Some(source);
            if *left < threshold {
                self.matcher.remove(destination, source as usize);
            }
        }
        self.time -= length + self.times.night;
        self.days.push(DayPlan { sources, length });
    }

    /// Gives leftover time repeatedly to the day in which the most circuits can use it. Time that no circuit can use
    /// goes to all days in equal parts.
    fn stretch(&mut self) {
        // A pair's remaining demand counts only for its first day.
        let mut wants: Vec<Vec<u64>> = Vec::with_capacity(self.days.len());
        for day in &self.days {
            let circuits =
                day.sources.iter().enumerate().filter_map(|(to, from)| from.map(|from| (to, from)));
            let take =
                |(to, from): (usize, u32)| std::mem::take(&mut self.left[to * self.racks + from as usize]);
            let mut wanted: Vec<u64> = circuits.map(take).filter(|&left| left > 0).collect();
            wanted.sort_unstable_by_key(|&left| Reverse(left));
            wants.push(wanted);
        }
        let mut grown = vec![0; self.days.len()];
        while self.time > 0 {
            let busiest = (0..wants.len()).rev().max_by_key(|&day| wants[day].len());
            let Some((day, &next)) = busiest.and_then(|day| Some((day, wants[day].last()?))) else { break };
            let growth = (next - grown[day]).min(self.time);
            grown[day] += growth;
            self.time -= growth;
            while wants[day].last().is_some_and(|&next| next == grown[day]) {
                wants[day].pop();
            }
        }
        let count = self.days.len() as u64;
        for ((index, day), grown) in (0..).zip(&mut self.days).zip(grown) {
            day.length += grown + self.time / count + u64::from(index < self.time % count);
        }
    }
}
