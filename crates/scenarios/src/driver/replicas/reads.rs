//! Reads of written blocks: of a copy that the reader chooses, or of a chunk. Other chunks of the stripe replace a
//! chunk that does not arrive (Hotspots section 3.4). A read of one transfer is a flow from a device to the reader. A
//! degraded read has as many simultaneous flows as the stripe has data chunks.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::{Bytes, Endpoint, HostId};
use leeward_fluid::{Finished, FlowId};
use leeward_placement::replicas::Layout;
use leeward_workloads::{ReadStream, Workload};

use super::stored::{Stored, Zipf};
use super::writes::{id, piece, stored_at};
use super::{Driver, FlowPurpose};
use crate::driver::error::RunError;
use crate::record::{Read, Record, SkippedReads};

/// State of reads.
pub(super) struct Reads<'a> {
    streams: Vec<Stream<'a>>,
    stored: Stored,
    /// Reads in progress, by position in the record.
    active: BTreeMap<u32, ActiveRead>,
    /// Number of generated reads.
    count: u32,
}

/// Reads of one source.
struct Stream<'a> {
    source: &'a ReadStream,
    /// Number of the next read, and its time.
    number: u64,
    next: f64,
    zipf: Zipf,
    /// Deadlines for chunks, each with its read, in order of time.
    deadlines: VecDeque<(f64, u32)>,
}

/// A read in progress.
struct ActiveRead {
    /// Its stream, and its number there.
    stream: usize,
    number: u64,
    /// Its unfinished transfers, with the host of each.
    flows: Vec<(FlowId, HostId)>,
    /// Number of finished transfers.
    arrived: u64,
}

impl<'a> Reads<'a> {
    pub fn new(workload: &'a Workload) -> Reads<'a> {
        let stream = |source: &'a ReadStream| Stream {
            source,
            number: 0,
            next: source.arrival(0, source.start).unwrap_or(f64::INFINITY),
            zipf: Zipf::new(source.skew),
            deadlines: VecDeque::new(),
        };
        let files = if workload.reads.is_empty() { 0 } else { workload.files.len() };
        Reads {
            streams: workload.reads.iter().map(stream).collect(),
            stored: Stored::new(files),
            active: BTreeMap::new(),
            count: 0,
        }
    }

    /// Returns the time of the next read.
    pub fn next_arrival(&self) -> f64 {
        self.streams.iter().map(|stream| stream.next).fold(f64::INFINITY, f64::min)
    }

    /// Returns the earliest deadline for a chunk.
    pub fn next_deadline(&mut self, record: &Record) -> f64 {
        let waits =
            |read: &u32| self.active.contains_key(read) && !record.reads[*read as usize].is_degraded();
        let mut next = f64::INFINITY;
        for stream in &mut self.streams {
            while stream.deadlines.front().is_some_and(|(_, read)| !waits(read)) {
                stream.deadlines.pop_front();
            }
            next = stream.deadlines.front().map_or(next, |&(at, _)| next.min(at));
        }
        next
    }

    /// Adds a block that is on disk.
    pub fn add_block(&mut self, file: u32, block: u32) {
        if !self.streams.is_empty() {
            self.stored.add(file, block);
        }
    }
}

