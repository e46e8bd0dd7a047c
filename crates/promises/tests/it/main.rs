//! Tests of promises in force: the state machine, documents of enforcers, and decisions about changed workloads.

mod documents;
mod instances;
mod leases;
mod redecisions;
mod support;
