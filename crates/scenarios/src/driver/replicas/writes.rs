//! Blocks: requested one after another, written along the chain that the engine chose, and requested again if a host of
//! the chain fails.

use leeward_engine::{Input, Output, Ruling};
use leeward_fabric::{Bytes, Endpoint, Fabric, HostId, Nanos, ResourceId};
use leeward_fluid::Finished;
use leeward_ledger::EntryId;
use leeward_placement::Constraints;
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_workloads::{FileWrite, MOST_BLOCKS};

use super::{ActiveBlock, Driver, FlowPurpose, Pending};
use crate::driver::error::RunError;
use crate::driver::world::World;
use crate::record::Block;
use crate::scenario::Scenario;

impl Driver<'_> {
    /// Requests the next block of a file, or closes the file.
    pub(super) fn next_block(&mut self, now: f64, file: u32) {
        let (open, write) = (&mut self.open[file as usize], &self.workload.files[file as usize]);
        let bytes = open.left.min(write.block);
        if bytes.0 == 0 {
            return self.close_file(now, file);
        }
        open.left.0 -= bytes.0;
        let index = open.requested as u32;
        open.requested += 1;
        open.excluded.clear();
        let left = 1 + blocks(open.left, write);
        self.set_blocks_left(file, left);
        let block = self.record.blocks.len() as u32;
        self.record.blocks.push(Block {
            file,
            index,
            writer: self.record.files[file as usize].writer,
            bytes,
            full: bytes == write.block,
            copies: Vec::new(),
            asked: now,
            placed: None,
            blind: false,
            finished: None,
            deleted: None,
            retries: 0,
        });
        self.working += 1;
        self.requests.push(block);
    }

    /// Requests the placement of a block.
    pub(super) fn request_placement(&mut self, now: f64, block: u32) {
        let record = &self.record.blocks[block as usize];
        if !self.world.outages.is_up(record.writer) {
            // The task failed with its host, and its file stays incomplete.
            self.working -= 1;
            let file = record.file;
            return self.end_task(now, file);
        }
        let (open, file) = (&self.open[record.file as usize], &self.workload.files[record.file as usize]);
        let request = ReplicaRequest {
            id: id(record),
            file: u64::from(record.file),
            writer: Some(record.writer),
            size: piece(record, file),
            replicas: file.replicas,
            layout: file.layout,
            fault_domains: fault_domains(self.scenario, file),
            blocks_left: open.blocks_left,
            job: file.job.map(|job| self.job_left(job)),
            constraints: Constraints {
                excluded_hosts: open.excluded.clone(),
                max_imbalance: self.scenario.max_imbalance,
                ..Constraints::default()
            },
        };
        self.request_hosts(now, u64::from(block), request);
    }

    /// Sends a request to the engine. The answer is an output with its number.
    pub(super) fn request_hosts(&mut self, now: f64, number: u64, request: ReplicaRequest) {
        let (at, first_output) = (Nanos::from_secs_f64(now), self.outputs.len());
        let answer = self.engine.place_replicas(at, number, request, Ruling::default(), &mut self.outputs);
        if let Some(answer) = answer {
            // The answer precedes the answers of batches that are due.
            self.outputs.insert(first_output, Output::ReplicasPlaced(number, answer));
        }
    }

    /// Requests a block again after the next report.
    pub(super) fn retry(&mut self, now: f64, block: u32) {
        self.record.blocks[block as usize].retries += 1;
        let later = Nanos::from_secs_f64(now).plus(self.world.reporters.interval());
        self.world.schedule(later, Pending::Retry(block));
    }

    /// Starts the flows of a placed block, or requests another placement if one of its hosts is down.
    pub(super) fn write(
        &mut self,
        now: f64,
        block: u32,
        copies: Vec<HostId>,
        entries: Vec<EntryId>,
    ) -> Result<(), RunError> {
        let writer = self.record.blocks[block as usize].writer;
        if let Some(&failed) = copies.iter().chain([&writer]).find(|&&host| !self.world.outages.is_up(host)) {
            // The connection fails, and the writer requests another chain, as an HDFS client does.
            self.undo(now, block, &copies, &entries);
            self.exclude(block, failed);
            return Ok(());
        }
        let record = &mut self.record.blocks[block as usize];
        let file = &self.workload.files[record.file as usize];
        let World { fabric, network, hops, .. } = &mut self.world;
        let bytes = piece(record, file).0 as f64;
        // A chunk of a stripe has its share of the task's output.
        let cap = file.pace * (bytes / record.bytes.0.max(1) as f64);
        let mut flows = Vec::with_capacity(1);
        replicas::routes(fabric, file.layout, id(record), None, Some(writer), &copies, |route| {
            hops.clear();
            fabric.path(route, hops);
            if file.flexible {
                let out = links_out(fabric, writer);
                hops.retain(|hop| !out.contains(&Some(hop.resource)));
            }
            flows.push(network.start(now, hops, bytes, 1.0, cap, None));
        });
        (record.placed, record.copies) = (Some(now), copies);
        let flows = flows.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.purposes.extend(flows.iter().map(|&flow| (flow, FlowPurpose::Block(block))));
        self.blocks.insert(block, ActiveBlock { flows, entries });
        Ok(())
    }

    /// Reverts a placement: its entries and its storage.
    pub(super) fn undo(&mut self, now: f64, block: u32, copies: &[HostId], entries: &[EntryId]) {
        self.notify(now, Input::Release(entries));
        let record = &self.record.blocks[block as usize];
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        copies.iter().for_each(|&host| self.notify(now, Input::Unstored(host, bytes)));
    }

    /// Requests a block again, without a host that failed.
    pub(super) fn exclude(&mut self, block: u32, host: HostId) {
        let record = &mut self.record.blocks[block as usize];
        record.retries += 1;
        // Long lists of constraints are searched in order.
        let excluded = &mut self.open[record.file as usize].excluded;
        if let Err(at) = excluded.binary_search(&host) {
            excluded.insert(at, host);
        }
        self.requests.push(block);
    }

    pub(super) fn finish_flow(&mut self, done: Finished) {
        match self.purposes.remove(&done.flow) {
            Some(FlowPurpose::Block(block)) => self.finish_block_flow(block, done),
            Some(FlowPurpose::Fetch(file)) => self.finish_fetch(file, done),
            Some(FlowPurpose::Read(read)) => self.finish_transfer(read, done),
            Some(FlowPurpose::Repair(block)) => self.finish_repair_flow(block, done),
            None => self.world.finish_background(done, &mut self.record),
        }
    }

    /// Handles the end of a flow of a block; the last one ends the block.
    fn finish_block_flow(&mut self, block: u32, done: Finished) {
        let active = self.blocks.get_mut(&block).expect("a block is active while its flows are");
        active.flows.retain(|&flow| flow != done.flow);
        if !active.flows.is_empty() {
            return;
        }
        let active = self.blocks.remove(&block).expect("the block was found above");
        self.notify(done.at, Input::Release(&active.entries));
        self.working -= 1;
        let record = &mut self.record.blocks[block as usize];
        record.finished = Some(done.at);
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        for &host in &record.copies {
            let stored = &mut self.record.hosts[host.index()];
            stored.bytes.0 += bytes.0;
            stored.blocks += 1;
        }
        let file = record.file;
        self.continue_file(done.at, file, block);
    }
}

