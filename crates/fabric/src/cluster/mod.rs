//! Cluster files: the user's description of a network, and its conversion to a [`Fabric`] and its [`Capacities`].
//!
//! The smallest file is four lines (`racks`, `hosts_per_rack`, `nic`, `oversubscription`). A file can also list racks,
//! hosts, devices and pairs that differ from the defaults. JSON is accepted, because it is valid YAML.

mod applies;
mod cross_traffic;
mod errors;
mod file;
mod layout;
mod mesh_links;
mod resolve;
mod round_trips;
mod source;
mod tags;
mod values;

use std::sync::Arc;

pub use file::{
    ClusterFile, CrossTrafficFile, DeviceFile, HostFile, PairFile, PathFile, PodFile, RackFile,
    RoundTripFile, SharedLinkFile,
};
pub use source::ClusterSource;
pub use values::{Count, Duplex, Listing, Name, Rate, Ratio};

use crate::input::{InputError, read_json, read_text, read_yaml};
use crate::{Capacities, Fabric, ResourceId};

/// A network: its shape, and the capacities from its file.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The immutable shape.
    pub fabric: Arc<Fabric>,
    /// Capacity of each resource according to the file.
    pub capacities: Capacities,
    /// Number of connections of others on links, according to the file.
    pub cross_traffic: Vec<(ResourceId, f64)>,
    /// Text of the file, or JSON of the value, from which the cluster was read; empty for another origin.
    pub source: Arc<str>,
}

/// Clusters with the same network are equal, whatever the form of their files.
impl PartialEq for Cluster {
    fn eq(&self, other: &Cluster) -> bool {
        self.fabric == other.fabric
            && self.capacities == other.capacities
            && self.cross_traffic == other.cross_traffic
    }
}

impl Cluster {
    /// Reads a cluster from YAML or JSON text; `file` names it in errors.
    ///
    /// # Errors
    ///
    /// Fails if the text is not valid YAML, has unknown, missing or contradictory fields, or describes too large a
    /// network.
    pub fn from_text(file: &str, text: &str) -> Result<Cluster, InputError> {
        let cluster = layout::build(file, &read_yaml::<ClusterFile>(file, text)?)?;
        Ok(Cluster { source: text.into(), ..cluster })
    }

    /// Reads a cluster from a JSON value with the fields of a cluster file; errors call it `name`.
    ///
    /// # Errors
    ///
    /// Fails if the value has unknown, missing or contradictory fields, or describes too large a network.
    pub fn from_json(name: &str, value: &serde_json::Value) -> Result<Cluster, InputError> {
        let cluster = layout::build(name, &read_json::<ClusterFile>(name, value)?)?;
        Ok(Cluster { source: value.to_string().into(), ..cluster })
    }

    /// Reads a cluster from a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, and for the reasons of [`Cluster::from_text`].
    pub fn from_file(path: &str) -> Result<Cluster, InputError> {
        Cluster::from_text(path, &read_text(path)?)
    }
}
