//! Eligibility and free capacity of hosts. Counts by domain are updated as hosts change, so a decision skips a closed
//! rack without looking at its hosts, and never scans all hosts.

use crate::JobId;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{Bandwidth, Bytes, Cpus, Device, DomainId, Fabric, HostId};

/// Health and free capacity of every host. Changes of unknown hosts are ignored; queries about them panic, because they
/// are bugs of the caller.
#[derive(Clone, Debug)]
pub struct Pool {
    fabric: Arc<Fabric>,
    hosts: Vec<Status>,
    /// Number of open hosts below each domain.
    open: Vec<u32>,
    /// Bytes stored on all hosts with limited storage, and their total storage.
    stored: u128,
    total_storage: u128,
    /// Storage of the hosts below each domain, and the bytes stored on them.
    domains: Vec<DomainStorage>,
    write_rate: Option<Bandwidth>,
    /// Places of the tasks of each job. Only for lookups, never iterated.
    tasks: HashMap<JobId, JobTasks>,
}

/// Storage of the hosts below a domain.
#[derive(Clone, Copy, Debug, Default)]
struct DomainStorage {
    /// Storage of the hosts with limited storage.
    limited: u128,
    /// Number of the other hosts.
    unlimited: u32,
    /// Bytes stored on all hosts.
    stored: u128,
}

/// Number of tasks of a job by rack and by host, sorted, without zeros.
#[derive(Clone, Debug, Default)]
struct JobTasks {
    racks: Vec<(DomainId, u32)>,
    hosts: Vec<(HostId, u32)>,
}

/// Adds a task at a place.
fn add_task<T: Ord + Copy>(places: &mut Vec<(T, u32)>, place: T) {
    match places.binary_search_by_key(&place, |&(place, _)| place) {
        Ok(at) => places[at].1 += 1,
        Err(at) => places.insert(at, (place, 1)),
    }
}

/// Removes a task from a place.
fn remove_task<T: Ord + Copy>(places: &mut Vec<(T, u32)>, place: T) {
    let Ok(at) = places.binary_search_by_key(&place, |&(place, _)| place) else { return };
    places[at].1 -= 1;
    if places[at].1 == 0 {
        places.remove(at);
    }
}

#[derive(Clone, Copy, Debug)]
struct Status {
    up: bool,
    draining: bool,
    stored: u64,
    /// Storage in total; `u64::MAX` for no limit.
    storage: u64,
    /// Processors and memory that tasks take.
    cpus: Cpus,
    memory: Bytes,
    /// Processors and memory in total, stored here so that a query reads one cache line.
    all_cpus: Option<Cpus>,
    all_memory: Option<Bytes>,
}

impl Status {
    fn is_open(&self) -> bool {
        self.up && !self.draining && self.stored < self.storage
    }

    /// Storage in total; `None` for no limit.
    fn limit(&self) -> Option<u64> {
        (self.storage < u64::MAX).then_some(self.storage)
    }
}

impl Pool {
    /// A pool with all hosts up, none draining, nothing stored.
    pub fn new(fabric: Arc<Fabric>) -> Pool {
        let storage_of = |host| fabric.storage(host).map_or(u64::MAX, |bytes| bytes.0);
        let status = |host| Status {
            up: true,
            draining: false,
            stored: 0,
            storage: storage_of(host),
            cpus: Cpus(0),
            memory: Bytes(0),
            all_cpus: fabric.cpus(host),
            all_memory: fabric.memory(host),
        };
        let hosts: Vec<Status> = fabric.all_hosts().map(status).collect();
        let write_rate = fastest_write(fabric.all_hosts().flat_map(|host| fabric.devices(host)));
        let total_storage = hosts.iter().filter_map(Status::limit).map(u128::from).sum();
        let open = vec![0; fabric.domain_count()];
        let domains = vec![DomainStorage::default(); fabric.domain_count()];
        let mut pool = Pool {
            open,
            hosts,
            stored: 0,
            total_storage,
            domains,
            write_rate,
            tasks: HashMap::new(),
            fabric,
        };
        for host in pool.fabric.clone().all_hosts() {
            if pool.is_open(host) {
                pool.count(host, 1);
            }
            let limit = pool.hosts[host.index()].limit();
            pool.climb(host, |pool, at| {
                let domain = &mut pool.domains[at.index()];
                domain.limited += limit.map_or(0, u128::from);
                domain.unlimited += u32::from(limit.is_none());
            });
        }
        pool
    }

