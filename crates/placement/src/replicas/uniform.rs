//! Policy `uniform`: HDFS's default. Copies go to the writer's host, a remote rack drawn by host, and a second host of
//! that rack; or to two remote racks. The policy ignores load, so it is the baseline of the other policies.
//!
//! HDFS also avoids data nodes with many transfers and stale nodes. Both have no relation to the network and
//! are left out, as in the simulations of Sinbad section 7.1.

use leeward_fabric::{DomainId, HostId};
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first_replica::{at_random, by_rule, filter, new_copies, place_first, place_groups};
use super::{Chain, ReplicaRequest};
use crate::constraints::Filter;
use crate::ties::RequestDraws;
use crate::{Context, Decision, Policy, Refusal};

/// Settings of `uniform`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UniformSettings {
    /// Number of racks for the copies besides the first: 1 is HDFS's default, 2 its variant.
    #[serde(deserialize_with = "super::remote_racks")]
    #[schemars(range(min = 1))]
    pub remote_racks: u8,
}

impl Default for UniformSettings {
    fn default() -> Self {
        UniformSettings { remote_racks: 1 }
    }
}

/// Random placement as in HDFS.
#[derive(Clone, Debug, Default)]
pub struct Uniform {
    settings: UniformSettings,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "uniform",
    aliases: &[],
    summary: "HDFS's default: the writer's host, a random remote rack, a second host of that rack",
    source: "HDFS BlockPlacementPolicyDefault; the baseline of Sinbad section 7.1",
    schema: schema::<UniformSettings>,
    make: |text| Ok(Box::new(Uniform::new(settings("uniform", text)?))),
};

impl Uniform {
    /// Creates the policy from settings.
    pub fn new(settings: UniformSettings) -> Uniform {
        Uniform { settings }
    }

    /// Chooses the hosts of one block's copies.
    pub(super) fn choose(
        &self,
        request: &ReplicaRequest,
        context: &Context<'_, '_>,
    ) -> Result<Chain, Refusal> {
        let mut draws = RequestDraws::new(context.seed, request.id);
        let mut filter = filter(context.pool, request);
        place_first(request, &mut filter, &mut draws)?;
        place_groups(request, self.settings.remote_racks, &mut filter, |filter, copies| {
            place_group(filter, &mut draws, copies)
        })?;
        Ok(new_copies(request, filter.used))
    }
}

/// Places `copies` on hosts of one rack.
fn place_group(filter: &mut Filter<'_>, draws: &mut RequestDraws, copies: usize) -> Option<()> {
    let fabric = filter.pool.fabric();
    let anywhere = 0..fabric.host_count() as u32;
    let mut first: Option<HostId> = None;
    // A drawn rack with too few eligible hosts is drawn again. After 8 draws, all racks are tried one after another.
    for _ in 0..8 {
        let host = at_random(anywhere.clone(), filter, draws)?;
        if filter.refuses_domain(fabric.rack_of(host), copies).is_none() {
            first = Some(host);
            break;
        }
    }
    let takes = |rack: &DomainId| filter.refuses_domain(*rack, copies).is_none();
    let rack = match first {
        Some(host) => fabric.rack_of(host),
        None => {
            let racks = fabric.rack_count() as u32;
            let from = draws.below(racks);
            (0..racks).map(|step| DomainId((from + step) % racks)).find(takes)?
        }
    };
    for copy in 0..copies {
        let drawn = first.filter(|_| copy == 0);
        let host = drawn.or_else(|| at_random(fabric.hosts(rack), filter, draws))?;
        filter.used.push(host);
    }
    Some(())
}

impl Policy<ReplicaRequest> for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        Ok(by_rule(self.name(), request, self.choose(request, context)?, context))
    }
}
