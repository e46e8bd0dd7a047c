//! Admission of draws, one after another (SLO section 4.4).

use std::sync::Arc;

use leeward_slo::admit::{self, Arrival};
use leeward_slo::pack::Site;
use leeward_slo::{Queue, System};
use leeward_traces::Stage;

use super::pack::name;
use super::traces::{Part, Traces};
use super::{Draw, ExperimentError, Shape};

/// Result of admission.
#[derive(Clone, PartialEq, Debug)]
pub struct AdmissionResult {
    /// Admitted draws, by index and in order; one per promise.
    pub admitted: Vec<usize>,
    /// Admitted workloads, with their priorities and limits, without best effort.
    pub system: System,
}

/// Requests admission of draws in their order, each on the client and server of `links` (with its first device).
/// Demands are the curves and models of one part of the traces, at the given stages. `percentile`, in percent, replaces
/// the percentile of the traces if given. Rejected draws do not change the system.
///
/// # Errors
/// Returns an error for invalid settings, or an invalid policy, shape, draw or link.
#[expect(clippy::too_many_arguments, reason = "experiments vary each of them")]
pub fn admit(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    links: &[(usize, usize)],
    shape: &Shape,
    stages: &[Stage],
    policy: &str,
    settings: &str,
    percentile: Option<f64>,
) -> Result<AdmissionResult, ExperimentError> {
    if links.len() < draws.len() {
        let problem = format!("{} for {} draws: expected one for each", links.len(), draws.len());
        return Err(ExperimentError::draw("links", problem));
    }
    let (site, policy) = (shape.site()?, admit::REGISTRY.make(policy, settings)?);
    let queues: Vec<Queue> = site.queues().to_vec();
    let mut result =
        AdmissionResult { admitted: Vec::new(), system: System { queues, promises: Vec::new() } };
    for (index, (draw, &link)) in draws.iter().zip(links).enumerate() {
        // Only policies that need models request them, because some traces have none.
        let mut workload = traces.workload(name(index), draw, part, stages, policy.needs_models())?;
        if let (Some(percentile), Some(slo)) = (percentile, &mut Arc::make_mut(&mut workload).slo) {
            slo.percentile = percentile;
        }
        let route = route(&site, link, stages)?;
        let outcome = policy.arrive(&result.system, Arrival { workload, route })?;
        if outcome.admitted() {
            result.system = outcome.system;
            result.admitted.push(index);
        }
    }
    Ok(result)
}

pub(super) fn route(
    site: &Site,
    (client, server): (usize, usize),
    stages: &[Stage],
) -> Result<Vec<Vec<usize>>, ExperimentError> {
    let (clients, servers) = (site.clients().len(), site.servers().len());
    if client >= clients || server >= servers || site.servers()[server].devices.is_empty() {
        let problem =
            format!("there are {clients} clients and {servers} servers with devices, numbered from 0");
        return Err(ExperimentError::draw(format!("client {client}, server {server}"), problem));
    }
    Ok(stages.iter().map(|&stage| site.path(client, server, 0, stage)).collect())
}
