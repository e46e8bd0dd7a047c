//! `rotor`, also `strobe`: a fixed round of matchings, independent of demand, in which every pair of racks has its day.
//!
//! On day k rack i has its circuit to rack i + k, for k from 1 (RotorNet, SIGCOMM 2017; the strobe schedule of Etalon).

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CircuitsError, Guarantees, Scheduler};
use crate::{Day, DemandMatrix, Matching, Network, Schedule, ScheduleError};

/// Settings of `rotor`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RotorSettings {
    /// Time for which circuits are up. Default: nine nights, or the network's minimum day if that is longer.
    pub day: Option<Nanos>,
}

/// The `rotor` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Rotor(RotorSettings);

const NAME: &str = "rotor";

pub(super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &["strobe"],
    summary: "every pair of racks has a day of the same length, in turn",
    source: "RotorNet (SIGCOMM 2017); strobe in Etalon",
    schema: schema::<RotorSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: RotorSettings = settings(NAME, text)?;
    check_day(NAME, parsed.day)?;
    Ok(Box::new(Rotor(parsed)))
}

/// Ratio of day to night: circuits should be up for nine tenths of the time (Etalon, section 2).
const DUTY: u64 = 9;

/// Checks the setting `day` of a scheduler of rounds.
pub(super) fn check_day(scheduler: &str, day: Option<Nanos>) -> Result<(), InputError> {
    let zero = || setting_error(scheduler, "day", "0s: expected a time above 0");
    if day == Some(Nanos(0)) { Err(zero()) } else { Ok(()) }
}

/// Length of a day of a round: the setting, or the longer of nine nights and the network's minimum day.
pub(super) fn day_of(
    scheduler: &str,
    setting: Option<Nanos>,
    network: &Network,
) -> Result<Nanos, CircuitsError> {
    let day = setting.unwrap_or_else(|| Nanos(network.night().0.saturating_mul(DUTY)).max(network.min_day()));
    if day > Nanos(0) {
        return Ok(day);
    }
    let problem = "without nights and minimum days the setting `day` is required".to_owned();
    Err(CircuitsError::Unfit { name: scheduler.to_owned(), problem })
}

impl Scheduler for Rotor {
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
        Ok(rotor_schedule(racks, network.night(), length)?)
    }
}

/// Creates a round among `racks` racks: on day k rack i has its circuit to rack i + k, for k from 1.
///
/// # Errors
/// [`ScheduleError`] if the number of racks or the length of a day is invalid.
pub fn rotor_schedule(racks: usize, night: Nanos, day: Nanos) -> Result<Schedule, ScheduleError> {
    let days = (1..racks).map(|step| Day { matching: ring(racks, step), length: day }).collect();
    Schedule::new(racks, night, days)
}

/// Circuits from each rack to the one `step` racks further.
pub(super) fn ring(racks: usize, step: usize) -> Matching {
    let sources = (0..racks).map(|to| Some(((to + racks - step % racks) % racks) as u32)).collect();
    Matching::new(sources).expect("a rotation is a matching")
}
