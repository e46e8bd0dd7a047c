//! Latency SLOs of storage workloads: bounds on latency, priorities, rate limits, admission, and packing of volumes.
//!
//! The crate decides which workloads get a guarantee of their SLO, and where their volumes go (Zhu: PriorityMeister,
//! SoCC 2014; SNC-Meister, SoCC 2016; WorkloadCompactor, SoCC 2017; and Zhu's thesis). A [`Workload`] is described
//! once. A [`Promise`] is a workload on a route with priorities and limits. A [`System`] consists of queues and the
//! promises that share them. Every analysis, search and comparator uses these types.

pub mod admit;
pub mod bound;
pub mod file;
mod format;
pub mod limits;
pub mod pack;
pub mod priorities;
mod system;
mod workload;

pub use format::{percent, time};
pub use system::{Promise, Queue, System};
pub use workload::{Demand, Slo, Workload};
