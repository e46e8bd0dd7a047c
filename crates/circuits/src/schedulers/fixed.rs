//! `fixed`: days that are known beforehand, such as the ring that a workload sends around (Etalon, section 5).

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rotor::ring;
use super::{CircuitsError, Made, Promises, Registration, Scheduler, setting_error, settings};
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `fixed`: either `rings` or `days`. Default one ring, from each rack to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FixedSettings {
    /// Rings by how many racks further each circuit leads, which share the week evenly: `[1, 2]` is two rings.
    pub rings: Vec<u32>,
    /// The days themselves.
    pub days: Vec<FixedDay>,
}

/// A day that is known.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedDay {
    /// How long its circuits are up.
    pub length: Nanos,
    /// Its circuits as `[source, destination]`, racks from 0.
    pub circuits: Vec<[u32; 2]>,
}

/// The scheduler.
#[derive(Clone, Debug, Default)]
pub struct Fixed(FixedSettings);

const NAME: &str = "fixed";

pub(super) const REGISTRATION: Registration = Registration {
    name: NAME,
    aliases: &[],
    summary: "days that are known beforehand, whatever the demand",
    source: "Etalon, section 5",
    schema: || schemars::schema_for!(FixedSettings).to_value(),
    make,
};

fn make(text: &str) -> Made {
    Ok(Box::new(Fixed::new(settings(NAME, text)?)?))
}

impl Fixed {
    /// The scheduler with settings.
    ///
    /// # Errors
    /// Both rings and days.
    pub fn new(settings: FixedSettings) -> Result<Fixed, CircuitsError> {
        if !settings.rings.is_empty() && !settings.days.is_empty() {
            return Err(setting_error(NAME, "days", "beside `rings`: expected one of them").into());
        }
        Ok(Fixed(settings))
    }

    fn rings(&self, racks: usize, network: &Network) -> Result<Vec<Day>, CircuitsError> {
        let rings = if self.0.rings.is_empty() { &[1][..] } else { &self.0.rings };
        if let Some(step) = rings.iter().find(|&&step| (step as usize).is_multiple_of(racks)) {
            let message =
                format!("{step}: expected no multiple of the {racks} racks, whose circuits lead nowhere");
            return Err(setting_error(NAME, "rings", message).into());
        }
        let share = network.week().0 / rings.len() as u64;
        let length = Nanos(share).since(network.night());
        if length == Nanos(0) || length < network.min_day() {
            let (count, week, night) = (rings.len(), network.week(), network.night());
            let message = format!(
                "{count} rings: days of {length}, after nights of {night} in a week of {week}: must be {} at least",
                network.min_day().max(Nanos(1))
            );
            return Err(setting_error(NAME, "rings", message).into());
        }
        Ok(rings.iter().map(|&step| Day { matching: ring(racks, step as usize), length }).collect())
    }
}

impl Scheduler for Fixed {
    fn name(&self) -> &str {
        NAME
    }

    /// Days are the user's, as long as they are.
    fn promises(&self) -> Promises {
        Promises { within_week: self.0.days.is_empty(), min_day: self.0.days.is_empty(), all_pairs: false }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        let days = match self.0.days.is_empty() {
            true => self.rings(racks, network)?,
            false => {
                let known = self.0.days.iter().enumerate();
                let day = |(day, known): (usize, &FixedDay)| {
                    let matching = matching(racks, &known.circuits);
                    let matching = matching.map_err(|error| CircuitsError::Matching { day, error })?;
                    Ok(Day { matching, length: known.length })
                };
                known.map(day).collect::<Result<_, CircuitsError>>()?
            }
        };
        Ok(Schedule::new(racks, network.night(), days)?)
    }
}

/// Circuits as a user lists them.
fn matching(racks: usize, circuits: &[[u32; 2]]) -> Result<Matching, crate::MatchingError> {
    let mut sources = vec![None; racks];
    for &[source, destination] in circuits {
        let Some(entry) = sources.get_mut(destination as usize) else {
            return Err(crate::MatchingError::NoDestination { destination: destination as usize, racks });
        };
        if let Some(first) = entry.replace(source) {
            return Err(crate::MatchingError::Shared {
                destination: destination as usize,
                first: first as usize,
                second: source as usize,
            });
        }
    }
    Matching::new(sources)
}
