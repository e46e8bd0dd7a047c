//! Tests of the simulator of operations: files, runs, and what the theory of queues says of them.

mod file;
mod runs;
mod theory;
