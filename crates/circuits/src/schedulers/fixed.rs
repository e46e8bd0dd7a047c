//! `fixed`: days from the user, such as the ring of racks that a workload communicates along (Etalon, section 5).

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rotor::ring;
use super::{CircuitsError, Guarantees, Scheduler};
use crate::{Day, DemandMatrix, Matching, MatchingError, Network, Schedule};

/// Settings of `fixed`: either `rings` or `days`. Default one ring, from each rack to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FixedSettings {
    /// Rings as the distance in racks that each circuit spans; they share the week evenly. `[1, 2]` is two rings.
    pub rings: Option<Vec<u32>>,
    /// List of days.
    pub days: Option<Vec<FixedDay>>,
}

/// A day given by the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedDay {
    /// Time for which its circuits are up.
    pub length: Nanos,
    /// Circuits as `[source, destination]`, racks from 0.
    pub circuits: Vec<[u32; 2]>,
}

/// The `fixed` scheduler.
#[derive(Clone, Debug)]
pub struct Fixed(Plan);

/// Days as the settings give them.
#[derive(Clone, Debug)]
enum Plan {
    Rings(Vec<u32>),
    Days(Vec<FixedDay>),
}

const NAME: &str = "fixed";

pub(super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "days from the settings, independent of demand",
    source: "Etalon, section 5",
    schema: schema::<FixedSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    Ok(Box::new(Fixed::new(settings(NAME, text)?)?))
}

impl Fixed {
    /// Creates the scheduler from settings.
    ///
    /// # Errors
    /// Returns an error if both `rings` and `days` are set, or if the given one is empty.
    pub fn new(settings: FixedSettings) -> Result<Fixed, InputError> {
        let invalid = |field, message| Err(setting_error(NAME, field, message));
        match settings {
            FixedSettings { rings: Some(_), days: Some(_) } => {
                invalid("days", "given together with `rings`: expected one of them")
            }
            FixedSettings { rings: Some(rings), .. } if rings.is_empty() => {
                invalid("rings", "empty: expected at least one")
            }
            FixedSettings { days: Some(days), .. } if days.is_empty() => {
                invalid("days", "empty: expected at least one")
            }
            FixedSettings { days: Some(days), .. } => Ok(Fixed(Plan::Days(days))),
            FixedSettings { rings, .. } => Ok(Fixed(Plan::Rings(rings.unwrap_or_else(|| vec![1])))),
        }
    }
}

/// Days of rings that share a week evenly.
fn rings(rings: &[u32], racks: usize, network: &Network) -> Result<Vec<Day>, CircuitsError> {
    if let Some(step) = rings.iter().find(|&&step| (step as usize).is_multiple_of(racks)) {
        let message =
            format!("{step}: a multiple of the {racks} racks, so each circuit would lead to its own rack");
        return Err(setting_error(NAME, "rings", message).into());
    }
    let share = network.week().0 / rings.len() as u64;
    let length = Nanos(share).since(network.night());
    if length == Nanos(0) || length < network.min_day() {
        let (count, week, night) = (rings.len(), network.week(), network.night());
        let message = format!(
            "{count} rings: days of {length}, after nights of {night} in a week of {week}: must be at least {}",
            network.min_day().max(Nanos(1))
        );
        return Err(setting_error(NAME, "rings", message).into());
    }
    Ok(rings.iter().map(|&step| Day { matching: ring(racks, step as usize), length }).collect())
}

impl Scheduler for Fixed {
    fn name(&self) -> &str {
        NAME
    }

    /// Days from the user may have any length.
    fn guarantees(&self) -> Guarantees {
        let is_rings = matches!(self.0, Plan::Rings(_));
        Guarantees { within_week: is_rings, min_day: is_rings, all_pairs: false }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        match &self.0 {
            Plan::Rings(steps) => Ok(Schedule::new(racks, network.night(), rings(steps, racks, network)?)?),
            Plan::Days(days) => fixed_schedule(racks, network.night(), days),
        }
    }
}

/// Creates a schedule from a user's days for `racks` racks. An empty list gives a schedule without days, which carries
/// nothing.
///
/// # Errors
/// Returns the first invalid day: a rack that does not exist, a circuit from a rack to itself, two circuits at one
/// port, or a length of 0.
pub fn fixed_schedule(racks: usize, night: Nanos, days: &[FixedDay]) -> Result<Schedule, CircuitsError> {
    let day = |(day, given): (usize, &FixedDay)| {
        let matching = matching(racks, &given.circuits);
        let matching = matching.map_err(|error| CircuitsError::Matching { day, error })?;
        Ok(Day { matching, length: given.length })
    };
    let days = days.iter().enumerate().map(day).collect::<Result<_, CircuitsError>>()?;
    Ok(Schedule::new(racks, night, days)?)
}

/// Creates a matching from circuits as a user lists them.
fn matching(racks: usize, circuits: &[[u32; 2]]) -> Result<Matching, MatchingError> {
    let mut sources = vec![None; racks];
    for &[source, destination] in circuits {
        let Some(entry) = sources.get_mut(destination as usize) else {
            return Err(MatchingError::NoDestination { destination: destination as usize, racks });
        };
        if source == destination {
            return Err(MatchingError::Itself { rack: source as usize });
        }
        if let Some(first) = entry.replace(source) {
            return Err(MatchingError::Shared {
                destination: destination as usize,
                first: first as usize,
                second: source as usize,
            });
        }
    }
    Matching::new(sources)
}
