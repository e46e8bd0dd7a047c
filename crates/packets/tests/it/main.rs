//! Tests of the packet simulator: runs, files, and workloads.

mod file;
mod plant;
mod workload;
