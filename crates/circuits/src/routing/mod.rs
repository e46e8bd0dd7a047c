//! Routings: the circuits that packets take under a repeating schedule. One file per routing, and the registry that
//! creates them by name.
//!
//! A [`Routing`] computes [`Routes`] from a schedule once, and the [`Switch`](crate::switch::Switch) applies them
//! packet by packet. An intermediate rack puts a packet for another rack into its queue for the packet's destination,
//! and sends it as soon as the routes permit. Nothing here does input or output or reads a clock.

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

use leeward_registry::Registry;

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

/// All routings.
pub const REGISTRY: Registry<dyn Routing> = Registry {
    noun: "routing",
    kind: None,
    entries: &[direct::REGISTRATION, vlb::REGISTRATION, rotorlb::REGISTRATION, hoho::REGISTRATION],
};

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
