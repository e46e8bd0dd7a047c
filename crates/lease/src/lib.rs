//! Promises of an enforcer: those of a controller, under a lease, or those of a file.
//!
//! ```text
//! controller <--acknowledge, read promises-- Connection <--replies, times--> Lease
//!                                                |  --> Apply, Release --> enforcer
//! SLO file, JSON of commands --DecidedFile-------|------------------------> enforcer
//! file of addresses, resolver --Addresses--------'
//! ```
//!
//! [`Lease`] is the state machine of an enforcer, with times and random numbers as arguments: it says which request to send
//! to which controller, which promises to apply, and when the lease is over, so that everything is best effort again.
//! [`Connection`] is its driver, with a thread for the requests. The types of requests are those of `leeward-promises`, which
//! the service uses too.
//!
//! [`DecidedFile`] has the priorities and limits that a file states, without its cluster and traces, since hosts need neither.
//! [`Addresses`] are those of hosts and workloads.

mod addresses;
mod connection;
mod decided;
mod event;
mod instance;
mod lease;
mod settings;

pub use addresses::{Addresses, singles};
pub use connection::{Connection, Received, Report, Update, read_promises};
pub use decided::{DecidedFile, DecidedStage, DecidedWorkload, Missing, host_of};
pub use event::Event;
pub use lease::{Action, Lease, Reply, Request, Version};
pub use settings::{ControllerSettings, Given};
