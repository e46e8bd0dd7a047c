//! Circuit scheduling for reconfigurable networks: turns a demand matrix into a schedule of circuits. A packet switch
//! connects the racks, and so does a circuit switch with changing circuits.
//!
//! ```text
//! DemandMatrix --\
//!                 scheduler --> Schedule --> check:    does it keep the scheduler's guarantees?
//! Network      --/                       \-> evaluate: how much demand does each day serve, how much is left for packets?
//! ```
//!
//! Under a repeating schedule, a [`routing`] may send packets over circuits that do not lead to their destination; the
//! racks at the end of these circuits forward the packets.
//!
//! A *day* is a time during which one matching of racks is up. A *night* is the gap in which circuits change and no
//! circuit is up. A *week* is one computed schedule of nights and days (Etalon, section 2). This crate does no input or
//! output, and its functions take the time as an argument.
//!
//! The schedulers are in [`schedulers`], each with its source and its deviations from it. Implement
//! [`schedulers::Scheduler`] to add a scheduler.
//!
//! ```
//! use leeward_circuits::{DemandMatrix, Network, check, evaluate, schedulers};
//!
//! // Rack 0 has 9 MB for rack 1, rack 1 for rack 2, rack 2 for rack 0.
//! let demand = DemandMatrix::new(3, vec![0, 9_000_000, 0, 0, 0, 9_000_000, 9_000_000, 0, 0])?;
//! let network = Network::default();
//! let scheduler = schedulers::REGISTRY.make("eclipse", "")?;
//! let schedule = scheduler.schedule(&demand, &network)?;
//! check(&schedule, demand.racks(), &network, scheduler.guarantees())?;
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
pub use evaluate::{CircuitServed, DayServed, Evaluation, Violation, check, evaluate};
pub use network::{Network, NetworkError};
pub use schedule::{Day, Matching, MatchingError, Schedule, ScheduleError};
pub use schedulers::{CircuitsError, Guarantees, Scheduler};
