//! Storage request traces: requests, and the work of each at the stages of its path.
//!
//! ```text
//! trace file --read--> Request (when, read or write, size, offset) --Work--> network-in, storage, network-out
//! synthetic --------/                    \--> select: a part of a trace, or one that starts elsewhere
//!                                         \-> statistics
//! ```
//!
//! Work on a network is bytes. Work at a device is seconds of service at saturation. A device does one second of work
//! per second, regardless of the number of requests that it serves at once (SLO section 2.3.2).

pub mod device;
pub mod read;
pub mod select;
pub mod statistics;
pub mod synthetic;

mod error;
mod network;
mod request;
mod stage;
mod work;

pub use error::WorkError;
pub use network::NetworkWork;
pub use request::{Kind, Request};
pub use stage::Stage;
pub use work::{StageWork, Tail, Work};
