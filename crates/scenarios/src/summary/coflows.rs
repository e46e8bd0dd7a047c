//! Summary of coflows in a run: completion times, by class too (Varys section 7).

use leeward_coflows::{Class, Coflow};
use serde::Serialize;

use super::Times;
use crate::record::Record;

/// Summary of coflows, without coflows that arrived before the end of the warm-up.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CoflowSummary {
    /// Number of coflows with flows.
    pub count: u64,
    /// Number of these coflows whose last flow ended within the run.
    pub finished: u64,
    /// Number of these coflows in progress when the run ended.
    pub unfinished: u64,
    /// Ids of the coflows in progress when the run ended.
    pub unfinished_ids: Vec<String>,
    /// Number of coflows without flows, because all their pairs are within racks. Their completion time is 0.
    pub local: u64,
    /// Number of pairs within racks, over all coflows.
    pub local_pairs: u64,
    /// Bytes of these pairs.
    pub local_bytes: u64,
    /// Time from arrival to the end of the last flow, of finished coflows with flows.
    pub completion_s: Times,
    /// Completion time over the time that the coflow would take alone: its effective bottleneck.
    pub slowdown: Times,
    /// Coflows by length and width.
    pub classes: ByClass<ClassSummary>,
}

/// A value for each class of coflows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ByClass<T> {
    /// Short and narrow.
    #[serde(rename = "SN")]
    pub short_narrow: T,
    /// Long and narrow.
    #[serde(rename = "LN")]
    pub long_narrow: T,
    /// Short and wide.
    #[serde(rename = "SW")]
    pub short_wide: T,
    /// Long and wide.
    #[serde(rename = "LW")]
    pub long_wide: T,
}

/// Coflows of one class that finished.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ClassSummary {
    /// Time from arrival to the end of the last flow.
    pub completion_s: Times,
    /// Completion time over the effective bottleneck.
    pub slowdown: Times,
}

impl<T> ByClass<T> {
    /// Returns the value of each class.
    pub(crate) fn of(mut value: impl FnMut(Class) -> T) -> ByClass<T> {
        let [short_narrow, long_narrow, short_wide, long_wide] = Class::ALL.map(&mut value);
        ByClass { short_narrow, long_narrow, short_wide, long_wide }
    }
}

impl CoflowSummary {
    /// Summarizes the coflows of a run; `None` without coflows.
    pub fn of(record: &Record, warmup: f64) -> Option<CoflowSummary> {
        if record.coflows.is_empty() {
            return None;
        }
        let counted = || record.coflows.iter().filter(|coflow| coflow.arrival.arrive >= warmup);
        let with_flows = || counted().filter(|coflow| coflow.class().is_some());
        let unfinished = || with_flows().filter(|coflow| coflow.finished.is_none());
        let (count, left) = (with_flows().count() as u64, unfinished().count() as u64);
        Some(CoflowSummary {
            count,
            finished: count - left,
            unfinished: left,
            unfinished_ids: unfinished().map(|coflow| coflow.arrival.id.clone()).collect(),
            local: counted().count() as u64 - count,
            local_pairs: counted().map(|coflow| u64::from(coflow.arrival.local_pairs)).sum(),
            local_bytes: counted().map(|coflow| coflow.arrival.local_bytes).fold(0, u64::saturating_add),
            completion_s: Times::of(with_flows().filter_map(Coflow::completion_time)),
            slowdown: Times::of(with_flows().filter_map(Coflow::slowdown)),
            classes: ByClass::of(|class| {
                let members = || counted().filter(|coflow| coflow.class() == Some(class));
                ClassSummary {
                    completion_s: Times::of(members().filter_map(Coflow::completion_time)),
                    slowdown: Times::of(members().filter_map(Coflow::slowdown)),
                }
            }),
        })
    }
}
