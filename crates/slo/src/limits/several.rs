//! Limits `several`: all buckets of the curve at once, so that no precision is lost (SLO section 5.4.7).

use leeward_calculus::ArrivalCurve;
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::{Limiting, NoLimits, Problem};

/// Limits with all buckets of the r-b curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Several;

pub(super) const REGISTRATION: Registration<dyn Limiting> = Registration {
    name: "several",
    aliases: &[],
    summary: "all token buckets of the workload's curve at once",
    source: "SLO section 5.4.7, figure 5.12",
    schema: schema::<NoSettings>,
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

    fn is_joint(&self) -> bool {
        false
    }
}
