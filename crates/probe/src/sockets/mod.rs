//! What touches the network and reads a clock.

pub mod bulk;
pub mod clock;
pub mod hops;
pub mod train;
