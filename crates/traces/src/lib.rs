//! Request traces of storage: what a request is, and the work it makes at each stage of its way.
//!
//! ```text
//! trace --> Request (when, read or write, size, offset) --> work at network-in, storage, network-out
//! ```
//!
//! Work on a network is bytes; at a device it is seconds of service at saturation, so that a device does one second of work in a
//! second, however many requests it serves at once (SLO section 2.3.2).

mod request;
mod stage;

pub use request::{Kind, Request};
pub use stage::Stage;
