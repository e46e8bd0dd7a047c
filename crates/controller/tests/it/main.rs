//! Tests of the service over HTTP, in the process of the test.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod batch;
mod clocks;
mod commitments;
mod copies;
mod crowds;
mod demo;
mod devices;
mod enforcers;
mod existing;
mod faulty;
mod frames;
mod hangs;
mod herding;
mod history;
mod hooks;
mod hotspots;
mod idempotency;
mod labs;
mod leases;
mod metrics;
mod modes;
mod openapi;
mod pods;
mod probes;
mod redecisions;
mod requests;
mod reserve;
mod service;
mod start;
mod stripes;
mod summary;
mod watching;
mod workloads;
