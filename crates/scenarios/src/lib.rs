//! Scenarios simulate placement policies on a cluster: the arrivals, the events, and the policies to compare. The
//! workloads and measures are from Sinbad (replicas of blocks), Choreo (apps) and Hotspots (tasks of a cell).
//!
//! ```text
//! scenario file -> Scenario -- arrivals(seed) --> Workload      the same for every policy
//!                     |                              |
//!                     +--> driver <------------------+  telemetry through Reporters
//!                            |
//!                          Record -> Summary, Comparison
//! ```
//!
//! The arrivals are a [`leeward_workloads::Workload`]. A driver simulates them and drives an engine. [`driver`] has one
//! for files and one for apps on the fluid network ([`leeward_fluid`]), and one for the tasks of a cell. A run uses one
//! thread, and depends only on its scenario, policy and seed. Runs are independent of each other, so [`run_all`] may do
//! several at once with the same results.

pub mod driver;
mod outage;
mod quantile;
pub mod record;
mod run;
pub mod scenario;
pub mod summary;
pub mod telemetry;

pub use driver::{Progress, RunError};
pub use run::{MakePolicies, Run, Task, run_all, run_all_by};
