//! Where workloads may go: clients, servers, and the queues between them.

use std::sync::Arc;

use leeward_fabric::input::shown;
use leeward_fabric::{BITS_PER_BYTE, Capacities, Endpoint, Fabric, HostId, ResourceId};
use leeward_traces::Stage;

use super::super::system::Queue;

/// A machine that workloads run on.
#[derive(Clone, PartialEq, Debug)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// How many workloads it may run; None is without limit.
    pub slots: Option<u32>,
}

/// A machine that holds volumes.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its devices, as queues by index.
    pub devices: Vec<usize>,
}

/// Clients, servers, and the queues between them.
#[derive(Clone, Debug)]
pub struct Site {
    queues: Vec<Queue>,
    clients: Vec<Client>,
    servers: Vec<Server>,
    paths: Paths,
}

#[derive(Clone, Debug)]
enum Paths {
    /// For each client and each server its link out and its link in, as queues; nothing in between blocks.
    Links { clients: Vec<[usize; 2]>, servers: Vec<[usize; 2]> },
    /// Through a fabric; queues are numbered as its resources.
    Fabric { fabric: Arc<Fabric>, clients: Vec<HostId>, servers: Vec<HostId> },
}

/// An invalid site.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SiteError {
    /// An invalid rate.
    #[error("a link of {} bytes/s: must be finite and above 0", shown(*.0))]
    Link(f64),
    /// No server.
    #[error("`{0}` has no host with a device: there is nowhere to put a volume")]
    NoServer(String),
    /// A host that is not in the fabric.
    #[error("`{fabric}` has {hosts} hosts, and host {host} is not one of them")]
    Host {
        /// The fabric.
        fabric: String,
        /// How many there are.
        hosts: usize,
        /// The one asked for.
        host: u32,
    },
}

impl Site {
    /// Clients and servers by name, each with a link of `bytes` a second in either direction, and nothing in between that blocks, as
    /// in the released code's topologies. Each server has so many devices.
    ///
    /// # Errors
    /// An invalid link, or no servers.
    pub fn star(clients: Vec<Client>, servers: Vec<(String, usize)>, bytes: f64) -> Result<Site, SiteError> {
        if !bytes.is_finite() || bytes <= 0.0 {
            return Err(SiteError::Link(bytes));
        }
        if servers.iter().all(|(_, devices)| *devices == 0) {
            return Err(SiteError::NoServer("site".to_owned()));
        }
        let mut queues = Vec::new();
        let mut queue = |name: String, capacity: f64| {
            queues.push(Queue { name, capacity, resource: None });
            queues.len() - 1
        };
        let mut links =
            |name: &str| [queue(format!("{name}-out"), bytes), queue(format!("{name}-in"), bytes)];
        let client_links = clients.iter().map(|client| links(&client.name)).collect();
        let server_links = servers.iter().map(|(name, _)| links(name)).collect();
        let servers = servers.into_iter().map(|(name, devices)| {
            let device = |at: usize| queue(format!("{name}-device{at}"), 1.0);
            Server { devices: (0..devices).map(device).collect(), name }
        });
        let servers = servers.collect();
        let paths = Paths::Links { clients: client_links, servers: server_links };
        Ok(Site { queues, clients, servers, paths })
    }

