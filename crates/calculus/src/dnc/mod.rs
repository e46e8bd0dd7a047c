//! Deterministic network calculus: bounds that hold whatever arrives within its token buckets (SLO section 5.2.1, appendix A).
//!
//! `service` has service curves, `operators` what is done with curves, `stage` the closed form for one queue, `network` queues
//! and the flows that cross them, `order` the order in which they do, and `hop_by_hop` and `aggregate` two analyses of it. An overload is an error by
//! name, never a large number.

mod aggregate;
mod hop_by_hop;
mod network;
mod operators;
mod order;
mod service;
mod stage;

pub use network::{Flow, Network, NetworkError, Packets, Unbounded};
pub use operators::Overload;
pub use order::queue_order;
pub use service::{RateLatency, ServiceCurve, ServiceError};
pub use stage::{StageError, stage_delay};
