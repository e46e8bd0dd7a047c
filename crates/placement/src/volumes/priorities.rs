//! Who is served first: PriorityMeister's search (SLO section 3.2.2), the order of SLOs, and the merging of more ranks than
//! can be enforced.
//!
//! What is best effort comes after all others, in every order.

use leeward_traces::Stage;

use super::System;
use super::bound::{Bound, Miss, Unbounded};

/// Priorities that switches tell apart by DSCP mark (SLO section 2.2).
pub const LEVELS: u32 = 7;

/// A bound on a promise of a system, by index, under the priorities it has.
pub type BoundOf<'a> = dyn FnMut(&System, usize) -> Result<Bound, Unbounded> + 'a;

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Ordered {
    /// The system, with priorities.
    pub system: System,
    /// How many ranks there were, if they were merged.
    pub merged: Option<usize>,
    /// The SLOs that are not kept for sure under them.
    pub missed: Vec<Miss>,
}

/// Gives each promise a priority by its SLO, the tightest first and equal ones equal, the same at all stages (the order of SLO
/// section 4.3, there a comparator of the search).
pub fn by_slo(system: &mut System) {
    let slo = |promise: &super::Promise| promise.workload.slo.map_or(f64::INFINITY, |slo| slo.latency);
    let mut distinct: Vec<f64> = system.promises.iter().map(slo).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    for promise in &mut system.promises {
        let own = slo(promise);
        promise.priorities.fill(distinct.partition_point(|&other| other < own) as u32);
    }
}

/// Merges neighbouring priorities of networks where there are more than `levels`, at least 1; those of devices are kept by
/// software, which tells any number apart. Best effort has a level of its own, if there is more than one. Where ranks are more, each
/// level gets as many, to one. Returns how many ranks there were, if they were merged.
pub fn merge(system: &mut System, levels: u32) -> Option<usize> {
    let effort = |promise: &super::Promise| promise.workload.slo.is_none();
    let lowest = system.promises.iter().any(effort) && levels > 1;
    let levels = (levels - u32::from(lowest)).max(1) as usize;
    let mut ranks: Vec<u32> = Vec::new();
    for promise in system.promises.iter().filter(|promise| !(lowest && effort(promise))) {
        ranks.extend(on_network(promise).map(|at| promise.priorities[at]));
    }
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() <= levels {
        return None;
    }
    for promise in &mut system.promises {
        let own = effort(promise);
        for at in on_network(promise).collect::<Vec<_>>() {
            let rank = ranks.partition_point(|&rank| rank < promise.priorities[at]);
            promise.priorities[at] = if lowest && own { levels } else { rank * levels / ranks.len() } as u32;
        }
    }
    Some(ranks.len())
}

fn on_network(promise: &super::Promise) -> impl Iterator<Item = usize> + use<> {
    let stages: Vec<bool> =
        promise.workload.demands.iter().map(|demand| demand.stage != Stage::Storage).collect();
    (0..stages.len()).filter(move |&at| stages[at])
}

