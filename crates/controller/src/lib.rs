//! The controller: one engine behind HTTP.
//!
//! ```text
//! HTTP --texts--> edge --Message--> Desk (in one task, with the engine) --Reply--> edge --texts--> HTTP
//!                  |                  |
//!       names, times, problems    decisions, clients, what waits
//! ```
//!
//! The desk is a plain value: messages and times in, replies out. One task owns it and hands it the messages of all
//! connections one after the other, so that each placement sees those before it; simultaneous placers cannot herd. What
//! the world writes (names, RFC 3339, JSON) is read and written by the edge and goes no further.
//!
//! Nothing outlives the process: after a restart the service knows what is reported from then on, and clients number
//! their requests anew.

mod clients;
mod clock;
mod decisions;
mod desk;
mod hosts;
mod http;
mod message;
mod service;
mod task;
mod unkept;

pub use clock::Clock;
pub use decisions::Record;
pub use desk::{Desk, Limits, Replies};
pub use message::{
    Caller, HostReport, LinkState, Message, Part, Placement, Refused, Reply, Report, Skipped, Snapshot, Wrong,
};
pub use service::{RunError, Service};
pub use task::{Closed, Office};
