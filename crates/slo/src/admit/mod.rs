//! Admission: decides if a new workload is promised its SLO beside the existing promises (SLO sections 4.3
//! and 2.1).
//!
//! ```text
//! System of promises + Arrival --Admission--> the system with the arrival: promised, or best effort with a reason
//! ```
//!
//! A policy admits a workload if its bounds keep the SLO of the workload and of all workloads that it may disturb. A
//! refused workload may run as best effort at the last priority; it then delays every other workload by at most one
//! request. The policy refuses a workload that cannot be analysed (no model of arrivals, an unstable queue), with the
//! reason.

mod bounded;
mod join;
mod qjump;
mod silo;

use std::sync::Arc;

use leeward_registry::{Registration, Registry};

pub use bounded::{Bounded, BoundedSettings};
pub use join::joined;
pub use qjump::{QJump, QJumpSettings};
pub use silo::{Silo, SiloSettings};

use super::bound::{Alone, BoundSettings, Bounds, Method, Miss, SloBelowUnloaded, SystemError, Unbounded};
use super::format::{above, time};
use super::{System, Workload};

/// A workload that requests admission.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrival {
    /// The workload. A workload without an SLO is best effort from the start.
    pub workload: Arc<Workload>,
    /// For each of its demands: the queues of its path, by index and in order.
    pub route: Vec<Vec<usize>>,
}

/// Result of an arrival.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The system with the arrival as the last promise, and with the priorities and limits of all promises. A refused
    /// arrival has no SLO in this system, and the last priority, `u32::MAX`; the other promises are unchanged.
    pub system: System,
    /// Reason of a refusal; `None` if admitted.
    pub refused: Option<AdmissionError>,
    /// Promises, by index, that would lose their SLO even with the arrival as best effort, because they may wait for
    /// one of its requests. If there are any, the workload should not run at this place.
    pub disturbed: Vec<usize>,
    /// Number of priority ranks before merging; `None` if networks distinguish all of them.
    pub merged: Option<usize>,
    /// True if the policy searched for priorities, because the order by SLO did not suffice.
    pub searched: bool,
}

impl Outcome {
    /// The arrival is admitted as requested.
    fn promised(system: System, merged: Option<usize>) -> Outcome {
        Outcome { system, refused: None, disturbed: Vec::new(), merged, searched: false }
    }

    /// True if the workload runs as requested: with its SLO, or as best effort if it has none.
    pub fn admitted(&self) -> bool {
        self.refused.is_none() && self.disturbed.is_empty()
    }
}

/// Reason for refusing an SLO to a workload.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum AdmissionError {
    /// A bound exceeds its SLO: the bound of the arriving workload, or of a workload that it would disturb.
    #[error("{workload}: {}{}", above(*.seconds, *.slo), by_itself(*.alone))]
    Miss {
        /// Name of the workload with the miss.
        workload: String,
        /// Bound, in seconds.
        seconds: f64,
        /// SLO, in seconds.
        slo: f64,
        /// Unloaded latency of the workload's largest request at one stage, if this latency exceeds the SLO.
        alone: Option<Alone>,
    },
    /// No bound exists; the inner error has the stage, the queue and the reason.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The unloaded latency is not below the SLO.
    #[error(transparent)]
    Unloaded(#[from] SloBelowUnloaded),
    /// A stage that the policy does not support.
    #[error("{workload}: {policy} supports only networks, and the workload has the stage {stage}")]
    Stage {
        /// Name of the workload.
        workload: String,
        /// Name of the policy.
        policy: &'static str,
        /// The stage.
        stage: leeward_traces::Stage,
    },
    /// The sum of all bursts exceeds a buffer.
    #[error("queue {queue}: the bursts of {bursts} bytes exceed the buffer of {buffer} bytes")]
    Buffer {
        /// Name of the queue.
        queue: String,
        /// Sum of all bursts, in work.
        bursts: f64,
        /// Buffer of the queue, in work.
        buffer: f64,
    },
}

impl AdmissionError {
    fn of(miss: Miss, bounds: &Bounds<'_>) -> AdmissionError {
        match miss.outcome {
            Ok(bound) => {
                let (workload, alone) = (bounds.name(miss.promise), bounds.alone(miss.promise));
                let alone = alone.filter(|alone| alone.seconds > miss.slo.latency);
                AdmissionError::Miss { workload, seconds: bound.seconds, slo: miss.slo.latency, alone }
            }
            Err(unbounded) => unbounded.into(),
        }
    }
}

/// Suffix of a message: the unloaded latency of the largest request.
fn by_itself(alone: Option<Alone>) -> String {
    alone.map_or_else(String::new, |Alone { stage, seconds }| {
        format!("; its largest request takes {} at {stage} without any load", time(seconds))
    })
}

/// An admission policy.
pub trait Admission: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Method and settings of the bounds behind the policy's promises; `None` if the policy promises nothing.
    fn by(&self) -> Option<(Method, BoundSettings)>;

    /// True if the policy sets its own network rates. Such a policy guarantees only its own promises. Any other policy
    /// has the settings `bounds` and `levels`, whose defaults are those of a workload file.
    fn sets_rates(&self) -> bool;

    /// True if the bounds of the policy need models of arrivals.
    fn needs_models(&self) -> bool {
        self.by().is_some_and(|(method, _)| method.needs_models())
    }

    /// Decides on an arrival. The policy assumes that the system's promises hold, as they do if the policy admitted
    /// each promise. The policy checks only promises that the arrival may disturb.
    ///
    /// # Errors
    /// [`SystemError`] for an invalid system or arrival.
    fn arrive(&self, system: &System, arrival: Arrival) -> Result<Outcome, SystemError>;

    /// Decides again on an existing promise whose workload changed. If the policy refuses the workload, its volume
    /// should move to a place that admits it; until then the workload is best effort. The promise becomes the last one.
    /// The indices in `disturbed` do not count it.
    ///
    /// # Errors
    /// [`SystemError`] for an invalid system or workload.
    ///
    /// # Panics
    /// If the index is out of range.
    fn changed(
        &self,
        system: &System,
        promise: usize,
        workload: Arc<Workload>,
    ) -> Result<Outcome, SystemError> {
        let mut others = system.clone();
        let route = others.promises.remove(promise).route;
        self.arrive(&others, Arrival { workload, route })
    }
}

/// All policies for admission.
pub const REGISTRY: Registry<dyn Admission> = Registry {
    noun: "policy",
    kind: Some("admission"),
    entries: &[
        bounded::SNC,
        bounded::DNC,
        bounded::BEST,
        silo::REGISTRATION,
        qjump::REGISTRATION,
        bounded::NONE,
    ],
};

/// Policies that decide under the existing limits, without network rates of their own.
pub fn without_own_rates() -> impl Iterator<Item = &'static Registration<dyn Admission>> {
    REGISTRY.iter().filter(|entry| (entry.make)("").is_ok_and(|policy| !policy.sets_rates()))
}
