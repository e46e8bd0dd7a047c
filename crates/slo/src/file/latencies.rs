//! Latencies of links and devices, which a workload file states: cluster files have none.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Fabric, ResourceId, ResourceKind};

use super::form::{Congestion, LatencyFile};

/// Latencies of the resources of a cluster, in seconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Latencies {
    links: f64,
    devices: f64,
    queues: BTreeMap<ResourceId, f64>,
}

impl Latencies {
    /// Looks up the names of a file's field.
    ///
    /// # Errors
    /// [`InputError`] for a name that is no link or device, and for a link that does not count as a queue.
    pub(super) fn new(
        file: &LatencyFile,
        path: &str,
        fabric: &Fabric,
        congestion: Congestion,
    ) -> Result<Latencies, InputError> {
        let mut queues = BTreeMap::new();
        for (name, latency) in &file.queues {
            let invalid = |message: &str| {
                let field = format!("latency.queues.{}", excerpt(name));
                InputError::new(path, format!("`{}`: {message}", excerpt(name))).in_field(field)
            };
            let resource = fabric.resource(name);
            let resource = resource.ok_or_else(|| invalid("the cluster has no such link or device"))?;
            if !congestion.counts(fabric.kind(resource)) {
                return Err(invalid("with `congestion: hosts`, this link is no queue: leave it out"));
            }
            queues.insert(resource, latency.as_secs_f64());
        }
        let (links, devices) = (file.links.as_secs_f64(), file.devices.as_secs_f64());
        Ok(Latencies { links, devices, queues })
    }

    /// Latency of a link or device, in seconds.
    pub fn of(&self, fabric: &Fabric, resource: ResourceId) -> f64 {
        let is_device = fabric.kind(resource) == ResourceKind::Device;
        let all = if is_device { self.devices } else { self.links };
        self.queues.get(&resource).copied().unwrap_or(all)
    }
}
