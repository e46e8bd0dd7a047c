//! Tests of the engine: messages, tasks, re-evaluation and snapshots of its state.

mod crossing;
mod engine;
mod moving;
mod reevaluate;
mod requests;
mod ruling;
mod snapshot;
mod tasks;
