//! What the network is: hosts, racks, pods, directed links, devices, the paths between them, and the cluster
//! files that describe all this.
//!
//! ```text
//! cluster file --read--> Fabric      the shape; immutable, shared
//!                        Capacities  what each resource can carry; changes, and a plant's may differ from a ledger's
//! ```
//!
//! A *resource* is a link or a device. A link is one direction of one cable bundle and its work is counted in
//! bits; a device is a server of work and its work is counted in nanoseconds of service. A path is a list of
//! [`Hop`]s: resources, with the work that one payload byte causes at each. So a chain-replicated write through
//! two disks needs no special case anywhere above.

mod capacities;
pub mod cluster;
mod fabric;
mod ids;
pub mod input;
mod names;
mod path;
pub mod units;

pub use capacities::Capacities;
pub use cluster::Cluster;
pub use fabric::{Device, Discipline, DomainKind, Fabric, RackKind, ResourceKind, Shape};
pub use ids::{DomainId, FaultDomainId, HostId, ResourceId};
pub use path::{BITS_PER_BYTE, Endpoint, Hop};
pub use units::{Bandwidth, Bytes, Load, Nanos};
