//! Tasks and their jobs. A task fetches its share of the shuffle, then writes its file. A job ends with its last task,
//! and communicates while at least one of its tasks does.

use std::collections::BTreeSet;

use leeward_fabric::{Bytes, Endpoint};
use leeward_fluid::Finished;
use leeward_workloads::{FileWrite, Workload};

use super::writes::blocks;
use super::{Driver, FlowPurpose, OpenFile};
use crate::driver::error::RunError;
use crate::record::File;

/// Remaining parts of a job.
#[derive(Clone, Default)]
pub(super) struct JobProgress {
    /// Number of files that are not yet written.
    files: u32,
    /// Tasks that fetch or write, by their files.
    active: BTreeSet<u32>,
    /// Start of the current period with active tasks.
    since: f64,
}

/// Returns the state of all jobs, before they begin.
pub(super) fn job_progress(workload: &Workload) -> Vec<JobProgress> {
    let mut jobs = vec![JobProgress::default(); workload.jobs.len()];
    workload.files.iter().filter_map(|file| file.job).for_each(|job| jobs[job as usize].files += 1);
    jobs
}

impl Driver<'_> {
    /// Starts a task.
    pub(super) fn open_file(&mut self, now: f64, file: &FileWrite) -> Result<(), RunError> {
        let number = self.open.len() as u32;
        self.open.push(OpenFile { requested: 0, left: file.bytes, excluded: Vec::new() });
        let (job, writer, bytes) = (file.job, file.writer, file.bytes);
        let fetches = Bytes(file.fetches.iter().map(|fetch| fetch.bytes.0).sum());
        let (write_start, finished) = (None, None);
        self.record.files.push(File { job, writer, bytes, fetches, start: now, write_start, finished });
        if let Some(job) = job {
            let progress = &mut self.jobs[job as usize];
            progress.since = if progress.active.is_empty() { now } else { progress.since };
            progress.active.insert(number);
        }
        if file.fetches.is_empty() {
            self.begin_write(now, number);
            return Ok(());
        }
        let to = Endpoint::Host(writer);
        let mut flows = Vec::with_capacity(file.fetches.len());
        for fetch in &file.fetches {
            let from = Endpoint::Host(fetch.from);
            flows.push(self.world.start_flow(now, from, to, fetch.bytes.0 as f64)?);
        }
        self.purposes.extend(flows.iter().map(|&flow| (flow, FlowPurpose::Fetch(number))));
        self.fetching.insert(number, flows);
        self.working += 1;
        if self.world.outages.is_up(writer) { Ok(()) } else { self.abandon_fetches(now) }
    }

    /// Handles the end of a fetch; the last one ends the shuffle of its task.
    pub(super) fn finish_fetch(&mut self, file: u32, done: Finished) {
        let flows = self.fetching.get_mut(&file).expect("a task fetches while its flows are active");
        flows.retain(|&flow| flow != done.flow);
        if flows.is_empty() {
            self.fetching.remove(&file);
            self.working -= 1;
            self.begin_write(done.at, file);
        }
    }

    fn begin_write(&mut self, now: f64, file: u32) {
        let record = &mut self.record.files[file as usize];
        record.write_start = Some(now);
        if let Some(job) = record.job {
            self.record.jobs[job as usize].write_start.get_or_insert(now);
        }
        self.next_block(now, file);
    }

    /// Closes the written file of a task; the last file ends its job.
    pub(super) fn close_file(&mut self, now: f64, file: u32) {
        self.end_task(now, file);
        let file = &mut self.record.files[file as usize];
        file.finished = Some(now);
        if let Some(job) = file.job {
            let files_left = &mut self.jobs[job as usize].files;
            *files_left -= 1;
            let job = &mut self.record.jobs[job as usize];
            job.bytes.0 += file.bytes.0;
            job.finished = (*files_left == 0).then_some(now);
        }
    }

    /// Ends a task, with or without its file.
    pub(super) fn end_task(&mut self, now: f64, file: u32) {
        if let Some(job) = self.record.files[file as usize].job {
            let progress = &mut self.jobs[job as usize];
            progress.active.remove(&file);
            if progress.active.is_empty() {
                self.record.jobs[job as usize].communication += now - progress.since;
            }
        }
    }

    /// Returns the most blocks that an active task of a job still has to write, with the block that it writes now.
    pub(super) fn job_blocks_left(&self, job: u32) -> u64 {
        let left = |&file: &u32| {
            let open = &self.open[file as usize];
            u64::from(open.requested > 0) + blocks(open.left, &self.workload.files[file as usize])
        };
        self.jobs[job as usize].active.iter().map(left).max().unwrap_or(0)
    }

    /// Abandons tasks that fetch on a failed host. A fetch from a failed host only stalls.
    pub(super) fn abandon_fetches(&mut self, now: f64) -> Result<(), RunError> {
        let has_failed = |file: &&u32| !self.world.outages.is_up(self.record.files[**file as usize].writer);
        let failed: Vec<u32> = self.fetching.keys().filter(has_failed).copied().collect();
        for file in failed {
            for flow in self.fetching.remove(&file).into_iter().flatten() {
                self.world.network.cancel(now, flow)?;
                self.purposes.remove(&flow);
            }
            self.working -= 1;
            self.end_task(now, file);
        }
        Ok(())
    }
}
