//! Summary of repairs.

use serde::Serialize;

use super::Times;
use crate::record::{Record, Repair};

/// Summary of repairs, from the beginning of the run: a repair belongs to a failure, and not to an arrival.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RepairSummary {
    /// Repairs that finished.
    pub finished: u64,
    /// Repairs that ended early because one of their hosts failed, or because the block was deleted.
    pub abandoned: u64,
    /// Blocks with lost copies at the end.
    pub unrepaired: u64,
    /// Bytes of the new copies.
    pub bytes: u64,
    /// Time from the loss of a copy to the last new copy.
    pub time_s: Times,
    /// Time of the transfers alone.
    pub transfer_s: Times,
}

impl RepairSummary {
    /// Summarizes the repairs of a run; `None` without `repair` in the scenario.
    pub fn of(record: &Record) -> Option<RepairSummary> {
        let unrepaired = record.unrepaired?;
        let finished = || record.repairs.iter().filter(|repair| repair.finished.is_some());
        Some(RepairSummary {
            finished: finished().count() as u64,
            abandoned: record.repairs.iter().filter(|repair| repair.abandoned.is_some()).count() as u64,
            unrepaired,
            bytes: finished().map(|repair| repair.bytes.0 * repair.to.len() as u64).sum(),
            time_s: Times::of(finished().filter_map(Repair::duration)),
            transfer_s: Times::of(finished().filter_map(Repair::transfer_time)),
        })
    }
}
