//! Merge of several workloads into one.

use std::collections::BTreeMap;

use leeward_fabric::{Load, ResourceId};

use crate::model::{CellTask, Flow, RateChange, Workload};

impl Workload {
    /// Adds `other`, so that all items are in order of time. At equal times, existing items come first.
    ///
    /// Rates of both workloads on one link add up: each rate is the load that the workload puts on the link, not the
    /// link's total load.
    pub fn merge(&mut self, other: Workload) {
        let offset = self.jobs.len() as u32;
        let coflows = self.coflows.len() as u32;
        self.coflows.extend(other.coflows);
        self.flows.extend(other.flows.into_iter().map(|flow| {
            let coflow = flow.coflow.map(|coflow| coflow + coflows);
            Flow { coflow, ..flow }
        }));
        self.flows.sort_by(|a, b| a.start.total_cmp(&b.start));
        self.files.extend(other.files.into_iter().map(|mut file| {
            file.job = file.job.map(|job| job + offset);
            file
        }));
        self.files.sort_by(|a, b| a.start.total_cmp(&b.start));
        self.reads.extend(other.reads);
        let (jobs, kinds) = (self.cell_jobs.len() as u32, self.cell_kinds.len() as u32);
        self.cell_jobs.extend(other.cell_jobs);
        self.cell_kinds.extend(other.cell_kinds);
        self.history = self.history.or(other.history);
        self.tasks.extend(other.tasks.into_iter().map(|task| {
            let (job, kind) = (task.job + jobs, task.kind + kinds);
            CellTask { job, kind, ..task }
        }));
        self.tasks.sort_by(|a, b| a.arrive.total_cmp(&b.arrive));
        self.disk_servers.extend(other.disk_servers);
        self.capacities.extend(other.capacities);
        self.capacities.sort_by(|a, b| a.at.total_cmp(&b.at));
        self.apps.extend(other.apps);
        self.apps.sort_by(|a, b| a.arrive.total_cmp(&b.arrive));
        let mut jobs: Vec<_> =
            (0..).zip(std::mem::take(&mut self.jobs).into_iter().chain(other.jobs)).collect();
        jobs.sort_by(|(_, a), (_, b)| a.start.total_cmp(&b.start));
        let mut positions = vec![0; jobs.len()];
        for (after, (before, job)) in (0..).zip(jobs) {
            positions[before] = after;
            self.jobs.push(job);
        }
        for file in &mut self.files {
            file.job = file.job.map(|job| positions[job as usize]);
        }
        self.rates = sums([std::mem::take(&mut self.rates), other.rates]);
    }
}

/// Returns the sum of two lists of rates, as changes by time.
fn sums(parts: [Vec<RateChange>; 2]) -> Vec<RateChange> {
    let mut last = BTreeMap::<ResourceId, [i64; 2]>::new();
    let changes = parts.into_iter().enumerate();
    let mut changes: Vec<_> =
        changes.flat_map(|(part, all)| all.into_iter().map(move |c| (part, c))).collect();
    changes.sort_by(|(_, a), (_, b)| a.at.total_cmp(&b.at));
    for (part, change) in &mut changes {
        let rates = last.entry(change.resource).or_default();
        rates[*part] = change.rate.0;
        change.rate = Load(rates[0].saturating_add(rates[1]));
    }
    changes.into_iter().map(|(_, change)| change).collect()
}
