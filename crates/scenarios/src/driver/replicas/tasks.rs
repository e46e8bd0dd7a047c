//! Tasks and their jobs. A task fetches its share of the shuffle, then writes its file. A job ends with its last task,
//! and communicates while at least one of its tasks does. A task that fails begins again on another host; the blocks that
//! it wrote are deleted.

use std::collections::BTreeSet;

use leeward_engine::Input;
use leeward_fabric::{Bytes, Endpoint, Nanos};
use leeward_fluid::Finished;
use leeward_placement::replicas::JobLeft;
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
    /// Tasks that fetch or write: the blocks that they still have to write, and their files.
    active: BTreeSet<(u64, u32)>,
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
        let (excluded, written, blocks_left) = (Vec::new(), Vec::new(), blocks(file.bytes, file));
        self.open.push(OpenFile { requested: 0, left: file.bytes, blocks_left, excluded, written });
        let (job, writer, bytes) = (file.job, self.choose_host(now, number, None), file.bytes);
        let (fetches, write_start, finished) = (Bytes(0), None, None);
        let file = File { job, writer, bytes, fetches, start: now, write_start, finished, attempts: 0 };
        self.record.files.push(file);
        if let Some(job) = job {
            let progress = &mut self.jobs[job as usize];
            progress.since = if progress.active.is_empty() { now } else { progress.since };
            progress.active.insert((blocks_left, number));
        }
        self.start_task(now, number)
    }

    /// Starts an attempt of a task: its fetches, or else its write.
    pub(super) fn start_task(&mut self, now: f64, number: u32) -> Result<(), RunError> {
        let workload = self.workload;
        let file = &mut self.record.files[number as usize];
        file.attempts += 1;
        let writer = file.writer;
        let fetches: Vec<&Fetch> = workload.files[number as usize].remote_fetches(writer).collect();
        file.fetches = Bytes(fetches.iter().map(|fetch| fetch.bytes.0).sum());
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

    /// Starts the next attempt of a task that failed, on another host. The blocks of the failed attempt are deleted.
    pub(super) fn restart_task(&mut self, now: f64, file: u32) -> Result<(), RunError> {
        let open = &mut self.open[file as usize];
        let bytes = self.record.files[file as usize].bytes;
        open.left = bytes;
        for block in std::mem::take(&mut open.written) {
            self.delete_block(now, block)?;
        }
        self.set_blocks_left(file, blocks(bytes, &self.workload.files[file as usize]));
        let failed = self.record.files[file as usize].writer;
        self.record.files[file as usize].writer = self.choose_host(now, file, Some(failed));
        self.start_task(now, file)
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
        self.world.schedule(Nanos::from_secs_f64(now), Pending::Restart(file));
    }

    fn delete_block(&mut self, now: f64, block: u32) -> Result<(), RunError> {
        let record = &mut self.record.blocks[block as usize];
        record.deleted = Some(now);
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        for host in record.copies.clone() {
            let stored = &mut self.record.hosts[host.index()];
            stored.bytes.0 = stored.bytes.0.saturating_sub(bytes.0);
            stored.blocks = stored.blocks.saturating_sub(1);
            self.notify(now, Input::Unstored(host, bytes));
        }
        self.drop_repair(now, block)
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
            progress.active.remove(&(self.open[file as usize].blocks_left, file));
            if progress.active.is_empty() {
                self.record.jobs[job as usize].communication += now - progress.since;
            }
        }
    }

    /// Sets the number of blocks that a task still has to write, with the one that it writes now.
    pub(super) fn set_blocks_left(&mut self, file: u32, left: u64) {
        let before = std::mem::replace(&mut self.open[file as usize].blocks_left, left);
        if let Some(job) = self.record.files[file as usize].job {
            let active = &mut self.jobs[job as usize].active;
            if active.remove(&(before, file)) {
                active.insert((left, file));
            }
        }
    }

    /// Returns the blocks that the longest active task of a job still has to write, with the one that it writes now.
    pub(super) fn job_left(&self, job: u32) -> JobLeft {
        let blocks = self.jobs[job as usize].active.last().map_or(0, |&(left, _)| left);
        JobLeft { job: u64::from(job), blocks }
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
