//! The network enforcer on a model of the kernel, and on kernels of a lab.

mod controlled;
mod difference;
mod flows;
mod host;
mod kernel;
mod program;
