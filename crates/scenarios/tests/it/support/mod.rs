//! Helpers that several test modules share.

pub mod cell;
pub mod files;
pub mod runs;
