//! Policy `ccp`: chunk capacity-aware placement (Hotspots sections 4.3 and 5.2). New chunks prefer racks whose uplink
//! is large relative to their storage: High before Medium before Low. The policy uses only static facts, no live load.
//!
//! The paper uses the class as one low-ranked score in a scheduler that samples candidates. The order here is: fault
//! domains, which are mandatory; then racks whose fill exceeds the average by at most `balance`; then the class; then a
//! random draw or free space. Every chunk of a stripe follows the same order.

use std::cmp::Reverse;

use leeward_fabric::{Bandwidth, DomainId, HostId};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first_replica::{at_random, by_rule, filter, new_copies, place_first, place_groups};
use super::uplink::{Guideline, UplinkClass};
use super::{Chain, ReplicaRequest};
use crate::constraints::Filter;
use crate::ties::RequestDraws;
use crate::{Context, Decision, Policy, Refusal};

/// Settings of `ccp`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CcpSettings {
    /// Provisioning guideline: uplink capacity per TB of storage. Default: the average of the cluster's
    /// racks. A rack within 10 % of it is Medium.
    pub uplink_per_tb: Option<Bandwidth>,
    /// Number of hosts drawn as candidates for each copy; the policy takes the best of their racks. Default 16.
    pub sample: u16,
    /// Largest excess of a rack's fill over the average, as a share of its storage. A rack with a larger excess ranks
    /// behind all others. Default 0.1.
    pub balance: f64,
    /// Choice among several racks of the best class.
    pub within: Within,
    /// Number of racks for the copies besides the first. Default 1.
    #[serde(deserialize_with = "super::remote_racks")]
    #[schemars(range(min = 1))]
    pub remote_racks: u8,
}

/// Choice among racks of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Within {
    /// Any rack, with equal probability.
    #[default]
    Uniform,
    /// The rack with the most free space.
    Free,
}

impl Default for CcpSettings {
    fn default() -> Self {
        CcpSettings {
            uplink_per_tb: None,
            sample: 16,
            balance: 0.1,
            within: Within::Uniform,
            remote_racks: 1,
        }
    }
}

/// Capacity-aware placement by static facts.
#[derive(Clone, Debug, Default)]
pub struct Ccp {
    settings: CcpSettings,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "ccp",
    aliases: &[],
    summary: "racks whose uplink is large for their storage, before others",
    source: "Hotspots (Google) sections 4.3 and 5.2: capacity-aware chunk placement",
    schema: schema::<CcpSettings>,
    make: |text| {
        let read: CcpSettings = settings("ccp", text)?;
        if read.sample == 0 {
            return Err(setting_error("ccp", "sample", "0: expected at least one host"));
        }
        if !(0.0..=1.0).contains(&read.balance) {
            return Err(setting_error("ccp", "balance", "expected a share from 0 to 1"));
        }
        Ok(Box::new(Ccp { settings: read }))
    },
};

impl Ccp {
    fn choose(
        &self,
        request: &ReplicaRequest,
        guideline: Guideline,
        context: &Context<'_, '_>,
    ) -> Result<Chain, Refusal> {
        let mut draws = RequestDraws::new(context.seed, request.id);
        let mut filter = filter(context.pool, request);
        place_first(request, &mut filter, &mut draws)?;
        place_groups(request, self.settings.remote_racks, &mut filter, |filter, copies| {
            let rack = self.rack(copies, guideline, filter, &mut draws, context)?;
            for _ in 0..copies {
                filter.used.push(self.host(rack, filter, &mut draws)?);
            }
            Some(())
        })?;
        Ok(new_copies(request, filter.used))
    }

    /// The best rack of a sample that takes `copies`, else the best of all racks.
    fn rack(
        &self,
        copies: usize,
        guideline: Guideline,
        filter: &Filter<'_>,
        draws: &mut RequestDraws,
        context: &Context<'_, '_>,
    ) -> Option<DomainId> {
        let fabric = context.pool.fabric();
        let anywhere = 0..fabric.host_count() as u32;
        let sample = (0..self.settings.sample)
            .filter_map(|_| at_random(anywhere.clone(), filter, draws).map(|host| fabric.rack_of(host)))
            .collect::<Vec<_>>();
        let takes = |rack: &DomainId| filter.refuses_domain(*rack, copies).is_none();
        // Of equal racks, `min_by_key` takes the first; the sample is in random order.
        let best = |racks: &mut dyn Iterator<Item = DomainId>| {
            racks.filter(takes).min_by_key(|&rack| self.key(rack, guideline, context))
        };
        best(&mut sample.into_iter()).or_else(|| best(&mut fabric.all_racks()))
    }

    /// Sort key of a rack, least first: overfull, class, and free space if the settings ask for it.
    fn key(
        &self,
        rack: DomainId,
        guideline: Guideline,
        context: &Context<'_, '_>,
    ) -> (bool, Reverse<UplinkClass>, u64) {
        let (stored, storage) = (context.pool.stored_in(rack).0, context.pool.storage(rack));
        let fill = storage.map_or(0.0, |storage| stored as f64 / (storage.0 as f64).max(1.0));
        let full = fill - context.pool.mean_fill() > self.settings.balance;
        let taken = match self.settings.within {
            Within::Uniform => 0,
            Within::Free => u64::MAX - storage.map_or(u64::MAX, |storage| storage.0.saturating_sub(stored)),
        };
        (full, Reverse(guideline.class(rack, context.pool, context.view)), taken)
    }

    fn host(&self, rack: DomainId, filter: &Filter<'_>, draws: &mut RequestDraws) -> Option<HostId> {
        let hosts = filter.pool.fabric().hosts(rack);
        match self.settings.within {
            Within::Uniform => at_random(hosts, filter, draws),
            Within::Free => {
                let open = hosts.map(HostId).filter(|&host| filter.refuses(host).is_none());
                open.max_by_key(|&host| (filter.pool.room(host).0, draws.below(u32::MAX)))
            }
        }
    }
}

impl Policy<ReplicaRequest> for Ccp {
    fn name(&self) -> &'static str {
        "ccp"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let guideline = Guideline::of(self.settings.uplink_per_tb, context.pool, context.view);
        let copies = self.choose(request, guideline.ok_or(Refusal::NoStorage)?, context)?;
        Ok(by_rule(self.name(), request, copies, context))
    }
}
