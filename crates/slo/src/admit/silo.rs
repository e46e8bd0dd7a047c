//! Policy `silo++`: one bucket of one packet per workload, and the least sufficient rate (SLO section 4.4.1,
//! after Jang et al., Silo, SIGCOMM 2015).
//!
//! All workloads have one priority. A workload's latency is the delay by its bucket at the host plus the packet
//! latencies of its queues. Rates are the lowest rates that keep the SLOs. Packet latencies grow with rates, so the
//! algorithm starts at the long-run rates and raises all rates together until no SLO is missed. Packet latencies use up
//! a part of an SLO. The rest is split equally over the stages `network-in` and `network-out`. The thesis does not
//! define the split.
//!
//! With the setting `multiple`, the policy is Silo as published: its user chooses rates, here as a multiple of the mean
//! rate.

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::{InputError, format_number};
use leeward_registry::{Registration, schema, setting_error, settings};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::join::{best_effort, joined};
use super::{Admission, AdmissionError, Arrival, Outcome};
use crate::System;
use crate::bound::{BoundSettings, Bounds, LEAST_FRAME, Method, SystemError, Unit, attainable};

/// Maximum number of rounds. If rates must still rise after the last round, the workload is refused.
const MOST_ROUNDS: usize = 100;
/// Relative tolerance of rates.
const TOLERANCE: f64 = 1e-9;
/// Greatest multiple of a mean rate: rates stay far from the limits of numbers.
const MOST_MULTIPLE: f64 = 1e6;

/// Settings of `silo++`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SiloSettings {
    /// Burst of a workload, in bytes. Default 1500, one packet.
    pub burst: f64,
    /// Buffer of a queue, in bytes; the sum of all bursts must fit. Default 524288, the buffer of a shallow switch port
    /// (ours).
    pub buffer: f64,
    /// Multiple of the mean rate that limits each workload, at least 1, as a user of Silo chooses it by trial and error.
    /// Default: the least rate that keeps the SLO.
    pub multiple: Option<f64>,
}

impl Default for SiloSettings {
    fn default() -> Self {
        SiloSettings { burst: 1500.0, buffer: 524_288.0, multiple: None }
    }
}

/// Admission by the lowest rates at one priority.
#[derive(Clone, Debug)]
pub struct Silo {
    settings: SiloSettings,
}

const NAME: &str = "silo++";

pub(super) const REGISTRATION: Registration<dyn Admission> = Registration {
    name: NAME,
    aliases: &[],
    summary: "networks: one priority, bursts of a packet, and the least rates that keep all SLOs in the worst case",
    source: "Jang et al., Silo (SIGCOMM 2015), as extended in SLO section 4.4",
    schema: schema::<SiloSettings>,
    make: |text| {
        let settings: SiloSettings = settings(NAME, text)?;
        check_burst(NAME, settings.burst)?;
        if !(settings.buffer.is_finite() && settings.buffer > 0.0) {
            let message = format!("{}: must be finite and above 0", format_number(settings.buffer));
            return Err(setting_error(NAME, "buffer", &message));
        }
        if let Some(multiple) = settings.multiple.filter(|multiple| !(1.0..=MOST_MULTIPLE).contains(multiple))
        {
            let message = format!("{}: must be 1 to {MOST_MULTIPLE:e}", format_number(multiple));
            return Err(setting_error(NAME, "multiple", &message));
        }
        Ok(Box::new(Silo { settings }))
    },
};

/// Settings of bounds for paced packets: links serve frames of `frame` bytes, and limits pass single frames.
pub(super) fn paced(frame: f64) -> BoundSettings {
    BoundSettings { unit: Unit::Frames, frame, paced: true, ..BoundSettings::default() }
}

/// Checks that a bucket holds a packet.
pub(super) fn check_burst(policy: &str, burst: f64) -> Result<(), InputError> {
    if burst.is_finite() && burst >= LEAST_FRAME {
        return Ok(());
    }
    let message = format!("{}: must be finite and at least {LEAST_FRAME}, in bytes", format_number(burst));
    Err(setting_error(policy, "burst", &message))
}

/// Refusal before any choice of rates: for a storage stage, or for an SLO below the unloaded latency.
pub(super) fn refuse_at_once(policy: &'static str, arrival: &Arrival) -> Option<AdmissionError> {
    let workload = &arrival.workload;
    if workload.demands.iter().any(|demand| demand.stage == Stage::Storage) {
        return Some(AdmissionError::Stage {
            workload: workload.name.clone(),
            policy,
            stage: Stage::Storage,
        });
    }
    attainable(workload).err().map(AdmissionError::from)
}

