//! Reconfigurable networks, where racks are joined by a packet switch and by circuits that change: from a demand matrix to a
//! schedule of circuits.
//!
//! ```text
//! DemandMatrix --\
//!                 scheduler --> Schedule --> check:    is it what the scheduler promises?
//! Network      --/                       \-> evaluate: what does each day serve, what is left for packets?
//! ```
//!
//! Under a schedule that repeats a [`routing`] has packets take circuits that do not lead to their destination, and go on from there.
//!
//! A *day* is a time in which one matching of racks is up, a *night* the gap in which circuits are changed and none works, a
//! *week* one computed schedule of nights and days (Etalon, section 2). Nothing here does input or output; time is an argument.
//! The schedulers are in [`schedulers`], each with where it is from and how it differs from that; [`schedulers::Scheduler`] is
//! what to implement for one of your own.
//!
//! ```
//! use leeward_circuits::{DemandMatrix, Network, check, evaluate, schedulers};
//!
//! // Rack 0 has 9 MB for rack 1, rack 1 for rack 2, rack 2 for rack 0.
//! let demand = DemandMatrix::new(3, vec![0, 9_000_000, 0, 0, 0, 9_000_000, 9_000_000, 0, 0])?;
//! let network = Network::default();
//! let scheduler = schedulers::make("eclipse", "")?;
//! let schedule = scheduler.schedule(&demand, &network)?;
//! check(&schedule, demand.racks(), &network, scheduler.promises())?;
//! let result = evaluate(&schedule, &demand, &network)?;
//! assert_eq!((schedule.days().len(), result.served, result.left.total()), (1, 27_000_000, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod demand;
pub mod estimate;
mod evaluate;
pub mod link;
mod network;
pub mod routing;
mod schedule;
pub mod schedulers;
pub mod switch;
pub mod timers;

pub use demand::{DemandError, DemandMatrix, MAX_BYTES, MAX_RACKS};
pub use evaluate::{CircuitServed, DayServed, Evaluation, Invalid, check, evaluate};
pub use network::{Network, NetworkError};
pub use schedule::{Day, Matching, MatchingError, Schedule, ScheduleError};
pub use schedulers::{CircuitsError, Promises, Scheduler};
