//! Layout of a network: the tree of racks, of pods or groups of racks, and of the core, with the rates of its links.
//!
//! On a tree, the nodes are the racks and pods of the cluster. On a mesh, a shared link out of or into a group of racks is
//! the link of a node above these racks.

use std::collections::BTreeSet;

use leeward_fabric::{Cluster, DomainId, HostId, ResourceId, Shape};

use crate::error::LabError;

/// A namespace that forwards packets, with its link to the node above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    /// Name of the machine: `r3`, `p0` or `core`.
    pub name: String,
    /// Name in the cluster file.
    pub label: String,
    /// Node above; `None` for the core.
    pub above: Option<usize>,
    /// Link towards the core, and link from the core.
    pub up: Option<ResourceId>,
    pub down: Option<ResourceId>,
    /// Racks below the node.
    racks: BTreeSet<u32>,
}

impl Node {
    fn new(name: String, label: &str, racks: BTreeSet<u32>) -> Node {
        Node { name, label: label.to_owned(), above: None, up: None, down: None, racks }
    }
}

/// Forwarding nodes of a cluster: the racks by their number, the nodes above them, and at the end the core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub nodes: Vec<Node>,
}

fn unsupported(field: &'static str, problem: String) -> LabError {
    LabError::Unsupported { field, problem }
}

impl Layout {
    /// Lays out a cluster.
    ///
    /// # Errors
    /// Returns an error if a shared link is not one out of or into racks.
    pub fn of(cluster: &Cluster) -> Result<Layout, LabError> {
        let fabric = &cluster.fabric;
        let racks = fabric.all_racks().map(|rack| {
            Node::new(format!("r{}", rack.0), fabric.domain_name(rack), BTreeSet::from([rack.0]))
        });
        let mut layout = Layout { nodes: racks.collect() };
        if fabric.shape() == Shape::Tree {
            layout.add_pods(cluster);
        } else {
            layout.add_groups(cluster)?;
        }
        layout.add_core();
        if fabric.shape() != Shape::Tree {
            layout.check(cluster)?;
        }
        Ok(layout)
    }

    fn add_pods(&mut self, cluster: &Cluster) {
        let fabric = &cluster.fabric;
        let racks = fabric.rack_count();
        for pod in (racks..fabric.domain_count()).map(|pod| DomainId(pod as u32)) {
            let below = fabric.children(Some(pod)).map(|rack| rack.0).collect();
            let name = format!("p{}", pod.index() - racks);
            self.nodes.push(Node::new(name, fabric.domain_name(pod), below));
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let domain = DomainId(at as u32);
            (node.up, node.down) = (fabric.out_of_domain(domain), fabric.into_domain(domain));
        }
    }

    /// Makes nodes of the groups of racks that shared links are out of or into.
    fn add_groups(&mut self, cluster: &Cluster) -> Result<(), LabError> {
        let fabric = &cluster.fabric;
        let is_shared = |link: &ResourceId| fabric.kind(*link) == leeward_fabric::ResourceKind::SharedLink;
        for link in fabric.all_resources().filter(is_shared) {
            let (mut from, mut to) = (BTreeSet::new(), BTreeSet::new());
            for (source, destination) in pairs(cluster) {
                if fabric.shared_links(source, destination).any(|shared| shared == link) {
                    from.insert(source);
                    to.insert(destination);
                }
            }
            if from.is_empty() {
                continue;
            }
            // The paths out of some racks are those into all others.
            let ends = [(true, self.racks_of(cluster, &from)), (false, self.racks_of(cluster, &to))];
            let mut groups: Vec<(bool, BTreeSet<u32>)> =
                ends.into_iter().filter_map(|(is_up, racks)| Some((is_up, racks?))).collect();
            groups.sort_by_key(|(_, racks)| racks.len());
            if !groups.into_iter().any(|(is_up, racks)| self.place(link, is_up, racks)) {
                return Err(not_of_racks(cluster, link));
            }
        }
        Ok(())
    }

