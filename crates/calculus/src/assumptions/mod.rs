//! Tests of the assumptions of stochastic bounds: each trace is stationary, and traces are independent of one another.
//! Zhu's thesis tests both (section 4.3.2) without naming the tests.
//!
//! ```text
//! trace --> Activity --> stationarity    does the load change over the trace?
//!               \------> dependences     do bursts of two traces coincide?
//! ```
//!
//! Loads in intervals that follow one another are alike, because bursts last. So the tests compare 32 sections of a trace,
//! each long against most bursts: its p-values hold if sections are independent. A test by single intervals would call
//! every bursty trace unstationary, and many pairs of them dependent.

mod activity;
mod dependence;
mod sections;
mod stationarity;
mod student;

pub use activity::Activity;
pub use dependence::{Dependence, dependences};
pub use stationarity::{Stationarity, stationarity};
