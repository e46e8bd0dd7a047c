//! Schedulers: algorithms that turn a demand matrix into a schedule of circuits. One file per scheduler, and the registry that
//! creates them by name.

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

/// A scheduling algorithm. It holds settings and no state: the same demand and network give the same schedule.
pub trait Scheduler: Send + Sync {
    /// Name of the scheduler.
    fn name(&self) -> &str;

    /// Guarantees that every schedule of this scheduler keeps.
    fn promises(&self) -> Promises;

    /// Computes the schedule of the week for this demand.
    ///
    /// # Errors
    /// Returns an error if the scheduler cannot handle the network or the number of racks.
    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError>;
}

/// Guarantees that every schedule of a scheduler keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    /// A schedule is no longer than the network's week.
    pub within_week: bool,
    /// No day is shorter than the network's minimum day.
    pub min_day: bool,
    /// Every pair of racks has a circuit on some day.
    pub all_pairs: bool,
}

/// Failure to create a scheduler, a routing or a schedule.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CircuitsError {
    /// Invalid demand matrix.
    #[error("demand: {0}")]
    Demand(#[from] DemandError),
    /// Invalid network parameters.
    #[error("network: {0}")]
    Network(#[from] NetworkError),
    /// A day whose circuits are not a matching.
    #[error("day {day}: {error}")]
    Matching {
        /// Day, from 0.
        day: usize,
        /// Violation of the matching.
        error: MatchingError,
    },
    /// Days that do not form a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Unknown name of a scheduler or routing.
    #[error("unknown {what} `{name}`; there are: {known}")]
    Unknown {
        /// `scheduler` or `routing`.
        what: &'static str,
        /// Unknown name.
        name: String,
        /// Known names, separated by commas.
        known: String,
    },
    /// Invalid settings of a scheduler or routing.
    #[error(transparent)]
    Settings(#[from] InputError),
    /// A network, a number of racks or a schedule that the scheduler or routing cannot handle.
    #[error("{name}: {problem}")]
    Unfit {
        /// Name of the scheduler or routing.
        name: String,
        /// Unsupported value, and the expected one.
        problem: String,
    },
}

/// Result of creating a scheduler from settings.
pub type Made = Result<Box<dyn Scheduler>, CircuitsError>;

/// Registry entry of a scheduler.
pub struct Registration {
    /// Name that users write.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Paper or other source.
    pub source: &'static str,
    /// JSON schema of the settings.
    pub schema: fn() -> serde_json::Value,
    /// Creates the scheduler from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made,
}

/// All schedulers.
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

/// Creates a scheduler by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// Returns an error for an unknown name, with the known names, or for invalid settings.
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

/// Parses the settings of a scheduler or routing; empty text gives the defaults.
pub(crate) fn settings<T: DeserializeOwned + Default>(scheduler: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() {
        Ok(T::default())
    } else {
        read_yaml(&format!("settings of {scheduler}"), text)
    }
}

/// Error for one setting of a scheduler or routing.
pub(crate) fn setting_error(scheduler: &str, field: &str, message: impl Into<String>) -> InputError {
    InputError::new(format!("settings of {scheduler}"), message.into()).in_field(field)
}
