//! Summary of reads.

use serde::Serialize;

use super::Times;
use crate::record::{Read, Record};

/// Summary of reads, without reads requested before the end of the warm-up. Skipped reads count from the beginning.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReadSummary {
    /// Reads that finished.
    pub finished: u64,
    /// Reads in progress when the run ended, and reads with a failed reader.
    pub unfinished: u64,
    /// Reads that failed because too few of their possible hosts were up.
    pub lost: u64,
    /// Reads generated before any block was written, from the beginning of the run.
    pub without_data: u64,
    /// Reads of hosts that were down, from the beginning of the run.
    pub reader_down: u64,
    /// Share of reads from a device of the reader's host.
    pub local_share: Option<f64>,
    /// Share of reads that used other chunks of the stripe (Hotspots section 3.4).
    pub degraded_share: Option<f64>,
    /// Time from the request to the last byte.
    pub time_s: Times,
    /// Time of degraded reads only, including the wait for the missing chunk.
    pub degraded_time_s: Times,
    /// Requested bytes of finished reads.
    pub bytes: u64,
    /// Fetched bytes of finished reads; more than the requested bytes if several chunks replaced one.
    pub fetched: u64,
    /// Bytes carried by abandoned transfers.
    pub wasted: u64,
}

impl ReadSummary {
    /// Summarizes the reads of a run; `None` without a source of reads.
    pub fn of(record: &Record, warmup: f64) -> Option<ReadSummary> {
        let skipped = record.skipped_reads?;
        let counted = || record.reads.iter().filter(|read| read.asked >= warmup);
        let finished = || counted().filter(|read| read.finished.is_some());
        let count = |holds: fn(&&Read) -> bool| counted().filter(holds).count() as u64;
        let (all, lost, done) = (count(|_| true), count(|read| read.lost), finished().count() as u64);
        let share = |holds: fn(&&Read) -> bool| (all > 0).then(|| count(holds) as f64 / all as f64);
        Some(ReadSummary {
            finished: done,
            unfinished: all - done - lost,
            lost,
            without_data: skipped.without_data,
            reader_down: skipped.reader_down,
            local_share: share(|read| read.is_local()),
            degraded_share: share(|read| read.is_degraded()),
            time_s: Times::of(finished().filter_map(Read::duration)),
            degraded_time_s: Times::of(
                finished().filter(|read| read.is_degraded()).filter_map(Read::duration),
            ),
            bytes: finished().map(|read| read.bytes.0).sum(),
            fetched: finished().map(|read| read.fetched().0).sum(),
            wasted: counted().map(|read| read.wasted.0).sum(),
        })
    }
}
