//! Tests of the experiments: packing, admission and replay of drawn workloads, and contention.

mod contention;
mod recorded;
mod volumes;
