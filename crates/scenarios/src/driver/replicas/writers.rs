//! Hosts of tasks that choose their own when they start: the flexible sources of Sinbad section 8.
//!
//! A task has a few drawn hosts to choose from, and takes the one with the most capacity left on its disk and out of its
//! rack and pod. The ledger ranks them as it ranks the holders of a block that send a copy. A choice among all hosts would
//! send all tasks that start between two reports to one place.

use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_placement::Constraints;
use leeward_placement::replicas::{Layout, ReplicaRequest};
use leeward_registry::random::{Kind, stream};
use leeward_workloads::task_hosts;
use rand::seq::index::sample;

use super::Driver;
use crate::scenario::Scenario;

const CHOICES: Kind = Kind::named("writer.choices");

/// Hosts to choose from.
pub(super) struct Writers {
    /// Number of choices of each task; 1 for no choice.
    choices: usize,
    hosts: Vec<HostId>,
    seed: u64,
}

impl Writers {
    pub fn new(scenario: &Scenario, seed: u64) -> Writers {
        let choices = usize::from(scenario.writer_choices);
        let hosts = if choices > 1 { task_hosts(&scenario.cluster) } else { Vec::new() };
        Writers { choices, hosts, seed }
    }

    /// Draws the hosts from which a task chooses, `named` among them.
    fn draw(&self, file: u32, named: HostId) -> Vec<HostId> {
        let others = (self.choices - 1).min(self.hosts.len());
        let mut random = stream(self.seed, CHOICES, u64::from(file));
        let drawn = sample(&mut random, self.hosts.len(), others).into_iter().map(|at| self.hosts[at]);
        let mut hosts: Vec<HostId> = std::iter::once(named).chain(drawn).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

impl Driver<'_> {
    /// Returns the host of a task that starts.
    pub(super) fn choose_writer(&mut self, now: f64, file: u32, named: HostId) -> HostId {
        if self.writers.choices <= 1 {
            return named;
        }
        let existing = self.writers.draw(file, named);
        let request = ReplicaRequest {
            id: u64::from(file),
            file: u64::from(file),
            writer: None,
            size: Bytes(0),
            replicas: 0,
            layout: Layout::Chain,
            fault_domains: 0,
            blocks_left: 0,
            job_blocks_left: None,
            constraints: Constraints { existing, ..Constraints::default() },
        };
        self.engine.with_source(Nanos::from_secs_f64(now), request).writer.unwrap_or(named)
    }
}
