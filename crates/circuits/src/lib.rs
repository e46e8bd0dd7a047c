//! Reconfigurable networks, where racks are joined by a packet switch and by circuits that change: from a demand matrix to a
//! schedule of circuits.
//!
//! A *day* is a time in which one matching of racks is up, a *night* the gap in which circuits are changed and none works, a
//! *week* one computed schedule of nights and days (Etalon, section 2). Nothing here does input or output; time is an argument.

mod demand;
pub mod estimate;
mod evaluate;
pub mod link;
mod network;
mod schedule;
pub mod schedulers;
pub mod switch;
pub mod timers;

pub use demand::{DemandError, DemandMatrix, MAX_RACKS};
pub use evaluate::{CircuitServed, DayServed, Evaluation, Invalid, check, evaluate};
pub use network::{Network, NetworkError};
pub use schedule::{Day, Matching, MatchingError, Schedule, ScheduleError};
pub use schedulers::{CircuitsError, Promises, Scheduler};
