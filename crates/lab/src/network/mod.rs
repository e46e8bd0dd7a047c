//! A network without circuits: the racks, pods and links of a cluster file, as namespaces with cables between them.
//!
//! ```text
//!  r0h0 --\                          every host, rack and pod is a namespace; racks, pods and the core forward packets,
//!          r0 -- up0 --\              so each of them is a hop
//!  r0h1 --/            p0 -- up0 -- core
//!          r1 -- up0 --/              a queue of `tc` at the sending end of each direction of a cable has the rate of
//!  r1h0 --/                          the link
//! ```
//!
//! On a mesh, a queue at the receiving host's rack has the rates of its paths. A cable of their own connects hosts on one
//! machine.
//!
//! A host whose cluster entry has devices has a folder for each, on a loop device that is throttled to its rates.
//!
//! `Plan` is a pure function of the cluster: the names, the addresses, and the batches of `ip` and `tc`. [`Network`]
//! carries it out. Packets cross exactly the limits that [`leeward_fabric::Fabric::path`] lists for their path; a cluster
//! for which that is impossible is an error.

mod disks;
mod layout;
mod live;
mod options;
mod plan;
mod queue;

pub use live::Network;
pub use options::NetworkOptions;

#[cfg(test)]
mod tests;
