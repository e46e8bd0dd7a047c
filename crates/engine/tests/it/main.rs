//! Tests of the engine: messages, tasks, re-evaluation and snapshots of its state.

mod engine;
mod reevaluate;
mod snapshot;
mod tasks;
