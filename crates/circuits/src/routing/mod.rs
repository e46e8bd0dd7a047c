//! Routings: the circuits that packets take under a repeating schedule. One file per routing, and the registry that creates
//! them by name.
//!
//! A [`Routing`] computes [`Routes`] from a schedule once, and the [`Switch`](crate::switch::Switch) applies them packet by
//! packet. An intermediate rack puts a packet for another rack into its queue for the packet's destination, and sends it as
//! soon as the routes permit. Nothing here does input or output or reads a clock.

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

/// A routing algorithm. It holds settings and no state: the same schedule and network give the same routes.
pub trait Routing: Send + Sync {
    /// Name of the routing.
    fn name(&self) -> &str;

    /// Computes routes for a schedule that repeats.
    ///
    /// # Errors
    /// Returns an error for pairs of racks that the routing cannot connect under the schedule.
    fn routes(&self, schedule: &Schedule, network: &Network) -> Result<Routes, CircuitsError>;
}

/// Result of creating a routing from settings.
pub type Made = Result<Box<dyn Routing>, CircuitsError>;

/// Registry entry of a routing.
pub struct Registration {
    /// Name that users write.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Paper or other source.
    pub source: &'static str,
    /// JSON schema of the settings.
    pub schema: fn() -> serde_json::Value,
    /// Creates the routing from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made,
}

/// All routings.
pub const REGISTRY: &[Registration] =
    &[direct::REGISTRATION, vlb::REGISTRATION, rotorlb::REGISTRATION, hoho::REGISTRATION];

/// Creates a routing by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// Returns an error for an unknown name, with the known names, or for invalid settings.
pub fn make(name: &str, settings: &str) -> Made {
    match REGISTRY.iter().find(|of| of.name == name) {
        Some(registration) => (registration.make)(settings),
        None => {
            let known = REGISTRY.iter().map(|of| of.name).collect::<Vec<_>>().join(", ");
            Err(CircuitsError::Unknown { what: "routing", name: excerpt(name), known })
        }
    }
}

/// Rejects a schedule that leaves a pair of racks without a circuit.
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

/// Settings of a routing without settings.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoSettings {}
