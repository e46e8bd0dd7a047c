//! Helpers that several test modules share.

pub mod cell;
pub mod runs;
