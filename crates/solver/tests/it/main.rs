//! Integration tests of the solver.

mod programs;
