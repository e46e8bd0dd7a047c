//! Tests of placement: the policies for replicas, tasks and moves, constraints and re-evaluation.

mod circuit_turns;
mod constraints;
mod moves;
mod reevaluate;
mod replicas;
mod sight;
mod sinbad;
mod square;
mod support;
mod tasks;