/// Lowest rate at which a bucket of `burst` delays arrivals by at most `seconds`. Work beyond the bucket leaves at this
/// rate. The result is meaningful only if `seconds` is above 0.
fn least_rate(arrivals: &ArrivalCurve, burst: f64, seconds: f64) -> f64 {
    let rates = arrivals.vertices().map(|(at, work)| (work - burst) / (at + seconds));
    rates.fold(arrivals.rate(), f64::max)
}

impl Silo {
    /// Raises rates until all SLOs are kept; a given multiple of the mean rate stays. Returns the refusal if an SLO cannot
    /// be kept.
    fn raise(&self, system: &mut System) -> Result<Option<AdmissionError>, SystemError> {
        let SiloSettings { burst, multiple, .. } = self.settings;
        for promise in &mut system.promises {
            promise.priorities.fill(u32::from(promise.workload.slo.is_none()));
            if promise.workload.slo.is_some() {
                for (limits, demand) in promise.limits.iter_mut().zip(&promise.workload.demands) {
                    *limits = bucket(multiple.unwrap_or(1.0) * demand.arrivals.rate(), burst);
                }
            }
        }
        let mut round = 0;
        loop {
            let mut bounds = Bounds::new(system, paced(burst))?;
            let missed = bounds.misses(0..system.promises.len(), Method::Dnc);
            if missed.is_empty() {
                return Ok(None);
            }
            let mut raised: Vec<(usize, Vec<f64>)> = Vec::new();
            for miss in &missed {
                let promise = &system.promises[miss.promise];
                let Ok(bound) = &miss.outcome else {
                    return Ok(Some(AdmissionError::of(miss.clone(), &bounds)));
                };
                let mut limiter = 0.0;
                for (limits, demand) in promise.limits.iter().zip(&promise.workload.demands) {
                    limiter += demand.arrivals.shaper_delay(limits.buckets()[0]).unwrap_or(f64::INFINITY);
                }
                let budget = (miss.slo.latency - (bound.seconds - limiter)) / promise.limits.len() as f64;
                let rates: Vec<f64> = (promise.workload.demands.iter().zip(&promise.limits))
                    .map(|(demand, limits)| limits.rate().max(least_rate(&demand.arrivals, burst, budget)))
                    .collect();
                let rises = rates.iter().zip(&promise.limits).any(|(rate, limits)| *rate > limits.rate());
                let possible = budget > 0.0 && rates.iter().all(|rate| rate.is_finite());
                if !(possible && rises && multiple.is_none() && round < MOST_ROUNDS) {
                    return Ok(Some(AdmissionError::of(miss.clone(), &bounds)));
                }
                raised.push((miss.promise, rates));
            }
            for (promise, rates) in raised {
                for (limits, rate) in system.promises[promise].limits.iter_mut().zip(rates) {
                    *limits = bucket(rate * (1.0 + TOLERANCE), burst);
                }
            }
            round += 1;
        }
    }

    /// Refusal for a queue whose buffer is smaller than the sum of all bursts.
    fn overflow(&self, system: &System) -> Option<AdmissionError> {
        let buffer = self.settings.buffer;
        let mut bursts = vec![0.0; system.queues.len()];
        for promise in system.promises.iter().filter(|promise| promise.workload.slo.is_some()) {
            for (limits, route) in promise.limits.iter().zip(&promise.route) {
                route.iter().for_each(|&queue| bursts[queue] += limits.burst());
            }
        }
        let (queue, &bursts) = bursts.iter().enumerate().find(|(_, bursts)| **bursts > buffer)?;
        Some(AdmissionError::Buffer { queue: system.queues[queue].name.clone(), bursts, buffer })
    }
}

fn bucket(rate: f64, burst: f64) -> ArrivalCurve {
    TokenBucket::new(rate, burst).expect("a rate is finite, a burst was checked").into()
}

impl Admission for Silo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn by(&self) -> Option<(Method, BoundSettings)> {
        Some((Method::Dnc, paced(self.settings.burst)))
    }

    fn sets_rates(&self) -> bool {
        true
    }

    fn arrive(&self, system: &System, arrival: Arrival) -> Result<Outcome, SystemError> {
        let mut with = joined(system, &arrival);
        Bounds::new(&with, paced(self.settings.burst))?;
        if arrival.workload.slo.is_none() {
            return best_effort(system, &arrival, None, self.by());
        }
        if let Some(refused) = refuse_at_once(NAME, &arrival) {
            return best_effort(system, &arrival, Some(refused), self.by());
        }
        let refused = self.raise(&mut with)?.or_else(|| self.overflow(&with));
        match refused {
            None => Ok(Outcome::promised(with, None)),
            refused => best_effort(system, &arrival, refused, self.by()),
        }
    }
}
