//! Seeded random streams.

pub mod random;
