//! Limits `effective-bandwidth`: no burst, and the least rate that delays no request beyond the stage's share
//! of the SLO (SLO section 5.3.1).
//!
//! For one stage this rate is the supremum of alpha(t) / (t + D), with D the SLO minus the profiled tails and the
//! latencies of queues. The thesis does not say how to split D over several stages. Here the split minimises the largest
//! rate as a share of its stage's capacity; alternatively, the parts are equal.

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settle::ROUNDING;
use super::{Free, Limiting, NoLimits, Problem, each};

/// Settings of `effective-bandwidth`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EffectiveBandwidthSettings {
    /// Split of the SLO over the stages.
    pub split: Split,
}

/// Split of an SLO over stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Minimises the largest rate as a share of its stage's capacity.
    #[default]
    Least,
    /// Equal parts.
    Equal,
}

/// Limits by effective bandwidth.
#[derive(Clone, Debug, Default)]
pub struct EffectiveBandwidth {
    split: Split,
}

pub(super) const REGISTRATION: Registration<dyn Limiting> = Registration {
    name: "effective-bandwidth",
    aliases: &[],
    summary: "for each workload no burst, and the least rate that delays no request by more than its SLO",
    source: "SLO section 5.3.1, after Guerin, Ahmadi and Naghshineh",
    schema: schema::<EffectiveBandwidthSettings>,
    make: |text| Ok(Box::new(EffectiveBandwidth::new(&settings("effective-bandwidth", text)?))),
};

impl EffectiveBandwidth {
    /// Creates the algorithm from settings.
    pub fn new(settings: &EffectiveBandwidthSettings) -> EffectiveBandwidth {
        EffectiveBandwidth { split: settings.split }
    }

    fn rates(&self, free: &Free<'_>, budget: f64, capacities: &[f64]) -> Vec<f64> {
        let demands = &free.workload.demands;
        let floor = |stage: usize| demands[stage].arrivals.rate();
        if self.split == Split::Equal {
            let part = budget / demands.len() as f64;
            return demands.iter().map(|demand| rate_for(&demand.arrivals, part)).collect();
        }
        // Delays fall as the share grows, so bisection finds the smallest share within the budget. A stage's rate is at
        // least its average.
        let rates = |share: f64| -> Vec<f64> {
            capacities
                .iter()
                .enumerate()
                .map(|(at, capacity)| (share * capacity).min(f64::MAX).max(floor(at)))
                .collect()
        };
        let kept = |rates: &[f64]| {
            let delays = rates.iter().zip(demands).map(|(&rate, demand)| delay_at(&demand.arrivals, rate));
            delays.sum::<f64>() <= budget
        };
        let (mut low, mut high) = (0.0, 1.0);
        while !kept(&rates(high)) && high < f64::MAX / 4.0 {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if kept(&rates(middle)) { high = middle } else { low = middle }
        }
        rates(high)
    }
}

impl Limiting for EffectiveBandwidth {
    fn name(&self) -> &'static str {
        "effective-bandwidth"
    }

    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
        each(problem, |free| {
            let workload = || free.workload.name.clone();
            let slo = free.workload.slo.ok_or_else(|| NoLimits::BestEffort { workload: workload() })?;
            // Uses twice the margin of the check, because rates that use up the whole SLO would fail it.
            let late: f64 = free.route.iter().flatten().map(|&queue| problem.queues[queue].latency).sum();
            let budget = free.budget().unwrap_or(slo.latency) - 2.0 * ROUNDING * slo.latency - late;
            let alone = |why: &str| NoLimits::Alone { workload: workload(), why: why.to_owned() };
            if budget <= 0.0 {
                return Err(alone(
                    "the profiled tails and the latencies of queues alone take all of its SLO",
                ));
            }
            // Without queues on the path, any rate fits.
            let least = |path: &Vec<usize>| {
                path.iter().map(|&queue| problem.queues[queue].capacity).fold(f64::MAX, f64::min)
            };
            let capacities: Vec<f64> = free.route.iter().map(least).collect();
            let bucket = |rate| TokenBucket::new(rate, 0.0).map(ArrivalCurve::from);
            let limits = self.rates(free, budget, &capacities).into_iter().map(bucket);
            limits.collect::<Result<_, _>>().map_err(|_| alone("no rate keeps its SLO"))
        })
    }

    fn is_joint(&self) -> bool {
        false
    }
}

/// Longest delay at a shaper of `rate` without a burst; infinite below the average rate.
fn delay_at(arrivals: &ArrivalCurve, rate: f64) -> f64 {
    let shaper = TokenBucket::new(rate, 0.0).ok();
    shaper.and_then(|shaper| arrivals.shaper_delay(shaper).ok()).unwrap_or(f64::INFINITY)
}

/// Lowest rate that delays nothing by more than `deadline`: the supremum of alpha(t) / (t + deadline).
fn rate_for(arrivals: &ArrivalCurve, deadline: f64) -> f64 {
    arrivals.vertices().map(|(at, work)| work / (at + deadline)).fold(arrivals.rate(), f64::max)
}
