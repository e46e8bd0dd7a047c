//! Drivers: the loops that simulate a scenario's arrivals and drive an engine.

mod app_sequence;
pub(crate) mod apps;
pub(crate) mod cell;
pub(crate) mod coflows;
mod error;
mod profiles;
pub(crate) mod replicas;
mod world;

pub use app_sequence::{AppRun, TimedApp, run_apps};
pub use error::{Progress, RunError};
