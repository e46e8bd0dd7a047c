//! Racks that can take a task from a hot rack.

use std::ops::Range;

use leeward_fabric::{Bytes, Cpus, DomainId, Fabric, HostId};

use crate::HotTest;
use leeward_placement::Context;
use leeward_placement::tasks::Task;

/// Racks with all links below the load limit.
pub(super) struct CoolRacks {
    /// Load limit of each link, as a share of its capacity.
    max_load: f64,
    /// Load of links that counts.
    test: HotTest,
    /// Racks that stay cool, in order.
    racks: Vec<Rack>,
    /// For each rack, the most free processors and the most free memory of any of its hosts at the start.
    left: Vec<(Cpus, Bytes)>,
    /// Free capacity of each host now.
    hosts: Vec<(Cpus, Bytes)>,
}

/// Headroom of a rack.
#[derive(Clone, Copy)]
struct Rack {
    rack: DomainId,
    /// Headroom of the links out of it and into it, in bit/s.
    links: [f64; 2],
    left: (Cpus, Bytes),
}

impl CoolRacks {
    /// Evaluates all racks in their current state.
    pub fn new(context: &Context<'_, '_>, max_load: f64, test: HotTest) -> CoolRacks {
        let (pool, fabric) = (context.pool, context.pool.fabric());
        let left = |host: HostId| {
            let (cpus, memory) = (pool.cpus_left(host), pool.memory_left(host));
            (cpus.unwrap_or(Cpus(u64::MAX)), memory.unwrap_or(Bytes(u64::MAX)))
        };
        let hosts: Vec<_> = fabric.all_hosts().map(left).collect();
        let most_left = |rack: DomainId| {
            let hosts = &hosts[host_range(fabric, rack)];
            hosts.iter().fold((Cpus(0), Bytes(0)), |most, left| (most.0.max(left.0), most.1.max(left.1)))
        };
        let left: Vec<_> = fabric.all_racks().map(most_left).collect();
        let cool = |(rack, &left)| Some(Rack { rack, links: headroom(context, rack, max_load, test)?, left });
        CoolRacks {
            max_load,
            test,
            racks: fabric.all_racks().zip(&left).filter_map(cool).collect(),
            left,
            hosts,
        }
    }

    /// Subtracts the capacity of a task placed on a host.
    pub fn occupy(&mut self, task: &Task, host: HostId) {
        let (cpus, memory) = &mut self.hosts[host.index()];
        *cpus = Cpus(cpus.0.saturating_sub(task.cpus.0));
        *memory = Bytes(memory.0.saturating_sub(task.memory.0));
    }

    /// Updates a rack whose load changed.
    pub fn update(&mut self, context: &Context<'_, '_>, rack: DomainId) {
        let at = self.racks.binary_search_by_key(&rack, |cool| cool.rack);
        match (at, headroom(context, rack, self.max_load, self.test)) {
            (Ok(at), Some(links)) => self.racks[at].links = links,
            (Ok(at), None) => drop(self.racks.remove(at)),
            (Err(at), Some(links)) => {
                self.racks.insert(at, Rack { rack, links, left: self.left[rack.index()] });
            }
            (Err(_), None) => {}
        }
    }

    /// Racks other than `from` that would stay cool with the task, in order. Racks that had no room for the task at the
    /// start are left out. The list is empty if no host of these racks has room now.
    pub fn racks_for(&self, fabric: &Fabric, task: &Task, from: DomainId) -> Vec<DomainId> {
        let adds = [task.total_egress().peak_bps, task.total_ingress().peak_bps].map(|bps| bps as f64);
        let stays_cool = |cool: &&Rack| {
            let (cpus, memory) = cool.left;
            let room = cpus >= task.cpus && memory >= task.memory;
            cool.rack != from && room && adds[0] <= cool.links[0] && adds[1] <= cool.links[1]
        };
        let racks: Vec<DomainId> = self.racks.iter().filter(stays_cool).map(|cool| cool.rack).collect();
        let room = |&(cpus, memory): &(Cpus, Bytes)| cpus >= task.cpus && memory >= task.memory;
        let has_host = |&rack: &DomainId| self.hosts[host_range(fabric, rack)].iter().any(room);
        if racks.iter().any(has_host) { racks } else { Vec::new() }
    }
}

fn host_range(fabric: &Fabric, rack: DomainId) -> Range<usize> {
    let Range { start, end } = fabric.hosts(rack);
    start as usize..end as usize
}

/// True if the load of every rack other than `from` is unknown.
pub(super) fn all_unseen(context: &Context<'_, '_>, from: DomainId) -> bool {
    let mut others = context.pool.fabric().all_racks().filter(|&rack| rack != from);
    others.all(|rack| headroom(context, rack, f64::INFINITY, HotTest::default()).is_none())
}

/// Additional load in bit/s that the links of a rack, out of it and into it, can carry below the share `max_load`.
/// `None` if a link exceeds this share already, or if its load is unknown.
fn headroom(context: &Context<'_, '_>, rack: DomainId, max_load: f64, test: HotTest) -> Option<[f64; 2]> {
    let (fabric, mut links) = (context.pool.fabric(), [f64::INFINITY; 2]);
    for (left, link) in links.iter_mut().zip([fabric.out_of_domain(rack), fabric.into_domain(rack)]) {
        let Some(link) = link else { continue };
        let utilization = test.destination_utilization(context.view, link)?;
        if utilization > max_load {
            return None;
        }
        *left = (max_load - utilization) * context.view.capacity(link).0 as f64;
    }
    Some(links)
}
