//! `direct`: packets wait for the circuit of their own pair of racks, or take the packet switch.

use leeward_fabric::input::InputError;
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::{Routes, Routing};
use crate::{CircuitsError, Network, Schedule};

/// The `direct` routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

const NAME: &str = "direct";

pub(super) const REGISTRATION: Registration<dyn Routing> = Registration {
    name: NAME,
    aliases: &[],
    summary: "packets wait for the circuit of their own pair",
    source: "Etalon, section 2",
    schema: schema::<NoSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Routing>, InputError> {
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
