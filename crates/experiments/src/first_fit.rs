//! First-fit packing by an admission policy, for a system that does not choose limits (SLO section 5.4.7, figure
//! 5.12).

use std::sync::Arc;

use leeward_slo::admit::{self, Arrival};
use leeward_slo::limits::with_margin;
use leeward_slo::{Queue, System};
use leeward_traces::Stage;

use super::admit::route;
use super::pack::{PackingResult, name};
use super::traces::{Part, Traces};
use super::{Draw, ExperimentError, Shape};

/// Places each draw, in order, on the first server where the policy admits it beside the workloads placed there. Limits
/// enforce all buckets of the draw's curve. Each server has its own client and uses its first device; `shape` limits
/// the number of servers. The returned system is empty, because each server is a system of its own.
///
/// # Errors
/// Returns an error for an invalid policy, setting, shape, margin or draw.
pub fn first_fit(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    shape: &Shape,
    margin: f64,
    policy: &str,
    settings: &str,
) -> Result<PackingResult, ExperimentError> {
    let site = Shape { clients: 1, slots: None, servers: 1, ..*shape }.site()?;
    let policy = admit::REGISTRY.make(policy, settings)?;
    let queues: Vec<Queue> = site.queues().to_vec();
    let mut servers: Vec<System> = Vec::new();
    let (mut placed, mut rejected) = (Vec::new(), Vec::new());
    for (index, draw) in draws.iter().enumerate() {
        let workload = traces.workload(name(index), draw, part, &Stage::ALL, policy.needs_models())?;
        let workload = with_margin(&workload, margin)
            .map_err(|error| ExperimentError::draw(format!("draw {index}"), error.to_string()))?;
        let arrival = Arrival { workload: Arc::new(workload), route: route(&site, (0, 0), &Stage::ALL)? };
        let mut target = None;
        for (server, system) in servers.iter().enumerate() {
            let outcome = policy.arrive(system, arrival.clone())?;
            if outcome.admitted() {
                target = Some((server, outcome.system));
                break;
            }
        }
        if target.is_none() {
            let empty = System { queues: queues.clone(), promises: Vec::new() };
            let outcome = policy.arrive(&empty, arrival)?;
            match outcome.refused {
                Some(reason) => rejected.push((index, reason.to_string())),
                None if servers.len() == shape.servers => {
                    rejected.push((index, "every server is in use".to_owned()));
                }
                None => {
                    servers.push(empty);
                    target = Some((servers.len() - 1, outcome.system));
                }
            }
        }
        if let Some((server, system)) = target {
            servers[server] = system;
            placed.push(index);
        }
    }
    let system = System { queues: Vec::new(), promises: Vec::new() };
    Ok(PackingResult { servers: servers.len(), most: servers.len(), refused: rejected, placed, system })
}
