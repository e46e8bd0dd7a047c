//! Tasks that stay apart from others that run.

use leeward_fabric::HostId;
use leeward_placement::tasks::AppRequest;
use leeward_placement::{Apart, JobId};
use leeward_records::{DecisionId, TasksSpec};

use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// The engine's request for tasks, with the places of the running tasks from which it stays apart. Tasks on the hosts
    /// `own` do not count: they belong to the decision itself.
    pub(super) fn tasks_request(
        &self,
        spec: &TasksSpec,
        id: DecisionId,
        job: JobId,
        own: &[HostId],
    ) -> AppRequest {
        let fabric = self.fabric();
        let mut request = spec.request(fabric, id, job);
        let others = spec.apart_from.iter().filter_map(|(name, &level)| {
            Some((self.job_names.named(name)?, level)).filter(|&(other, _)| other != job)
        });
        let mut avoided: Vec<(JobId, Apart)> = others.collect();
        avoided.extend(spec.apart.map(|level| (job, level)));
        for (other, level) in avoided {
            for &(host, count) in self.engine.pool().hosts_of(other) {
                let own = own.iter().filter(|&&at| other == job && at == host).count() as u32;
                match level {
                    _ if count <= own => {}
                    Apart::Host => request.constraints.occupied_hosts.push(host),
                    Apart::Rack => request.constraints.occupied_racks.push(fabric.rack_of(host)),
                }
            }
        }
        request.constraints.sort();
        request
    }
}
