//! Service-level objectives of volumes: bounds on latency, priorities, rate limits, admission, packing.
//!
//! A [`Workload`] describes the demand of a volume once. A [`Promise`] is a workload on a route with
//! priorities and limits. A [`System`] is a set of queues and the promises that share them. Every analysis,
//! search and comparator works on these three types.

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
