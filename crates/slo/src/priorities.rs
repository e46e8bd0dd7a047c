//! Priority assignment: PriorityMeister's search (SLO section 3.2.2), the order by SLO, and the merging of
//! ranks into the levels that can be enforced.
//!
//! Best effort has the lowest priority in every order.

use leeward_traces::Stage;

use super::System;
use super::bound::{Bound, Miss, Unbounded};

/// Number of priorities that switches distinguish by DSCP mark (SLO section 2.2).
pub const LEVELS: u32 = 7;

/// Function that computes the bound of a promise, given by its index, under the system's current priorities.
pub type BoundOf<'a> = dyn FnMut(&System, usize) -> Result<Bound, Unbounded> + 'a;

/// Result of PriorityMeister's search.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchResult {
    /// The system with its priorities assigned.
    pub system: System,
    /// Number of ranks before merging; `None` if no merging was needed.
    pub merged: Option<usize>,
    /// SLOs that the bounds do not guarantee under these priorities.
    pub missed: Vec<Miss>,
}

/// Assigns priorities by SLO: the tightest SLO first, and equal priorities for equal SLOs. The priority is the same at
/// all stages. SLO section 4.3 compares the search with this order.
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

/// Merges neighbouring network priorities if there are more than `levels`, which is at least 1. Device priorities stay,
/// because software enforces them and supports any number. Best effort has its own level if there are at least two
/// levels. The numbers of ranks in two levels differ by at most one. Returns the number of ranks if they were merged.
pub fn merge(system: &mut System, levels: u32) -> Option<usize> {
    let is_best_effort = |promise: &super::Promise| promise.workload.slo.is_none();
    let separate = system.promises.iter().any(is_best_effort) && levels > 1;
    let levels = (levels - u32::from(separate)).max(1) as usize;
    let mut ranks: Vec<u32> = Vec::new();
    for promise in system.promises.iter().filter(|promise| !(separate && is_best_effort(promise))) {
        ranks.extend(network_stages(promise).map(|at| promise.priorities[at]));
    }
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() <= levels {
        return None;
    }
    for promise in &mut system.promises {
        let lowest = separate && is_best_effort(promise);
        for at in network_stages(promise).collect::<Vec<_>>() {
            let rank = ranks.partition_point(|&rank| rank < promise.priorities[at]);
            promise.priorities[at] = if lowest { levels } else { rank * levels / ranks.len() } as u32;
        }
    }
    Some(ranks.len())
}

fn network_stages(promise: &super::Promise) -> impl Iterator<Item = usize> + use<> {
    let stages: Vec<bool> =
        promise.workload.demands.iter().map(|demand| demand.stage != Stage::Storage).collect();
    (0..stages.len()).filter(move |&at| stages[at])
}

