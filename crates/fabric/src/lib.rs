//! The network: hosts, racks, pods, directed links, devices, the paths between them, and the cluster files that
//! describe them.
//!
//! ```text
//! cluster file --read--> Fabric      the shape; immutable, shared
//!                        Capacities  capacity of each resource; changes, and may differ from the real capacity
//! ```
//!
//! A *resource* is a link or a device. A link is one direction of one cable bundle; its work is counted in bits. A
//! device is a server of work; its work is counted in nanoseconds of service. A path is a list of [`Hop`]s: resources,
//! with the work that one payload byte causes at each. A chain-replicated write through two disks therefore needs no
//! special case in other crates.
//!
//! ```
//! use leeward_fabric::{Cluster, Endpoint};
//!
//! let file = "racks: 2\nhosts_per_rack: 20\nnic: 1Gbps\noversubscription: 10";
//! let Cluster { fabric, capacities, .. } = Cluster::from_text("cluster.yaml", file)?;
//! let ends = ["r0h0", "r1h7"].map(|name| Endpoint::Host(fabric.host(name).expect("a host of the file")));
//! let mut hops = Vec::new();
//! fabric.path(&ends, &mut hops);
//! let names: Vec<String> = hops.iter().map(|hop| fabric.resource_name(hop.resource)).collect();
//! assert_eq!(names, ["r0h0:egress", "r0:uplink", "r1:downlink", "r1h7:ingress"]);
//! assert_eq!(capacities.get(hops[1].resource).0, 2_000_000_000); // 20 x 1Gbps / 10
//! # Ok::<(), leeward_fabric::input::InputError>(())
//! ```

// In the crate that most others need, so that a build elsewhere ends with this line and not with errors of other crates.
#[cfg(not(target_os = "linux"))]
compile_error!("Leeward runs on Linux only");

mod capacities;
pub mod cluster;
mod dscp;
mod fabric;
mod ids;
pub mod input;
mod mesh_links;
mod names;
mod nearest;
mod path;
mod round_trips;
pub mod units;

pub use capacities::Capacities;
pub use cluster::Cluster;
pub use dscp::Dscp;
pub use fabric::{Device, Discipline, Fabric, RackKind, ResourceKind, Shape, label_tag};
pub use ids::{DomainId, FaultDomainId, HostId, ResourceId};
pub use path::{BITS_PER_BYTE, Endpoint, Hop};
pub use units::{Bandwidth, Bytes, Cost, Cpus, Load, Nanos};
