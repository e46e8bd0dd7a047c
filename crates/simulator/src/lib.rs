//! Simulated plants, and the stage they share.
//!
//! [`stage`] is what every plant has in common: scenarios, workloads, telemetry, records. [`fluid`] carries a scenario's
//! files or apps at exact max-min rates. [`cell`] places a stream of tasks and moves them. [`requests`] serves storage requests
//! one by one, under the priorities and limits promised to them. [`packets`] sends TCP segments through a hybrid switch with
//! circuits. A run is one thread and depends on its scenario, policy and seed alone; runs are independent of each other, so [`run_all`] may do several at once and gives the same results.

pub mod cell;
pub mod fluid;
pub mod packets;
pub mod requests;
mod run;
pub mod stage;
pub mod study;

pub use run::{Progress, Run, RunError, Task, run_all};
