//! `solstice-etalon`: Solstice as released with Etalon, including the order in which its solver visits entries.
//!
//! The scheduler cuts, aligns and stuffs demand, decomposes it into days by perfect matchings, and fits the days to
//! exactly one week. The released solver shuffles the entries that it visits. This scheduler gives the same result for
//! inputs on which shuffling has no effect. Without a perfect matching, one ring is up for the week, for any demand;
//! `solstice` does better there.

use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::matcher::NONE;
use super::super::times::{Times, check_unit};
use super::super::{CircuitsError, Guarantees, Scheduler};
use super::fill;
use crate::demand::sums;
use crate::{Day, DemandMatrix, Matching, Network, Schedule};
use leeward_fabric::{Bytes, Nanos};

/// Preparation of demand before scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prepare {
    /// No preparation.
    #[default]
    Raw,
    /// Preparation of Etalon's Solstice element: if any entry is not small, small entries are removed. Then all entries
    /// are raised until the busiest port wants half of the bytes that a circuit carries in a week.
    Element,
    /// As `element`, but small entries are always removed. Etalon does this if applications report their demand.
    Adu,
}

/// Settings of `solstice-etalon`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EtalonSettings {
    /// Preparation of demand. Default `raw`.
    pub prepare: Prepare,
    /// Size below which an entry is small. Default 1MB. The files of Etalon's section 6 were written with 8kB.
    pub small: Bytes,
    /// Unit of day lengths; night, week and minimum day must be multiples of it. Default 1us, or less if the network's
    /// times require it.
    pub unit: Option<Nanos>,
}

impl Default for EtalonSettings {
    fn default() -> EtalonSettings {
        EtalonSettings { prepare: Prepare::Raw, small: Bytes(1_000_000), unit: None }
    }
}

/// The `solstice-etalon` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Etalon(EtalonSettings);

const NAME: &str = "solstice-etalon";

pub(in super::super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "perfect matchings fitted to exactly one week, or one ring if there is none",
    source: "Etalon, as released",
    schema: schema::<EtalonSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: EtalonSettings = settings(NAME, text)?;
    check_unit(NAME, parsed.unit)?;
    Ok(Box::new(Etalon(parsed)))
}

impl Scheduler for Etalon {
    fn name(&self) -> &str {
        NAME
    }

    /// No guarantee of a minimum day, because this solver counts the night before a day as part of it.
    fn guarantees(&self) -> Guarantees {
        Guarantees { within_week: true, ..Guarantees::default() }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let times = Times::of(NAME, network, self.0.unit, demand.racks())?;
        let (racks, budget) = (demand.racks(), times.budget());
        let request = prepare_demand(&self.0, demand, budget);
        let mut stuffed = fill::align(&fill::water_fill(racks, &request, budget), times.unit_bytes);
        let mut list = list_entries(racks, demand.bytes(), &request, budget);
        fill::stuff(racks, &mut stuffed, &mut list);
        let mut days = decompose(racks, &mut stuffed, list, times);
        fit(racks, &mut days, times);
        let day = |(day, plan): (usize, DayPlan)| {
            let matching = Matching::new(plan.source_of.into_iter().map(Some).collect())
                .map_err(|error| CircuitsError::Matching { day, error })?;
            Ok(Day { matching, length: times.nanos(plan.length - times.night) })
        };
        let days = days.into_iter().enumerate().map(day).collect::<Result<_, CircuitsError>>()?;
        Ok(Schedule::new(racks, network.night(), days)?)
    }
}

/// Demand that Etalon's element requests from its solver.
fn prepare_demand(settings: &EtalonSettings, demand: &DemandMatrix, budget: u64) -> Vec<u64> {
    let mut request = demand.bytes().to_vec();
    let small = settings.small.0;
    let filters = match settings.prepare {
        Prepare::Raw => return request,
        Prepare::Element => request.iter().any(|&entry| entry >= small),
        Prepare::Adu => true,
    };
    if filters {
        request.iter_mut().filter(|entry| **entry < small).for_each(|entry| *entry = 0);
    }
    let (rows, columns) = sums(demand.racks(), &request);
    let most = rows.into_iter().chain(columns).max().unwrap_or(0);
    if most > 0 && most < budget / 2 {
        let scale = (budget / 2) as f64 / most as f64;
        request.iter_mut().for_each(|entry| *entry = (*entry as f64 * scale) as u64);
    }
    request
}

/// A day: its circuits, and its length with the night before it.
#[derive(Clone, Debug)]
pub(super) struct DayPlan {
    /// Source of each destination.
    pub(super) source_of: Vec<u32>,
    /// Length of the day and the night before it.
    pub(super) length: u64,
}

