//! Tests of the service's core and actor: decisions, workloads and stored data.

mod core;
mod faulty;
mod history;
mod persistence;
mod pieces;
mod restart;
mod support;
mod workloads;
