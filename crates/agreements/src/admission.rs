//! Admission of a workload whose volume has a server.

use leeward_fabric::Cluster;
use leeward_registry::PolicySpec;
use leeward_slo::System;
use leeward_slo::admit::{AdmissionError, joined};
use leeward_slo::bound::Bounds;
use leeward_slo::file::{AdmissionPolicy, PlacedSystem, Workloads};
use leeward_slo::priorities::{by_slo, merge};

use super::forms::{Read, read};
use super::{ActiveWorkload, Agreement, Form, Rejected, agreement, passable};

/// Admits a workload beside the active ones, as `leeward slo admit` does. `id` is the ledger owner id of the workload.
/// The form names the workload's server.
///
/// # Errors
/// [`Rejected`] for an invalid form or policy, or for an SLO that would be missed, with its stage.
pub fn admit(
    cluster: &Cluster,
    active: &[ActiveWorkload],
    form: &Form,
    id: u64,
    policy: &PolicySpec,
) -> Result<Agreement, Rejected> {
    let cluster = &passable(cluster);
    let Read { residents, arriving } = read(cluster, active, form)?;
    let by = residents.admission(&policy.name, &policy.settings);
    let by = by.map_err(|error| Rejected::Policy(error.to_string()))?;
    if by.admission.sets_rates() {
        let message =
            format!("`{}` sets its own rates on networks, and guarantees nothing at devices", policy.name);
        return Err(Rejected::Policy(message));
    }
    let refused = |error: &dyn std::fmt::Display| Rejected::Infeasible(error.to_string());
    let placed = match active.is_empty() {
        true => PlacedSystem { system: System::default(), given: false, merged: None },
        false => residents.system(cluster).map_err(|error| refused(&error.message))?,
    };
    let admitted = residents.admit(&placed, &arriving, cluster, &by);
    let admitted = admitted.map_err(|error| refused(&error.message))?;
    if let Some(why) = admitted.arrivals.iter().find_map(|result| result.refused.as_ref()) {
        let stage = slowest_stage(&placed.system, &arriving, cluster, &by, why);
        return Err(Rejected::Infeasible(format!("{why}{}", stage.unwrap_or_default())));
    }
    let system = &admitted.system;
    let bounds = match by.admission.by() {
        None => vec![None; system.promises.len()],
        Some((method, settings)) => {
            let mut bounds = Bounds::new(system, settings).map_err(|error| refused(&error))?;
            (0..system.promises.len()).map(|at| Some(bounds.bound(at, method))).collect()
        }
    };
    let file_entries: Vec<_> = residents.entries.iter().chain(&arriving.entries).collect();
    agreement(cluster, active, &file_entries, id, system, &bounds)
}

/// Describes the stage with the largest share of a bound above its SLO. `None` if the refusal already names the stage,
/// or if the bound is from other priorities.
fn slowest_stage(
    system: &System,
    arriving: &Workloads,
    cluster: &Cluster,
    by: &AdmissionPolicy,
    why: &AdmissionError,
) -> Option<String> {
    let (AdmissionError::Miss { workload, seconds, .. }, (method, settings)) = (why, by.admission.by()?)
    else {
        return None;
    };
    let mut with = system.clone();
    for arrival in arriving.arrivals(cluster, &mut with).ok()? {
        with = joined(&with, &arrival);
    }
    by_slo(&mut with);
    merge(&mut with, by.levels.unwrap_or(u32::MAX));
    let at = with.promises.iter().position(|promise| promise.workload.name == *workload)?;
    let bound = Bounds::new(&with, settings).ok()?.bound(at, method).ok()?;
    let (stage, share) = bound.stages.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let promise = &with.promises[at];
    let queues = promise.route[stage].iter().map(|&queue| with.queues[queue].name.as_str());
    let (name, queues) = (promise.workload.demands[stage].stage, queues.collect::<Vec<&str>>().join(", "));
    let share = leeward_slo::time(*share);
    (bound.seconds == *seconds).then(|| format!("; {share} of it at {name} ({queues})"))
}
