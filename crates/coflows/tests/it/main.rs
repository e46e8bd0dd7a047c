//! Tests of coflows: the scheduler against a plain simulator, its properties, and examples by hand.

mod examples;
mod plain;
mod properties;
