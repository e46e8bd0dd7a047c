//! Files and their blocks: asked for one after the other, written along the chain that the engine chose, and asked for
//! again where a host of the chain is dead.

use leeward_engine::{Ask, Input};
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::Constraints;
use leeward_placement::replicas::{self, ReplicaRequest};

use super::{BLOCKS_PER_FILE, Open, Pending, Plant, UnderWay};
use crate::RunError;
use crate::fluid::Finished;
use crate::stage::record::{Block, File};
use crate::stage::workload;

impl Plant<'_> {
    pub(super) fn open_file(&mut self, now: f64, file: &workload::FileWrite) {
        let number = self.open.len() as u32;
        self.open.push(Open { asked: 0, left: file.bytes, excluded: Vec::new() });
        let (writer, bytes) = (file.writer, file.bytes);
        self.record.files.push(File { job: file.job, writer, bytes, start: now, finished: None });
        self.next_block(now, number);
    }

    /// Asks for the next block of a file, or closes it.
    fn next_block(&mut self, now: f64, file: u32) {
        let (open, write) = (&mut self.open[file as usize], &self.workload.files[file as usize]);
        let bytes = open.left.min(write.block);
        if bytes.0 == 0 || open.asked == BLOCKS_PER_FILE {
            return self.close_file(now, file);
        }
        open.left.0 -= bytes.0;
        let index = open.asked as u32;
        open.asked += 1;
        open.excluded.clear();
        let block = self.record.blocks.len() as u32;
        self.record.blocks.push(Block {
            file,
            index,
            writer: write.writer,
            bytes,
            full: bytes == write.block,
            copies: Vec::new(),
            asked: now,
            placed: None,
            finished: None,
            retries: 0,
        });
        self.writing += 1;
        self.ask(now, block);
    }

    fn close_file(&mut self, now: f64, file: u32) {
        let file = &mut self.record.files[file as usize];
        file.finished = Some(now);
        if let Some(job) = file.job {
            let left = &mut self.files_of_job[job as usize];
            *left -= 1;
            let job = &mut self.record.jobs[job as usize];
            job.bytes.0 += file.bytes.0;
            job.finished = (*left == 0).then_some(now);
        }
    }

    pub(super) fn ask(&mut self, now: f64, block: u32) {
        let record = &self.record.blocks[block as usize];
        if !self.outages.is_up(record.writer) {
            // The task is gone with its host, and its file stays as it is.
            self.writing -= 1;
            return;
        }
        let open = &self.open[record.file as usize];
        let request = ReplicaRequest {
            id: u64::from(record.file) * BLOCKS_PER_FILE + u64::from(record.index),
            file: u64::from(record.file),
            writer: Some(record.writer),
            size: record.bytes,
            replicas: self.workload.files[record.file as usize].replicas,
            fault_domains: self.scenario.fault_domains,
            constraints: Constraints { excluded_hosts: open.excluded.clone(), ..Constraints::default() },
        };
        self.tell(now, Input::Ask(u64::from(block), Ask::Replicas(request)));
    }

    /// Asks again for a block when the next report has come.
    pub(super) fn retry(&mut self, now: f64, block: u32) {
        self.record.blocks[block as usize].retries += 1;
        let later = Nanos::from_secs_f64(now).plus(self.reporters.interval());
        self.at(later, Pending::Retry(block));
    }

    pub(super) fn write(
        &mut self,
        now: f64,
        block: u32,
        copies: Vec<HostId>,
        entries: Vec<EntryId>,
    ) -> Result<(), RunError> {
        if let Some(&dead) = copies.iter().find(|&&host| !self.outages.is_up(host)) {
            // The connection to it fails, and the writer asks for another, as an HDFS client does.
            self.undo(now, block, &copies, &entries);
            self.exclude(now, block, dead);
            return Ok(());
        }
        let record = &mut self.record.blocks[block as usize];
        let id = u64::from(record.file) * BLOCKS_PER_FILE + u64::from(record.index);
        self.endpoints.clear();
        replicas::chain(&self.fabric, id, Some(record.writer), &copies, &mut self.endpoints);
        (record.placed, record.copies) = (Some(now), copies);
        let bytes = record.bytes.0 as f64;
        self.hops.clear();
        self.fabric.path(&self.endpoints, &mut self.hops);
        let flow = self.network.start(now, &self.hops, bytes, 1.0, f64::INFINITY, None)?;
        self.cargo.insert(flow, block);
        self.blocks.insert(block, UnderWay { flow, entries });
        Ok(())
    }

    /// Takes a placement back: its entries, and the room it took.
    pub(super) fn undo(&mut self, now: f64, block: u32, copies: &[HostId], entries: &[EntryId]) {
        self.tell(now, Input::Release(entries));
        let bytes = self.record.blocks[block as usize].bytes;
        copies.iter().for_each(|&host| self.tell(now, Input::Discarded(host, bytes)));
    }

    pub(super) fn exclude(&mut self, now: f64, block: u32, host: HostId) {
        let record = &mut self.record.blocks[block as usize];
        record.retries += 1;
        self.open[record.file as usize].excluded.push(host);
        self.ask(now, block);
    }

    pub(super) fn finished(&mut self, done: Finished) {
        let Some(block) = self.cargo.remove(&done.flow) else {
            self.record.flows.0 += 1;
            return;
        };
        let under_way = self.blocks.remove(&block).expect("a block's flow ends once");
        self.tell(done.at, Input::Release(&under_way.entries));
        self.writing -= 1;
        let record = &mut self.record.blocks[block as usize];
        record.finished = Some(done.at);
        for &host in &record.copies {
            let stored = &mut self.record.hosts[host.index()];
            stored.bytes.0 += record.bytes.0;
            stored.blocks += 1;
        }
        let file = record.file;
        self.next_block(done.at, file);
    }
}
