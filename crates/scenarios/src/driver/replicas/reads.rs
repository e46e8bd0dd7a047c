//! Reads of written blocks: of a copy that the reader chooses, or of a chunk. Other chunks of the stripe replace a
//! chunk that does not arrive (Hotspots section 3.4). A read of one transfer is a flow from a device to the reader. A
//! degraded read has as many simultaneous flows as the stripe has data chunks.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::{Bytes, Endpoint, HostId};
use leeward_fluid::{Finished, FlowId};
use leeward_placement::replicas::{self, Layout};

use super::stored::{Stored, Zipf};
use super::writes::{id, piece};
use super::{Driver, FlowPurpose};
use crate::driver::error::RunError;
use crate::record::{NotMade, Read, Record};
use crate::workload::{ReadStream, Workload};

/// State of reads.
pub(super) struct Reads<'a> {
    streams: Vec<Stream<'a>>,
    stored: Stored,
    /// Reads in progress, by position in the record.
    under_way: BTreeMap<u32, Reading>,
    /// Number of generated reads.
    count: u32,
}

/// Reads of one source.
struct Stream<'a> {
    of: &'a ReadStream,
    /// Number of the next read, and its time.
    number: u64,
    next: f64,
    zipf: Zipf,
    /// Deadlines for chunks, each with its read, in order of time.
    deadlines: VecDeque<(f64, u32)>,
}

/// A read in progress.
struct Reading {
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
        let stream = |of: &'a ReadStream| Stream {
            of,
            number: 0,
            next: of.arrival(0, of.start).unwrap_or(f64::INFINITY),
            zipf: Zipf::new(of.skew),
            deadlines: VecDeque::new(),
        };
        let files = if workload.reads.is_empty() { 0 } else { workload.files.len() };
        Reads {
            streams: workload.reads.iter().map(stream).collect(),
            stored: Stored::new(files),
            under_way: BTreeMap::new(),
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
            |read: &u32| self.under_way.contains_key(read) && !record.reads[*read as usize].is_degraded();
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
    pub fn written(&mut self, file: u32, block: u32) {
        if !self.streams.is_empty() {
            self.stored.add(file, block);
        }
    }
}

