//! Policy `round-robin`: the next host of the cluster file with enough processors and memory (Choreo section 6, the
//! second baseline). Policies hold no state, so the seed and the request choose the first host of an app; each further
//! task continues after the host of the previous task.

use leeward_fabric::{Fabric, HostId};
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::capacity_check::{CapacityCheck, estimated_lookups};
use super::{AppRequest, Assignment, TaskPolicy, transaction};
use crate::ties::Draws;
use crate::{Context, Decision, Policy, Refusal};

/// Placement on the hosts one after another.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "round-robin",
    aliases: &[],
    summary: "the next host with room",
    source: "LaCurts et al., Choreo (IMC 2013), section 6",
    schema: schema::<NoSettings>,
    make: |text| settings("round-robin", text).map(|NoSettings {}| Box::new(RoundRobin) as _),
};

impl Policy<AppRequest> for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        let hosts = assign(request, context)?;
        Ok(transaction::decision(self.name(), request, hosts, transaction::Notes::default(), context))
    }
}

impl TaskPolicy for RoundRobin {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        estimated_lookups(request, fabric)
    }
}

fn assign(request: &AppRequest, context: &Context<'_, '_>) -> Result<Assignment, Refusal> {
    let mut capacity = CapacityCheck::new(context.pool, request);
    let hosts = context.pool.fabric().host_count() as u32;
    let mut next = Draws::new(context.seed, request.id).below(hosts);
    for task in 0..request.tasks.len() as u32 {
        let turn = (0..hosts).map(|i| HostId(((u64::from(next) + u64::from(i)) % u64::from(hosts)) as u32));
        let host = capacity.take_first(task, turn)?;
        next = (host.0 + 1) % hosts;
    }
    Ok(capacity.assignment())
}
