//! The hosts as the default policy would have filled them with tasks. Where its choice is only compared, it chooses among
//! these hosts. Among the hosts as Leeward's policy fills them, it would choose the same empty hosts again and again,
//! because its own earlier tasks are not there.
//!
//! Tasks whose placement by the default policy is not known are where they were placed: those of an app that is decided
//! on a snapshot, that the default policy refused or was not asked about, or that ran before a restart of the service.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{Bytes, Cpus, Fabric, HostId};
use leeward_placement::tasks::AppRequest;
use leeward_placement::{JobId, Pool};

/// The hosts with the tasks of the default policy. Stored bytes are not counted.
pub(crate) struct DefaultHosts {
    pool: Pool,
    /// Places of the tasks of each app. Only for lookups, never iterated.
    apps: HashMap<u64, Vec<Place>>,
}

/// Place of a task.
struct Place {
    host: HostId,
    job: JobId,
    cpus: Cpus,
    memory: Bytes,
}

impl DefaultHosts {
    /// Creates open hosts without tasks.
    pub fn new(fabric: Arc<Fabric>) -> DefaultHosts {
        DefaultHosts { pool: Pool::new(fabric), apps: HashMap::new() }
    }

    /// The hosts.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Sets the health of a host.
    pub fn set_up(&mut self, host: HostId, up: bool) {
        self.pool.set_up(host, up);
    }

    /// Sets if a host is drained.
    pub fn set_draining(&mut self, host: HostId, draining: bool) {
        self.pool.set_draining(host, draining);
    }

    /// Puts the tasks of an app on hosts. An app of the same number ends first.
    pub fn place(&mut self, request: &AppRequest, hosts: &[HostId]) {
        self.end(request.id);
        let places = request.tasks.iter().zip(hosts);
        let places: Vec<Place> = places
            .map(|(task, &host)| Place { host, job: request.job, cpus: task.cpus, memory: task.memory })
            .collect();
        for &Place { host, job, cpus, memory } in &places {
            self.pool.occupy(host, job, cpus, memory);
        }
        self.apps.insert(request.id, places);
    }

    /// Ends an app.
    pub fn end(&mut self, app: u64) {
        for Place { host, job, cpus, memory } in self.apps.remove(&app).unwrap_or_default() {
            self.pool.vacate(host, job, cpus, memory);
        }
    }
}
