//! `bvn`: Birkhoff-von Neumann decomposition, a baseline that ignores the cost of nights.
//!
//! The scheduler cuts demand to the bytes that ports can carry in a week. It then adds demand (stuffing) until all
//! ports have the same sum. The stuffed demand is a sum of perfect matchings. Each matching stays up for the time that
//! its smallest entry needs. The schedule ends when the week is full or no demand is left.

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::solstice::{Slices, align, water_fill};
use super::times::{Times, check_unit};
use super::{CircuitsError, Guarantees, Scheduler};
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `bvn`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BvnSettings {
    /// Unit of day lengths; night, week and minimum day must be multiples of it. Default 1us, or less if the network's
    /// times require it.
    pub unit: Option<Nanos>,
}

/// The `bvn` scheduler.
#[derive(Clone, Debug, Default)]
pub struct Bvn(BvnSettings);

const NAME: &str = "bvn";

pub(super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "demand as a sum of perfect matchings, without regard to the cost of nights",
    source: "Birkhoff (1946), von Neumann (1953)",
    schema: schema::<BvnSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let parsed: BvnSettings = settings(NAME, text)?;
    check_unit(NAME, parsed.unit)?;
    Ok(Box::new(Bvn(parsed)))
}

impl Scheduler for Bvn {
    fn name(&self) -> &str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees { within_week: true, ..Guarantees::default() }
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        let times = Times::of(NAME, network, self.0.unit, racks)?;
        let cut = water_fill(racks, demand.bytes(), times.budget());
        let mut slices = Slices::of(racks, &align(&cut, times.unit_bytes));
        slices.set_edges(1);
        let (mut days, mut time) = (Vec::new(), times.week);
        while time > times.night && slices.matcher.extend(0..racks) == racks {
            let (length, sources) = slices.take(1);
            // A matching without real demand gets no day.
            if sources.iter().any(Option::is_some) {
                let matching = Matching::new(sources)
                    .map_err(|error| CircuitsError::Matching { day: days.len(), error })?;
                let length = length.min(time - times.night);
                days.push(Day { matching, length: times.nanos(length) });
                time -= times.night + length;
            }
        }
        Ok(Schedule::new(racks, network.night(), days)?)
    }
}
