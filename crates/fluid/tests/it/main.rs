//! Tests of the fluid simulator: allocations, networks in time, and reference results.

mod allocation;
mod golden;
mod network;
mod support;
