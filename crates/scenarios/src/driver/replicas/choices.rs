//! Hosts of tasks that choose their own when an attempt starts: the flexible sources of Sinbad section 8.
//!
//! A task has a few drawn hosts to choose from, and takes the one with the most capacity left on its disk and out of its
//! rack and pod. The ledger ranks them as it ranks the holders of a block that send a copy. A choice among all hosts would
//! send all tasks that start between two reports to one place. A task does not start on a host that is down: the connection
//! fails at once.

use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_placement::Constraints;
use leeward_placement::replicas::{Layout, ReplicaRequest};

use super::Driver;

impl Driver<'_> {
    /// Returns the host of an attempt of a task that starts. An attempt after one that `failed` on a host is on another one.
    pub(super) fn choose_host(&mut self, now: f64, file: u32, failed: Option<HostId>) -> HostId {
        let write = &self.workload.files[file as usize];
        let next = write.failure.filter(|_| failed.is_some()).map(|failure| failure.host);
        let named = next.unwrap_or(write.writer);
        let Some(choices) = &write.choices else { return named };
        let mut hosts = choices.draw(write.writer);
        hosts.extend(next.filter(|next| !hosts.contains(next)));
        hosts.retain(|&host| Some(host) != failed && self.world.outages.is_up(host));
        if hosts.is_empty() {
            return named;
        }
        let request = ReplicaRequest {
            id: u64::from(file),
            file: u64::from(file),
            writer: None,
            size: Bytes(0),
            replicas: 0,
            layout: Layout::Chain,
            fault_domains: 0,
            blocks_left: 0,
            job: None,
            constraints: Constraints { existing: hosts, ..Constraints::default() },
        };
        self.engine.with_source(Nanos::from_secs_f64(now), request).writer.unwrap_or(named)
    }
}
