//! Tests of the packet plant: runs, files, and workloads.

mod file;
mod plant;
mod workload;
