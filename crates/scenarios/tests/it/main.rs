//! Tests of scenarios: drivers of replicas, apps, cells and coflows.

mod app_sequence;
mod apps;
mod cell;
mod cell_causes;
mod choices;
mod coflows;
mod faults;
mod forecast;
mod host_balance;
mod jobs;
mod losses;
mod lost_capacity;
mod moves;
mod reads;
mod repairs;
mod replicas;
mod stored;
mod support;
