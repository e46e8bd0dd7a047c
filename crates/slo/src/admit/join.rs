//! Steps that all policies share: add an arrival to a system, or demote it to best effort.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;

use super::{AdmissionError, Arrival, Outcome};
use crate::bound::{BoundSettings, Bounds, Method, SystemError};
use crate::{Promise, System};

/// Priority of best effort in systems whose promises keep their priorities.
pub(super) const LAST: u32 = u32::MAX;

/// The system with the arrival as the last promise, at the first priority, with its arrival curves as limits.
pub fn joined(system: &System, arrival: &Arrival) -> System {
    let mut system = system.clone();
    let Arrival { workload, route } = arrival.clone();
    let limits: Vec<ArrivalCurve> = workload.demands.iter().map(|demand| demand.arrivals.clone()).collect();
    let priorities = vec![0; workload.demands.len()];
    system.promises.push(Promise { workload, route, priorities, limits });
    system
}

/// The arrival as best effort at the last priority; the other promises stay unchanged. `by` is the method of the bounds
/// that determine which promises the arrival disturbs.
pub(super) fn best_effort(
    system: &System,
    arrival: &Arrival,
    refused: Option<AdmissionError>,
    by: Option<(Method, BoundSettings)>,
) -> Result<Outcome, SystemError> {
    let mut with = joined(system, arrival);
    let mut last = with.promises.pop().expect("the arrival was added");
    Arc::make_mut(&mut last.workload).slo = None;
    last.priorities.fill(LAST);
    let others = with.promises.len();
    with.promises.push(last);
    let mut disturbed = Vec::new();
    if let Some((method, settings)) = by {
        let (mut before, mut after) = (Bounds::new(system, settings)?, Bounds::new(&with, settings)?);
        let lost = |&promise: &usize| {
            after.miss(promise, method).is_some() && before.miss(promise, method).is_none()
        };
        let (groups, own) = (with.queue_groups(), &with.promises[others]);
        let reached = |promise: &usize| {
            let groups_of = |promise: &Promise| {
                promise.route.iter().map(|route| groups[route[0]]).collect::<Vec<usize>>()
            };
            let near = groups_of(own);
            groups_of(&with.promises[*promise]).iter().any(|group| near.contains(group))
        };
        disturbed = (0..others).filter(reached).filter(lost).collect();
    }
    Ok(Outcome { system: with, refused, disturbed, merged: None, searched: false })
}
