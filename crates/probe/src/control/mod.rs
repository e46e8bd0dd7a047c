//! How hosts agree on a measurement: a connection over TCP, a message each way at a time.
//!
//! ```text
//! who asks                     A, the source                     B, the destination
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
//! Only hosts that listen take part, and a receiver must agree before a packet is sent to it, so nobody can be made to
//! flood a stranger. Trains and transfers beyond a host's [`Limits`](crate::Limits) are refused.

mod client;
mod frame;
mod listener;
mod message;
mod source;

pub use client::{DEFAULT_PORT, Peer, Place, Secret, order};
pub use frame::{MOST_BYTES, read, write};
pub use listener::{Listener, Stop};
pub use message::{Answer, Ask, Order, Outcome, VERSION};
pub use source::measure;
