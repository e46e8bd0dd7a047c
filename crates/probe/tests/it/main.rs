//! Integration tests of the probe crate. `real` is a separate binary, because other traffic would disturb its networks.

mod hosts;
mod mesh;
mod trains;