    /// A copy with the task counts of one job only. A full copy may hold the counts of a hundred thousand jobs.
    pub fn of_job(&self, job: JobId) -> Pool {
        let mut tasks = HashMap::new();
        tasks.extend(self.tasks.get(&job).map(|places| (job, places.clone())));
        Pool {
            fabric: self.fabric.clone(),
            hosts: self.hosts.clone(),
            open: self.open.clone(),
            stored: self.stored,
            total_storage: self.total_storage,
            domains: self.domains.clone(),
            write_rate: self.write_rate,
            tasks,
        }
    }

    /// The fabric of the hosts.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Write rate of the cluster's fastest device; `None` without devices.
    pub fn write_rate(&self) -> Option<Bandwidth> {
        self.write_rate
    }

    /// Write rate of a host's fastest device; `None` without devices.
    pub fn write_rate_of(&self, host: HostId) -> Option<Bandwidth> {
        fastest_write(self.fabric.devices(host).iter())
    }

    /// Marks a host as up or down.
    pub fn set_up(&mut self, host: HostId, up: bool) {
        self.change(host, |status| status.up = up);
    }

    /// Marks a host as draining or as open. A draining host takes no new work.
    pub fn set_draining(&mut self, host: HostId, draining: bool) {
        self.change(host, |status| status.draining = draining);
    }

    /// Sets the storage that a host has according to its reports. The storage in the cluster file is the upper limit.
    pub fn set_storage(&mut self, host: HostId, reported: Bytes) {
        if host.index() >= self.hosts.len() {
            return;
        }
        let storage = self.fabric.storage(host).map_or(reported.0, |storage| storage.0.min(reported.0));
        self.change(host, |status| status.storage = storage);
    }

    /// Sets the bytes stored on a host.
    pub fn set_stored(&mut self, host: HostId, stored: Bytes) {
        self.change(host, |status| status.stored = stored.0);
    }

    /// Adds to the bytes stored on a host.
    pub fn store(&mut self, host: HostId, bytes: Bytes) {
        self.change(host, |status| status.stored = status.stored.saturating_add(bytes.0));
    }

    /// Subtracts from the bytes stored on a host.
    pub fn discard(&mut self, host: HostId, bytes: Bytes) {
        self.change(host, |status| status.stored = status.stored.saturating_sub(bytes.0));
    }

    /// Bytes stored on a host.
    pub fn stored(&self, host: HostId) -> Bytes {
        Bytes(self.hosts[host.index()].stored)
    }

    /// Adds a task of a job to a host.
    pub fn occupy(&mut self, host: HostId, job: JobId, cpus: Cpus, memory: Bytes) {
        let Some(status) = self.hosts.get_mut(host.index()) else { return };
        status.cpus.0 = status.cpus.0.saturating_add(cpus.0);
        status.memory.0 = status.memory.0.saturating_add(memory.0);
        let places = self.tasks.entry(job).or_default();
        add_task(&mut places.racks, self.fabric.rack_of(host));
        add_task(&mut places.hosts, host);
    }

    /// Removes a task of a job from a host.
    pub fn vacate(&mut self, host: HostId, job: JobId, cpus: Cpus, memory: Bytes) {
        let Some(status) = self.hosts.get_mut(host.index()) else { return };
        status.cpus.0 = status.cpus.0.saturating_sub(cpus.0);
        status.memory.0 = status.memory.0.saturating_sub(memory.0);
        let Some(places) = self.tasks.get_mut(&job) else { return };
        remove_task(&mut places.racks, self.fabric.rack_of(host));
        remove_task(&mut places.hosts, host);
        if places.hosts.is_empty() {
            self.tasks.remove(&job);
        }
    }

    /// Free processors of a host; `None` for no limit.
    pub fn cpus_left(&self, host: HostId) -> Option<Cpus> {
        let status = &self.hosts[host.index()];
        status.all_cpus.map(|all| Cpus(all.0.saturating_sub(status.cpus.0)))
    }

    /// Free memory of a host; `None` for no limit.
    pub fn memory_left(&self, host: HostId) -> Option<Bytes> {
        let status = &self.hosts[host.index()];
        status.all_memory.map(|all| Bytes(all.0.saturating_sub(status.memory.0)))
    }

    /// Racks with tasks of a job, sorted, with the number of tasks in each.
    pub fn racks_of(&self, job: JobId) -> &[(DomainId, u32)] {
        self.tasks.get(&job).map_or(&[], |places| places.racks.as_slice())
    }

    /// Hosts with tasks of a job, sorted, with the number of tasks on each.
    pub fn hosts_of(&self, job: JobId) -> &[(HostId, u32)] {
        self.tasks.get(&job).map_or(&[], |places| places.hosts.as_slice())
    }

