//! Tests of placement: the policies for replicas, tasks and moves, constraints and re-evaluation.

mod answers;
mod apart;
mod circuit_turns;
mod constraints;
mod copies;
mod existing;
mod goals;
mod host_balance;
mod matrix;
mod meshes;
mod moves;
mod reevaluate;
mod replicas;
mod sight;
mod sinbad;
mod storage;
mod stripes;
mod support;
mod tasks;
