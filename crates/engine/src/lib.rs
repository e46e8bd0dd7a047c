//! The engine combines ledger, policies and queues, without I/O.
//!
//! ```text
//! plant --Input, now--> Engine::handle --Outputs--> plant
//! plant --request, now--> Engine::{place_app, commit_decision, reevaluate, commit_promise} --result--> plant
//! ```
//!
//! Every plant drives an engine: a simulator, a lab, a controller. There is no plant trait. A plant is a loop
//! that passes inputs with their times to the engine, carries out its outputs, and calls again at the
//! requested time. Decisions that need no wait are results of methods. Time never goes back. The engine makes and commits best-effort decisions in the same turn,
//! so no two placers decide on the same state of the network.

mod cell;
mod engine;
mod history;
mod message;
mod snapshot;

pub use engine::{Engine, Policies};
pub use history::HistorySettings;
pub use message::{Advice, Availability, CommittedDecision, Input, Output, Rates, Reevaluation};
pub use snapshot::{EngineSnapshot, SnapshotScope};
