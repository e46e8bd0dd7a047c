//! Which hosts may take work. Counts by domain are kept up to date as hosts change, so that a decision passes over a
//! closed rack without looking at its hosts, and never scans them all.

use std::sync::Arc;

use leeward_fabric::{Bandwidth, Bytes, Device, DomainId, Fabric, HostId};

/// Health and room of every host.
#[derive(Clone, Debug)]
pub struct Pool {
    fabric: Arc<Fabric>,
    hosts: Vec<Status>,
    /// Open hosts below each domain.
    open: Vec<u32>,
    write_rate: Option<Bandwidth>,
}

#[derive(Clone, Copy, Debug)]
struct Status {
    up: bool,
    draining: bool,
    stored: u64,
    room: u64,
}

impl Status {
    fn is_open(&self) -> bool {
        self.up && !self.draining && self.stored < self.room
    }
}

impl Pool {
    /// All hosts up, none draining, nothing stored.
    pub fn new(fabric: Arc<Fabric>) -> Pool {
        let room = |host| fabric.storage(host).map_or(u64::MAX, |bytes| bytes.0);
        let status = |host| Status { up: true, draining: false, stored: 0, room: room(host) };
        let hosts: Vec<Status> = fabric.all_hosts().map(status).collect();
        let write_rate = fastest_write(fabric.all_hosts().flat_map(|host| fabric.devices(host)));
        let mut pool = Pool { open: vec![0; fabric.domain_count()], hosts, write_rate, fabric };
        for host in pool.fabric.clone().all_hosts() {
            if pool.is_open(host) {
                pool.count(host, 1);
            }
        }
        pool
    }

    /// The fabric the hosts belong to.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The rate at which the fastest device of the cluster writes; `None` without devices.
    pub fn write_rate(&self) -> Option<Bandwidth> {
        self.write_rate
    }

    /// The rate at which the fastest device of a host writes; `None` without devices.
    pub fn write_rate_of(&self, host: HostId) -> Option<Bandwidth> {
        fastest_write(self.fabric.devices(host).iter())
    }

    /// A host goes down or comes up.
    pub fn set_up(&mut self, host: HostId, up: bool) {
        self.change(host, |status| status.up = up);
    }

    /// A host is being emptied and takes no new work, or takes work again.
    pub fn set_draining(&mut self, host: HostId, draining: bool) {
        self.change(host, |status| status.draining = draining);
    }

    /// A host stores this much now.
    pub fn set_stored(&mut self, host: HostId, stored: Bytes) {
        self.change(host, |status| status.stored = stored.0);
    }

    /// A host stores this much more.
    pub fn store(&mut self, host: HostId, bytes: Bytes) {
        self.change(host, |status| status.stored = status.stored.saturating_add(bytes.0));
    }

    /// A host stores this much less.
    pub fn discard(&mut self, host: HostId, bytes: Bytes) {
        self.change(host, |status| status.stored = status.stored.saturating_sub(bytes.0));
    }

    /// What a host stores.
    pub fn stored(&self, host: HostId) -> Bytes {
        Bytes(self.hosts[host.index()].stored)
    }

    /// Whether a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.hosts[host.index()].up
    }

    /// Whether a host is being emptied.
    pub fn is_draining(&self, host: HostId) -> bool {
        self.hosts[host.index()].draining
    }

    /// Whether `bytes` more fit on a host.
    pub fn fits(&self, host: HostId, bytes: Bytes) -> bool {
        let status = &self.hosts[host.index()];
        bytes.0 <= status.room.saturating_sub(status.stored)
    }

    /// Whether a host is up, not draining and not full.
    pub fn is_open(&self, host: HostId) -> bool {
        self.hosts[host.index()].is_open()
    }

    /// How many hosts below a domain are open.
    pub fn open(&self, domain: DomainId) -> u32 {
        self.open[domain.index()]
    }

    fn change(&mut self, host: HostId, change: impl FnOnce(&mut Status)) {
        let before = self.is_open(host);
        change(&mut self.hosts[host.index()]);
        match (before, self.is_open(host)) {
            (false, true) => self.count(host, 1),
            (true, false) => self.count(host, -1),
            _ => {}
        }
    }

    fn count(&mut self, host: HostId, change: i32) {
        let mut domain = Some(self.fabric.rack_of(host));
        while let Some(at) = domain {
            self.open[at.index()] = self.open[at.index()].wrapping_add_signed(change);
            domain = self.fabric.parent(at);
        }
    }
}

fn fastest_write<'a>(devices: impl Iterator<Item = &'a Device>) -> Option<Bandwidth> {
    let least = devices.map(|device| device.write_ns_per_byte).fold(f64::INFINITY, f64::min);
    least.is_finite().then(|| Bandwidth((8e9 / least).round() as u64))
}
