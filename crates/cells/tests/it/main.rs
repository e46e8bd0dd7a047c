//! Tests of cells: files, properties of runs, and tables of their quality.

mod file;
mod policies;
mod properties;
mod support;
mod tables;
