//! Tests of the packet simulator: runs, files, and workloads.

mod file;
mod simulator;
mod workload;
