//! Queues on the paths of a cluster.

use std::collections::BTreeMap;

use leeward_fabric::{BITS_PER_BYTE, Cluster, Endpoint, Fabric, Hop, HostId, ResourceId};
use leeward_traces::Stage;

use super::form::Congestion;
use super::latencies::Latencies;
use crate::Queue;

/// A device of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    /// The host.
    pub host: HostId,
    /// Index of its device; `None` if unknown and no stage needs it.
    pub device: Option<u16>,
}

impl Server {
    /// Server of a device; `None` for a resource that belongs to no host.
    pub fn of_device(fabric: &Fabric, device: ResourceId) -> Option<Server> {
        let host = fabric.host_of(device)?;
        let mut devices = (0..=u16::MAX).take(fabric.devices(host).len());
        Some(Server { host, device: devices.find(|&at| fabric.device(host, at) == Some(device)) })
    }
}

/// Queues for resources of a cluster, created on first use by a path.
#[derive(Clone, Debug)]
pub struct Routes<'c> {
    cluster: &'c Cluster,
    congestion: Congestion,
    latencies: &'c Latencies,
    queues: Vec<Queue>,
    by_resource: BTreeMap<ResourceId, usize>,
}

impl<'c> Routes<'c> {
    /// Starts with existing queues; a queue without a resource belongs to no path.
    pub fn new(
        cluster: &'c Cluster,
        congestion: Congestion,
        latencies: &'c Latencies,
        queues: Vec<Queue>,
    ) -> Routes<'c> {
        let numbered = queues.iter().enumerate();
        let by_resource = numbered.filter_map(|(at, queue)| Some((queue.resource?, at))).collect();
        Routes { cluster, congestion, latencies, queues, by_resource }
    }

    /// The queues, in the order of first use.
    pub fn into_queues(self) -> Vec<Queue> {
        self.queues
    }

    /// Queues from a client to a server at a stage, by index and in order; empty on the network if the client
    /// is the server. Capacities are in bytes per second on links, and 1 at devices.
    ///
    /// # Errors
    /// A message for a device that does not exist, or a path that has no capacity or crosses a link more than
    /// once.
    pub fn route(&mut self, stage: Stage, client: HostId, server: Server) -> Result<Vec<usize>, String> {
        let fabric = &self.cluster.fabric;
        let (from, to) = match stage {
            Stage::NetworkIn => (client, server.host),
            Stage::NetworkOut => (server.host, client),
            Stage::Storage => {
                let resource = server.device.and_then(|device| fabric.device(server.host, device));
                let missing =
                    || format!("`{}`: the cluster has no such device", fabric.host_name(server.host));
                return Ok(vec![self.queue(resource.ok_or_else(missing)?, 1.0)]);
            }
        };
        if from == to {
            return Ok(Vec::new());
        }
        let mut hops = Vec::<Hop>::new();
        fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
        let mut route = Vec::with_capacity(hops.len());
        for hop in hops {
            if !self.congestion.counts(fabric.kind(hop.resource)) {
                continue;
            }
            if hop.work != BITS_PER_BYTE {
                let name = fabric.resource_name(hop.resource);
                return Err(format!("a path that crosses {name} more than once"));
            }
            let bits = self.cluster.capacities.get(hop.resource).0;
            if bits <= 0 {
                return Err(format!("link {} has no capacity", fabric.resource_name(hop.resource)));
            }
            route.push(self.queue(hop.resource, bits as f64 / BITS_PER_BYTE));
        }
        Ok(route)
    }

    fn queue(&mut self, resource: ResourceId, capacity: f64) -> usize {
        let (queues, fabric) = (&mut self.queues, &self.cluster.fabric);
        let latency = self.latencies.of(fabric, resource);
        *self.by_resource.entry(resource).or_insert_with(|| {
            let name = fabric.resource_name(resource);
            queues.push(Queue { name, capacity, latency, resource: Some(resource) });
            queues.len() - 1
        })
    }
}
