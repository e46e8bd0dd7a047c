//! Tests of the service's core and actor: decisions, workloads and stored data.

mod core;
mod enforcement;
mod faulty;
mod handover;
mod history;
mod lost_capacity;
mod measured;
mod moves;
mod moving;
mod persistence;
mod pieces;
mod redecisions;
mod restart;
mod support;
mod workloads;
