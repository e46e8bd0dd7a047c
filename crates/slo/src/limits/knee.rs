//! Limits `knee`: the pair with the smallest r + b on the normalised r-b curve (SLO section 5.3.1).

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::{Limiting, NoLimits, Problem, each};

/// Limits at the knee of the r-b curve. Division of rates and bursts by a capacity does not move the knee, so the
/// algorithm needs no capacity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knee;

pub(super) const REGISTRATION: Registration<dyn Limiting> = Registration {
    name: "knee",
    aliases: &[],
    summary: "for each workload the pair of least r + b on its normalised r-b curve",
    source: "SLO section 5.3.1",
    schema: schema::<NoSettings>,
    make: |text| settings::<NoSettings>("knee", text).map(|_| Box::new(Knee) as Box<dyn Limiting>),
};

impl Limiting for Knee {
    fn name(&self) -> &'static str {
        "knee"
    }

    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
        each(problem, |free| Ok(free.workload.demands.iter().map(|demand| knee(&demand.arrivals)).collect()))
    }

    fn is_joint(&self) -> bool {
        false
    }
}

/// Bucket with the smallest r + b; if several buckets have it, the bucket with the lowest rate.
fn knee(arrivals: &ArrivalCurve) -> ArrivalCurve {
    let size = |bucket: &TokenBucket| bucket.rate() + bucket.burst();
    let lowest_first = arrivals.buckets().iter().rev();
    let least = lowest_first.min_by(|a, b| size(a).total_cmp(&size(b)));
    ArrivalCurve::from(*least.expect("a curve has a bucket"))
}
