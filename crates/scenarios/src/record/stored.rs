//! Records as bytes, for programs that keep runs. All values are exact. Only the version that wrote the bytes reads them.

use leeward_coflows::Arrival;
use leeward_fabric::{Bytes, Fabric, HostId, ResourceId, ResourceKind};

use super::{
    App, Balance, Block, CellInterval, CellTasks, Coflow, File, Host, Hotspot, Job, Link, Migration, Move,
    Read, Record, Repair, SkippedReads, Task,
};

/// Kinds of resources, by their number in bytes.
const KINDS: [ResourceKind; 9] = [
    ResourceKind::HostEgress,
    ResourceKind::HostIngress,
    ResourceKind::RackUplink,
    ResourceKind::RackDownlink,
    ResourceKind::PodUplink,
    ResourceKind::PodDownlink,
    ResourceKind::Pair,
    ResourceKind::SharedLink,
    ResourceKind::Device,
];

impl Record {
    /// The record as bytes, with a digest of them at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        let digest = digest(&bytes);
        digest.write(&mut bytes);
        bytes
    }

    /// The record of bytes that [`Record::to_bytes`] made, of a run on `fabric`; `None` for other bytes, and for a record
    /// that does not fit the fabric.
    pub fn from_bytes(bytes: &[u8], fabric: &Fabric) -> Option<Record> {
        let (mut body, mut end) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<u64>())?)?;
        if u64::read(&mut end)? != digest(body) {
            return None;
        }
        let record = Record::read(&mut body)?;
        (body.is_empty() && record.fits(fabric)).then_some(record)
    }

    /// True if all hosts, links and rows to which rows refer exist.
    fn fits(&self, fabric: &Fabric) -> bool {
        let host = |host: &HostId| host.index() < fabric.host_count();
        let link = |link: ResourceId| link.index() < fabric.resource_count();
        let row = |at: u32, rows: usize| (at as usize) < rows;
        self.blocks.iter().all(|block| {
            row(block.file, self.files.len()) && block.copies.iter().chain([&block.writer]).all(host)
        }) && self
            .files
            .iter()
            .all(|file| host(&file.writer) && file.job.is_none_or(|job| row(job, self.jobs.len())))
            && self.links.iter().all(|one| link(one.resource))
            && self.hotspots.iter().all(|one| link(one.resource))
            && self.hosts.len() <= fabric.host_count()
            && self.tasks.iter().all(|task| task.host.iter().all(host))
            && self.moves.iter().all(|one| {
                row(one.task, self.tasks.len()) && host(&one.from) && host(&one.to) && link(one.link)
            })
            && self.reads.iter().all(|read| {
                let mut hosts = read.holder.iter().chain(&*read.chunks).chain([&read.reader]);
                row(read.block, self.blocks.len()) && hosts.all(host)
            })
            && self.repairs.iter().all(|repair| {
                let mut hosts = repair.from.iter().chain(&*repair.missing).chain(&*repair.to);
                row(repair.block, self.blocks.len()) && hosts.all(host)
            })
            && self.apps.iter().all(|app| app.hosts.iter().all(host))
            && self.migrations.iter().all(|one| row(one.app, self.apps.len()))
    }
}

/// FNV-1a hash, which finds damaged bytes.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A value that is stored as at least one byte.
trait Stored: Sized {
    fn write(&self, out: &mut Vec<u8>);

    /// Takes the value from the beginning of `input`; `None` if it is not there.
    fn read(input: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $(impl Stored for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn read(input: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(<$type>::from_le_bytes(*bytes))
            }
        })+
    };
}

numbers!(u8, u32, u64, f64);

macro_rules! records {
    ($($name:ident { $($field:ident),+ })+) => {
        $(impl Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)+
            }

            fn read(input: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: Stored::read(input)?),+ })
            }
        })+
    };
}

records! {
    Record {
        blocks, files, jobs, links, balance, hotspots, hosts, tasks, moves, cell, reads, skipped_reads, repairs,
        unrepaired, apps, migrations, coflows, flows, discarded
    }
    Block { file, index, writer, bytes, full, copies, asked, placed, blind, finished, deleted, retries }
    File { job, writer, bytes, fetches, start, write_start, finished, attempts }
    Job { name, start, bytes, write_start, communication, finished }
    Link { start, resource, load, utilization }
    Balance { start, kind, mean, variation }
    Hotspot { resource, start, end, utilization }
    Host { bytes, blocks }
    Task { job, arrived, duration, placed, finished, host, moves, refused, down, tolerant, intensive }
    Move { at, task, from, to, link }
    CellInterval { start, length, tors, hot_tors, hot_uplinks, tor_p98, utilization, tasks }
    CellTasks { scheduled, intensive, intensive_on_hot, moved, running, waiting, processors }
    Read { number, block, reader, holder, chunks, bytes, wasted, lost, asked, finished }
    SkippedReads { without_data, reader_down }
    Repair { block, from, missing, to, bytes, lost, started, finished, abandoned }
    App {
        name, arrived, placed, finished, tasks, hosts, bytes, network_bytes, memory_bytes, forecast, migrations,
        tasks_moved, refused, restarts
    }
    Migration { at, app, tasks, stays, moves, cost, resumed }
    Coflow { arrival, bound, finished }
    Arrival { id, arrive, senders, receivers, flows, bytes, longest, local_pairs, local_bytes }
}

impl Stored for bool {
    fn write(&self, out: &mut Vec<u8>) {
        u8::from(*self).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Stored for ResourceKind {
    fn write(&self, out: &mut Vec<u8>) {
        let number = KINDS.iter().position(|kind| kind == self).unwrap_or(KINDS.len());
        (number as u8).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        KINDS.get(usize::from(u8::read(input)?)).copied()
    }
}

impl Stored for HostId {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        u32::read(input).map(HostId)
    }
}

impl Stored for ResourceId {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        u32::read(input).map(ResourceId)
    }
}

impl Stored for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        u64::read(input).map(Bytes)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        // The count is not trusted: the list grows with what is there.
        let count = u64::read(input)?;
        (0..count).map(|_| T::read(input)).collect()
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Vec::read(input).map(Vec::into_boxed_slice)
    }
}

impl Stored for String {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::read(input)?).ok()?;
        let (text, rest) = input.split_at_checked(length)?;
        *input = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        if bool::read(input)? { T::read(input).map(Some) } else { Some(None) }
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some((A::read(input)?, B::read(input)?))
    }
}
