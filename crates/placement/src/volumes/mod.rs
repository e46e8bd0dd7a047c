//! Where volumes go, and what their workloads are promised: bounds on latency, priorities, rate limits, admission, packing.
//!
//! A [`Workload`] is described once; a [`Promise`] is a workload on a route with priorities and limits; a [`System`] is queues and
//! the promises that share them. Every analysis, search and comparator works on these.

pub mod admit;
pub mod agree;
pub mod bound;
pub mod file;
pub mod limits;
pub mod pack;
pub mod priorities;
mod system;
mod words;
mod workload;

pub use system::{Promise, Queue, System};
pub use words::{percent, time};
pub use workload::{Demand, Slo, Workload};