/// Returns the number of a block among all blocks.
pub(super) fn id(block: &Block) -> u64 {
    u64::from(block.file) * MOST_BLOCKS + u64::from(block.index)
}

/// Returns the number of blocks of `bytes` of a file.
pub(super) fn blocks(bytes: Bytes, file: &FileWrite) -> u64 {
    bytes.0.div_ceil(file.block.0.max(1))
}

/// Returns the number of fault domains, besides the first copy's, that must hold a copy of a file's blocks.
pub(super) fn fault_domains(scenario: &Scenario, file: &FileWrite) -> u8 {
    scenario.fault_domains.unwrap_or(1.min(file.replicas - 1))
}

/// Returns the end of a path from the copy, or chunk, that a host has of a block.
pub(super) fn stored_at(fabric: &Fabric, host: HostId, block: u64) -> Endpoint {
    match replicas::device_of(fabric, host, block, None) {
        Some(device) => Endpoint::DeviceRead(host, device),
        None => Endpoint::Host(host),
    }
}

/// Returns the links out of a host, and out of its rack and pod.
fn links_out(fabric: &Fabric, host: HostId) -> [Option<ResourceId>; 3] {
    let rack = fabric.rack_of(host);
    let pod = fabric.parent(rack).and_then(|pod| fabric.out_of_domain(pod));
    [fabric.egress(host), fabric.out_of_domain(rack), pod]
}

/// Returns the bytes that each host of a block stores: the whole block or a chunk.
pub(super) fn piece(block: &Block, file: &FileWrite) -> Bytes {
    match file.layout {
        Layout::Chain => block.bytes,
        Layout::Stripe { parity } => Bytes(block.bytes.0.div_ceil(u64::from(file.replicas - parity).max(1))),
    }
}
