//! Deterministic network calculus: bounds that hold whatever arrives within its token buckets (SLO section 5.2.1, appendix A).
//!
//! `service` has service curves, `operators` what is done with curves, `stage` the closed form for one queue, `network` queues
//! and the flows that cross them, `order` the order in which they do, and `hop_by_hop` and `aggregate` two analyses of it. `in_order`
//! has what arrives where if flows of one priority keep their order, and `tandem` a path of queues as one priority sees it. An
//! overload is an error by name, never a large number.

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
