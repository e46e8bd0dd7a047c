//! Tests of scenarios: drivers of replicas, apps and cells, and workloads.

mod app_sequence;
mod apps;
mod cell;
mod coflows;
mod forecast;
mod jobs;
mod reads;
mod replicas;
mod support;
mod workload_cell;
mod workload_facebook;
mod workload_properties;
mod workload_readers;
mod workload_sources;
mod workload_traces;
