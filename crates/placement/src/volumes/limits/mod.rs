//! Ways to choose limits: for each workload and stage the token bucket that is enforced (SLO sections 5.2.2, 5.3.1).
//!
//! ```text
//! workloads on routes (Problem) --Limiting--> a bucket for each demand --bounds--> every SLO kept, or not
//! \--------------------------------------- settle ---------------------------------------/
//! ```
//!
//! `compactor` chooses for all workloads together; the others for each by itself, and are what it is compared with. Whatever
//! chose them, limits count as kept only if [`bounds`] says so. A way holds settings and no state. Adding one is adding one
//! file and one line to [`REGISTRY`].

mod average;
mod check;
mod compactor;
mod effective_bandwidth;
mod knee;
mod margin;
mod problem;
mod program;
mod settle;
mod several;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{InputError, excerpt};

pub use average::{Average, AverageSettings};
pub use check::{Bound, SystemError, Unmet, bounds};
pub use compactor::{Binding, Compactor, CompactorSettings, Excess, Over, Queues};
pub use effective_bandwidth::{EffectiveBandwidth, EffectiveBandwidthSettings, Split};
pub use knee::Knee;
pub use margin::{MarginError, with_margin};
pub use problem::Problem;
pub use settle::{Settled, Unsettled, settle};
pub use several::Several;

pub(crate) use check::{Hops, Known, delays};
use problem::Free;
pub(crate) use settle::settle_knowing;

/// Why no limits were chosen.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NoLimits {
    /// No choice keeps all SLOs together.
    #[error("no limits keep all SLOs together")]
    Together,
    /// No choice keeps the SLO of a workload, even without the others.
    #[error("workload `{workload}`: {why}")]
    Alone {
        /// The workload.
        workload: String,
        /// Why.
        why: String,
    },
    /// It has no SLO, so there is nothing to keep.
    #[error("workload `{workload}` has no SLO: it runs as best effort and has no limits")]
    BestEffort {
        /// The workload.
        workload: String,
    },
    /// The solver failed.
    #[error("the limits of {workloads} workloads: {why}")]
    Solver {
        /// How many workloads.
        workloads: usize,
        /// What the solver says.
        why: String,
    },
}

/// A way to choose limits.
pub trait Limiting: Send + Sync {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Limits for each free workload, one for each of its demands.
    ///
    /// # Errors
    /// There are none, as far as this way can tell. Limits that are returned need not keep every SLO.
    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits>;

    /// Whether what a workload gets depends on the others: those that are there are then chosen again with each that comes.
    fn together(&self) -> bool;

    /// What stands in the way where no choice keeps all SLOs; None if this way cannot tell.
    ///
    /// # Errors
    /// As [`Limiting::choose`].
    fn binding(&self, _problem: &Problem<'_>) -> Result<Option<Binding>, NoLimits> {
        Ok(None)
    }
}

/// A way as the registry lists it. The schema of its settings feeds the command line and the docs.
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
    pub make: fn(&str) -> Result<Box<dyn Limiting>, InputError>,
}

/// Every way there is.
pub const REGISTRY: &[Registration] = &[
    compactor::REGISTRATION,
    effective_bandwidth::REGISTRATION,
    average::REGISTRATION,
    knee::REGISTRATION,
    several::REGISTRATION,
];

/// Makes a way by name; `settings` is a YAML or JSON mapping, empty for the defaults.
///
/// # Errors
/// There is none of that name, or its settings are not right.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Limiting>, InputError> {
    match REGISTRY.iter().find(|registration| registration.name == name) {
        Some(registration) => (registration.make)(settings),
        None => {
            let known = REGISTRY.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
            Err(InputError::new("limits", format!("unknown way `{}`; there are: {known}", excerpt(name))))
        }
    }
}

/// What a way that looks at each workload by itself chooses, one after another.
fn each(
    problem: &Problem<'_>,
    choose: impl Fn(&Free<'_>) -> Result<Vec<ArrivalCurve>, NoLimits>,
) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
    problem.free.iter().map(choose).collect()
}
