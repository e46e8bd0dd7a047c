//! Policy `rehdfs`: all copies of a writer go to the same next rack (Etalon section 6). Few pairs of racks then
//! communicate, and a circuit can serve them. The first copy stays with the writer. The other copies go from rack i to
//! rack (i + k) mod N. By default k is constant; with a schedule of several k, the blocks of a rack do not all depend
//! on one other rack.

use leeward_fabric::{DomainId, HostId, Nanos};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first_replica::{at_random, by_rule, filter, new_copies, place_first, place_groups};
use super::{Chain, ReplicaRequest};
use crate::constraints::Filter;
use crate::ties::RequestDraws;
use crate::{Context, Decision, Policy, Refusal};

/// Settings of `rehdfs`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReHdfsSettings {
    /// k: offset in racks for the copies besides the first; several values follow one another. Default 1.
    pub offsets: Vec<u32>,
    /// Duration of each offset. Default 10s.
    pub period: Nanos,
}

impl Default for ReHdfsSettings {
    fn default() -> Self {
        ReHdfsSettings { offsets: vec![1], period: Nanos(10 * Nanos::SECOND.0) }
    }
}

/// Placement at a rack offset.
#[derive(Clone, Debug, Default)]
pub struct ReHdfs {
    settings: ReHdfsSettings,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "rehdfs",
    aliases: &[],
    summary: "copies of rack i go to rack (i + k) mod N, for networks with circuits",
    source: "Etalon section 6: reHDFS",
    schema: schema::<ReHdfsSettings>,
    make: |text| {
        let read: ReHdfsSettings = settings("rehdfs", text)?;
        let invalid = |field, message| setting_error("rehdfs", field, message);
        if read.offsets.is_empty() {
            return Err(invalid("offsets", "expected at least one number of racks"));
        }
        if read.period == Nanos(0) {
            return Err(invalid("period", "0s: expected more than nothing"));
        }
        Ok(Box::new(ReHdfs { settings: read }))
    },
};

impl ReHdfs {
    /// k at a time.
    fn offset(&self, now: Nanos) -> u64 {
        let turn = now.0 / self.settings.period.0 % self.settings.offsets.len() as u64;
        u64::from(self.settings.offsets[turn as usize])
    }

    fn choose(&self, request: &ReplicaRequest, context: &Context<'_, '_>) -> Result<Chain, Refusal> {
        let fabric = context.pool.fabric();
        let mut draws = RequestDraws::new(context.seed, request.id);
        let mut filter = filter(context.pool, request);
        let first = place_first(request, &mut filter, &mut draws)?;
        let from = fabric.rack_of(request.writer.unwrap_or(first));
        let offset = u64::from(from.0) + self.offset(context.view.now());
        let placed = filter.used.len();
        place_groups(request, 1, &mut filter, |filter, copies| {
            // Each group after the first starts at the rack after the previous group's.
            let behind = |&last: &HostId| u64::from(fabric.rack_of(last).0) + 1;
            let next = filter.used[placed..].last().map_or(offset, behind);
            let rack = rack_from(next, copies, filter)?;
            for _ in 0..copies {
                let host = at_random(fabric.hosts(rack), filter, &mut draws)?;
                filter.used.push(host);
            }
            Some(())
        })?;
        Ok(new_copies(request, filter.used))
    }
}

/// The first rack in the ring, from number `at`, that takes `copies`.
fn rack_from(at: u64, copies: usize, filter: &Filter<'_>) -> Option<DomainId> {
    let racks = filter.pool.fabric().rack_count() as u64;
    let mut ring = (0..racks).map(|step| DomainId(((at + step) % racks) as u32));
    ring.find(|&rack| filter.refuses_domain(rack, copies).is_none())
}

impl Policy<ReplicaRequest> for ReHdfs {
    fn name(&self) -> &'static str {
        "rehdfs"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        Ok(by_rule(self.name(), request, self.choose(request, context)?, context))
    }
}