    /// Racks of which these are all hosts; `None` if there are none.
    fn racks_of(&self, cluster: &Cluster, hosts: &BTreeSet<HostId>) -> Option<BTreeSet<u32>> {
        let fabric = &cluster.fabric;
        let racks: BTreeSet<u32> = hosts.iter().map(|&host| fabric.rack_of(host).0).collect();
        let count: usize = racks.iter().map(|&rack| fabric.hosts(DomainId(rack)).len()).sum();
        (count == hosts.len()).then_some(racks)
    }

    /// Makes a shared link that of a group of racks; false if the group crosses another one, or has a link already.
    fn place(&mut self, link: ResourceId, is_up: bool, racks: BTreeSet<u32>) -> bool {
        let at = self.nodes.iter().position(|node| node.racks == racks).unwrap_or(self.nodes.len());
        if at == self.nodes.len() {
            let fits = |node: &Node| {
                node.racks.is_disjoint(&racks) || node.racks.is_subset(&racks) || racks.is_subset(&node.racks)
            };
            if !self.nodes.iter().all(fits) {
                return false;
            }
            let groups = self.nodes.iter().filter(|node| node.name.starts_with('p')).count();
            let name = format!("p{groups}");
            self.nodes.push(Node::new(name.clone(), &name, racks));
        }
        let end = if is_up { &mut self.nodes[at].up } else { &mut self.nodes[at].down };
        let is_free = end.is_none();
        end.get_or_insert(link);
        is_free
    }

    /// Adds the core, and places each node below the smallest one that has its racks.
    fn add_core(&mut self) {
        let all = self.nodes.iter().flat_map(|node| &node.racks).copied().collect();
        self.nodes.push(Node::new("core".to_owned(), "core", all));
        let core = self.nodes.len() - 1;
        for at in 0..core {
            let racks = &self.nodes[at].racks;
            // A pod may have the same racks as a rack below it, which precedes it.
            let is_above = |&other: &usize| {
                let others = &self.nodes[other].racks;
                other != at && racks.is_subset(others) && (racks != others || other > at)
            };
            let above =
                (0..=core).filter(is_above).min_by_key(|&other| (self.nodes[other].racks.len(), other));
            self.nodes[at].above = above;
        }
    }

    /// Nodes from a rack to the core, without the core.
    pub fn above(&self, rack: DomainId) -> impl Iterator<Item = usize> {
        let next = |&at: &usize| self.nodes[at].above.filter(|&above| self.nodes[above].above.is_some());
        std::iter::successors(Some(rack.index()), next)
    }

    /// Checks that the packets of every path cross the shared links of the path, and no others.
    fn check(&self, cluster: &Cluster) -> Result<(), LabError> {
        let fabric = &cluster.fabric;
        for (from, to) in pairs(cluster) {
            let [leaves, enters] =
                [from, to].map(|host| self.above(fabric.rack_of(host)).collect::<Vec<_>>());
            let up = leaves.iter().filter(|node| !enters.contains(node)).filter_map(|&at| self.nodes[at].up);
            let down =
                enters.iter().filter(|node| !leaves.contains(node)).filter_map(|&at| self.nodes[at].down);
            let crossed: BTreeSet<ResourceId> = up.chain(down).collect();
            let stated: BTreeSet<ResourceId> = fabric.shared_links(from, to).collect();
            if let Some(&link) = crossed.symmetric_difference(&stated).next() {
                return Err(not_of_racks(cluster, link));
            }
        }
        Ok(())
    }
}

fn not_of_racks(cluster: &Cluster, link: ResourceId) -> LabError {
    let name = cluster.fabric.resource_name(link);
    let problem = format!(
        "`{name}`: a lab has links that all paths out of, or into, some racks share; the racks of two links are apart, \
         or one has those of the other"
    );
    unsupported("shared_links", problem)
}

/// All ordered pairs of hosts.
fn pairs(cluster: &Cluster) -> impl Iterator<Item = (HostId, HostId)> {
    let fabric = &cluster.fabric;
    fabric
        .all_hosts()
        .flat_map(|from| fabric.all_hosts().filter(move |&to| to != from).map(move |to| (from, to)))
}
