//! Tests of the fluid simulator: allocations, networks in time, and reference results.

mod allocation;
mod golden;
mod meshes;
mod network;
mod support;
