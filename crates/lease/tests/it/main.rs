//! Tests of leases: properties with a model of controllers and faults.

mod properties;
