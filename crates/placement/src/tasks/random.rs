//! Policy `random`: any host with enough processors and memory, with equal probability (Choreo section 6, the
//! first baseline).

use leeward_fabric::{Fabric, HostId};
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::capacity_check::{CapacityCheck, estimated_lookups};
use super::{AppRequest, Assignment, TaskPolicy, transaction};
use crate::ties::RequestDraws;
use crate::{Context, Decision, Policy, Refusal};

/// Number of draws before a scan of all hosts.
const DRAWS: u32 = 16;

/// Random placement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "random",
    aliases: &[],
    summary: "any host with room, with equal probability",
    source: "LaCurts et al., Choreo (IMC 2013), section 6",
    schema: schema::<NoSettings>,
    make: |text| settings("random", text).map(|NoSettings {}| Box::new(Random) as _),
};

impl Policy<AppRequest> for Random {
    fn name(&self) -> &'static str {
        "random"
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

impl TaskPolicy for Random {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        estimated_lookups(request, fabric)
    }
}

pub(super) fn assign(request: &AppRequest, context: &Context<'_, '_>) -> Result<Assignment, Refusal> {
    let mut capacity = CapacityCheck::new(context.pool, request);
    let mut draws = RequestDraws::new(context.seed, request.id);
    let hosts = context.pool.fabric().host_count() as u32;
    for task in 0..request.tasks.len() as u32 {
        let drawn = std::iter::repeat_with(|| HostId(draws.below(hosts))).take(DRAWS as usize);
        let first = drawn.collect::<Vec<_>>();
        // Few hosts may be able to take the task: scan all, starting at the last draw.
        let last = first.last().map_or(0, |host| host.0);
        let turn = (0..hosts).map(|i| HostId(((u64::from(last) + u64::from(i)) % u64::from(hosts)) as u32));
        capacity.take_first(task, first.into_iter().chain(turn))?;
    }
    Ok(capacity.assignment())
}
