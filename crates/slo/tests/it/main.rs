//! Tests of latency SLOs: admission, bounds, priorities, rate limits, packing and the files that state them.

mod limits;
mod limits_golden;
mod pack;
mod pack_bounds;
mod pack_golden;
mod pack_ledger;
mod slo_admission;
mod slo_assumptions;
mod slo_bounds;
mod slo_capacities;
mod slo_file;
mod slo_file_arrivals;
mod slo_file_mistakes;
mod slo_file_properties;
mod slo_golden;
mod slo_latencies;
mod slo_plp;
mod slo_priorities;
mod slo_replay;
mod support;
