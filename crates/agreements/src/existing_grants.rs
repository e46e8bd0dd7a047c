//! Active workloads beside a new volume, and the guarantees to preserve.
//!
//! Packing uses worst-case bounds. Some active promises have no worst-case bound within their SLO, for one of three
//! reasons: another bound admitted them, they were admitted without a bound, or a link lost capacity. These promises
//! must not block all new promises. Each promise is therefore checked by the bound that admitted it. A promise that is
//! already missed may not get worse. A promise that shares no queue with the new workload, directly or through others,
//! stays unchanged.

use std::collections::BTreeSet;

use leeward_slo::admit::AdmissionError;
use leeward_slo::bound::{Bound, BoundSettings, Bounds, Method, Unbounded};
use leeward_slo::{Promise, Slo, System};

use super::{ActiveWorkload, Grant};

/// Slack factor: a workload admitted under another bound may exceed its current worst-case bound by this
/// factor.
const SLACK: f64 = 10.0;
/// Relative tolerance for differences between orders of summation.
const ROUNDING: f64 = 1e-6;

/// Active workloads without the new one.
pub(super) struct ExistingGrants<'s> {
    active: &'s [ActiveWorkload],
    settings: BoundSettings,
    /// System of the active workloads.
    before: System,
    /// Worst-case bounds in that system.
    worst: Vec<Result<Bound, Unbounded>>,
    /// Workloads with slack in packing, by index: packing may delay them beyond their worst-case bounds.
    slack: BTreeSet<usize>,
}

/// Effect of a packing on the active workloads and on the new one.
pub(super) struct Verdict {
    /// For each promise: true if the new workload may affect it.
    pub reached: Vec<bool>,
    /// For each promise: its bound. `None` for a promise admitted without a bound, and for an unaffected promise.
    pub bounds: Vec<Option<Result<Bound, Unbounded>>>,
    /// Promises whose SLO is not guaranteed.
    pub missed: Vec<Missed>,
}

/// A promise whose SLO is not guaranteed.
pub(super) struct Missed {
    /// Index of the promise.
    pub promise: usize,
    /// The promised SLO.
    pub slo: Slo,
    /// Bound, in seconds; `None` if there is none.
    pub seconds: Option<f64>,
    /// Reason as text.
    pub why: String,
}

impl<'s> ExistingGrants<'s> {
    /// Creates the check. `before` is the system of only the active workloads, in their order, with any priorities.
    ///
    /// # Errors
    /// A message for an invalid system.
    pub fn new(
        active: &'s [ActiveWorkload],
        mut before: System,
        settings: BoundSettings,
    ) -> Result<Self, String> {
        for (promise, active) in before.promises.iter_mut().zip(active) {
            set_priorities(promise, &active.agreed);
        }
        let worst = {
            let mut bounds = Bounds::new(&before, settings).map_err(|error| error.to_string())?;
            (0..before.promises.len()).map(|at| bounds.bound(at, Method::Dnc)).collect()
        };
        let mut grants = ExistingGrants { active, settings, before, worst, slack: BTreeSet::new() };
        grants.slack = (0..active.len()).filter(|&at| grants.needs_slack(at)).collect();
        Ok(grants)
    }

    /// True if a bound other than the worst-case bound admitted a promise, and its worst-case bound exists but exceeds
    /// its SLO.
    fn needs_slack(&self, at: usize) -> bool {
        let latency = self.active[at].agreed.slo.latency_s;
        let other = method(&self.active[at].agreed) != Some(Method::Dnc);
        other && self.worst[at].as_ref().is_ok_and(|bound| bound.seconds >= latency * (1.0 - ROUNDING))
    }

    /// Latency target in packing, in seconds, of a workload with slack; `None` if the target is the SLO.
    pub fn slack(&self, at: usize) -> Option<f64> {
        let bound = self.worst.get(at)?.as_ref().ok()?;
        self.slack.contains(&at).then_some(SLACK * bound.seconds)
    }

    /// Removes the slack of a workload, so that packing keeps its SLO. Returns false if it had none.
    pub fn remove_slack(&mut self, at: usize) -> bool {
        self.slack.remove(&at)
    }

