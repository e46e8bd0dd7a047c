//! `vlb`: Valiant load balancing. A packet takes two circuits: one to a rack that is drawn, and the one from there.
//!
//! Each rack goes through the others in an order that is drawn anew for each round of them, so after every round each has had
//! one of its packets: as even as a draw a packet in the mean, and never less even than that. Where the drawn rack is the packet's
//! destination, as is one in N - 1, the packet takes one circuit. Whatever the demand, each circuit has the same load, which at most
//! doubles what there is (Valiant and Brebner, STOC 1981; for rotors RotorNet, SIGCOMM 2017, section 4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, Registration, Routes, Routing, all_linked};
use crate::schedulers::settings;
use crate::{CircuitsError, Network, Schedule};

/// Settings of `vlb`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VlbSettings {
    /// Seed of the draws. Default 0.
    pub seed: u64,
}

/// The routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vlb(VlbSettings);

const NAME: &str = "vlb";

pub(super) const REGISTRATION: Registration = Registration {
    name: NAME,
    summary: "every packet goes by a rack that is drawn, over two circuits",
    source: "Valiant and Brebner (STOC 1981); RotorNet (SIGCOMM 2017), section 4",
    schema: || schemars::schema_for!(VlbSettings).to_value(),
    make,
};

fn make(text: &str) -> Made {
    Ok(Box::new(Vlb::new(settings(NAME, text)?)))
}

impl Vlb {
    /// The routing with settings.
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
