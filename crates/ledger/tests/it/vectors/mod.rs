//! The conformance vectors: their format, their contents, and their replay against a ledger.

pub mod format;
pub mod replay;
mod script;
pub mod scripts;
