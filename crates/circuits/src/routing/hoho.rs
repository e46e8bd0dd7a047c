//! `hoho`: hop-on hop-off routing. A packet takes the circuits that lead to its destination earliest.
//!
//! The schedule is unrolled in time. A node is a rack at the beginning of a day. A packet there waits for the next day,
//! or takes the rack's circuit and is at the other end on the next day. A packet takes the path that arrives on the
//! earliest day. Among several such paths, it takes the one with the fewest circuits (Hop-On Hop-Off Routing: A Fast
//! Tour across the Optical Data Center Network, APNet 2022). A packet that missed its day continues like a packet that
//! has just arrived at its rack. A path visits no rack twice and has at most `most_hops` circuits.

use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MOST_HOPS, Routes, Routing};
use crate::{CircuitsError, Network, Schedule};

/// Settings of `hoho`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HohoSettings {
    /// Largest number of circuits on a packet's path, 1 to 4. Default 4.
    pub most_hops: u8,
}

impl Default for HohoSettings {
    fn default() -> Self {
        HohoSettings { most_hops: MOST_HOPS }
    }
}

/// The `hoho` routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hoho(HohoSettings);

const NAME: &str = "hoho";

pub(super) const REGISTRATION: Registration<dyn Routing> = Registration {
    name: NAME,
    aliases: &[],
    summary: "each packet takes the circuits that reach its destination earliest",
    source: "Hop-On Hop-Off Routing (APNet 2022)",
    schema: schema::<HohoSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Routing>, InputError> {
    Ok(Box::new(Hoho::new(settings(NAME, text)?)?))
}

/// Day of arrival and number of circuits; smaller is better.
type Arrival = (u32, u8);
const UNREACHABLE: Arrival = (u32::MAX, u8::MAX);

impl Hoho {
    /// Creates the routing from settings.
    ///
    /// # Errors
    /// Returns an error if `most_hops` is 0 or above [`MOST_HOPS`](super::MOST_HOPS).
    pub fn new(settings: HohoSettings) -> Result<Hoho, InputError> {
        let most = settings.most_hops;
        if !(1..=MOST_HOPS).contains(&most) {
            return Err(setting_error(NAME, "most_hops", format!("{most}: expected 1 to {MOST_HOPS}")));
        }
        Ok(Hoho(settings))
    }
}

impl Routing for Hoho {
    fn name(&self) -> &str {
        NAME
    }

    fn routes(&self, schedule: &Schedule, _network: &Network) -> Result<Routes, CircuitsError> {
        let (racks, days, hops) = (schedule.racks(), schedule.days().len(), self.0.most_hops);
        let onward: Vec<Vec<Option<usize>>> = schedule
            .days()
            .iter()
            .map(|day| {
                let mut onward = vec![None; racks];
                day.matching.circuits().for_each(|(from, to)| onward[from] = Some(to));
                onward
            })
            .collect();
        let mut routes = Routes::planned(schedule, hops);
        for destination in 0..racks {
            let arrivals = arrivals(&onward, destination, hops, |day, rack, left| {
                if day < days {
                    routes.admit(left, day, rack, destination);
                }
            });
            let unreachable = (0..racks).find(|&rack| rack != destination && arrivals[rack] == UNREACHABLE);
            if let Some(source) = unreachable {
                let problem = format!(
                    "no path of at most {hops} circuits leads from rack {source} to rack {destination}: every pair must have one"
                );
                return Err(CircuitsError::Unfit { name: NAME.to_owned(), problem });
            }
        }
        Ok(routes)
    }
}

/// Returns, for each rack, the arrival time of a packet that is there at the beginning of the week and has taken no
/// circuit yet. From the last day of the week to the first, calls `admit` for each day, rack and number of remaining
/// circuits with which a packet takes the rack's circuit.
///
/// A packet that takes `hops` circuits waits less than a week for each circuit. The search therefore unrolls `hops` + 1
/// weeks; the first of these weeks is then exact.
fn arrivals(
    onward: &[Vec<Option<usize>>],
    destination: usize,
    hops: u8,
    mut admit: impl FnMut(usize, usize, u8),
) -> Vec<Arrival> {
    let racks = onward.first().map_or(0, Vec::len);
    // By number of remaining circuits: arrivals from each rack at the beginning of the day after the current one.
    let mut next = vec![vec![UNREACHABLE; racks]; usize::from(hops) + 1];
    for day in (0..onward.len() * (usize::from(hops) + 1)).rev() {
        let circuits = &onward[day % onward.len()];
        // Larger numbers of remaining circuits first, because each level reads the next lower one before its update.
        for left in (1..=hops).rev() {
            for rack in (0..racks).filter(|&rack| rack != destination) {
                let Some(to) = circuits[rack] else { continue };
                let arrival = if to == destination {
                    (day as u32, 1)
                } else {
                    let (arrives, more) = next[usize::from(left) - 1][to];
                    (arrives, more.saturating_add(1))
                };
                if arrival < next[usize::from(left)][rack] {
                    admit(day, rack, left);
                    next[usize::from(left)][rack] = arrival;
                }
            }
        }
    }
    next.swap_remove(usize::from(hops))
}
