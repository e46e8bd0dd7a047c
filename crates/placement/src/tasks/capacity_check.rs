//! Free capacity of hosts for the tasks of a request, after the tasks placed so far.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::{Bytes, Cost, Cpus, DomainId, Fabric, HostId};

use super::{AppRequest, Assignment, Task};
use crate::decision::count_refusals;
use crate::ties::Ties;
use crate::{Apart, Constraint, Pool, Refusal};

/// Capacity of hosts that is taken by tasks outside of the pool.
pub type Taken = BTreeMap<HostId, (Cpus, Bytes)>;

/// Free capacity for the tasks of one request.
pub(super) struct CapacityCheck<'a> {
    pool: &'a Pool,
    request: &'a AppRequest,
    /// Capacity that tasks of the request take, by host.
    taken: Taken,
    placed: Vec<Option<HostId>>,
    /// Hosts, or racks, with tasks of the request, if its tasks are apart.
    apart: BTreeSet<u32>,
}

impl<'a> CapacityCheck<'a> {
    /// All free capacity of the pool; the request takes none yet.
    pub fn new(pool: &'a Pool, request: &'a AppRequest) -> CapacityCheck<'a> {
        CapacityCheck::beside(pool, request, Taken::default())
    }

    /// Free capacity of the pool minus the capacity that other tasks have taken.
    pub fn beside(pool: &'a Pool, request: &'a AppRequest, taken: Taken) -> CapacityCheck<'a> {
        let (placed, apart) = (vec![None; request.tasks.len()], BTreeSet::new());
        CapacityCheck { pool, request, taken, placed, apart }
    }

    /// Host of a task; `None` if it is not placed.
    pub fn host_of(&self, task: u32) -> Option<HostId> {
        self.placed[task as usize]
    }

    /// Capacity that tasks of the request take on a host.
    pub fn taken(&self, host: HostId) -> (Cpus, Bytes) {
        self.taken.get(&host).copied().unwrap_or_default()
    }

    /// Number of the request's tasks in a rack.
    pub fn in_rack(&self, rack: DomainId) -> u32 {
        // Shortcut for single tasks, which are frequent.
        if self.placed.len() < 2 {
            return 0;
        }
        let fabric = self.pool.fabric();
        self.placed.iter().flatten().filter(|&&host| fabric.rack_of(host) == rack).count() as u32
    }

    /// Reason for which a host cannot take a task; `None` if it can.
    pub fn refuses(&self, host: HostId, task: u32) -> Option<Constraint> {
        self.refuses_all(host, &[task])
    }

    /// Reason for which a host cannot take these tasks together; `None` if it can.
    pub fn refuses_all(&self, host: HostId, tasks: &[u32]) -> Option<Constraint> {
        let (fabric, constraints) = (self.pool.fabric(), &self.request.constraints);
        if !self.pool.is_up(host) {
            return Some(Constraint::Down);
        }
        if self.pool.is_draining(host) {
            return Some(Constraint::Draining);
        }
        if constraints.exclude(fabric, fabric.rack_of(host)) {
            return Some(Constraint::Excluded);
        }
        if let Some(refused) = constraints.refuse(fabric, host) {
            return Some(refused);
        }
        if let Some(place) = self.place(host)
            && (tasks.len() > 1 || self.apart.contains(&place))
        {
            return Some(Constraint::Apart);
        }
        if let Some(conflict) = self.conflict(host, tasks) {
            return Some(conflict);
        }
        let (mut cpus, mut memory) = self.taken(host);
        for task in tasks.iter().map(|&task| self.task(task)) {
            cpus.0 = cpus.0.saturating_add(task.cpus.0);
            memory.0 = memory.0.saturating_add(task.memory.0);
        }
        if self.pool.cpus_left(host).is_some_and(|left| left < cpus) {
            Some(Constraint::Cpus)
        } else if self.pool.memory_left(host).is_some_and(|left| left < memory) {
            Some(Constraint::Memory)
        } else {
            None
        }
    }

    /// Places a task on a host that does not refuse it.
    pub fn take(&mut self, task: u32, host: HostId) {
        debug_assert!(self.placed[task as usize].is_none(), "task {task} is placed already");
        let Task { cpus, memory, .. } = *self.task(task);
        let taken = self.taken.entry(host).or_default();
        taken.0.0 = taken.0.0.saturating_add(cpus.0);
        taken.1.0 = taken.1.0.saturating_add(memory.0);
        self.placed[task as usize] = Some(host);
        self.apart.extend(self.place(host));
    }

    /// True if a constraint forbids two tasks of the request on these two hosts.
    pub fn are_in_conflict(&self, one: (u32, HostId), other: (u32, HostId)) -> bool {
        self.request.constraints.conflict(self.pool.fabric(), one, other).is_some()
    }

    /// Constraint for which one of these tasks must not share the host with another of them, or must not be there beside
    /// a placed task.
    fn conflict(&self, host: HostId, tasks: &[u32]) -> Option<Constraint> {
        tasks.iter().find_map(|&task| self.conflicting_peer(host, task, tasks).map(|(_, conflict)| conflict))
    }

    /// The first task whose place keeps a task off a host, with the constraint. Tasks of `beside` come to the host too.
    fn conflicting_peer(&self, host: HostId, task: u32, beside: &[u32]) -> Option<(u32, Constraint)> {
        let (fabric, constraints) = (self.pool.fabric(), &self.request.constraints);
        let place = |peer: u32| if beside.contains(&peer) { Some(host) } else { self.placed[peer as usize] };
        constraints.related(task).find_map(|peer| {
            let conflict = constraints.conflict(fabric, (task, host), (peer, place(peer)?))?;
            Some((peer, conflict))
        })
    }

    /// Added cost of a host for the request: zero if a task of it is there already.
    pub fn added_cost(&self, host: HostId) -> Cost {
        if self.taken.contains_key(&host) { Cost(0) } else { self.pool.fabric().cost(host) }
    }

    /// Host or rack that has at most one task of the request; `None` if its tasks need not be apart.
    fn place(&self, host: HostId) -> Option<u32> {
        self.request.constraints.apart.map(|apart| match apart {
            Apart::Host => host.0,
            Apart::Rack => self.pool.fabric().rack_of(host).0,
        })
    }

    /// Places a task on the first of `hosts` that can take it.
    ///
    /// # Errors
    /// [`Refusal::NoHost`] if none can.
    pub fn take_first(
        &mut self,
        task: u32,
        hosts: impl IntoIterator<Item = HostId>,
    ) -> Result<HostId, Refusal> {
        match hosts.into_iter().find(|&host| self.refuses(host, task).is_none()) {
            Some(host) => {
                self.take(task, host);
                Ok(host)
            }
            None => Err(self.no_host(task)),
        }
    }

    /// Refusal of a task that fits no host, with the reasons counted.
    pub fn no_host(&self, task: u32) -> Refusal {
        let hosts = || self.pool.fabric().all_hosts();
        let by_constraint = count_refusals(hosts().filter_map(|host| self.refuses(host, task)));
        let empty = CapacityCheck::new(self.pool, self.request);
        let alone = hosts().all(|host| empty.refuses(host, task).is_some());
        let peer = |host| {
            (self.refuses(host, task) == Some(Constraint::Latency))
                .then(|| self.conflicting_peer(host, task, &[]))
        };
        let far_from = hosts().find_map(peer).flatten().map(|(peer, _)| peer);
        Refusal::NoHost { task, alone, far_from, by_constraint }
    }

    /// Capacity taken at the end.
    pub fn into_taken(self) -> Taken {
        self.taken
    }

    /// Hosts of all tasks; every task must be placed.
    pub fn assignment(&self) -> Assignment {
        self.placed.iter().map(|host| host.expect("every task is placed")).collect()
    }

    fn task(&self, task: u32) -> &'a Task {
        &self.request.tasks[task as usize]
    }
}

/// True if hosts can still take the tasks of an earlier decision: all hosts are up and open, and have enough free
/// capacity.
pub fn still_fits(pool: &Pool, request: &AppRequest, hosts: &[HostId]) -> bool {
    let mut capacity = CapacityCheck::new(pool, request);
    hosts.len() == request.tasks.len()
        && (0..).zip(hosts).all(|(task, &host)| {
            let fits = capacity.refuses(host, task).is_none();
            if fits {
                capacity.take(task, host);
            }
            fits
        })
}

/// Estimated number of host lookups to place each task of a request on the first host that can take it.
pub(super) fn estimated_lookups(request: &AppRequest, fabric: &Fabric) -> u64 {
    (request.tasks.len() as u64).saturating_mul(fabric.host_count() as u64)
}

/// All hosts, in an order that depends on the seed and the request; the first of equal hosts wins.
pub(super) fn shuffled(pool: &Pool, seed: u64, request: u64) -> Vec<HostId> {
    let ties = Ties::new(seed, request);
    let mut hosts: Vec<HostId> = pool.fabric().all_hosts().collect();
    hosts.sort_by_cached_key(|host| (ties.rank(u64::from(host.0)), *host));
    hosts
}
