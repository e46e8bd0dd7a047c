//! Who is promised an SLO: whether a workload that arrives is admitted beside those there are (SLO sections 4.3 and 2.1).
//!
//! ```text
//! System of promises + Arrival --Admission--> the system with it: promised, or as best effort and why
//! ```
//!
//! A workload is admitted if its own SLO and those of all it may disturb are kept for sure, by the bound of the
//! policy. One that is refused may run as best effort, after all others, where it disturbs none by more than one request.
//! What cannot be analysed (no model of arrivals, an unstable queue) is a refusal with its reason, and never admitted.

mod bounded;
mod join;
mod qjump;
mod silo;

use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt};

pub use bounded::{Bounded, BoundedSettings};
pub use qjump::{QJump, QJumpSettings};
pub use silo::{Silo, SiloSettings};

use super::bound::{Alone, BoundSettings, Bounds, Method, Miss, SloBelowUnloaded, SystemError, Unbounded};
use super::words::{above, time};
use super::{System, Workload};
use crate::PolicyError;

/// A workload that asks for its SLO.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrival {
    /// The workload. One without an SLO is best effort from the first.
    pub workload: Arc<Workload>,
    /// For each of its demands, the queues passed, by index and in order.
    pub route: Vec<Vec<usize>>,
}

/// What became of an arrival.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The system with it, as the last promise: priorities and limits of all. Where it was refused, it has no SLO there and the last
    /// priority, `u32::MAX`, and all others are as they were.
    pub system: System,
    /// Why it was refused, if it was.
    pub refused: Option<Refused>,
    /// Promises, by index, that even as best effort it would take their SLO from, because they may wait for one request of it. Where
    /// there are some, it should not run there at all.
    pub disturbed: Vec<usize>,
    /// How many ranks of priorities there were, if they are more than networks tell apart and were merged for it.
    pub merged: Option<usize>,
    /// Whether priorities were searched for, because those by SLO did not do.
    pub searched: bool,
}

impl Outcome {
    /// The arrival has what it asked for, beside all others.
    fn promised(system: System, merged: Option<usize>) -> Outcome {
        Outcome { system, refused: None, disturbed: Vec::new(), merged, searched: false }
    }

    /// Whether it runs with what it asked for: its SLO, or as the best effort that it is.
    pub fn admitted(&self) -> bool {
        self.refused.is_none() && self.disturbed.is_empty()
    }
}

/// Why a workload has no SLO.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refused {
    /// A bound above its SLO: its own, or that of one that it would disturb.
    #[error("{workload}: {}{}", above(*.seconds, *.slo), by_itself(*.alone))]
    Miss {
        /// Which workload would miss its SLO.
        workload: String,
        /// Its bound, in seconds.
        seconds: f64,
        /// Its SLO, in seconds.
        slo: f64,
        /// What its largest request takes without any other at one stage, if that is longer.
        alone: Option<Alone>,
    },
    /// No bound at all: stage, queue and why are in it.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// Requests take longer without any load.
    #[error(transparent)]
    Unloaded(#[from] SloBelowUnloaded),
    /// A stage that the policy knows nothing of.
    #[error("{workload}: {policy} is for networks, and it has a stage of {stage}")]
    Stage {
        /// Which workload.
        workload: String,
        /// The policy.
        policy: &'static str,
        /// The stage.
        stage: leeward_traces::Stage,
    },
    /// A buffer that all bursts together overflow.
    #[error("queue {queue}: bursts of {bursts} in a buffer of {buffer}")]
    Buffer {
        /// Which queue.
        queue: String,
        /// All bursts, in work.
        bursts: f64,
        /// Its buffer, in work.
        buffer: f64,
    },
}

impl Refused {
    fn of(miss: Miss, bounds: &Bounds<'_>) -> Refused {
        match miss.outcome {
            Ok(bound) => {
                let (workload, alone) = (bounds.name(miss.promise), bounds.alone(miss.promise));
                let alone = alone.filter(|alone| alone.seconds > miss.slo.latency);
                Refused::Miss { workload, seconds: bound.seconds, slo: miss.slo.latency, alone }
            }
            Err(unbounded) => unbounded.into(),
        }
    }
}

/// What a largest request takes by itself, after a bound.
fn by_itself(alone: Option<Alone>) -> String {
    alone.map_or_else(String::new, |Alone { stage, seconds }| {
        format!("; its largest request takes {} at {stage} without any load", time(seconds))
    })
}

/// A way to decide who is admitted.
pub trait Admission: Send + Sync {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// The bound that it promises by, and how that is made. None if it promises nothing.
    fn by(&self) -> Option<(Method, BoundSettings)>;

    /// Whether its bound asks for models of arrivals.
    fn needs_models(&self) -> bool {
        matches!(self.by(), Some((Method::Snc | Method::Best, _)))
    }

    /// Decides on an arrival. Promises of the system are taken to be kept so far, as they are if each was admitted by this
    /// policy: only those that the arrival may disturb are looked at.
    ///
    /// # Errors
    /// An invalid system or arrival.
    fn arrive(&self, system: &System, arrival: Arrival) -> Result<Outcome, SystemError>;

    /// Decides anew on a promise whose workload changed, where it is. If it is refused, its volume should move to where it is
    /// admitted; until then it is best effort. It becomes the last promise; those disturbed are numbered without it.
    ///
    /// # Errors
    /// An invalid system or workload.
    ///
    /// # Panics
    /// If there is no such promise.
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

/// An admission made from settings, or what is wrong with them.
pub type Made = Result<Box<dyn Admission>, InputError>;

/// A policy as the registry lists it.
pub struct Registration {
    /// What users call it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// JSON schema of its settings.
    pub schema: fn() -> serde_json::Value,
    /// Makes it from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made,
}

/// Every policy for admission there is.
pub const REGISTRY: &[Registration] =
    &[bounded::SNC, bounded::DNC, bounded::BEST, silo::REGISTRATION, qjump::REGISTRATION, bounded::NONE];

/// Names of those that decide by bounds of promises as they are.
const BOUNDED: [&str; 4] = ["snc", "dnc", "best", "none"];

/// Whether a policy gives networks rates of its own, so that it keeps only what it promised itself.
pub fn paces(name: &str) -> bool {
    !BOUNDED.contains(&name)
}

/// Makes a policy by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// A name that there is not, or settings that are not right.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Admission>, PolicyError> {
    match REGISTRY.iter().find(|registration| registration.name == name) {
        Some(registration) => Ok((registration.make)(settings)?),
        None => {
            let known = REGISTRY.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
            Err(PolicyError::Unknown { name: excerpt(name), kind: "admission", known })
        }
    }
}
