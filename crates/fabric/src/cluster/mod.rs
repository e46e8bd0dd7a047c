//! Cluster files: what a user writes about a network, and how it becomes a [`Fabric`] and its [`Capacities`].
//!
//! The smallest file is four lines (`racks`, `hosts_per_rack`, `nic`, `oversubscription`); every rack, host,
//! device and pair can be written out where they differ. JSON is accepted, since it is YAML.

mod applies;
mod errors;
mod file;
mod layout;
mod resolve;
mod values;

use std::sync::Arc;

pub use file::{ClusterFile, DeviceFile, HostFile, PairFile, PodFile, RackFile};
pub use values::{Count, Duplex, Listing, Name, Rate, Ratio};

use crate::input::{InputError, read_text, read_yaml};
use crate::{Capacities, Fabric};

/// A network: its shape, and the capacities its file states.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The immutable shape.
    pub fabric: Arc<Fabric>,
    /// What the file says each resource can carry.
    pub capacities: Capacities,
}

impl Cluster {
    /// Reads a cluster from YAML or JSON text; `file` names it in errors.
    pub fn from_text(file: &str, text: &str) -> Result<Cluster, InputError> {
        layout::build(file, &read_yaml::<ClusterFile>(file, text)?)
    }

    /// Reads a cluster file.
    pub fn from_file(path: &str) -> Result<Cluster, InputError> {
        Cluster::from_text(path, &read_text(path)?)
    }
}
