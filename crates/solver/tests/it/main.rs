//! Integration tests of the solver.

mod programs;
mod proofs;
mod vertices;