    /// A fabric: every host with a device is a server, `clients` are the hosts that workloads run on. Links and devices are
    /// queues, numbered as resources; a device does as much a second as its capacity says, 1 s at full speed.
    ///
    /// # Errors
    /// A client that is no host, or no host with a device.
    ///
    /// # Panics
    /// If the capacities are of another fabric.
    pub fn of_fabric(
        fabric: Arc<Fabric>,
        capacities: &Capacities,
        clients: &[HostId],
    ) -> Result<Site, SiteError> {
        let queue = |resource: ResourceId| Queue {
            name: fabric.resource_name(resource),
            capacity: in_work(&fabric, resource, capacities.get(resource).0 as f64),
            resource: Some(resource),
        };
        let queues = fabric.all_resources().map(queue).collect();
        let hosts: Vec<HostId> =
            fabric.all_hosts().filter(|&host| !fabric.devices(host).is_empty()).collect();
        if hosts.is_empty() {
            return Err(SiteError::NoServer(fabric.name().to_owned()));
        }
        if let Some(host) = clients.iter().find(|host| host.index() >= fabric.host_count()) {
            let (name, hosts) = (fabric.name().to_owned(), fabric.host_count());
            return Err(SiteError::Host { fabric: name, hosts, host: host.0 });
        }
        let server = |&host: &HostId| {
            let devices = 0..fabric.devices(host).len() as u16;
            let devices = devices.filter_map(|at| fabric.device(host, at)).map(ResourceId::index);
            Server { name: fabric.host_name(host).to_owned(), devices: devices.collect() }
        };
        let servers = hosts.iter().map(server).collect();
        let client = |&host: &HostId| Client { name: fabric.host_name(host).to_owned(), slots: None };
        let names = clients.iter().map(client).collect();
        let paths = Paths::Fabric { fabric, clients: clients.to_vec(), servers: hosts };
        Ok(Site { queues, clients: names, servers, paths })
    }

    /// The same with these hosts as servers, where they have no device: what is on them is there, and nothing is put there.
    #[must_use]
    pub(in crate::volumes) fn with_servers(mut self, hosts: impl IntoIterator<Item = HostId>) -> Site {
        if let Paths::Fabric { fabric, servers, .. } = &mut self.paths {
            for host in hosts {
                if !servers.contains(&host) {
                    servers.push(host);
                    self.servers
                        .push(Server { name: fabric.host_name(host).to_owned(), devices: Vec::new() });
                }
            }
        }
        self
    }

    /// The queues.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// The clients.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The servers, in the order in which they are tried.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The fabric, where there is one.
    pub fn fabric(&self) -> Option<&Arc<Fabric>> {
        match &self.paths {
            Paths::Fabric { fabric, .. } => Some(fabric),
            Paths::Links { .. } => None,
        }
    }

    /// The queues that a stage of a workload of `client` crosses, in order, with its volume on `device` of `server`. None of the
    /// network where the client is the server.
    pub fn path(&self, client: usize, server: usize, device: usize, stage: Stage) -> Vec<usize> {
        if stage == Stage::Storage {
            return vec![self.servers[server].devices[device]];
        }
        let inward = stage == Stage::NetworkIn;
        match &self.paths {
            Paths::Links { clients, servers } if inward => vec![clients[client][0], servers[server][1]],
            Paths::Links { clients, servers } => vec![servers[server][0], clients[client][1]],
            Paths::Fabric { fabric, clients, servers } => {
                let mut ends = [Endpoint::Host(clients[client]), Endpoint::Host(servers[server])];
                if !inward {
                    ends.reverse();
                }
                let mut hops = Vec::with_capacity(6);
                fabric.path(&ends, &mut hops);
                hops.into_iter().map(|hop| hop.resource.index()).collect()
            }
        }
    }

    /// Takes the capacity of a queue to be `native` units a second, as the fabric counts them.
    pub(super) fn believe(&mut self, queue: usize, native: f64) {
        if let (Paths::Fabric { fabric, .. }, Some(resource)) = (&self.paths, self.queues[queue].resource) {
            self.queues[queue].capacity = in_work(fabric, resource, native);
        }
    }
}

/// A resource's native units (bits, ns of service) as work: bytes, seconds of service.
fn in_work(fabric: &Fabric, resource: ResourceId, native: f64) -> f64 {
    native / units_per_work(fabric, resource)
}

/// Native units of a resource for each unit of work: bits for a byte, ns for a second.
pub(super) fn units_per_work(fabric: &Fabric, resource: ResourceId) -> f64 {
    if fabric.kind(resource) == leeward_fabric::ResourceKind::Device { 1e9 } else { BITS_PER_BYTE }
}
