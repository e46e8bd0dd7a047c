//! `opera`: a round in which every pair of racks has its day, and a few consecutive days always connect all racks.
//!
//! Circuits are bidirectional between the racks of a pair, and the days of a round cover all pairs. The scheduler draws
//! several orders. It keeps the order in which any `uplinks` consecutive days connect all racks in the fewest hops
//! (Opera, NSDI 2020, section 3). Opera has that number of switches, which have the circuits of as many days up at the
//! same time.
//!
//! Deviations: Opera draws the days themselves by lifting smaller ones; this scheduler shuffles the racks and days of a
//! round-robin tournament. A network of this crate has one circuit per rack, so a day is one of Opera's matchings. One
//! switch that goes through all matchings replaces all of Opera's switches.

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, setting_error, settings};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rotor::{check_day, day_of};
use super::{CircuitsError, Guarantees, Scheduler};
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `opera`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperaSettings {
    /// Time for which circuits are up. Default: nine nights, or the network's minimum day if that is longer.
    pub day: Option<Nanos>,
    /// Number of consecutive days that should connect all racks: in Opera, the number of switches. Default 6.
    pub uplinks: u32,
    /// Number of orders to draw. Default 4.
    pub draws: u32,
    /// Seed of the random draws. Default 0.
    pub seed: u64,
}

impl Default for OperaSettings {
    fn default() -> Self {
        OperaSettings { day: None, uplinks: 6, draws: 4, seed: 0 }
    }
}

/// The `opera` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Opera(OperaSettings);

const NAME: &str = "opera";

pub(super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "each pair of racks has a day; the drawn order connects all racks over a few consecutive days",
    source: "Opera (NSDI 2020), section 3",
    schema: schema::<OperaSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: OperaSettings = settings(NAME, text)?;
    check_day(NAME, parsed.day)?;
    for (field, value, most) in [("uplinks", parsed.uplinks, 64), ("draws", parsed.draws, 1000)] {
        if !(1..=most).contains(&value) {
            return Err(setting_error(NAME, field, format!("{value}: expected 1 to {most}")));
        }
    }
    Ok(Box::new(Opera(parsed)))
}

impl Scheduler for Opera {
    fn name(&self) -> &str {
        NAME
    }

    /// A week is one round, of any length.
    fn guarantees(&self) -> Guarantees {
        Guarantees { all_pairs: true, ..Guarantees::default() }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        let length = day_of(NAME, self.0.day, network)?;
        let mut random = ChaCha8Rng::seed_from_u64(self.0.seed);
        let drawn = (0..self.0.draws).map(|_| {
            let round = round(racks, &mut random);
            (max_hops(&round, self.0.uplinks as usize), round)
        });
        let (_, round) = drawn.min_by_key(|&(max_hops, _)| max_hops).expect("at least one draw");
        let days = round.into_iter().map(|partner| Day { matching: both_ways(&partner), length });
        Ok(Schedule::new(racks, network.night(), days.collect())?)
    }
}

/// Partner of each rack on each day of a round, with racks and days in random order. With an odd number of racks, one
/// rack has no partner each day, and is listed as its own partner.
fn round(racks: usize, random: &mut ChaCha8Rng) -> Vec<Vec<u32>> {
    let mut names: Vec<u32> = (0..racks as u32).collect();
    names.shuffle(random);
    // Round-robin tournament. With an even number, one rack stays and the others rotate around it; with an odd number,
    // the fixed position is empty.
    let turning = racks - 1 + racks % 2;
    let mut days: Vec<Vec<u32>> = (0..turning)
        .map(|day| {
            let mut partner: Vec<u32> = (0..racks as u32).collect();
            let mut pair = |first: usize, second: usize| {
                partner[names[first] as usize] = names[second];
                partner[names[second] as usize] = names[first];
            };
            if turning < racks {
                pair(day, racks - 1);
            }
            for apart in 1..=turning / 2 {
                pair((day + apart) % turning, (day + turning - apart) % turning);
            }
            partner
        })
        .collect();
    // Consecutive days of the tournament form long rings; a random order breaks them up.
    days.shuffle(random);
    days
}

fn both_ways(partner: &[u32]) -> Matching {
    let source = |(rack, &partner): (u32, &u32)| (partner != rack).then_some(partner);
    Matching::new((0..).zip(partner).map(source).collect()).expect("partners are mutual")
}

/// Largest number of hops between two racks over the circuits of any `window` consecutive days. The round is cyclic.
/// Returns more than the number of racks if some racks are not connected.
fn max_hops(round: &[Vec<u32>], window: usize) -> usize {
    let racks = round[0].len();
    let words = racks.div_ceil(64);
    let mut most = 0;
    for first in 0..round.len() {
        let days: Vec<&[u32]> =
            (0..window.min(round.len())).map(|day| round[(first + day) % round.len()].as_slice()).collect();
        // Racks that each rack reaches in the hops so far, as bits.
        let mut reached = vec![0u64; racks * words];
        (0..racks).for_each(|rack| reached[rack * words + rack / 64] |= 1 << (rack % 64));
        let mut hops = 0;
        loop {
            let mut next = reached.clone();
            for day in &days {
                for (rack, &partner) in day.iter().enumerate() {
                    for word in 0..words {
                        next[rack * words + word] |= reached[partner as usize * words + word];
                    }
                }
            }
            if next == reached {
                break;
            }
            reached = next;
            hops += 1;
        }
        let connected = reached.iter().map(|word| word.count_ones() as usize).sum::<usize>() == racks * racks;
        most = most.max(if connected { hops } else { racks + 1 });
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_days_connect_all_racks_in_few_hops() {
        for racks in [5, 8, 12, 31, 64] {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let best = (0..4).map(|_| max_hops(&round(racks, &mut random), 6)).min().unwrap();
            assert!(best <= 6, "{racks} racks: {best} hops");
        }
        // One matching connects pairs only.
        assert_eq!(max_hops(&round(8, &mut ChaCha8Rng::seed_from_u64(1)), 1), 9);
    }

    #[test]
    fn each_pair_meets_once_a_round() {
        for racks in 2..12 {
            let mut met = vec![0; racks * racks];
            for day in round(racks, &mut ChaCha8Rng::seed_from_u64(7)) {
                for (rack, &partner) in day.iter().enumerate() {
                    assert_eq!(day[partner as usize] as usize, rack);
                    met[rack * racks + partner as usize] += 1;
                }
            }
            let is_once =
                |pair: usize| met[pair] == usize::from(pair / racks != pair % racks || racks % 2 == 1);
            assert!((0..racks * racks).all(is_once), "{racks} racks: {met:?}");
        }
    }
}
