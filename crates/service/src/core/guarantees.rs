//! Guarantees that hold, by name of the workload.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use leeward_fabric::Nanos;
use leeward_records::{DecisionId, DecisionRecord};

use super::admission::Admission;
use super::admission_policies::AdmissionPolicies;
use super::job_queue::JobQueue;

/// Active guarantees, and admissions that wait or run.
#[derive(Debug, Default)]
pub(super) struct Promises {
    pub policies: AdmissionPolicies,
    /// Number of priorities that the fabric has for guarantees, computed on first use; `None` if it has none.
    pub levels: OnceLock<Option<u8>>,
    /// Decisions with an active guarantee, by name of the workload.
    pub active: BTreeMap<String, DecisionId>,
    /// Decisions of the default policy, by name of the workload: they guarantee nothing and hold nothing.
    pub unguaranteed: BTreeMap<String, DecisionId>,
    /// Last reported latency in seconds, with the end of its window.
    pub latencies: BTreeMap<String, (Nanos, f64)>,
    /// Admissions, of which one runs as a job.
    pub admissions: JobQueue<Admission>,
}

impl Promises {
    /// Records a reported latency of a workload. Returns true if the latency is newer than the last one, and `None` if
    /// the workload has no guarantee.
    pub fn record_latency(&mut self, name: &str, until: Nanos, latency: f64) -> Option<bool> {
        self.active.get(name)?;
        let last = self.latencies.entry(name.to_owned()).or_insert((Nanos(0), latency));
        let is_newer = until > last.0;
        if is_newer {
            *last = (until, latency);
        }
        Some(is_newer)
    }

    /// Starts the guarantee of a decision about a workload.
    pub fn begin(&mut self, record: &DecisionRecord) {
        if let Some(spec) = record.details.spec.workload() {
            let is_default = record.details.by_default;
            let names = if is_default { &mut self.unguaranteed } else { &mut self.active };
            names.insert(spec.name().to_owned(), record.id);
        }
    }

    /// Decision about a workload of this name that has not ended.
    pub fn named(&self, name: &str) -> Option<DecisionId> {
        self.active.get(name).or_else(|| self.unguaranteed.get(name)).copied()
    }

    /// Ends the guarantee.
    pub fn end(&mut self, record: &DecisionRecord) {
        let Some(spec) = record.details.spec.workload() else { return };
        self.active.remove(spec.name());
        self.unguaranteed.remove(spec.name());
        self.latencies.remove(spec.name());
    }
}
