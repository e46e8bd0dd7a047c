//! Tasks that need a host: new arrivals, tasks that no host has accepted yet, and tasks whose host failed.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};
use leeward_placement::tasks::AppRequest;
use leeward_placement::{Constraints, JobId};
use leeward_workloads::Workload;

use super::Driver;

/// Waiting tasks, and their previous placement attempts.
#[derive(Debug)]
pub(super) struct WaitingTasks {
    /// Waiting tasks, in order of arrival.
    waiting: Vec<u32>,
    /// Remaining work of tasks whose host failed, in seconds.
    remaining_work: BTreeMap<u32, f64>,
    /// For each kind, 1 + the step at which a task of this kind was last refused. Similar tasks are not requested again
    /// in that step.
    refused: Vec<u64>,
    /// Jobs that the engine knows.
    known: Vec<bool>,
    /// Hosts whose failure was not announced, but detected when a task failed to start there.
    pub detected_failures: BTreeSet<HostId>,
}

impl WaitingTasks {
    pub fn new(workload: &Workload) -> WaitingTasks {
        WaitingTasks {
            waiting: Vec::new(),
            remaining_work: BTreeMap::new(),
            refused: vec![0; workload.cell_kinds.len()],
            known: vec![false; workload.cell_jobs.len()],
            detected_failures: BTreeSet::new(),
        }
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a task that lost its host, with its remaining work in seconds.
    pub fn requeue(&mut self, task: u32, remaining: f64) {
        self.waiting.push(task);
        self.remaining_work.insert(task, remaining);
    }
}

impl Driver<'_> {
    /// Requests hosts: first for waiting tasks, then for new arrivals.
    pub(super) fn request_hosts(&mut self, now: Nanos) {
        let seconds = now.as_secs_f64();
        let mut tasks = std::mem::take(&mut self.waiting_tasks.waiting);
        while self.workload.tasks.get(self.arrived).is_some_and(|task| task.arrive <= seconds) {
            tasks.push(self.arrived as u32);
            self.arrived += 1;
        }
        for task in tasks {
            let kind = self.workload.tasks[task as usize].kind as usize;
            // Nothing has changed in this step since a similar task was refused.
            if self.waiting_tasks.refused[kind] == self.step + 1 || !self.request_host(now, task) {
                self.waiting_tasks.refused[kind] = self.step + 1;
                self.record.tasks[task as usize].refused += 1;
                self.waiting_tasks.waiting.push(task);
            }
        }
    }

    /// Requests a host for one task. Returns true if the task gets a host.
    fn request_host(&mut self, now: Nanos, task: u32) -> bool {
        let demand = &self.workload.tasks[task as usize];
        let job = &self.workload.cell_jobs[demand.job as usize];
        if self.moves && !std::mem::replace(&mut self.waiting_tasks.known[demand.job as usize], true) {
            self.notify(now, Input::Job(JobId(u64::from(demand.job)), job.availability));
        }
        loop {
            let request = AppRequest {
                id: u64::from(task),
                job: JobId(u64::from(demand.job)),
                tasks: vec![self.workload.cell_kinds[demand.kind as usize].demand],
                constraints: Constraints { tags: job.tags, ..Constraints::default() },
                ..AppRequest::default()
            };
            let answer = self.place(now, request);
            let Ok(placed) = answer else { return false };
            let host = placed.decision.choice[0];
            if self.outages.is_up(host) {
                let left = self.waiting_tasks.remaining_work.remove(&task);
                self.start(now, task, host, left.unwrap_or(demand.duration), left.is_some());
                return true;
            }
            self.notify(now, Input::Ended(u64::from(task)));
            self.detect_failure(now, host);
        }
    }

    /// Informs the engine of a failed host that was not announced.
    pub(super) fn detect_failure(&mut self, now: Nanos, host: HostId) {
        self.waiting_tasks.detected_failures.insert(host);
        self.notify(now, Input::Health(host, false));
    }
}
