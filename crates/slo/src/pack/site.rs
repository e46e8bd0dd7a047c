//! Sites: clients, servers, and the queues between them.

use std::sync::Arc;

use leeward_fabric::input::format_number;
use leeward_fabric::{BITS_PER_BYTE, Capacities, Endpoint, Fabric, HostId, ResourceId};
use leeward_traces::Stage;

use super::super::system::Queue;

/// A machine that runs workloads.
#[derive(Clone, PartialEq, Debug)]
pub struct Client {
    /// Name of the client.
    pub name: String,
    /// Largest number of workloads; `None` for no limit.
    pub slots: Option<u32>,
}

/// A machine that holds volumes.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Name of the server.
    pub name: String,
    /// Devices of the server, as queue indices.
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
    /// For each client and each server, its outbound and its inbound link as queues; the core never blocks.
    Links { clients: Vec<[usize; 2]>, servers: Vec<[usize; 2]> },
    /// Paths of a fabric; queues have the numbers of its resources.
    Fabric { fabric: Arc<Fabric>, clients: Vec<HostId>, servers: Vec<HostId> },
}

/// Invalid site.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SiteError {
    /// Invalid link rate.
    #[error("a link of {} bytes/s: must be finite and above 0", format_number(*.0))]
    Link(f64),
    /// No server has a device.
    #[error("`{0}` has no host with a device: there is nowhere to put a volume")]
    NoServer(String),
    /// A host outside the fabric.
    #[error("`{fabric}` has {hosts} hosts, and host {host} is not one of them")]
    Host {
        /// Name of the fabric.
        fabric: String,
        /// Number of hosts.
        hosts: usize,
        /// Index of the missing host.
        host: u32,
    },
}

impl Site {
    /// Star topology of the released code: each client and server has a link of `bytes` per second in each direction,
    /// and the core never blocks. `servers` has the name and the number of devices of each server.
    ///
    /// # Errors
    /// [`SiteError`] for an invalid link rate, or no server with a device.
    pub fn star(clients: Vec<Client>, servers: Vec<(String, usize)>, bytes: f64) -> Result<Site, SiteError> {
        if !bytes.is_finite() || bytes <= 0.0 {
            return Err(SiteError::Link(bytes));
        }
        if servers.iter().all(|(_, devices)| *devices == 0) {
            return Err(SiteError::NoServer("site".to_owned()));
        }
        let mut queues = Vec::new();
        let mut queue = |name: String, capacity: f64| {
            queues.push(Queue { name, capacity, latency: 0.0, resource: None });
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

    /// Site of a fabric: every host with a device is a server, and workloads run on the hosts in `clients`. Links and
    /// devices are queues with the numbers of their resources. A device's capacity is in seconds of service per second:
    /// 1 at full speed.
    ///
    /// # Errors
    /// [`SiteError`] for a client outside the fabric, or a fabric without devices.
    ///
    /// # Panics
    /// If the capacities belong to another fabric.
    pub fn of_fabric(
        fabric: Arc<Fabric>,
        capacities: &Capacities,
        clients: &[HostId],
    ) -> Result<Site, SiteError> {
        let queue = |resource: ResourceId| Queue {
            name: fabric.resource_name(resource),
            capacity: in_work(&fabric, resource, capacities.get(resource).0 as f64),
            latency: 0.0,
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

    /// Sets the latency of each link and device, in seconds; initially 0. Queues without a resource stay at 0.
    #[must_use]
    pub fn with_latencies(mut self, latency: impl Fn(ResourceId) -> f64) -> Site {
        for queue in &mut self.queues {
            queue.latency = queue.resource.map_or(0.0, &latency);
        }
        self
    }

    /// Adds hosts without a device as servers, for existing workloads. No volume is placed on them.
    #[must_use]
    pub fn with_servers(mut self, hosts: impl IntoIterator<Item = HostId>) -> Site {
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

    /// Queues of the site.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// Clients of the site.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Servers of the site, in the order in which the search tries them.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Fabric of the site; `None` for a star.
    pub fn fabric(&self) -> Option<&Arc<Fabric>> {
        match &self.paths {
            Paths::Fabric { fabric, .. } => Some(fabric),
            Paths::Links { .. } => None,
        }
    }

    /// Queues, in order, of a stage of a workload on `client` with its volume on `device` of `server`. Empty
    /// for network stages if the client is the server.
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
}

/// Converts native units of a resource (bits, ns of service) to work: bytes, seconds of service.
fn in_work(fabric: &Fabric, resource: ResourceId, native: f64) -> f64 {
    native / units_per_work(fabric, resource)
}

/// Native units of a resource per unit of work: bits per byte, ns per second.
pub(super) fn units_per_work(fabric: &Fabric, resource: ResourceId) -> f64 {
    if fabric.kind(resource) == leeward_fabric::ResourceKind::Device { 1e9 } else { BITS_PER_BYTE }
}
