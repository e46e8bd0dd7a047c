//! The mathematics of bursts: token buckets and arrival curves, Markov-modulated arrivals ([`mmpp`]), and the latency
//! bounds that follow from them. The crate does not depend on a fabric. The caller chooses the unit of work.
//!
//! ```text
//! trace --> RbCurve --> ArrivalCurve --\
//!   |          \---> TokenBucket ---> Network --> a bound on each flow's delay, or the overloaded queue
//!   |-- fit --> mmpp -------------------> snc --> a bound on a percentile of each flow's delay
//!   \-- assumptions: is the trace stationary, and independent of others, as models assume?
//! ```
//!
//! Sources are named as in `docs/reference/papers.md`; "SLO" is Zhu's thesis.

pub mod assumptions;
pub mod fit;
pub mod mmpp;
pub mod snc;

mod curve;
mod dnc;
mod number_format;
mod token_bucket;

pub use curve::{ArrivalCurve, CurveError, Interval, PrunedCurve, RbCurve, TraceError};
pub use dnc::{
    Crossing, Flow, InOrder, Network, NetworkError, Overload, Packets, RateLatency, Server, ServiceCurve,
    ServiceError, StageError, Tandem, Unbounded, queue_order, stage_delay,
};
pub use token_bucket::{BucketError, TokenBucket, arrivals};
