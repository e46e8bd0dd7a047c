//! Schedulers: algorithms that turn a demand matrix into a schedule of circuits. Each scheduler has its own file. The
//! registry creates schedulers by name.

mod assignment;
mod bvn;
mod eclipse;
mod fixed;
mod matcher;
mod opera;
mod rotor;
mod solstice;
mod times;

use leeward_fabric::input::InputError;
use leeward_registry::{Registry, RegistryError};

pub use bvn::{Bvn, BvnSettings};
pub use eclipse::{Eclipse, EclipseSettings};
pub use fixed::{Fixed, FixedDay, FixedSettings, fixed_schedule};
pub use opera::{Opera, OperaSettings};
pub use rotor::{Rotor, RotorSettings, rotor_schedule};
pub use solstice::{Etalon, EtalonSettings, Paper, PaperSettings, Prepare, Solstice, SolsticeSettings};

use crate::{DemandError, DemandMatrix, MatchingError, Network, NetworkError, Schedule, ScheduleError};

/// A scheduling algorithm. It holds settings and no state: the same demand and network give the same schedule.
pub trait Scheduler: Send + Sync {
    /// Name of the scheduler.
    fn name(&self) -> &str;

    /// Guarantees that every schedule of this scheduler keeps.
    fn guarantees(&self) -> Guarantees;

    /// Computes the schedule of the week for this demand.
    ///
    /// # Errors
    /// Returns an error if the scheduler cannot handle the network or the number of racks.
    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError>;
}

/// Guarantees that every schedule of a scheduler keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Guarantees {
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
    /// Unknown name of a scheduler or routing, or invalid settings.
    #[error(transparent)]
    Registry(#[from] RegistryError),
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

/// All schedulers.
pub const REGISTRY: Registry<dyn Scheduler> = Registry {
    noun: "scheduler",
    kind: None,
    entries: &[
        solstice::SOLSTICE,
        solstice::ETALON,
        solstice::PAPER,
        eclipse::REGISTRATION,
        rotor::REGISTRATION,
        opera::REGISTRATION,
        fixed::REGISTRATION,
        bvn::REGISTRATION,
    ],
};
