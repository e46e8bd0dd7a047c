//! Tests of the request simulator: runs compared with a literal simulator, bounds, queueing theory, and latency
//! guarantees.

mod bounds;
mod queueing;
mod runs;
mod slo_bounds;
mod slo_paths;
mod slo_percentiles;
mod sources;
mod support;
mod tails;
