//! What reads amount to.

use serde::Serialize;

use super::Times;
use crate::stage::record::{Read, Record};

/// Reads in a few numbers. Those asked for before the warm-up ended are left out, but for the ones that were not made.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReadSummary {
    /// Reads that ended.
    pub finished: u64,
    /// Reads that were under way when the run ended, or whose reader failed.
    pub unfinished: u64,
    /// Reads given up because too few hosts that they could be read from were up.
    pub lost: u64,
    /// Reads that came up before any block was written, from the beginning of the run.
    pub without_data: u64,
    /// Reads of hosts that were down when they came up, from the beginning of the run.
    pub reader_down: u64,
    /// Share of all reads that a host made from a device of its own.
    pub local_share: Option<f64>,
    /// Share of all reads that took other chunks of the stripe (Hotspots section 3.4).
    pub degraded_share: Option<f64>,
    /// From the question to the last byte.
    pub time_s: Times,
    /// The same of degraded reads only, the time in which the chunk did not come included.
    pub degraded_time_s: Times,
    /// What the reads that ended asked for.
    pub bytes: u64,
    /// What these fetched for it: more where chunks were read in the place of one.
    pub fetched: u64,
    /// What was carried by transfers that were given up.
    pub wasted: u64,
}

impl ReadSummary {
    /// Sums up the reads of a run; `None` if there was no source of any.
    pub fn of(record: &Record, warmup: f64) -> Option<ReadSummary> {
        let not_made = record.reads_not_made?;
        let counted = || record.reads.iter().filter(|read| read.asked >= warmup);
        let finished = || counted().filter(|read| read.finished.is_some());
        let count = |of: fn(&&Read) -> bool| counted().filter(of).count() as u64;
        let (all, lost, done) = (count(|_| true), count(|read| read.lost), finished().count() as u64);
        let share = |of: fn(&&Read) -> bool| (all > 0).then(|| count(of) as f64 / all as f64);
        Some(ReadSummary {
            finished: done,
            unfinished: all - done - lost,
            lost,
            without_data: not_made.without_data,
            reader_down: not_made.reader_down,
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
