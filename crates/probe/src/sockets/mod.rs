//! Adapters to the network and the clock.

pub mod bulk;
pub mod clock;
pub mod hops;
pub mod train;
