//! Simulated plants, and their common foundations.
//!
//! [`stage`] has the common parts of all plants: scenarios, workloads, telemetry, records. [`fluid`] carries
//! a scenario's files or apps at exact max-min rates. [`cell`] places a stream of tasks and moves them.
//! [`requests`] serves storage requests one by one, under their priorities and limits. [`packets`] sends TCP
//! segments through a hybrid switch with circuits. A run is one thread and depends on its scenario, policy
//! and seed only. Runs are independent, so [`run_all`] may run several at once with the same results.

pub mod cell;
pub mod fluid;
pub mod packets;
pub mod requests;
mod run;
pub mod stage;
pub mod study;

pub use run::{Progress, Run, RunError, Task, run_all};
