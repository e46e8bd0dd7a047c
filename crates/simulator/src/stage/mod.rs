//! Foundations of every simulated plant: workloads, random streams, the telemetry model, scenarios, records.
//!
//! ```text
//! scenario file -> Scenario -- arrivals(seed) --> Workload      the same for every policy
//!                     |                              |
//!                     +--> plant (fluid, ...) <------+  telemetry through Reporters
//!                               |
//!                             Record -> Summary, Comparison     rows of a run, and their evaluation
//! ```

pub(crate) mod outage;
pub mod random;
pub mod record;
pub mod scenario;
pub mod summary;
pub mod telemetry;
pub mod workload;
