//! Integration tests of the circuits crate. `allocation` is a separate binary, because it replaces the allocator.

mod estimate;
mod golden;
mod routing;
mod schedulers;
mod switch;
