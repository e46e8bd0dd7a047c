//! `direct`: packets wait for the circuit of their own pair of racks or take the packet switch.

use super::{Made, NoSettings, Registration, Routes, Routing};
use crate::schedulers::settings;
use crate::{CircuitsError, Network, Schedule};

/// The `direct` routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

const NAME: &str = "direct";

pub(super) const REGISTRATION: Registration = Registration {
    name: NAME,
    summary: "packets wait for the circuit of their own pair",
    source: "Etalon, section 2",
    schema: || schemars::schema_for!(NoSettings).to_value(),
    make,
};

fn make(text: &str) -> Made {
    let NoSettings {} = settings(NAME, text)?;
    Ok(Box::new(Direct))
}

impl Routing for Direct {
    fn name(&self) -> &str {
        NAME
    }

    fn routes(&self, schedule: &Schedule, _network: &Network) -> Result<Routes, CircuitsError> {
        Ok(Routes::direct(schedule))
    }
}