    /// True if a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.hosts[host.index()].up
    }

    /// True if a host is draining.
    pub fn is_draining(&self, host: HostId) -> bool {
        self.hosts[host.index()].draining
    }

    /// True if `bytes` more fit on a host.
    pub fn fits(&self, host: HostId, bytes: Bytes) -> bool {
        let status = &self.hosts[host.index()];
        bytes.0 <= status.storage.saturating_sub(status.stored)
    }

    /// Storage of a host; `None` for no limit.
    pub fn storage_of(&self, host: HostId) -> Option<Bytes> {
        self.hosts[host.index()].limit().map(Bytes)
    }

    /// Storage of a domain's hosts; `None` if one of them has no limit.
    pub fn storage(&self, domain: DomainId) -> Option<Bytes> {
        let DomainStorage { limited, unlimited, .. } = self.domains[domain.index()];
        (unlimited == 0).then_some(Bytes(u64::try_from(limited).unwrap_or(u64::MAX)))
    }

    /// Bytes stored on a domain's hosts.
    pub fn stored_in(&self, domain: DomainId) -> Bytes {
        Bytes(u64::try_from(self.domains[domain.index()].stored).unwrap_or(u64::MAX))
    }

    /// Free storage of a host.
    pub fn room(&self, host: HostId) -> Bytes {
        let status = &self.hosts[host.index()];
        Bytes(status.storage.saturating_sub(status.stored))
    }

    /// Average fill of the cluster's hosts, as a share of their storage.
    pub fn mean_fill(&self) -> f64 {
        if self.total_storage == 0 { 0.0 } else { self.stored as f64 / self.total_storage as f64 }
    }

    /// Fill of a host with `bytes` more, as a share of its storage; 0 without limit.
    pub fn fill(&self, host: HostId, bytes: Bytes) -> f64 {
        let status = &self.hosts[host.index()];
        if status.storage == u64::MAX {
            return 0.0;
        }
        (status.stored as f64 + bytes.0 as f64) / (status.storage as f64).max(1.0)
    }

    /// Excess of a host's fill with `bytes` more over the cluster's average; 0 on a host without limit.
    pub fn imbalance(&self, host: HostId, bytes: Bytes) -> f64 {
        if self.hosts[host.index()].storage == u64::MAX {
            0.0
        } else {
            self.fill(host, bytes) - self.mean_fill()
        }
    }

    /// True if a host is up, not draining and not full.
    pub fn is_open(&self, host: HostId) -> bool {
        self.hosts[host.index()].is_open()
    }

    /// Number of open hosts below a domain.
    pub fn open(&self, domain: DomainId) -> u32 {
        self.open[domain.index()]
    }

    fn change(&mut self, host: HostId, change: impl FnOnce(&mut Status)) {
        let Some(status) = self.hosts.get_mut(host.index()) else { return };
        let before = *status;
        change(status);
        let after = *status;
        let limited = |status: Status| {
            let limit = status.limit()?;
            Some((u128::from(status.stored), u128::from(limit)))
        };
        let ((old_stored, old_storage), (stored, storage)) =
            (limited(before).unwrap_or_default(), limited(after).unwrap_or_default());
        self.stored = self.stored - old_stored + stored;
        self.total_storage = self.total_storage - old_storage + storage;
        if (before.stored, before.storage) != (after.stored, after.storage) {
            self.climb(host, |pool, at| {
                let domain = &mut pool.domains[at.index()];
                domain.stored = domain.stored - u128::from(before.stored) + u128::from(after.stored);
                domain.limited = domain.limited - old_storage + storage;
                let unlimited = |status: Status| u32::from(status.limit().is_none());
                domain.unlimited = domain.unlimited - unlimited(before) + unlimited(after);
            });
        }
        match (before.is_open(), after.is_open()) {
            (false, true) => self.count(host, 1),
            (true, false) => self.count(host, -1),
            _ => {}
        }
    }

    fn count(&mut self, host: HostId, change: i32) {
        self.climb(host, |pool, at| {
            pool.open[at.index()] = pool.open[at.index()].wrapping_add_signed(change);
        });
    }

    /// Applies a change to the rack of a host and to all enclosing domains.
    fn climb(&mut self, host: HostId, change: impl Fn(&mut Pool, DomainId)) {
        let mut domain = Some(self.fabric.rack_of(host));
        while let Some(at) = domain {
            change(self, at);
            domain = self.fabric.parent(at);
        }
    }
}

fn fastest_write<'a>(devices: impl Iterator<Item = &'a Device>) -> Option<Bandwidth> {
    let least = devices.map(|device| device.write_ns_per_byte).fold(f64::INFINITY, f64::min);
    least.is_finite().then(|| Bandwidth((8e9 / least).round() as u64))
}
