//! From a demand matrix to a schedule of circuits, one file a scheduler, and the registry that makes them by name.

mod assignment;
mod bvn;
mod eclipse;
mod fixed;
mod matcher;
mod opera;
mod rotor;
mod solstice;
mod times;

use leeward_fabric::input::{InputError, excerpt, read_yaml};
use serde::de::DeserializeOwned;

pub use bvn::{Bvn, BvnSettings};
pub use eclipse::{Eclipse, EclipseSettings};
pub use fixed::{Fixed, FixedDay, FixedSettings, known};
pub use opera::{Opera, OperaSettings};
pub use rotor::{Rotor, RotorSettings};
pub use solstice::{Etalon, EtalonSettings, Paper, PaperSettings, Prepare, Solstice, SolsticeSettings};

use crate::{DemandError, DemandMatrix, MatchingError, Network, NetworkError, Schedule, ScheduleError};

/// A way to make a schedule. Holds settings and no state: the same demand and network give the same schedule.
pub trait Scheduler: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// What every schedule of it keeps to.
    fn promises(&self) -> Promises;

    /// The schedule of the week for which this is the demand.
    ///
    /// # Errors
    /// Why this scheduler makes none for that network.
    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError>;
}

/// What every schedule of a scheduler keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    /// It is no longer than the network's week.
    pub within_week: bool,
    /// No day is shorter than the network's shortest.
    pub min_day: bool,
    /// Every pair of racks has a circuit on some day.
    pub all_pairs: bool,
}

/// Why there is no schedule.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CircuitsError {
    /// The demand is none.
    #[error("demand: {0}")]
    Demand(#[from] DemandError),
    /// The network is none.
    #[error("network: {0}")]
    Network(#[from] NetworkError),
    /// A day whose circuits are no matching.
    #[error("day {day}: {error}")]
    Matching {
        /// Which day, from 0.
        day: usize,
        /// What is wrong with it.
        error: MatchingError,
    },
    /// Days that are no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// There is no scheduler, or routing, of that name.
    #[error("unknown {what} `{name}`; there are: {known}")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Its settings are not right.
    #[error(transparent)]
    Settings(#[from] InputError),
    /// A network, a number of racks or a schedule that this scheduler or routing cannot do with.
    #[error("{name}: {problem}")]
    Unfit {
        /// Which.
        name: String,
        /// What it cannot do with, and what it expects.
        problem: String,
    },
}

/// A scheduler made from settings, or what is wrong with them.
pub type Made = Result<Box<dyn Scheduler>, CircuitsError>;

/// A scheduler as the registry lists it.
pub struct Registration {
    /// What users call it.
    pub name: &'static str,
    /// What else they call it.
    pub aliases: &'static [&'static str],
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// JSON schema of its settings.
    pub schema: fn() -> serde_json::Value,
    /// Makes it from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made,
}

/// Every scheduler there is.
pub const REGISTRY: &[Registration] = &[
    solstice::OURS,
    solstice::ETALON,
    solstice::PAPER,
    eclipse::REGISTRATION,
    rotor::REGISTRATION,
    opera::REGISTRATION,
    fixed::REGISTRATION,
    bvn::REGISTRATION,
];

/// Makes a scheduler by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// That there is none of the name, with those there are; or what is wrong with its settings.
pub fn make(name: &str, settings: &str) -> Made {
    let named = |of: &&Registration| of.name == name || of.aliases.contains(&name);
    match REGISTRY.iter().find(named) {
        Some(registration) => (registration.make)(settings),
        None => {
            let known = REGISTRY.iter().map(|of| of.name).collect::<Vec<_>>().join(", ");
            Err(CircuitsError::Unknown { what: "scheduler", name: excerpt(name), known })
        }
    }
}

/// Reads the settings of a scheduler or routing.
pub(crate) fn settings<T: DeserializeOwned + Default>(scheduler: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() {
        Ok(T::default())
    } else {
        read_yaml(&format!("settings of {scheduler}"), text)
    }
}

/// What is wrong with one setting of it.
pub(crate) fn setting_error(scheduler: &str, field: &str, message: impl Into<String>) -> InputError {
    InputError::new(format!("settings of {scheduler}"), message.into()).in_field(field)
}
