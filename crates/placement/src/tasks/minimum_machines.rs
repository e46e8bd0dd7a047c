//! Policy `minimum-machines`: a host that the app already uses, if one has room; otherwise a new host (Choreo section
//! 6, the third baseline). The new host is the first in an order that the seed and the request shuffle.

use leeward_fabric::{Fabric, HostId};
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::capacity_check::{CapacityCheck, estimated_lookups, shuffled};
use super::{AppRequest, Assignment, TaskPolicy, transaction};
use crate::{Context, Decision, Policy, Refusal};

/// Placement on as few hosts as possible.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinimumMachines;

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "minimum-machines",
    aliases: &[],
    summary: "a host that the app uses already if one has room, else a new one",
    source: "LaCurts et al., Choreo (IMC 2013), section 6",
    schema: schema::<NoSettings>,
    make: |text| settings("minimum-machines", text).map(|NoSettings {}| Box::new(MinimumMachines) as _),
};

impl Policy<AppRequest> for MinimumMachines {
    fn name(&self) -> &'static str {
        "minimum-machines"
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

impl TaskPolicy for MinimumMachines {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        estimated_lookups(request, fabric)
    }
}

fn assign(request: &AppRequest, context: &Context<'_, '_>) -> Result<Assignment, Refusal> {
    let mut capacity = CapacityCheck::new(context.pool, request);
    let order = shuffled(context.pool, context.seed, request.id);
    let mut used = Vec::<HostId>::new();
    for task in 0..request.tasks.len() as u32 {
        let host = capacity.take_first(task, used.iter().chain(&order).copied())?;
        if !used.contains(&host) {
            used.push(host);
        }
    }
    Ok(capacity.assignment())
}
