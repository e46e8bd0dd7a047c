//! Active measurement: what a network gives those who are told nothing about it (Choreo, section 3).
//!
//! ```text
//! Train, Transfer --control--> a peer that listens --packets--> Received --estimate--> Estimate: the rate of a path
//! ```

mod collect;
pub mod control;
mod error;
mod estimate;
pub mod link;
mod sockets;
mod train;
mod transferred;
mod wire;

pub use collect::{Burst, Collector, Received};
pub use error::ProbeError;
pub use estimate::{Estimate, MATHIS_C, NEAR, Sent, estimate};
pub use train::{Limits, Train, Transfer};
pub use transferred::{SLOT_NS, Transferred};
pub use wire::{HEADER, Head};
