//! Tests of workloads: their sources, and the generated hour beside the paper's statistics.

mod cell;
mod cell_causes;
mod choices;
mod facebook;
mod faults;
mod generated;
mod properties;
mod readers;
mod sources;
mod support;
mod tables;
mod traces;
