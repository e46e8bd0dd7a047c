//! The engine: ledger, policies and queues behind one function, free of I/O.
//!
//! ```text
//! plant --Input, now--> Engine::handle --Outputs--> plant
//! ```
//!
//! What every plant drives: a simulator, a lab, a controller. There is no plant trait; a plant is a loop that feeds the
//! engine inputs with the time they happen, carries out its outputs, and calls again at the time it asks for. Time
//! never goes back. Best-effort decisions are made and committed in the same turn, so that no two placers see the
//! network as it was before the other's placement.

mod cell;
mod engine;
mod history;
mod message;
mod published;

pub use engine::{Engine, Policies};
pub use history::HistorySettings;
pub use message::{Advice, Answer, Ask, Availability, Input, Output, Placed, Rates, Replaced};
pub use published::{About, Published};
