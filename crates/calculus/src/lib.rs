//! The mathematics of bursts: token buckets and the arrival curves they make. Knows no fabric; rates and bursts
//! are in whatever unit of work the caller counts in.

mod token_bucket;

pub use token_bucket::{BucketError, TokenBucket, arrivals};
