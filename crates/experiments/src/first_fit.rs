//! First fit by an admission policy: packing for a system without a choice of limits (SLO section 5.4.7,
//! figure 5.12).

use std::sync::Arc;

use leeward_slo::admit::{self, Arrival};
use leeward_slo::limits::with_margin;
use leeward_slo::{Queue, System};
use leeward_traces::Stage;

use super::admit::route;
use super::pack::{PackingResult, name};
use super::traces::{Part, Traces};
use super::{Draw, ExperimentError, Shape};

/// Places each draw, in order, on the first server where a policy admits it beside the server's workloads, with all
/// buckets of its curve enforced. Each server has its own client and uses its first device; `shape` limits the number
/// of servers. The returned system has no promises, because each server is a separate system.
///
/// # Errors
/// Returns an error for invalid settings, or an invalid policy, shape, margin or draw.
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
    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    for (index, draw) in draws.iter().enumerate() {
        let workload = traces.workload(name(index), draw, part, &Stage::ALL, policy.needs_models())?;
        let workload = with_margin(&workload, margin)
            .map_err(|error| ExperimentError::draw(format!("draw {index}"), error.to_string()))?;
        let arrival = Arrival { workload: Arc::new(workload), route: route(&site, (0, 0), &Stage::ALL)? };
        let mut home = None;
        for (at, system) in servers.iter().enumerate() {
            let outcome = policy.arrive(system, arrival.clone())?;
            if outcome.admitted() {
                home = Some((at, outcome.system));
                break;
            }
        }
        if home.is_none() {
            let empty = System { queues: queues.clone(), promises: Vec::new() };
            let outcome = policy.arrive(&empty, arrival)?;
            match outcome.refused {
                Some(why) => refused.push((index, why.to_string())),
                None if servers.len() == shape.servers => {
                    refused.push((index, "every server is in use".to_owned()));
                }
                None => {
                    servers.push(empty);
                    home = Some((servers.len() - 1, outcome.system));
                }
            }
        }
        if let Some((at, system)) = home {
            servers[at] = system;
            placed.push(index);
        }
    }
    let system = System { queues: Vec::new(), promises: Vec::new() };
    Ok(PackingResult { servers: servers.len(), most: servers.len(), refused, placed, system })
}
