//! Policy `qjump++`: classes of fixed rates; the class of the lowest rate is served first (SLO section 4.4.1, after
//! Grosvenor et al., QJump, NSDI 2015).
//!
//! A workload starts in the class of the highest rate, which is served last. The policy moves the workload to a lower
//! rate and a higher priority, step by step, until all bounds are within their SLOs. Each stage has the class's rate
//! with a bucket of one packet. Rates do not depend on the number of workloads.

use leeward_calculus::TokenBucket;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::join::{LAST, best_effort, joined};
use super::silo::{check_burst, paced, refuse_at_once};
use super::{Admission, AdmissionError, Arrival, Outcome};
use crate::System;
use crate::bound::{BoundSettings, Bounds, Method, SystemError};

/// Settings of `qjump++`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QJumpSettings {
    /// Rates of the classes, in bytes per second. Default 1, 5, 20 and 100 % of 1 Gb/s (ours; the thesis
    /// names no values).
    pub rates: Vec<f64>,
    /// Burst of a workload, in bytes. Default 1500, one packet.
    pub burst: f64,
}

impl Default for QJumpSettings {
    fn default() -> Self {
        QJumpSettings { rates: vec![1.25e6, 6.25e6, 25e6, 125e6], burst: 1500.0 }
    }
}

/// Admission by classes of fixed rates.
#[derive(Clone, Debug)]
pub struct QJump {
    /// Rates, ascending.
    rates: Vec<f64>,
    burst: f64,
}

const NAME: &str = "qjump++";

pub(super) const REGISTRATION: Registration<dyn Admission> = Registration {
    name: NAME,
    aliases: &[],
    summary: "networks: classes of fixed rates, lower rates served first, with bursts of one packet",
    source: "Grosvenor et al., QJump (NSDI 2015), as extended in SLO section 4.4",
    schema: schema::<QJumpSettings>,
    make: |text| {
        let QJumpSettings { mut rates, burst } = settings(NAME, text)?;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if rates.is_empty() || !rates.iter().all(|&rate| positive(rate)) {
            return Err(setting_error(NAME, "rates", "must be at least one, each finite and above 0"));
        }
        check_burst(NAME, burst)?;
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        Ok(Box::new(QJump { rates, burst }))
    },
};

impl QJump {
    /// Assigns the last promise to a class.
    fn assign(&self, system: &mut System, class: usize) {
        let bucket = TokenBucket::new(self.rates[class], self.burst).expect("settings were checked");
        if let Some(last) = system.promises.last_mut() {
            last.limits.fill(bucket.into());
            last.priorities.fill(class as u32);
        }
        let efforts = system.promises.iter_mut().filter(|promise| promise.workload.slo.is_none());
        efforts.for_each(|promise| promise.priorities.fill(LAST));
    }
}

impl Admission for QJump {
    fn name(&self) -> &'static str {
        NAME
    }

    fn by(&self) -> Option<(Method, BoundSettings)> {
        Some((Method::Dnc, paced(self.burst)))
    }

    fn sets_rates(&self) -> bool {
        true
    }

    fn arrive(&self, system: &System, arrival: Arrival) -> Result<Outcome, SystemError> {
        let mut with = joined(system, &arrival);
        Bounds::new(&with, paced(self.burst))?;
        if arrival.workload.slo.is_none() {
            return best_effort(system, &arrival, None, self.by());
        }
        if let Some(refused) = refuse_at_once(NAME, &arrival) {
            return best_effort(system, &arrival, Some(refused), self.by());
        }
        let last = with.promises.len() - 1;
        let mut refused = None;
        for class in (0..self.rates.len()).rev() {
            self.assign(&mut with, class);
            let mut bounds = Bounds::new(&with, paced(self.burst))?;
            let order = std::iter::once(last).chain(0..last);
            match order.into_iter().find_map(|promise| bounds.miss(promise, Method::Dnc)) {
                None => return Ok(Outcome::promised(with, None)),
                // Reports the class that was nearest to admission. This is the first class in which another promise
                // misses its SLO, or otherwise the first in which the arriving workload misses its own.
                Some(miss) if miss.promise != last || refused.is_none() => {
                    refused = Some(AdmissionError::of(miss, &bounds));
                }
                Some(_) => {}
            }
        }
        best_effort(system, &arrival, refused, self.by())
    }
}
