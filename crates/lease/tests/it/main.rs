//! Tests of leases: properties with a model of controllers and faults, and the removal with a slow controller.

mod properties;
mod removal;
