//! `uniform`: HDFS's default. The writer's host, a remote rack drawn by host, a second host of that rack; or two remote
//! racks. Looks at no load, which is why it is what the others are compared with.
//!
//! HDFS's own refinements that look at something else than the network (data nodes with many transfers, stale nodes)
//! are left out, as in the simulations of Sinbad section 7.1.

use leeward_fabric::HostId;
use leeward_ledger::Fade;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first::{Near, at_random, attempts, filter, first, no_candidate};
use super::{Chain, ReplicaRequest, chain_hops, groups, settings, transfer};
use crate::constraints::Filter;
use crate::ties::Draws;
use crate::{Basis, Candidate, Considered, Context, Decision, Policy, Refusal, Registration, Verdict};

/// Settings of `uniform`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UniformSettings {
    /// Over how many racks the copies besides the first are spread: 1 is HDFS's default, 2 its variant.
    pub remote_racks: u8,
}

impl Default for UniformSettings {
    fn default() -> Self {
        UniformSettings { remote_racks: 1 }
    }
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct Uniform {
    settings: UniformSettings,
}

pub(super) const REGISTRATION: Registration<ReplicaRequest> = Registration {
    name: "uniform",
    summary: "HDFS's default: the writer's host, a random remote rack, a second host of that rack",
    source: "HDFS BlockPlacementPolicyDefault; the baseline of Sinbad section 7.1",
    schema: || schemars::schema_for!(UniformSettings).to_value(),
    make: |text| Ok(Box::new(Uniform::new(settings("uniform", text)?))),
};

impl Uniform {
    /// The policy with these settings.
    pub fn new(settings: UniformSettings) -> Uniform {
        Uniform { settings }
    }

    /// Chooses the hosts of one block's copies.
    pub(super) fn choose(
        &self,
        request: &ReplicaRequest,
        context: &Context<'_, '_>,
    ) -> Result<Chain, Refusal> {
        let fabric = context.pool.fabric();
        let mut draws = Draws::new(context.seed, request.id);
        let mut filter = filter(context.pool, request);
        let writer = first(request, &mut filter, &mut draws)?;
        for (groups, near) in attempts(request, groups(request, self.settings.remote_racks, fabric.shape())) {
            filter.used.truncate(1);
            filter.closed.clear();
            if near != Near::First {
                filter.closed.push(fabric.fault_domain(fabric.rack_of(writer)));
            }
            if groups.iter().all(|&copies| place_group(&mut filter, &mut draws, copies, near).is_some()) {
                return Ok(filter.used);
            }
        }
        Err(no_candidate(&filter))
    }
}

/// Places `copies` on hosts of one rack.
fn place_group(filter: &mut Filter<'_>, draws: &mut Draws, copies: usize, near: Near) -> Option<()> {
    let fabric = filter.pool.fabric();
    let anywhere = 0..fabric.host_count() as u32;
    let mut first: Option<HostId> = None;
    // A rack that is drawn and has too few takers is drawn again; with few racks left, each is tried in turn.
    for _ in 0..8 {
        let host = at_random(anywhere.clone(), filter, draws)?;
        if filter.refuses_domain(fabric.rack_of(host), copies).is_none() {
            first = Some(host);
            break;
        }
    }
    let takes = |rack: &leeward_fabric::DomainId| filter.refuses_domain(*rack, copies).is_none();
    let rack = match first {
        Some(host) => fabric.rack_of(host),
        None => fabric.all_racks().find(takes)?,
    };
    for copy in 0..copies {
        let drawn = first.filter(|_| copy == 0);
        let host = drawn.or_else(|| at_random(fabric.hosts(rack), filter, draws))?;
        filter.used.push(host);
    }
    if near == Near::No {
        filter.closed.push(fabric.fault_domain(rack));
    }
    Some(())
}

impl Policy<ReplicaRequest> for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let place = |request: &ReplicaRequest| {
            let copies = self.choose(request, context)?;
            let hops = chain_hops(context.pool.fabric(), request, &copies);
            let chosen = copies.iter().take(context.explain.limit());
            let why = chosen.map(|&host| Considered {
                candidate: Candidate::Host(host),
                limit: None,
                value: None,
                verdict: Verdict::Chosen,
            });
            Ok(Decision {
                change: transfer(request, hops, None, Fade::WithEstimator, context.view.now()),
                basis: Basis { epoch: context.view.epoch(), oldest: None, policy: self.name() },
                why: why.collect(),
                choice: copies,
            })
        };
        batch.iter().map(place).collect()
    }
}
