//! Deterministic network calculus: bounds for all arrivals within their token buckets (SLO section 5.2.1, appendix A).
//!
//! * `service`: service curves;
//! * `operators`: the operations on curves;
//! * `stage`: the closed form for one queue;
//! * `network`: queues and the flows that cross them;
//! * `order`: a topological order of the queues;
//! * `hop_by_hop` and `aggregate`: two analyses of a network;
//! * `in_order`: the arrivals if flows of one priority keep their order;
//! * `tandem`: a path of queues for one priority.
//!
//! An overload is an explicit error, never a large number.

mod aggregate;
mod hop_by_hop;
mod in_order;
mod network;
mod operators;
mod order;
mod service;
mod stage;
mod tandem;

pub use in_order::InOrder;
pub use network::{Flow, Network, NetworkError, Packets, Unbounded};
pub use operators::Overload;
pub use order::queue_order;
pub use service::{RateLatency, ServiceCurve, ServiceError};
pub use stage::{StageError, stage_delay};
pub use tandem::{Crossing, Server, Tandem};
