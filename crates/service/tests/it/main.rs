//! Tests of the service's core and actor: decisions, workloads and what is stored.

mod core;
mod persistence;
mod support;
mod workloads;
