//! HTTP client of controllers, for the programs of hosts: the agent and the enforcers.
//!
//! ```text
//! Access (URLs, token, authorities, DSCP) --> Client --HTTP or TLS--> controller
//!                                               '--> reply, or Rejection --> Backoff
//! ```
//!
//! [`Access`] is what a user states about controllers, and [`Client`] a persistent connection to one of them.
//! [`Backoff`] has the delays after failures: times and random numbers are arguments, so a state machine decides when
//! to send, and its driver sleeps. [`Signals`] stop such a driver, [`start_with_sigterm_blocked`] lets a signal wait until
//! the driver is ready, and [`end_with_parent`] ends it with the agent that runs it. The crate does not depend on the
//! service: it knows the HTTP interface only.

mod access;
mod backoff;
mod client;
mod clock;
mod machine;
mod marked;
mod parent;
mod signals;

pub use access::Access;
pub use backoff::Backoff;
pub use client::{Client, Rejection};
pub use clock::{Clock, random};
pub use machine::machine_name;
pub use parent::{PARENT, end_with_parent};
pub use signals::{Signals, start_with_sigterm_blocked, unblock_signals};
