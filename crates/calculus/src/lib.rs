//! The mathematics of bursts: token buckets and the arrival curves they make, arrivals modulated by a Markov chain
//! ([`mmpp`]), and the bounds on latency that follow from them. Knows no fabric; rates and bursts are in whatever unit of
//! work the caller counts in.
//!
//! ```text
//! trace --> RbCurve --> ArrivalCurve --\
//!   |          \---> TokenBucket ---> Network --> a bound on each flow's delay, or which queue has none
//!   \-----> mmpp -----------------------> snc --> a bound on a percentile of each flow's delay
//! ```
//!
//! Sources are named as in `docs/reference/papers.md`; "SLO" is Zhu's thesis.

pub mod mmpp;
pub mod snc;

mod curve;
mod dnc;
mod shown;
mod token_bucket;

pub use curve::{ArrivalCurve, CurveError, Interval, Pruned, RbCurve, TraceError};
pub use dnc::{
    Crossing, Flow, InOrder, Network, NetworkError, Overload, Packets, RateLatency, Server, ServiceCurve,
    ServiceError, StageError, Tandem, Unbounded, queue_order, stage_delay,
};
pub use token_bucket::{BucketError, TokenBucket, arrivals};
