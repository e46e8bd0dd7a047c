//! Workloads, systems and reference inputs that the tests share.

pub mod loads;
pub mod reference;
pub mod systems;
pub mod workload_file;
