//! Records of a run as Arrow tables. Times are seconds from the start of the run, null for events that did not happen.
//! Hosts and links are given by name.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt8Array, UInt32Array, UInt64Array};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_fabric::{Fabric, HostId};
use leeward_scenarios::record::{CellInterval, Job, Read, Record, Repair, Task};
use pyo3::prelude::*;

use crate::arrow_table::table;
use crate::names::kind_name;

pub type ArrowTable = PyArrowType<Table>;

pub fn times(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

pub fn maybe_times(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}

pub fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

pub fn ids(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter(values))
}

pub fn texts<T: AsRef<str>>(values: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

pub fn blocks(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let blocks = &record.blocks;
    let mut hosts = ListBuilder::new(StringBuilder::new());
    for block in blocks {
        block.copies.iter().for_each(|&host| hosts.values().append_value(fabric.host_name(host)));
        hosts.append(true);
    }
    table([
        ("file", ids(blocks.iter().map(|b| Some(b.file)))),
        ("block", ids(blocks.iter().map(|b| Some(b.index)))),
        ("writer", texts(blocks.iter().map(|b| fabric.host_name(b.writer)))),
        ("bytes", counts(blocks.iter().map(|b| b.bytes.0))),
        ("full", Arc::new(BooleanArray::from_iter(blocks.iter().map(|b| Some(b.full)))) as ArrayRef),
        ("hosts", Arc::new(hosts.finish()) as ArrayRef),
        ("asked_s", times(blocks.iter().map(|b| b.asked))),
        ("placed_s", maybe_times(blocks.iter().map(|b| b.placed))),
        ("finished_s", maybe_times(blocks.iter().map(|b| b.finished))),
        ("deleted_s", maybe_times(blocks.iter().map(|b| b.deleted))),
        ("retries", ids(blocks.iter().map(|b| Some(b.retries)))),
    ])
}

pub fn files(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let files = &record.files;
    table([
        ("job", ids(files.iter().map(|f| f.job))),
        ("writer", texts(files.iter().map(|f| fabric.host_name(f.writer)))),
        ("bytes", counts(files.iter().map(|f| f.bytes.0))),
        ("fetched", counts(files.iter().map(|f| f.fetches.0))),
        ("start_s", times(files.iter().map(|f| f.start))),
        ("write_start_s", maybe_times(files.iter().map(|f| f.write_start))),
        ("finished_s", maybe_times(files.iter().map(|f| f.finished))),
        ("attempts", ids(files.iter().map(|f| Some(f.attempts)))),
    ])
}

pub fn jobs(record: &Record) -> PyResult<ArrowTable> {
    let jobs = &record.jobs;
    table([
        ("name", texts(jobs.iter().map(|j| &j.name))),
        ("bytes", counts(jobs.iter().map(|j| j.bytes.0))),
        ("start_s", times(jobs.iter().map(|j| j.start))),
        ("write_start_s", maybe_times(jobs.iter().map(|j| j.write_start))),
        ("finished_s", maybe_times(jobs.iter().map(|j| j.finished))),
        ("communication_s", maybe_times(jobs.iter().map(Job::communicating))),
        ("write_share", maybe_times(jobs.iter().map(Job::write_share))),
        ("bin", Arc::new(UInt8Array::from_iter(jobs.iter().map(Job::bin))) as ArrayRef),
    ])
}

pub fn links(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let links = &record.links;
    table([
        ("start_s", times(links.iter().map(|l| l.start))),
        ("link", texts(links.iter().map(|l| fabric.resource_name(l.resource)))),
        ("kind", texts(links.iter().map(|l| kind_name(fabric.kind(l.resource))))),
        ("load_bps", times(links.iter().map(|l| l.load))),
        ("utilization", times(links.iter().map(|l| l.utilization))),
    ])
}

pub fn balance(record: &Record) -> PyResult<ArrowTable> {
    let balance = &record.balance;
    table([
        ("start_s", times(balance.iter().map(|b| b.start))),
        ("kind", texts(balance.iter().map(|b| kind_name(b.kind)))),
        ("mean_bps", times(balance.iter().map(|b| b.mean))),
        ("cv", maybe_times(balance.iter().map(|b| b.variation))),
    ])
}

pub fn hotspots(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let hotspots = &record.hotspots;
    table([
        ("link", texts(hotspots.iter().map(|h| fabric.resource_name(h.resource)))),
        ("kind", texts(hotspots.iter().map(|h| kind_name(fabric.kind(h.resource))))),
        ("start_s", times(hotspots.iter().map(|h| h.start))),
        ("end_s", times(hotspots.iter().map(|h| h.end))),
        ("utilization", times(hotspots.iter().map(|h| h.utilization))),
    ])
}

pub fn hosts(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let hosts = &record.hosts;
    let racks = (0..hosts.len() as u32).map(|host| fabric.domain_name(fabric.rack_of(HostId(host))));
    table([
        ("host", texts(fabric.all_hosts().map(|host| fabric.host_name(host)))),
        ("rack", texts(racks)),
        ("bytes", counts(hosts.iter().map(|h| h.bytes.0))),
        ("blocks", counts(hosts.iter().map(|h| h.blocks))),
    ])
}

pub fn tasks(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let tasks = &record.tasks;
    let host = |host: Option<HostId>| host.map(|host| fabric.host_name(host).to_owned());
    let flags = |field: fn(&Task) -> bool| {
        Arc::new(BooleanArray::from_iter(tasks.iter().map(|t| Some(field(t))))) as ArrayRef
    };
    table([
        ("job", ids(tasks.iter().map(|t| Some(t.job)))),
        ("arrived_s", times(tasks.iter().map(|t| t.arrived))),
        ("duration_s", times(tasks.iter().map(|t| t.duration))),
        ("placed_s", maybe_times(tasks.iter().map(|t| t.placed))),
        ("finished_s", maybe_times(tasks.iter().map(|t| t.finished))),
        ("host", Arc::new(StringArray::from_iter(tasks.iter().map(|t| host(t.host)))) as ArrayRef),
        ("moves", ids(tasks.iter().map(|t| Some(t.moves)))),
        ("refused", ids(tasks.iter().map(|t| Some(t.refused)))),
        ("down_s", times(tasks.iter().map(|t| t.down))),
        ("tolerant", flags(|t| t.tolerant)),
        ("intensive", flags(|t| t.intensive)),
    ])
}

pub fn moves(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let moves = &record.moves;
    table([
        ("time_s", times(moves.iter().map(|m| m.at))),
        ("task", ids(moves.iter().map(|m| Some(m.task)))),
        ("from", texts(moves.iter().map(|m| fabric.host_name(m.from)))),
        ("to", texts(moves.iter().map(|m| fabric.host_name(m.to)))),
        ("link", texts(moves.iter().map(|m| fabric.resource_name(m.link)))),
    ])
}

pub fn cell(record: &Record) -> PyResult<ArrowTable> {
    let cell = &record.cell;
    let number = |field: fn(&CellInterval) -> u32| ids(cell.iter().map(|c| Some(field(c))));
    table([
        ("start_s", times(cell.iter().map(|c| c.start))),
        ("length_s", times(cell.iter().map(|c| c.length))),
        ("tors", number(|c| c.tors)),
        ("hot_tors", number(|c| c.hot_tors)),
        ("hot_uplinks", number(|c| c.hot_uplinks)),
        ("tor_p98", times(cell.iter().map(|c| c.tor_p98))),
        ("utilization", times(cell.iter().map(|c| c.utilization))),
        ("scheduled", number(|c| c.tasks.scheduled)),
        ("intensive", number(|c| c.tasks.intensive)),
        ("intensive_on_hot", number(|c| c.tasks.intensive_on_hot)),
        ("moved", number(|c| c.tasks.moved)),
        ("running", number(|c| c.tasks.running)),
        ("waiting", number(|c| c.tasks.waiting)),
        ("processors", times(cell.iter().map(|c| c.tasks.processors))),
    ])
}

pub fn reads(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let reads = &record.reads;
    let block = |read: &Read| &record.blocks[read.block as usize];
    let flags = |field: fn(&Read) -> bool| {
        Arc::new(BooleanArray::from_iter(reads.iter().map(|r| Some(field(r))))) as ArrayRef
    };
    let holders = reads.iter().map(|r| r.holder.map(|host| fabric.host_name(host)));
    let mut chunks = ListBuilder::new(StringBuilder::new());
    for read in reads {
        read.chunks.iter().for_each(|&host| chunks.values().append_value(fabric.host_name(host)));
        chunks.append(true);
    }
    table([
        ("read", ids(reads.iter().map(|r| Some(r.number)))),
        ("file", ids(reads.iter().map(|r| Some(block(r).file)))),
        ("block", ids(reads.iter().map(|r| Some(block(r).index)))),
        ("reader", texts(reads.iter().map(|r| fabric.host_name(r.reader)))),
        ("holder", Arc::new(StringArray::from_iter(holders)) as ArrayRef),
        ("chunks", Arc::new(chunks.finish()) as ArrayRef),
        ("bytes", counts(reads.iter().map(|r| r.bytes.0))),
        ("fetched", counts(reads.iter().map(|r| r.fetched().0))),
        ("wasted", counts(reads.iter().map(|r| r.wasted.0))),
        ("local", flags(Read::is_local)),
        ("degraded", flags(Read::is_degraded)),
        ("lost", flags(|r| r.lost)),
        ("asked_s", times(reads.iter().map(|r| r.asked))),
        ("finished_s", maybe_times(reads.iter().map(|r| r.finished))),
    ])
}

pub fn repairs(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let repairs = &record.repairs;
    let block = |repair: &Repair| &record.blocks[repair.block as usize];
    let hosts = |field: fn(&Repair) -> &[HostId]| {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for repair in repairs {
            field(repair).iter().for_each(|&host| lists.values().append_value(fabric.host_name(host)));
            lists.append(true);
        }
        Arc::new(lists.finish()) as ArrayRef
    };
    table([
        ("file", ids(repairs.iter().map(|r| Some(block(r).file)))),
        ("block", ids(repairs.iter().map(|r| Some(block(r).index)))),
        ("from", hosts(|r| &r.from)),
        ("missing", hosts(|r| &r.missing)),
        ("to", hosts(|r| &r.to)),
        ("bytes", counts(repairs.iter().map(|r| r.bytes.0))),
        ("lost_s", times(repairs.iter().map(|r| r.lost))),
        ("started_s", times(repairs.iter().map(|r| r.started))),
        ("finished_s", maybe_times(repairs.iter().map(|r| r.finished))),
        ("abandoned_s", maybe_times(repairs.iter().map(|r| r.abandoned))),
    ])
}
