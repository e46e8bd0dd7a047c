//! Control protocol: hosts agree on a measurement over a TCP connection, with one message each way at a time.
//!
//! ```text
//! client                       A, the source                     B, the destination
//!   hello ---------------------> hello
//!   measure train to B --------> hello --------------------------> hello
//!                                receive a train ----------------> binds a port
//!                                <-------------------------------- ready: port, session
//!                                == packets of the train ========> (UDP)
//!                                ended --------------------------> counts
//!                                <-------------------------------- received
//!   <--------------- estimate    estimates
//! ```
//!
//! Only listening hosts take part, and a receiver must agree before any packet is sent to it. A client therefore cannot
//! make a host flood a host outside the measurement. A host refuses trains and transfers beyond its
//! [`Limits`](crate::Limits).

mod client;
mod frame;
mod listener;
mod message;
mod order;
mod source;

pub use client::{DEFAULT_PORT, Peer, Secret};
pub use frame::{MOST_BYTES, read, write};
pub use listener::{Listener, Stop};
pub use message::{Order, Outcome, Reply, Request, VERSION};
pub use order::{Place, order};
pub use source::measure;
