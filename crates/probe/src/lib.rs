//! Active measurement: what a network gives those who are told nothing about it (Choreo, section 3).
//!
//! ```text
//! Train, Transfer --control--> a peer that listens --packets--> Received --estimate--> Estimate: the rate of a path
//! ```

pub mod bottleneck;
pub mod calibrate;
mod collect;
pub mod control;
pub mod cross;
mod error;
mod estimate;
pub mod link;
pub mod mesh;
mod numbers;
mod sockets;
pub mod stability;
pub mod survey;
pub mod topology;
mod train;
mod transferred;
mod wire;

pub use collect::{Burst, Collector, Received};
pub use error::ProbeError;
pub use estimate::{Estimate, MATHIS_C, NEAR, Sent, estimate};
pub use numbers::{deviation, mean, quantile};
pub use train::{Limits, Train, Transfer};
pub use transferred::{SLOT_NS, Transferred};
pub use wire::{HEADER, Head};
