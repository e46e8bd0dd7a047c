//! Integration tests of the circuits crate. `allocation` is a binary of its own, since it replaces the allocator.

mod estimate;
mod golden;
mod routing;
mod schedulers;
mod switch;
