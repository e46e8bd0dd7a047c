//! Tests of the request plant: runs against a literal simulator, bounds, queueing theory, and what is promised of latency.

mod bounds;
mod queueing;
mod runs;
mod slo_bounds;
mod slo_paths;
mod slo_percentiles;
mod support;
mod tails;
