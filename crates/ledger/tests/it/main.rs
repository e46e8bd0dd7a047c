//! Integration tests of the ledger: rules, properties, a reference model, and the conformance vectors.

mod conformance;
mod estimates;
mod hostile;
mod model;
mod new_settings;
mod properties;
mod reference;
mod rules;
mod support;
mod vectors;
mod views;
mod windows;