impl Driver<'_> {
    /// Makes the reads that are due until `now`, and degrades reads whose chunk has missed its deadline.
    pub(super) fn make_reads(&mut self, now: f64) -> Result<(), RunError> {
        for at in 0..self.reads.streams.len() {
            while let Some(&(_, read)) =
                self.reads.streams[at].deadlines.front().filter(|&&(until, _)| until <= now)
            {
                self.reads.streams[at].deadlines.pop_front();
                if self.reads.under_way.contains_key(&read) && !self.record.reads[read as usize].is_degraded()
                {
                    self.degrade(now, read)?;
                }
            }
            while self.reads.streams[at].next <= now {
                self.make_read(now, at)?;
            }
        }
        Ok(())
    }

    /// Makes the next read of a stream, if a block is written and the reader is up.
    fn make_read(&mut self, now: f64, at: usize) -> Result<(), RunError> {
        let reads = &mut self.reads;
        let stream = &mut reads.streams[at];
        let (of, number) = (stream.of, stream.number);
        stream.number += 1;
        stream.next = of.arrival(stream.number, stream.next).unwrap_or(f64::INFINITY);
        let count = reads.count;
        reads.count += 1;
        let not_made = self.record.reads_not_made.get_or_insert_default();
        if reads.stored.count() == 0 {
            not_made.without_data += 1;
            return Ok(());
        }
        let reader = of.reader(number);
        if !self.outages.is_up(reader) {
            not_made.reader_down += 1;
            return Ok(());
        }
        let rank = stream.zipf.rank(reads.stored.count(), of.block(number));
        let block = reads.stored.at(rank).expect("a rank below the number of blocks");
        let record = &self.record.blocks[block as usize];
        let file = &self.workload.files[record.file as usize];
        let read = self.record.reads.len() as u32;
        if let (Some(after), Layout::Stripe { .. }) = (of.degraded_after, file.layout) {
            stream.deadlines.push_back((now + after, read));
        }
        self.record.reads.push(Read {
            number: count,
            block,
            reader,
            holder: None,
            chunks: Box::default(),
            bytes: of.size.min(piece(record, file)),
            wasted: Bytes(0),
            lost: false,
            asked: now,
            finished: None,
        });
        reads.under_way.insert(read, Reading { stream: at, number, flows: Vec::new(), arrived: 0 });
        self.working += 1;
        self.ask_holder(now, read)
    }

    /// Reads a copy from one of its hosts that are up, or a data chunk from its host.
    fn ask_holder(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let Reading { stream, number, .. } = self.reads.under_way[&read];
        let of = self.reads.streams[stream].of;
        let block = &self.record.blocks[self.record.reads[read as usize].block as usize];
        let file = &self.workload.files[block.file as usize];
        let up = |host: &HostId| self.outages.is_up(*host);
        let holder = match file.layout {
            Layout::Chain => {
                let count = block.copies.iter().filter(|host| up(host)).count();
                let chosen = of.holder(number, count);
                block.copies.iter().copied().filter(up).nth(chosen)
            }
            Layout::Stripe { parity } => {
                let data = usize::from(file.replicas - parity);
                Some(block.copies[of.holder(number, data)])
            }
        };
        self.record.reads[read as usize].holder = holder;
        match holder {
            Some(holder) if self.outages.is_up(holder) => {
                self.transfer(now, read, holder)?;
                self.end_if_over(now, read);
                Ok(())
            }
            Some(_) if of.degraded_after.is_some() => self.degrade(now, read),
            _ => self.lose(now, read),
        }
    }

    /// Abandons the requested chunk, and reads as many other chunks as the stripe has data chunks. If too few are
    /// available, continues to wait for the requested chunk.
    fn degrade(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let record = &self.record.reads[read as usize];
        let file = &self.workload.files[self.record.blocks[record.block as usize].file as usize];
        let Layout::Stripe { parity } = file.layout else { unreachable!("a copy is not degraded") };
        let data = usize::from(file.replicas - parity);
        let holder_up = record.holder.is_some_and(|holder| self.outages.is_up(holder));
        let mut others = self.others(read);
        if others.len() < data {
            return if holder_up { Ok(()) } else { self.lose(now, read) };
        }
        others.truncate(data);
        self.stop(now, read)?;
        self.record.reads[read as usize].chunks = others.clone().into();
        for host in others {
            self.transfer(now, read, host)?;
        }
        self.end_if_over(now, read);
        Ok(())
    }

    /// Returns the hosts that are up and have chunks that a read has not requested, in the order of the read's
    /// preference.
    fn others(&self, read: u32) -> Vec<HostId> {
        let record = &self.record.reads[read as usize];
        let Reading { stream, number, .. } = self.reads.under_way[&read];
        let of = self.reads.streams[stream].of;
        let copies = &self.record.blocks[record.block as usize].copies;
        let asked = |host: &HostId| record.holder == Some(*host) || record.chunks.contains(host);
        let mut others: Vec<(f64, HostId)> = (copies.iter().copied().enumerate())
            .filter(|(_, host)| self.outages.is_up(*host) && !asked(host))
            .map(|(chunk, host)| (of.rank(number, chunk), host))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        others.into_iter().map(|(_, host)| host).collect()
    }

    /// Starts a transfer from the device that holds the copy or chunk of a host.
    fn transfer(&mut self, now: f64, read: u32, host: HostId) -> Result<(), RunError> {
        let record = &self.record.reads[read as usize];
        let block = id(&self.record.blocks[record.block as usize]);
        let from = match replicas::device_of(&self.fabric, host, block) {
            Some(device) => Endpoint::DeviceRead(host, device),
            None => Endpoint::Host(host),
        };
        self.hops.clear();
        self.fabric.path(&[from, Endpoint::Host(record.reader)], &mut self.hops);
        // A transfer within the memory of one host takes no time.
        if self.hops.is_empty() {
            return Ok(());
        }
        let bytes = record.bytes.0 as f64;
        let flow = self.network.start(now, &self.hops, bytes, 1.0, f64::INFINITY, None)?;
        self.purposes.insert(flow, FlowPurpose::Read(read));
        self.reads.under_way.get_mut(&read).expect("a read under way").flows.push((flow, host));
        Ok(())
    }

    /// Handles the end of a transfer of a read.
    pub(super) fn read(&mut self, read: u32, done: Finished) {
        let reading = self.reads.under_way.get_mut(&read).expect("a read is active while its flows are");
        reading.flows.retain(|&(flow, _)| flow != done.flow);
        reading.arrived += 1;
        self.end_if_over(done.at, read);
    }

    fn end_if_over(&mut self, now: f64, read: u32) {
        if self.reads.under_way[&read].flows.is_empty() {
            self.record.reads[read as usize].finished = Some(now);
            self.leave_read(read);
        }
    }

    fn leave_read(&mut self, read: u32) {
        self.reads.under_way.remove(&read);
        self.working -= 1;
    }

    /// Cancels the transfers of a read.
    fn stop(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let reading = self.reads.under_way.get_mut(&read).expect("a read under way");
        for (flow, _) in std::mem::take(&mut reading.flows) {
            self.give_up(now, read, flow)?;
        }
        Ok(())
    }

    fn give_up(&mut self, now: f64, read: u32, flow: FlowId) -> Result<(), RunError> {
        let left = self.network.cancel(now, flow)?;
        self.purposes.remove(&flow);
        let record = &mut self.record.reads[read as usize];
        record.wasted.0 += (record.bytes.0 as f64 - left).round() as u64;
        Ok(())
    }

    /// Abandons a read without a host to read from, or with a failed reader.
    fn abandon_read(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let arrived = self.reads.under_way[&read].arrived;
        let record = &mut self.record.reads[read as usize];
        record.wasted.0 += record.bytes.0 * arrived;
        self.stop(now, read)?;
        self.leave_read(read);
        Ok(())
    }

    fn lose(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        self.record.reads[read as usize].lost = true;
        self.abandon_read(now, read)
    }

    /// Abandons the reads of failed hosts. Reads from a failed host continue from another host.
    pub(super) fn abandon_reads(&mut self, now: f64) -> Result<(), RunError> {
        let down = |host: HostId| !self.outages.is_up(host);
        let broken = |(&read, reading): (&u32, &Reading)| {
            let readerless = down(self.record.reads[read as usize].reader);
            (readerless || reading.flows.iter().any(|&(_, host)| down(host))).then_some(read)
        };
        let broken: Vec<u32> = self.reads.under_way.iter().filter_map(broken).collect();
        for read in broken {
            let record = &self.record.reads[read as usize];
            if !self.outages.is_up(record.reader) {
                self.abandon_read(now, read)?;
            } else if record.is_degraded() {
                self.replace_chunks(now, read)?;
            } else {
                self.stop(now, read)?;
                self.ask_holder(now, read)?;
            }
        }
        Ok(())
    }

    /// Replaces the chunks that a degraded read was fetching from failed hosts.
    fn replace_chunks(&mut self, now: f64, read: u32) -> Result<(), RunError> {
        let flows = &mut self.reads.under_way.get_mut(&read).expect("a read under way").flows;
        let dead: Vec<(FlowId, HostId)> =
            flows.extract_if(.., |(_, host)| !self.outages.is_up(*host)).collect();
        for &(flow, _) in &dead {
            self.give_up(now, read, flow)?;
        }
        for (_, host) in dead {
            let Some(&other) = self.others(read).first() else { return self.lose(now, read) };
            let chunks = &mut self.record.reads[read as usize].chunks;
            chunks.iter_mut().filter(|chunk| **chunk == host).for_each(|chunk| *chunk = other);
            self.transfer(now, read, other)?;
        }
        self.end_if_over(now, read);
        Ok(())
    }
}

/// Initial record of reads that were not made; `None` if the workload has no reads.
pub(super) fn not_made(workload: &Workload) -> Option<NotMade> {
    (!workload.reads.is_empty()).then(NotMade::default)
}