/// PriorityMeister's greedy search for priorities that keep all SLOs. Each workload has one priority per stage.
///
/// ```text
/// for each level, from the lowest upwards; a stage without a level is open:
///     the first workload that keeps its SLO with this level at all its open stages gets the level there
///     without such a workload, the one that misses its SLO by the least gets the level at one open stage:
///         the stage with the smallest bound
/// ```
///
/// Assigned levels do not change later. At the end the search merges ranks ([`merge`]) and computes all bounds again
/// under the enforced priorities.
///
/// The search is optimal under two conditions. A workload's bound depends on the set of higher priorities but not on
/// their order, and it never rises when this set shrinks. Under these conditions, the search keeps all SLOs if some
/// strict order, the same at all stages, keeps them. Reason: the lowest open workload of that order keeps its SLO with
/// all other open workloads before it, so each level has a candidate.
///
/// Both conditions hold for [`super::bound::Method::PriorityMeister`] with fluid service. Both also hold for
/// [`super::bound::Method::Dnc`] with any unit of service if each stage is one queue. Whole requests over several
/// queues violate them slightly: a lower priority blocks at each queue, a higher priority only once. Neither holds for
/// curves over several queues, which depend on the order. The search may miss orders that differ by stage, and merging
/// may cause missed SLOs.
///
/// The search tries workloads in order of SLO, the largest first. The work is up to n bounds for each of n levels, and
/// more if the levels of stages differ. The search skips the bound of a workload if the open stages overload a queue of
/// its path.
pub fn priority_meister(system: &System, levels: u32, bound: &mut BoundOf<'_>) -> SearchResult {
    let mut system = system.clone();
    let mut open: Vec<Vec<bool>> = (system.promises.iter())
        .map(|promise| vec![promise.workload.slo.is_some(); promise.priorities.len()])
        .collect();
    let mut order: Vec<usize> = (0..open.len()).filter(|&at| open[at].iter().any(|&open| open)).collect();
    let latency = |at: usize| system.promises[at].workload.slo.map_or(0.0, |slo| slo.latency);
    order.sort_by(|&a, &b| latency(b).total_cmp(&latency(a)).then(a.cmp(&b)));
    let mut level = order.iter().map(|&at| open[at].len() as u32).sum::<u32>();
    // Open stages start at the highest level. Best effort has the lowest one.
    for (promise, open) in system.promises.iter_mut().zip(&open) {
        let priority = if open.contains(&true) { 0 } else { level + 1 };
        promise.priorities.fill(priority);
    }
    while !order.is_empty() {
        let overloaded = overloaded_queues(&system, &open);
        let mut nearest: Option<(f64, usize, usize)> = None;
        let mut kept = None;
        for (index, &at) in order.iter().enumerate() {
            let is_overloaded = system.promises[at].route.iter().flatten().any(|&queue| overloaded[queue]);
            let computed = (!is_overloaded).then(|| {
                set_level(&mut system, at, &open[at], level);
                let computed = bound(&system, at);
                set_level(&mut system, at, &open[at], 0);
                computed
            });
            let computed = computed.and_then(Result::ok);
            let slo = system.promises[at].workload.slo.map_or(0.0, |slo| slo.latency);
            let violation = computed.as_ref().map_or(f64::INFINITY, |bound| bound.seconds - slo);
            if violation <= 0.0 {
                kept = Some(index);
                break;
            }
            if nearest.is_none_or(|(least, ..)| violation < least) {
                let seconds = |stage: usize| computed.as_ref().map_or(0.0, |bound| bound.stages[stage]);
                let stages = (0..open[at].len()).filter(|&stage| open[at][stage]);
                let stage = stages.min_by(|&a, &b| seconds(a).total_cmp(&seconds(b)));
                nearest = stage.map(|stage| (violation, index, stage));
            }
        }
        match (kept, nearest) {
            (Some(index), _) => {
                let at = order.remove(index);
                set_level(&mut system, at, &open[at], level);
                open[at].fill(false);
            }
            (None, Some((_, index, stage))) => {
                let at = order[index];
                system.promises[at].priorities[stage] = level;
                open[at][stage] = false;
                if !open[at].contains(&true) {
                    order.remove(index);
                }
            }
            (None, None) => break,
        }
        level -= 1;
    }
    renumber(&mut system);
    let merged = merge(&mut system, levels);
    let missed = missed(&system, bound);
    SearchResult { system, merged, missed }
}

/// For each queue: true if the open stages overload it in the long run. A workload at or below their priority then has
/// no bound at such a queue.
fn overloaded_queues(system: &System, open: &[Vec<bool>]) -> Vec<bool> {
    let mut loads = vec![0.0; system.queues.len()];
    for (promise, open) in system.promises.iter().zip(open) {
        let stages = promise.route.iter().zip(&promise.workload.demands).zip(open);
        for ((route, demand), _) in stages.filter(|(_, open)| **open) {
            route.iter().for_each(|&queue| loads[queue] += demand.arrivals.rate());
        }
    }
    loads.iter().zip(&system.queues).map(|(load, queue)| *load > queue.capacity).collect()
}

/// SLOs that the bounds of a system do not guarantee.
pub fn missed(system: &System, bound: &mut BoundOf<'_>) -> Vec<Miss> {
    let mut missed = Vec::new();
    for (index, promise) in system.promises.iter().enumerate() {
        let Some(slo) = promise.workload.slo else { continue };
        let outcome = bound(system, index);
        if !outcome.as_ref().is_ok_and(|bound| bound.seconds <= slo.latency) {
            missed.push(Miss { promise: index, slo, outcome });
        }
    }
    missed
}

/// Assigns a level to a promise's open stages.
fn set_level(system: &mut System, promise: usize, open: &[bool], level: u32) {
    let priorities = system.promises[promise].priorities.iter_mut().zip(open);
    priorities.filter(|(_, open)| **open).for_each(|(priority, _)| *priority = level);
}

/// Renumbers priorities from 0 without gaps, in the same order.
fn renumber(system: &mut System) {
    let all = system.promises.iter().flat_map(|promise| &promise.priorities);
    let mut ranks: Vec<u32> = all.copied().collect();
    ranks.sort_unstable();
    ranks.dedup();
    for priority in system.promises.iter_mut().flat_map(|promise| &mut promise.priorities) {
        *priority = ranks.partition_point(|rank| rank < priority) as u32;
    }
}
