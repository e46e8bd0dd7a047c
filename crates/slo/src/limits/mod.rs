//! Rate limits: algorithms that choose the enforced token bucket of each workload and stage (SLO sections
//! 5.2.2, 5.3.1).
//!
//! ```text
//! workloads on routes (Problem) --Limiting--> a bucket for each demand --bounds--> every SLO kept, or not
//! \--------------------------------------- settle ---------------------------------------/
//! ```
//!
//! `compactor` chooses for all workloads together. The other algorithms choose for each workload alone, and serve for
//! comparison. Limits count as sufficient only if [`bounds`] confirms them, for every algorithm. An algorithm holds
//! settings and no state. A new algorithm needs one file and one line in [`REGISTRY`].

mod average;
mod binding;
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
use leeward_registry::Registry;

pub use average::{Average, AverageSettings};
pub use binding::{Binding, Constraint, Excess};
pub use check::{Bound, SystemError, Unmet, bounds};
pub use compactor::{Compactor, CompactorSettings};
pub use effective_bandwidth::{EffectiveBandwidth, EffectiveBandwidthSettings, Split};
pub use knee::Knee;
pub use margin::{MarginError, with_margin};
pub use problem::Problem;
pub use program::Queues;
pub use settle::{Settled, Unsettled, settle};
pub use several::Several;

pub(crate) use check::{Hops, KnownDelay, delays};
use problem::Free;
pub(crate) use settle::settle_with_delays;

/// Reason for which no limits were chosen.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NoLimits {
    /// No choice keeps all SLOs at the same time.
    #[error("no limits keep all SLOs together")]
    Together,
    /// No choice keeps the SLO of a workload, even without the others.
    #[error("workload `{workload}`: {why}")]
    Alone {
        /// Name of the workload.
        workload: String,
        /// Reason.
        why: String,
    },
    /// The workload has no SLO, so its limits have no target.
    #[error("workload `{workload}` has no SLO: it runs as best effort and has no limits")]
    BestEffort {
        /// Name of the workload.
        workload: String,
    },
    /// The solver failed.
    #[error("the limits of {workloads} workloads: {why}")]
    Solver {
        /// Number of workloads.
        workloads: usize,
        /// Message of the solver.
        why: String,
    },
}

/// An algorithm that chooses limits.
pub trait Limiting: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Limits for each free workload, one for each of its demands.
    ///
    /// # Errors
    /// [`NoLimits`] if the algorithm finds no limits. The limits it returns may still miss some SLO.
    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits>;

    /// True if a workload's limits depend on the other workloads. Each arrival then changes the limits of existing
    /// workloads.
    fn is_joint(&self) -> bool;

    /// SLOs and capacities that cannot be kept together; `None` if the algorithm cannot tell.
    ///
    /// # Errors
    /// Same as [`Limiting::choose`].
    fn binding(&self, _problem: &Problem<'_>) -> Result<Option<Binding>, NoLimits> {
        Ok(None)
    }
}

/// All algorithms that choose limits.
pub const REGISTRY: Registry<dyn Limiting> = Registry {
    noun: "policy",
    kind: Some("limits"),
    entries: &[
        compactor::REGISTRATION,
        effective_bandwidth::REGISTRATION,
        average::REGISTRATION,
        knee::REGISTRATION,
        several::REGISTRATION,
    ],
};

/// Limits of an algorithm that treats each workload alone, one after another.
fn each(
    problem: &Problem<'_>,
    choose: impl Fn(&Free<'_>) -> Result<Vec<ArrivalCurve>, NoLimits>,
) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
    problem.free.iter().map(choose).collect()
}
