//! Which circuits packets take under a schedule that repeats, one file a routing, and the registry that makes them by name.
//!
//! A [`Routing`] makes [`Routes`] of a schedule once, and the [`Switch`](crate::switch::Switch) keeps to them packet by packet: an
//! intermediate rack puts a packet that is not its own into its queue for the packet's destination, and from there it goes on as
//! soon as the routes let it. Nothing here does input or output or reads a clock.

mod direct;
mod hoho;
mod rotorlb;
mod routes;
mod vlb;

pub use direct::Direct;
pub use hoho::{Hoho, HohoSettings};
pub use rotorlb::RotorLb;
pub use routes::{MOST_HOPS, Routes};
pub use vlb::{Vlb, VlbSettings};

pub(crate) use routes::Rule;

use leeward_fabric::input::excerpt;

use crate::{CircuitsError, Network, Schedule};

/// A way to route. Holds settings and no state: the same schedule and network give the same routes.
pub trait Routing: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// What packets do under a schedule, which is taken to repeat.
    ///
    /// # Errors
    /// Pairs of racks that it cannot join under that schedule.
    fn routes(&self, schedule: &Schedule, network: &Network) -> Result<Routes, CircuitsError>;
}

/// A routing made from settings, or what is wrong with them.
pub type Made = Result<Box<dyn Routing>, CircuitsError>;

/// A routing as the registry lists it.
pub struct Registration {
    /// What users call it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// JSON schema of its settings.
    pub schema: fn() -> serde_json::Value,
    /// Makes it from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made,
}

/// Every routing there is.
pub const REGISTRY: &[Registration] =
    &[direct::REGISTRATION, vlb::REGISTRATION, rotorlb::REGISTRATION, hoho::REGISTRATION];

/// Makes a routing by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// That there is none of the name, with those there are; or what is wrong with its settings.
pub fn make(name: &str, settings: &str) -> Made {
    match REGISTRY.iter().find(|of| of.name == name) {
        Some(registration) => (registration.make)(settings),
        None => {
            let known = REGISTRY.iter().map(|of| of.name).collect::<Vec<_>>().join(", ");
            Err(CircuitsError::Unknown { what: "routing", name: excerpt(name), known })
        }
    }
}

/// Refuses a schedule that leaves a pair of racks without a circuit.
fn all_linked(name: &str, schedule: &Schedule) -> Result<(), CircuitsError> {
    match schedule.unlinked() {
        None => Ok(()),
        Some((source, destination)) => Err(CircuitsError::Unfit {
            name: name.to_owned(),
            problem: format!(
                "no day has a circuit from rack {source} to rack {destination}: every pair must have one"
            ),
        }),
    }
}

/// Settings of a routing that has none.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoSettings {}