/// PriorityMeister's search: priorities under which as many SLOs as it finds are kept, each workload with one a stage.
///
/// ```text
/// from the lowest level upwards, over the stages that have none yet:
///     a workload that keeps its SLO lowest at all its open stages gets that level there
///     if there is none: of the one that misses by least, the open stage of the smallest bound gets it
/// ```
///
/// Levels given stay. Then ranks are merged ([`merge`]) and all bounds looked at again, under what will be enforced.
///
/// If a workload's bound depends on which others come before it and not on their order, and never rises when fewer do, then
/// whenever some order, the same at all stages and with no two equal, keeps all SLOs, this finds one that does: the lowest of
/// that order that is still open keeps its SLO with all others that are open before it, and so there always is a workload for
/// the next level. So it is for [`super::bound::Method::PriorityMeister`] of a fluid, and where each stage is one queue for
/// [`super::bound::Method::Dnc`] too, of a fluid or not. It is not quite so for whole requests over several queues, where
/// one that comes after is waited for at each queue, while one that comes before is so once; and not for curves over several
/// queues, which know the order. Orders that differ by stage may be found or not; nor is a merged order always kept.
///
/// Workloads are tried by SLO, the largest first. Up to n bounds for each of n levels and more where stages part. One has no bound
/// where all that are open bring more to a queue of its way in the long run than that has: it is not asked for one.
pub fn priority_meister(system: &System, levels: u32, bound: &mut BoundOf<'_>) -> Ordered {
    let mut system = system.clone();
    let mut open: Vec<Vec<bool>> = (system.promises.iter())
        .map(|promise| vec![promise.workload.slo.is_some(); promise.priorities.len()])
        .collect();
    let mut order: Vec<usize> = (0..open.len()).filter(|&at| open[at].iter().any(|&open| open)).collect();
    let latency = |at: usize| system.promises[at].workload.slo.map_or(0.0, |slo| slo.latency);
    order.sort_by(|&a, &b| latency(b).total_cmp(&latency(a)).then(a.cmp(&b)));
    let mut level = order.iter().map(|&at| open[at].len() as u32).sum::<u32>();
    // Open stages are all of the first level, best effort is of the last.
    for (promise, open) in system.promises.iter_mut().zip(&open) {
        let first = if open.contains(&true) { 0 } else { level + 1 };
        promise.priorities.fill(first);
    }
    while !order.is_empty() {
        let full = full(&system, &open);
        let mut nearest: Option<(f64, usize, usize)> = None;
        let mut kept = None;
        for (place, &at) in order.iter().enumerate() {
            let crosses_full = system.promises[at].route.iter().flatten().any(|&queue| full[queue]);
            let found = (!crosses_full).then(|| {
                set(&mut system, at, &open[at], level);
                let found = bound(&system, at);
                set(&mut system, at, &open[at], 0);
                found
            });
            let found = found.and_then(Result::ok);
            let slo = system.promises[at].workload.slo.map_or(0.0, |slo| slo.latency);
            let violation = found.as_ref().map_or(f64::INFINITY, |bound| bound.seconds - slo);
            if violation <= 0.0 {
                kept = Some(place);
                break;
            }
            if nearest.is_none_or(|(least, ..)| violation < least) {
                let seconds = |stage: usize| found.as_ref().map_or(0.0, |bound| bound.stages[stage]);
                let stages = (0..open[at].len()).filter(|&stage| open[at][stage]);
                let stage = stages.min_by(|&a, &b| seconds(a).total_cmp(&seconds(b)));
                nearest = stage.map(|stage| (violation, place, stage));
            }
        }
        match (kept, nearest) {
            (Some(place), _) => {
                let at = order.remove(place);
                set(&mut system, at, &open[at], level);
                open[at].fill(false);
            }
            (None, Some((_, place, stage))) => {
                let at = order[place];
                system.promises[at].priorities[stage] = level;
                open[at][stage] = false;
                if !open[at].contains(&true) {
                    order.remove(place);
                }
            }
            (None, None) => break,
        }
        level -= 1;
    }
    dense(&mut system);
    let merged = merge(&mut system, levels);
    let missed = missed(&system, bound);
    Ordered { system, merged, missed }
}

/// For each queue whether stages that are open bring more to it, in the long run, than it has: whoever comes after them all, or with
/// them, has no bound there.
fn full(system: &System, open: &[Vec<bool>]) -> Vec<bool> {
    let mut asked = vec![0.0; system.queues.len()];
    for (promise, open) in system.promises.iter().zip(open) {
        let stages = promise.route.iter().zip(&promise.workload.demands).zip(open);
        for ((route, demand), _) in stages.filter(|(_, open)| **open) {
            route.iter().for_each(|&queue| asked[queue] += demand.arrivals.rate());
        }
    }
    asked.iter().zip(&system.queues).map(|(asked, queue)| *asked > queue.capacity).collect()
}

/// The SLOs of a system that are not kept for sure.
pub fn missed(system: &System, bound: &mut BoundOf<'_>) -> Vec<Miss> {
    let mut missed = Vec::new();
    for (promise, of) in system.promises.iter().enumerate() {
        let Some(slo) = of.workload.slo else { continue };
        let outcome = bound(system, promise);
        if !outcome.as_ref().is_ok_and(|bound| bound.seconds <= slo.latency) {
            missed.push(Miss { promise, slo, outcome });
        }
    }
    missed
}

/// Sets a promise's open stages to a level.
fn set(system: &mut System, promise: usize, open: &[bool], level: u32) {
    let priorities = system.promises[promise].priorities.iter_mut().zip(open);
    priorities.filter(|(_, open)| **open).for_each(|(priority, _)| *priority = level);
}

/// Priorities in the same order, from 0 on without gaps.
fn dense(system: &mut System) {
    let all = system.promises.iter().flat_map(|promise| &promise.priorities);
    let mut ranks: Vec<u32> = all.copied().collect();
    ranks.sort_unstable();
    ranks.dedup();
    for priority in system.promises.iter_mut().flat_map(|promise| &mut promise.priorities) {
        *priority = ranks.partition_point(|rank| rank < priority) as u32;
    }
}
