//! Integration tests of the fabric: networks, cluster files, and their errors.

mod bad_files;
mod examples;
mod network;
mod robust;
mod schema;
mod shared;
mod support;
