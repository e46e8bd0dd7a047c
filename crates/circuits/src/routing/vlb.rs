//! `vlb`: Valiant load balancing. A packet takes two circuits: one to a randomly drawn rack and one from there.
//!
//! Each rack visits the other racks in an order drawn again for each round, so every round sends one packet over each
//! rack. The load of the racks is at least as even as with independent draws per packet. If the drawn rack is the
//! packet's destination (probability 1 / (N - 1)), the packet takes one circuit.
//!
//! For any demand, each circuit carries the same load. This at most doubles the total (Valiant and Brebner, STOC 1981;
//! for rotors RotorNet, SIGCOMM 2017, section 4).

use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Routes, Routing, all_linked};
use crate::{CircuitsError, Network, Schedule};

/// Settings of `vlb`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VlbSettings {
    /// Seed of the random draws. Default 0.
    pub seed: u64,
}

/// The `vlb` routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vlb(VlbSettings);

const NAME: &str = "vlb";

pub(super) const REGISTRATION: Registration<dyn Routing> = Registration {
    name: NAME,
    aliases: &[],
    summary: "each packet goes through a randomly drawn rack, over two circuits",
    source: "Valiant and Brebner (STOC 1981); RotorNet (SIGCOMM 2017), section 4",
    schema: schema::<VlbSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Routing>, InputError> {
    Ok(Box::new(Vlb::new(settings(NAME, text)?)))
}

impl Vlb {
    /// Creates the routing from settings.
    pub fn new(settings: VlbSettings) -> Vlb {
        Vlb(settings)
    }
}

impl Routing for Vlb {
    fn name(&self) -> &str {
        NAME
    }

    fn routes(&self, schedule: &Schedule, _network: &Network) -> Result<Routes, CircuitsError> {
        all_linked(NAME, schedule)?;
        Ok(Routes::spread(schedule, self.0.seed))
    }
}
