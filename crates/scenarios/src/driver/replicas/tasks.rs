//! Tasks and their jobs. A task fetches its share of the shuffle, then writes its file. A job ends with its last task,
//! and communicates while at least one of its tasks does. A task that fails begins again on another host; what it wrote
//! is deleted.

use std::collections::BTreeSet;

use leeward_engine::Input;
use leeward_fabric::{Bytes, Endpoint, Nanos};
use leeward_fluid::Finished;
use leeward_workloads::{Fetch, FileWrite, Workload};

use super::writes::{blocks, piece};
use super::{Driver, FlowPurpose, OpenFile, Pending};
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
        let (excluded, written) = (Vec::new(), Vec::new());
        self.open.push(OpenFile { requested: 0, left: file.bytes, excluded, written });
        let (job, writer, bytes) = (file.job, self.choose_writer(now, number, file.writer), file.bytes);
        let fetches = Bytes(file.fetches.iter().map(|fetch| fetch.bytes.0).sum());
        let (write_start, finished) = (None, None);
        let file = File { job, writer, bytes, fetches, start: now, write_start, finished, attempts: 0 };
        self.record.files.push(file);
        if let Some(job) = job {
            let progress = &mut self.jobs[job as usize];
            progress.since = if progress.active.is_empty() { now } else { progress.since };
            progress.active.insert(number);
        }
        self.start_task(now, number)
    }

    /// Starts an attempt of a task: its fetches, or else its write.
    pub(super) fn start_task(&mut self, now: f64, number: u32) -> Result<(), RunError> {
        let workload = self.workload;
        let file = &mut self.record.files[number as usize];
        file.attempts += 1;
        let writer = file.writer;
        let fetches = workload.files[number as usize].fetches.iter().filter(|fetch| fetch.from != writer);
        let fetches: Vec<&Fetch> = fetches.collect();
        if fetches.is_empty() {
            self.begin_write(now, number);
            return Ok(());
        }
        let to = Endpoint::Host(writer);
        let mut flows = Vec::with_capacity(fetches.len());
        for fetch in fetches {
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
        record.write_start.get_or_insert(now);
        if let Some(job) = record.job {
            self.record.jobs[job as usize].write_start.get_or_insert(now);
        }
        self.next_block(now, file);
    }

    /// Goes on with a file after one of its blocks is on disk: with the next block, or with another attempt of the task.
    pub(super) fn continue_file(&mut self, now: f64, file: u32, block: u32) {
        let failure = self.workload.files[file as usize].failure;
        let Some(failure) = failure.filter(|_| self.record.files[file as usize].attempts == 1) else {
            self.reads.add_block(file, block);
            return self.next_block(now, file);
        };
        // Nothing reads the blocks of an attempt that has not ended.
        let open = &mut self.open[file as usize];
        open.written.push(block);
        if (open.written.len() as u64) < failure.blocks {
            return self.next_block(now, file);
        }
        open.left = self.record.files[file as usize].bytes;
        for block in std::mem::take(&mut open.written) {
            self.delete_block(now, block);
        }
        self.record.files[file as usize].writer = failure.host;
        self.world.schedule(Nanos::from_secs_f64(now), Pending::Restart(file));
    }

    fn delete_block(&mut self, now: f64, block: u32) {
        let record = &mut self.record.blocks[block as usize];
        record.deleted = Some(now);
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        for host in record.copies.clone() {
            let stored = &mut self.record.hosts[host.index()];
            stored.bytes.0 = stored.bytes.0.saturating_sub(bytes.0);
            stored.blocks = stored.blocks.saturating_sub(1);
            self.notify(now, Input::Unstored(host, bytes));
        }
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