/// Positive entries in the order in which the released solver lists them after it cut demand to port capacity.
///
/// The solver keeps entries in a list and removes an entry by moving the last one into its place. It first removes the
/// entries that `prepare` leaves out, by row and column. A later pass lists the entries again, and removes those whose
/// demand is at most the common share.
pub(super) fn list_entries(racks: usize, demand: &[u64], request: &[u64], budget: u64) -> Vec<u32> {
    let mut list: Vec<u32> = (0..).zip(demand).filter(|&(_, &entry)| entry > 0).map(|(at, _)| at).collect();
    let mut place = vec![0u32; demand.len()];
    for (to, &at) in (0..).zip(&list) {
        place[at as usize] = to;
    }
    for at in (0..demand.len()).filter(|&at| demand[at] > 0 && request[at] == 0) {
        let hole = place[at] as usize;
        list.swap_remove(hole);
        if let Some(&moved) = list.get(hole) {
            place[moved as usize] = hole as u32;
        }
    }
    let (mut rows, mut columns) = (vec![0u64; racks], vec![0u64; racks]);
    for &at in &list {
        rows[at as usize / racks] += 1;
        columns[at as usize % racks] += 1;
    }
    let most = rows.into_iter().chain(columns).max().unwrap_or(0);
    let Some(least) = list.iter().map(|&at| request[at as usize]).min() else { return list };
    let first = least.min(budget / most.max(1));
    let mut order = Vec::with_capacity(list.len());
    let mut at = 0;
    while at < list.len() {
        order.push(list[at]);
        if request[list[at] as usize] == first {
            list.swap_remove(at);
        } else {
            at += 1;
        }
    }
    order
}

/// Takes perfect matchings among entries of at least a threshold. The threshold halves down to the base; the search
/// ends when no matching is left.
///
/// `list` holds the positive entries of `stuffed`. The released solver visits a destination's sources in an order that
/// starts from this list and changes as entries leave. This function does the same. On return, `stuffed` holds the
/// remaining demand.
pub(super) fn decompose(racks: usize, stuffed: &mut [u64], mut list: Vec<u32>, times: Times) -> Vec<DayPlan> {
    let (base, mut threshold) = (times.base(), times.first_threshold());
    let mut place = vec![0u32; stuffed.len()];
    for (to, &at) in (0..).zip(&list) {
        place[at as usize] = to;
    }
    let mut search = Search::new(racks);
    let mut days = Vec::new();
    while threshold >= base {
        search.sources.iter_mut().for_each(Vec::clear);
        for &at in list.iter().filter(|&&at| stuffed[at as usize] >= threshold) {
            search.sources[at as usize % racks].push(at / racks as u32);
        }
        while search.find_perfect() {
            let entry = |(destination, &source): (usize, &u32)| source as usize * racks + destination;
            let up =
                search.source_of.iter().enumerate().map(|circuit| stuffed[entry(circuit)]).min().unwrap_or(0);
            for (destination, source) in search.source_of.iter().enumerate() {
                let at = entry((destination, source));
                stuffed[at] -= up;
                if stuffed[at] < threshold {
                    let sources = &mut search.sources[destination];
                    let hole = sources.iter().position(|listed| listed == source);
                    sources.swap_remove(hole.expect("a matched source is listed"));
                }
                if stuffed[at] == 0 {
                    let hole = place[at] as usize;
                    list.swap_remove(hole);
                    if let Some(&moved) = list.get(hole) {
                        place[moved as usize] = hole as u32;
                    }
                }
            }
            days.push(DayPlan { source_of: search.source_of.clone(), length: up + times.night });
        }
        threshold /= 2;
    }
    days
}

/// The released solver's search for a perfect matching: the first free source of each destination, then depth-first
/// augmenting paths with sources in list order.
struct Search {
    sources: Vec<Vec<u32>>,
    source_of: Vec<u32>,
    destination_of: Vec<u32>,
    seen: Vec<bool>,
    /// Destinations on the path, and the number of their sources visited so far.
    path: Vec<(u32, u32)>,
}

impl Search {
    fn new(racks: usize) -> Search {
        Search {
            sources: vec![Vec::new(); racks],
            source_of: vec![NONE; racks],
            destination_of: vec![NONE; racks],
            seen: vec![false; racks],
            path: Vec::with_capacity(racks),
        }
    }

    /// Searches for a perfect matching. Returns false if there is none.
    fn find_perfect(&mut self) -> bool {
        self.source_of.fill(NONE);
        self.destination_of.fill(NONE);
        for (destination, sources) in (0..).zip(&self.sources) {
            if let Some(&free) = sources.iter().find(|&&source| self.destination_of[source as usize] == NONE)
            {
                self.source_of[destination as usize] = free;
                self.destination_of[free as usize] = destination;
            }
        }
        let racks = self.source_of.len() as u32;
        (0..racks)
            .all(|destination| self.source_of[destination as usize] != NONE || self.augment(destination))
    }

