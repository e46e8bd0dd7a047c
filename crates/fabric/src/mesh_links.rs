//! Links of a mesh besides those that each shape has: pairs of a hose with their own rate, and links that several paths
//! share.
//!
//! Choreo (section 3.3) measures a rate for each path, a limit of each source, and bottlenecks that paths share. Each of
//! them is a resource, and a path crosses all that apply to it. The matrix S of Choreo's appendix, which says what paths
//! share a bottleneck, is therefore the set of paths that cross a resource.

use std::collections::BTreeMap;

use crate::{Fabric, HostId, ResourceId, Shape};

/// An ordered pair of hosts.
pub(crate) type Path = (HostId, HostId);

/// Paths that cross a shared link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Members {
    /// Paths from these hosts to any other host.
    OutOf(Vec<HostId>),
    /// Paths from any other host to these hosts.
    Into(Vec<HostId>),
    /// These paths.
    Paths(Vec<Path>),
}

/// Pairs of a hose mesh, shared links, and paths that stay within one machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct MeshLinks {
    /// Sorted pairs of a hose mesh that have their own rate.
    pairs: Vec<Path>,
    /// Sorted paths between hosts on one machine.
    same_machine: Vec<Path>,
    /// Names of the shared links.
    shared_names: Vec<Box<str>>,
    /// For each host, the shared links out of its group; empty if no shared link is out of a group.
    out_of: Vec<Vec<u32>>,
    /// For each host, the shared links into its group; empty if no shared link is into a group.
    into: Vec<Vec<u32>>,
    /// Shared links of single paths.
    of_paths: BTreeMap<Path, Vec<u32>>,
}

impl MeshLinks {
    /// Creates the links of a mesh with a number of hosts. Pairs must be distinct.
    pub fn new(
        hosts: usize,
        mut pairs: Vec<Path>,
        mut same_machine: Vec<Path>,
        shared: Vec<(Box<str>, Members)>,
    ) -> MeshLinks {
        pairs.sort_unstable();
        same_machine.sort_unstable();
        let mut links = MeshLinks { pairs, same_machine, ..MeshLinks::default() };
        for (index, (name, members)) in (0..).zip(shared) {
            links.shared_names.push(name);
            let (by_host, group) = match members {
                Members::OutOf(group) => (&mut links.out_of, group),
                Members::Into(group) => (&mut links.into, group),
                Members::Paths(paths) => {
                    for path in paths {
                        links.of_paths.entry(path).or_default().push(index);
                    }
                    continue;
                }
            };
            by_host.resize(hosts, Vec::new());
            group.into_iter().for_each(|host| by_host[host.index()].push(index));
        }
        links
    }

    /// Number of links: the pairs, and then the shared links.
    pub fn count(&self) -> u32 {
        (self.pairs.len() + self.shared_names.len()) as u32
    }

    /// Position of a pair among the links.
    pub fn pair(&self, from: HostId, to: HostId) -> Option<u32> {
        self.pairs.binary_search(&(from, to)).ok().map(|at| at as u32)
    }

    /// The hosts of a pair by its position.
    pub fn hosts_of_pair(&self, at: u32) -> Option<Path> {
        self.pairs.get(at as usize).copied()
    }

    /// Position of a shared link among the links.
    fn shared(&self, number: u32) -> u32 {
        self.pairs.len() as u32 + number
    }

    /// Name of a shared link by its position among the links.
    pub fn shared_name(&self, at: u32) -> Option<&str> {
        let number = (at as usize).checked_sub(self.pairs.len())?;
        self.shared_names.get(number).map(|name| &**name)
    }

    /// Position of the shared link with this name among the links.
    pub fn find_shared(&self, name: &str) -> Option<u32> {
        let number = self.shared_names.iter().position(|shared| **shared == *name)?;
        Some(self.shared(number as u32))
    }

    /// True if a path from this host stays within one machine.
    fn shares_machine(&self, host: HostId) -> bool {
        let at = self.same_machine.partition_point(|&(from, _)| from < host);
        self.same_machine.get(at).is_some_and(|&(from, _)| from == host)
    }

    /// True if the path stays within one machine.
    pub fn is_within_machine(&self, from: HostId, to: HostId) -> bool {
        self.same_machine.binary_search(&(from, to)).is_ok()
    }