    /// Checks the result of a packing: `system`, with the new workload as the last promise. Restores the priorities of
    /// unaffected promises.
    ///
    /// # Errors
    /// A message for an invalid system.
    pub fn check(&self, system: &mut System) -> Result<Verdict, String> {
        let reached = reached(system);
        let promises = system.promises.iter_mut().zip(self.active).zip(&reached);
        for ((promise, active), _) in promises.filter(|(_, reached)| !**reached) {
            set_priorities(promise, &active.agreed);
        }
        let mut after = Bounds::new(system, self.settings).map_err(|error| error.to_string())?;
        let mut bounds = Vec::with_capacity(system.promises.len());
        let mut missed = Vec::new();
        for (at, promise) in system.promises.iter().enumerate() {
            let by = self.active.get(at).map_or(Some(Method::Dnc), |active| method(&active.agreed));
            let (Some(slo), Some(by), true) = (promise.workload.slo, by, reached[at]) else {
                bounds.push(None);
                continue;
            };
            let mut bound = after.bound(at, by);
            if by != Method::Dnc && !is_within(&bound, slo.latency) {
                // Worst-case bounds hold for every percentile.
                let worst = after.bound(at, Method::Dnc);
                bound = if is_within(&worst, slo.latency) { worst } else { bound };
            }
            if !is_within(&bound, slo.latency) && !self.was_missed(at, by, &bound)? {
                let (seconds, why) = match &bound {
                    Ok(bound) => {
                        let miss = AdmissionError::Miss {
                            workload: promise.workload.name.clone(),
                            seconds: bound.seconds,
                            slo: slo.latency,
                            alone: None,
                        };
                        (Some(bound.seconds), miss.to_string())
                    }
                    Err(why) => (None, why.to_string()),
                };
                missed.push(Missed { promise: at, slo, seconds, why });
            }
            bounds.push(Some(bound));
        }
        Ok(Verdict { reached, bounds, missed })
    }

    /// True if a missed promise was already missed before, and its bound did not grow.
    fn was_missed(&self, at: usize, by: Method, now: &Result<Bound, Unbounded>) -> Result<bool, String> {
        let Some(active) = self.active.get(at) else { return Ok(false) };
        let latency = active.agreed.slo.latency_s;
        if is_within(&self.worst[at], latency) {
            return Ok(false);
        }
        let before = match by {
            Method::Dnc => self.worst[at].clone(),
            by => {
                let mut bounds =
                    Bounds::new(&self.before, self.settings).map_err(|error| error.to_string())?;
                bounds.bound(at, by)
            }
        };
        Ok(match (&before, now) {
            (Ok(before), Ok(now)) => {
                before.seconds > latency && now.seconds <= before.seconds * (1.0 + ROUNDING)
            }
            (Ok(_), Err(_)) => false,
            (Err(_), _) => true,
        })
    }
}

fn is_within(bound: &Result<Bound, Unbounded>, latency: f64) -> bool {
    bound.as_ref().is_ok_and(|bound| bound.seconds <= latency)
}

/// Method that admitted a promise; `None` if it was admitted without a bound.
fn method(agreed: &Grant) -> Option<Method> {
    let by = agreed.by.as_deref()?;
    Some(Method::ALL.into_iter().find(|method| method.name() == by).unwrap_or(Method::Dnc))
}

/// Sets a promise's priorities to the agreed priorities.
fn set_priorities(promise: &mut Promise, agreed: &Grant) {
    for (demand, priority) in promise.workload.demands.iter().zip(&mut promise.priorities) {
        if let Some(stage) = agreed.stages.iter().find(|stage| stage.stage == demand.stage.name()) {
            *priority = stage.priority;
        }
    }
}

/// For each promise: true if it shares a queue with the last promise, directly or through others. True for all promises
/// if the last workload has dependencies.
fn reached(system: &System) -> Vec<bool> {
    let mut reached = vec![false; system.promises.len()];
    let Some(last) = system.promises.last() else { return reached };
    if !last.workload.dependencies.is_empty() {
        return vec![true; system.promises.len()];
    }
    let mut queues = vec![false; system.queues.len()];
    let mut open = vec![system.promises.len() - 1];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        system.promises[at].route.iter().flatten().for_each(|&queue| queues[queue] = true);
        let crosses = |promise: &Promise| promise.route.iter().flatten().any(|&queue| queues[queue]);
        open.extend((0..reached.len()).filter(|&at| !reached[at] && crosses(&system.promises[at])));
    }
    reached
}
