//! Integration tests of the probe crate. `real` is a binary of its own, since other traffic would disturb its networks.

mod hosts;
mod mesh;
mod trains;
