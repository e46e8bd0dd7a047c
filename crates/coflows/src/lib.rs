//! Coflows: groups of flows that matter only together, such as all transfers of a shuffle. A coflow ends with its last
//! flow (Chowdhury and Stoica, HotNets 2012).
//!
//! ```text
//! trace       the benchmark's file format -> Shuffle
//! coflow      Arrival, Coflow: completion time, lower bound, slowdown, class
//! tracker     flows of a run that start and end -> Coflows
//! sebf        a network that serves coflows by smallest effective bottleneck first, with the calls of fluid's Network
//! carrier     the calls of both networks
//! discipline  registry of the disciplines that coflows are compared under
//! ```
//!
//! The scheduler is Varys's (Chowdhury, Zhong and Stoica, SIGCOMM 2014, section 5). Varys models the network as one big
//! switch whose ports are the only links. Here a coflow loads all links of its flows' paths, so the bottleneck may
//! also be a link of a host or a pod.

mod carrier;
mod coflow;
mod discipline;
mod sebf;
pub mod trace;
mod tracker;

pub use carrier::Carrier;
pub use coflow::{Arrival, Class, Coflow, NARROW, SHORT};
pub use discipline::{Discipline, REGISTRY};
pub use sebf::Sebf;
pub use tracker::Tracker;
