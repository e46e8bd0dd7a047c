//! Limits `several`: all buckets of the curve at once, so that no precision is lost (SLO section 5.4.7).

use leeward_calculus::ArrivalCurve;

use super::{Limiting, NoLimits, Problem, Registration};
use crate::policy::{NoSettings, settings};

/// Limits with all buckets of the r-b curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Several;

pub(super) const REGISTRATION: Registration = Registration {
    name: "several",
    summary: "all token buckets of the workload's curve at once",
    source: "SLO section 5.4.7, figure 5.12",
    schema: || schemars::schema_for!(NoSettings).to_value(),
    make: |text| settings::<NoSettings>("several", text).map(|_| Box::new(Several) as Box<dyn Limiting>),
};

impl Limiting for Several {
    fn name(&self) -> &'static str {
        "several"
    }

    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
        let whole = |workload: &super::Free<'_>| {
            workload.workload.demands.iter().map(|demand| demand.arrivals.clone()).collect()
        };
        Ok(problem.free.iter().map(whole).collect())
    }

    fn together(&self) -> bool {
        false
    }
}
