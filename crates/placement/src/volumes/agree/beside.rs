//! Those in force beside one whose volume is placed: what must be kept of them.
//!
//! Packing goes by worst cases. What was promised by another bound, or by none, or cannot be kept any more because a link
//! carries less than it did, is not what packing would promise; it is no reason to promise nothing to anybody else. So a
//! promise is held to the bound that it was made by; one that is not kept as things are may get no worse; and what shares no
//! queue with the newcomer, itself or by others between, stays as it is.

use std::collections::BTreeSet;

use super::{Agreed, Standing};
use crate::volumes::bound::{Bound, BoundSettings, Bounds, Method, Unbounded};
use crate::volumes::words::above;
use crate::volumes::{Promise, Slo, System};

/// So many times its bound as it is, one that is held to another bound may take by packing's.
const SLACK: f64 = 10.0;
/// Sums of other orders differ by less, as a share.
const ROUNDING: f64 = 1e-6;

/// Those in force, by themselves.
pub(super) struct Beside<'s> {
    standing: &'s [Standing],
    bounded: BoundSettings,
    /// As they are.
    before: System,
    /// Their worst cases then.
    worst: Vec<Result<Bound, Unbounded>>,
    /// Those that packing may put more in the way of than it would by itself, by index.
    slack: BTreeSet<usize>,
}

/// What becomes of those in force and of the newcomer.
pub(super) struct Verdict {
    /// For each, whether it may be another way than before.
    pub reached: Vec<bool>,
    /// For each, what it is told; `None` where it is none, or where it is not reached.
    pub bounds: Vec<Option<Result<Bound, Unbounded>>>,
    /// Those that are not kept.
    pub missed: Vec<Missed>,
}

/// A promise that is not kept.
pub(super) struct Missed {
    /// Which one.
    pub promise: usize,
    /// What was promised.
    pub slo: Slo,
    /// Its bound; `None` if it has none.
    pub seconds: Option<f64>,
    /// Why, in words.
    pub why: String,
}

impl<'s> Beside<'s> {
    /// `there`: the system of those in force by themselves, in their order, with any priorities.
    pub fn new(standing: &'s [Standing], mut there: System, bounded: BoundSettings) -> Result<Self, String> {
        for (promise, standing) in there.promises.iter_mut().zip(standing) {
            set_priorities(promise, &standing.agreed);
        }
        let worst = {
            let mut bounds = Bounds::new(&there, bounded).map_err(|error| error.to_string())?;
            (0..there.promises.len()).map(|at| bounds.bound(at, Method::Dnc)).collect()
        };
        let mut beside = Beside { standing, bounded, before: there, worst, slack: BTreeSet::new() };
        beside.slack = (0..standing.len()).filter(|&at| beside.is_anothers(at)).collect();
        Ok(beside)
    }

    /// Whether a promise is bounded as it is, and not within its SLO, by worst cases: those are not what it was made by.
    fn is_anothers(&self, at: usize) -> bool {
        let latency = self.standing[at].agreed.slo.latency_s;
        let other = method(&self.standing[at].agreed) != Some(Method::Dnc);
        other && self.worst[at].as_ref().is_ok_and(|bound| bound.seconds >= latency * (1.0 - ROUNDING))
    }

    /// What one in force may take by packing's bound, in seconds, where that is not its SLO.
    pub fn slack(&self, at: usize) -> Option<f64> {
        let bound = self.worst.get(at)?.as_ref().ok()?;
        self.slack.contains(&at).then_some(SLACK * bound.seconds)
    }

    /// From now on packing puts nothing in the way of this one. Whether that is news.
    pub fn take_care_of(&mut self, at: usize) -> bool {
        self.slack.remove(&at)
    }

    /// Looks at what packing made of them: `system`, with the newcomer as the last. Those that it has nothing to do with get
    /// their priorities back.
    pub fn look(&self, system: &mut System) -> Result<Verdict, String> {
        let reached = reached(system);
        let promises = system.promises.iter_mut().zip(self.standing).zip(&reached);
        for ((promise, standing), _) in promises.filter(|(_, reached)| !**reached) {
            set_priorities(promise, &standing.agreed);
        }
        let mut after = Bounds::new(system, self.bounded).map_err(|error| error.to_string())?;
        let mut bounds = Vec::with_capacity(system.promises.len());
        let mut missed = Vec::new();
        for (at, promise) in system.promises.iter().enumerate() {
            let by = self.standing.get(at).map_or(Some(Method::Dnc), |standing| method(&standing.agreed));
            let (Some(slo), Some(by), true) = (promise.workload.slo, by, reached[at]) else {
                bounds.push(None);
                continue;
            };
            let mut bound = after.bound(at, by);
            if by != Method::Dnc && !is_within(&bound, slo.latency) {
                // Worst cases hold for every percentile.
                let worst = after.bound(at, Method::Dnc);
                bound = if is_within(&worst, slo.latency) { worst } else { bound };
            }
            if !is_within(&bound, slo.latency) && !self.was_no_better(at, by, &bound)? {
                let (seconds, why) = match &bound {
                    Ok(bound) => {
                        let why = above(bound.seconds, slo.latency);
                        (Some(bound.seconds), format!("{}: {why}", promise.workload.name))
                    }
                    Err(why) => (None, why.to_string()),
                };
                missed.push(Missed { promise: at, slo, seconds, why });
            }
            bounds.push(Some(bound));
        }
        Ok(Verdict { reached, bounds, missed })
    }

    /// Whether one in force that is not kept was not kept before, and is no later now.
    fn was_no_better(&self, at: usize, by: Method, now: &Result<Bound, Unbounded>) -> Result<bool, String> {
        let Some(standing) = self.standing.get(at) else { return Ok(false) };
        let latency = standing.agreed.slo.latency_s;
        if is_within(&self.worst[at], latency) {
            return Ok(false);
        }
        let before = match by {
            Method::Dnc => self.worst[at].clone(),
            by => {
                let mut bounds =
                    Bounds::new(&self.before, self.bounded).map_err(|error| error.to_string())?;
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

/// What a promise was made by; `None` if by no bound.
fn method(agreed: &Agreed) -> Option<Method> {
    let by = agreed.by.as_deref()?;
    Some(Method::ALL.into_iter().find(|method| method.name() == by).unwrap_or(Method::Dnc))
}

/// Gives a promise the priorities that it has.
fn set_priorities(promise: &mut Promise, agreed: &Agreed) {
    for (demand, priority) in promise.workload.demands.iter().zip(&mut promise.priorities) {
        if let Some(stage) = agreed.stages.iter().find(|stage| stage.stage == demand.stage.name()) {
            *priority = stage.priority;
        }
    }
}

/// For each promise, whether it shares a queue with the last, itself or by others between; all if they depend on each other.
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
