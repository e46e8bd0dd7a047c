//! Tests of the engine: messages, tasks, re-evaluation and snapshots of its state.

mod engine;
mod moving;
mod reevaluate;
mod ruling;
mod snapshot;
mod tasks;