    /// Matches one more destination. Returns false if that is impossible.
    fn augment(&mut self, root: u32) -> bool {
        self.seen.fill(false);
        self.path.clear();
        self.path.push((root, 0));
        while let Some(&(destination, looked)) = self.path.last() {
            let sources = &self.sources[destination as usize];
            let ahead = sources[looked as usize..].iter();
            let Some(next) = ahead.clone().position(|&source| !self.seen[source as usize]) else {
                self.path.pop();
                continue;
            };
            let at = looked as usize + next;
            let source = sources[at] as usize;
            self.seen[source] = true;
            self.path.last_mut().expect("there is one").1 = at as u32 + 1;
            match self.destination_of[source] {
                NONE => {
                    for &(destination, looked) in &self.path {
                        let source = self.sources[destination as usize][looked as usize - 1];
                        self.source_of[destination as usize] = source;
                        self.destination_of[source as usize] = destination;
                    }
                    return true;
                }
                taken => self.path.push((taken, 0)),
            }
        }
        false
    }
}

/// Fits days to exactly one week.
///
/// Without days, one ring is up for the week. If days are too short, all are extended by the same time. If they are too
/// long, the shortest ones are dropped until the rest fits with the minimum length. The remaining days are shortened by
/// one unit each, in turn.
pub(super) fn fit(racks: usize, days: &mut Vec<DayPlan>, times: Times) {
    if days.is_empty() {
        let source_of = (1..=racks as u32).map(|next| next % racks as u32).collect();
        days.push(DayPlan { source_of, length: times.week });
        return;
    }
    let total: u64 = days.iter().map(|day| day.length).sum();
    if total <= times.week {
        let (each, first) = {
            let (gap, count) = (times.week - total, days.len() as u64);
            (gap / count, gap % count)
        };
        for (at, day) in (0..).zip(days) {
            day.length += each + u64::from(at < first);
        }
        return;
    }
    let most = (times.week / times.min_day.max(1)) as usize;
    while days.len() > most {
        // Among days of equal length, the last one.
        let shortest = (0..days.len()).rev().min_by_key(|&at| days[at].length).unwrap_or(0);
        days.swap_remove(shortest);
    }
    shorten(days, times);
}

/// Takes one unit from each day above the minimum length, one day after another, until all fit into the week.
fn shorten(days: &mut [DayPlan], times: Times) {
    let total: u64 = days.iter().map(|day| day.length).sum();
    let mut excess = total.saturating_sub(times.week);
    while excess > 0 {
        let long = || days.iter().map(|day| day.length).filter(|&length| length > times.min_day);
        let Some(room) = long().min().map(|length| length - times.min_day) else { return };
        // Takes whole rounds at once while the same days take part.
        let turns = room.min(excess / long().count() as u64);
        if turns == 0 {
            for day in days.iter_mut().filter(|day| day.length > times.min_day).take(excess as usize) {
                day.length -= 1;
            }
            return;
        }
        let taken: u64 = turns * long().count() as u64;
        days.iter_mut().filter(|day| day.length > times.min_day).for_each(|day| day.length -= turns);
        excess -= taken;
    }
}

#[cfg(test)]
mod tests {
    use leeward_testing::golden::{documents, square};

    use super::*;

    #[test]
    fn demand_is_prepared_cut_aligned_and_stuffed_as_in_the_released_solver() {
        for (file, content) in documents("circuits", |name| name.starts_with("solstice_")) {
            let params = &content["params"];
            let number = |name: &str| params[name].as_u64().unwrap();
            let (unit_bytes, budget) =
                (number("link_bytes_per_us"), number("link_bytes_per_us") * number("week_us"));
            for instance in content["instances"].as_array().unwrap() {
                let name = format!("{file}: {} {}", instance["name"], instance["mode"]);
                let racks = instance["demand_bytes"].as_array().unwrap().len();
                let demand = DemandMatrix::new(racks, square(&instance["demand_bytes"])).unwrap();
                let prepare = match instance["mode"].as_str().unwrap() {
                    "raw" => Prepare::Raw,
                    "elem" => Prepare::Element,
                    "adu" => Prepare::Adu,
                    other => panic!("{name}: {other}"),
                };
                let steps = &instance["rng_invariant"];
                let request =
                    prepare_demand(&EtalonSettings { prepare, ..EtalonSettings::default() }, &demand, budget);
                assert_eq!(request, square(&steps["request"]), "{name}");
                let cut = fill::water_fill(racks, &request, budget);
                assert_eq!(cut, square(&steps["demand_norm_down"]), "{name}");
                let mut units = fill::align(&cut, unit_bytes);
                assert_eq!(units, square(&steps["target_units"]), "{name}");
                let mut list = list_entries(racks, demand.bytes(), &request, budget);
                fill::stuff(racks, &mut units, &mut list);
                assert_eq!(units, square(&instance["rand_zero"]["stuffed_units"]), "{name}");
            }
        }
    }
}
