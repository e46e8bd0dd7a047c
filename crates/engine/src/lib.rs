//! The engine combines ledger, policies and queues, without I/O.
//!
//! ```text
//! driver --Input, now--> Engine::handle --Outputs--> driver
//! driver --request, now--> Engine::{report, place_replicas, place_app, reevaluate, ...} --result--> driver
//! ```
//!
//! The engine has several drivers: simulators, the service, a single decision. There is no trait for drivers. A driver
//! is a loop that passes inputs with their times to the engine, carries out its outputs, and calls again at the
//! requested time. Decisions that need no wait are return values of methods. Time never runs backwards. The engine
//! makes and commits a best-effort decision in one call, so no two decisions use the same state of the network.

mod cell;
mod engine;
mod history;
mod lost_capacity;
mod message;
mod open_moves;
mod snapshot;

pub use engine::{Engine, Given, GivenTerms, Policies};
pub use history::HistorySettings;
pub use message::{
    Advice, Availability, CommittedDecision, Comparison, Decider, Input, MoveRule, NoMove, Output, Rates,
    Reevaluation, ReplicasAnswer, Ruling, is_in_share,
};
pub use snapshot::{EngineSnapshot, SnapshotScope};
