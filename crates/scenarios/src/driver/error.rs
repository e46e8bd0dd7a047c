//! Progress and errors of a run.

use leeward_fabric::input::InputError;
use leeward_fluid::FluidError;
use leeward_ledger::SettingsError;
use leeward_registry::RegistryError;

/// Progress callback: it regularly receives the finished share of a run, and returns false to stop the run.
pub type Progress<'a> = &'a (dyn Fn(f64) -> bool + Sync);

/// Error of a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// A file or setting is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The policy or its settings are invalid.
    #[error(transparent)]
    Policy(#[from] RegistryError),
    /// The ledger's settings are invalid.
    #[error("ledger: {0}")]
    Ledger(#[from] SettingsError),
    /// The network rejected the arrivals.
    #[error(transparent)]
    Fluid(#[from] FluidError),
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}
