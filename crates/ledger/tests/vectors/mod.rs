//! The conformance vectors: how they are written down, what is in them, and how a ledger replays them.

pub mod format;
pub mod replay;
mod script;
pub mod scripts;
