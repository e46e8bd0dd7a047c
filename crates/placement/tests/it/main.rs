//! Tests of placement: the policies for replicas, tasks and moves, constraints and re-evaluation.

mod circuit_turns;
mod constraints;
mod matrix;
mod moves;
mod reevaluate;
mod replicas;
mod sight;
mod sinbad;
mod support;
mod tasks;