    /// Positions of the shared links that a path crosses: those out of a group, those of the path, those into a group.
    pub fn shared_by(&self, from: HostId, to: HostId) -> impl Iterator<Item = u32> {
        let leaves = groups_of(&self.out_of, from);
        let enters = groups_of(&self.into, to);
        let of_path = self.of_paths.get(&(from, to)).map_or(&[][..], |links| links);
        let stays = |groups, host, number: &u32| groups_of(groups, host).contains(number);
        let leaves = leaves.iter().filter(move |number| !stays(&self.out_of, to, number));
        let enters = enters.iter().filter(move |number| !stays(&self.into, from, number));
        leaves.chain(of_path).chain(enters).map(|&number| self.shared(number))
    }
}

/// Groups of a host.
fn groups_of(by_host: &[Vec<u32>], host: HostId) -> &[u32] {
    by_host.get(host.index()).map_or(&[], |groups| groups)
}

impl Fabric {
    /// The link from one host of a mesh to another. On a pipe mesh, every ordered pair has one. On a hose mesh, the pairs
    /// with their own rate have one, besides the links of their hosts. `None` on a tree and from a host to itself.
    pub fn pair(&self, from: HostId, to: HostId) -> Option<ResourceId> {
        if self.shape != Shape::Pipe {
            return self.mesh_links.pair(from, to).map(|at| ResourceId(self.first_mesh_link() + at));
        }
        // A host has no link to itself, so each row of pairs has one entry fewer than there are hosts.
        let others = self.host_names.len() as u32 - 1;
        (from != to).then(|| ResourceId(from.0 * others + to.0 - u32::from(to > from)))
    }

    /// The two hosts of a pair: from and to. `None` for any other resource.
    pub fn hosts_of_pair(&self, resource: ResourceId) -> Option<(HostId, HostId)> {
        if self.shape != Shape::Pipe {
            return self.mesh_links.hosts_of_pair(self.mesh_link(resource)?);
        }
        if resource.0 >= self.host_links() {
            return None;
        }
        let others = self.host_names.len() as u32 - 1;
        let (from, to) = (resource.0 / others, resource.0 % others);
        Some((HostId(from), HostId(to + u32::from(to >= from))))
    }

    /// Id of the first pair of a hose or shared link.
    pub(crate) fn first_mesh_link(&self) -> u32 {
        self.host_links() + self.domain_links()
    }

    /// Position of a resource among the pairs of a hose and the shared links.
    pub(crate) fn mesh_link(&self, resource: ResourceId) -> Option<u32> {
        resource.0.checked_sub(self.first_mesh_link()).filter(|&at| at < self.mesh_links.count())
    }

    /// The name of a shared link, without its ending. `None` for any other resource.
    pub(crate) fn shared_link_name(&self, resource: ResourceId) -> Option<&str> {
        self.mesh_links.shared_name(self.mesh_link(resource)?)
    }

    /// The shared link with this name, without its ending.
    pub(crate) fn shared_link(&self, name: &str) -> Option<ResourceId> {
        self.mesh_links.find_shared(name).map(|at| ResourceId(self.first_mesh_link() + at))
    }

    /// The shared links that a path between two hosts crosses. None between hosts on one machine.
    pub fn shared_links(&self, from: HostId, to: HostId) -> impl Iterator<Item = ResourceId> {
        let crosses = from != to && !self.is_within_machine(from, to);
        let first = self.first_mesh_link();
        let shared = crosses.then(|| self.mesh_links.shared_by(from, to));
        shared.into_iter().flatten().map(move |at| ResourceId(first + at))
    }

    /// True for a hose mesh with rates of pairs, and for a mesh with shared links.
    pub fn has_mesh_links(&self) -> bool {
        self.mesh_links.count() > 0
    }

    /// True if another host of the mesh is on the machine of this host; see [`Fabric::is_within_machine`].
    pub fn shares_machine(&self, host: HostId) -> bool {
        self.mesh_links.shares_machine(host)
    }

    /// True if the cluster file says that two hosts of a mesh are on one machine: the path between them crosses no link
    /// of theirs and no shared link, only the pair.
    pub fn is_within_machine(&self, from: HostId, to: HostId) -> bool {
        self.mesh_links.is_within_machine(from, to)
    }
}
