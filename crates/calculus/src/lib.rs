//! The mathematics of bursts: token buckets and the arrival curves they make. Knows no fabric; rates and bursts
//! are in whatever unit of work the caller counts in.
//!
//! ```text
//! trace --> RbCurve --> ArrivalCurve     how much may come within how long
//!              \--> TokenBucket          one rate and burst of it
//! ```
//!
//! Sources are named as in `docs/reference/papers.md`; "SLO" is Zhu's thesis.

mod curve;
mod token_bucket;

pub use curve::{ArrivalCurve, CurveError, Interval, Pruned, RbCurve, TraceError};
pub use token_bucket::{BucketError, TokenBucket, arrivals};