impl Driver<'_> {
    /// Starts the reads that are due by `now`, and degrades reads whose chunk has missed its deadline.
    pub(super) fn start_reads(&mut self, now: f64) -> Result<(), RunError> {
        for stream in 0..self.reads.streams.len() {
            while let Some(&(_, read)) =
                self.reads.streams[stream].deadlines.front().filter(|&&(until, _)| until <= now)
            {
                self.reads.streams[stream].deadlines.pop_front();
                if self.reads.active.contains_key(&read) && !self.record.reads[read as usize].is_degraded() {
                    self.degrade(now, read)?;
                }
            }
            while self.reads.streams[stream].next <= now {
                self.start_read(now, stream)?;
            }
        }
        Ok(())
    }

    /// Starts the next read of a stream, if a block is written and the reader is up.
    fn start_read(&mut self, now: f64, index: usize) -> Result<(), RunError> {
        let reads = &mut self.reads;
        let stream = &mut reads.streams[index];
        let (source, number) = (stream.source, stream.number);
        stream.number += 1;
        stream.next = source.arrival(stream.number, stream.next).unwrap_or(f64::INFINITY);
        let count = reads.count;
        reads.count += 1;
        let skipped = self.record.skipped_reads.get_or_insert_default();
        if reads.stored.count() == 0 {
            skipped.without_data += 1;
            return Ok(());
        }
        let reader = source.reader(number);
        if !self.world.outages.is_up(reader) {
            skipped.reader_down += 1;
            return Ok(());
        }
        let rank = stream.zipf.rank(reads.stored.count(), source.block(number));
        let block = reads.stored.block_at(rank).expect("a rank below the number of blocks");
        let record = &self.record.blocks[block as usize];
        let file = &self.workload.files[record.file as usize];
        let read = self.record.reads.len() as u32;
        if let (Some(after), Layout::Stripe { .. }) = (source.degraded_after, file.layout) {
            stream.deadlines.push_back((now + after, read));
        }
        self.record.reads.push(Read {
            number: count,
            block,
            reader,
            holder: None,
            chunks: Box::default(),
            bytes: source.size.min(piece(record, file)),
            wasted: Bytes(0),
            lost: false,
            asked: now,
            finished: None,
        });
        reads.active.insert(read, ActiveRead { stream: index, number, flows: Vec::new(), arrived: 0 });
        self.working += 1;
        self.read_from_holder(now, read)
    }

    /// Reads a copy from one of its hosts that are up, or a data chunk from its host.
    fn read_from_holder(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let ActiveRead { stream, number, .. } = self.reads.active[&read];
        let source = self.reads.streams[stream].source;
        let block = &self.record.blocks[self.record.reads[read as usize].block as usize];
        let file = &self.workload.files[block.file as usize];
        let up = |host: &HostId| self.world.outages.is_up(*host);
        let holder = match file.layout {
            Layout::Chain => {
                let count = block.copies.iter().filter(|host| up(host)).count();
                let chosen = source.holder(number, count);
                block.copies.iter().copied().filter(up).nth(chosen)
            }
            Layout::Stripe { parity } => {
                let data = usize::from(file.replicas - parity);
                Some(block.copies[source.holder(number, data)])
            }
        };
        self.record.reads[read as usize].holder = holder;
        match holder {
            Some(holder) if self.world.outages.is_up(holder) => {
                self.transfer(now, read, holder)?;
                self.finish_if_complete(now, read);
                Ok(())
            }
            Some(_) if source.degraded_after.is_some() => self.degrade(now, read),
            _ => self.fail_read(now, read),
        }
    }

    /// Abandons the requested chunk, and reads as many other chunks as the stripe has data chunks. If too few are
    /// available, the read continues to wait for the requested chunk.
    fn degrade(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let record = &self.record.reads[read as usize];
        let file = &self.workload.files[self.record.blocks[record.block as usize].file as usize];
        let Layout::Stripe { parity } = file.layout else { unreachable!("a copy is not degraded") };
        let data = usize::from(file.replicas - parity);
        let holder_up = record.holder.is_some_and(|holder| self.world.outages.is_up(holder));
        let mut others = self.others(read);
        if others.len() < data {
            return if holder_up { Ok(()) } else { self.fail_read(now, read) };
        }
        others.truncate(data);
        self.cancel_transfers(now, read)?;
        self.record.reads[read as usize].chunks = others.clone().into();
        for host in others {
            self.transfer(now, read, host)?;
        }
        self.finish_if_complete(now, read);
        Ok(())
    }

    /// Returns the hosts that are up and have chunks that a read has not requested, in the order of the read's
    /// preference.
    fn others(&self, read: u32) -> Vec<HostId> {
        let record = &self.record.reads[read as usize];
        let ActiveRead { stream, number, .. } = self.reads.active[&read];
        let source = self.reads.streams[stream].source;
        let copies = &self.record.blocks[record.block as usize].copies;
        let is_requested = |host: &HostId| record.holder == Some(*host) || record.chunks.contains(host);
        let mut others: Vec<(f64, HostId)> = (copies.iter().copied().enumerate())
            .filter(|(_, host)| self.world.outages.is_up(*host) && !is_requested(host))
            .map(|(chunk, host)| (source.rank(number, chunk), host))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        others.into_iter().map(|(_, host)| host).collect()
    }

    /// Starts a transfer from the device that holds the copy or chunk of a host.
    fn transfer(&mut self, now: f64, read: u32, host: HostId) -> Result<(), RunError> {
        let record = &self.record.reads[read as usize];
        let block = id(&self.record.blocks[record.block as usize]);
        let from = stored_at(&self.world.fabric, host, block);
        self.world.hops.clear();
        self.world.fabric.path(&[from, Endpoint::Host(record.reader)], &mut self.world.hops);
        // A transfer within the memory of one host takes no time.
        if self.world.hops.is_empty() {
            return Ok(());
        }
        let bytes = record.bytes.0 as f64;
        let flow = self.world.network.start(now, &self.world.hops, bytes, 1.0, f64::INFINITY, None)?;
        self.purposes.insert(flow, FlowPurpose::Read(read));
        self.reads.active.get_mut(&read).expect("an active read").flows.push((flow, host));
        Ok(())
    }

    /// Handles the end of a transfer of a read.
    pub(super) fn finish_transfer(&mut self, read: u32, done: Finished) {
        let active = self.reads.active.get_mut(&read).expect("a read is active while its flows are");
        active.flows.retain(|&(flow, _)| flow != done.flow);
        active.arrived += 1;
        self.finish_if_complete(done.at, read);
    }

    fn finish_if_complete(&mut self, now: f64, read: u32) {
        if self.reads.active[&read].flows.is_empty() {
            self.record.reads[read as usize].finished = Some(now);
            self.remove_read(read);
        }
    }

    fn remove_read(&mut self, read: u32) {
        self.reads.active.remove(&read);
        self.working -= 1;
    }

    /// Cancels the transfers of a read.
    fn cancel_transfers(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let active = self.reads.active.get_mut(&read).expect("an active read");
        for (flow, _) in std::mem::take(&mut active.flows) {
            self.cancel_transfer(now, read, flow)?;
        }
        Ok(())
    }

    fn cancel_transfer(&mut self, now: f64, read: u32, flow: FlowId) -> Result<(), RunError> {
        let left = self.world.network.cancel(now, flow)?;
        self.purposes.remove(&flow);
        let record = &mut self.record.reads[read as usize];
        record.wasted.0 += (record.bytes.0 as f64 - left).round() as u64;
        Ok(())
    }

    /// Abandons a read without a host to read from, or with a failed reader.
    fn abandon_read(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let arrived = self.reads.active[&read].arrived;
        let record = &mut self.record.reads[read as usize];
        record.wasted.0 += record.bytes.0 * arrived;
        self.cancel_transfers(now, read)?;
        self.remove_read(read);
        Ok(())
    }

    fn fail_read(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        self.record.reads[read as usize].lost = true;
        self.abandon_read(now, read)
    }

    /// Abandons the reads of failed hosts. Reads from a failed host continue from another host.
    pub(super) fn abandon_reads(&mut self, now: f64) -> Result<(), RunError> {
        let down = |host: HostId| !self.world.outages.is_up(host);
        let broken = |(&read, active): (&u32, &ActiveRead)| {
            let reader_down = down(self.record.reads[read as usize].reader);
            (reader_down || active.flows.iter().any(|&(_, host)| down(host))).then_some(read)
        };
        let broken: Vec<u32> = self.reads.active.iter().filter_map(broken).collect();
        for read in broken {
            let record = &self.record.reads[read as usize];
            if !self.world.outages.is_up(record.reader) {
                self.abandon_read(now, read)?;
            } else if record.is_degraded() {
                self.replace_chunks(now, read)?;
            } else {
                self.cancel_transfers(now, read)?;
                self.read_from_holder(now, read)?;
            }
        }
        Ok(())
    }

    /// Replaces the chunks that a degraded read was fetching from failed hosts.
    fn replace_chunks(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let flows = &mut self.reads.active.get_mut(&read).expect("an active read").flows;
        let failed: Vec<(FlowId, HostId)> =
            flows.extract_if(.., |(_, host)| !self.world.outages.is_up(*host)).collect();
        for &(flow, _) in &failed {
            self.cancel_transfer(now, read, flow)?;
        }
        for (_, host) in failed {
            let Some(&other) = self.others(read).first() else { return self.fail_read(now, read) };
            let chunks = &mut self.record.reads[read as usize].chunks;
            chunks.iter_mut().filter(|chunk| **chunk == host).for_each(|chunk| *chunk = other);
            self.transfer(now, read, other)?;
        }
        self.finish_if_complete(now, read);
        Ok(())
    }
}

/// Returns the initial count of skipped reads; `None` if the workload has no reads.
pub(super) fn skipped(workload: &Workload) -> Option<SkippedReads> {
    (!workload.reads.is_empty()).then(SkippedReads::default)
}
