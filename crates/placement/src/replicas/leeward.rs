//! Policy `leeward`: places the whole chain of a block at once, by all loads that the ledger knows.
//!
//! The policy ranks a rack by the least capacity left on two sets of links: those out of the block's source host, and
//! those into the rack. It examines hosts in the best few racks, and the block's rate at the best host counts for the
//! rack too. Hosts are ranked by the link into each and by the disk for the block. The ledger gives the capacities
//! left. They include telemetry and every transfer that is placed but not yet visible, on links and disks, until the
//! transfer ends. Link rate above `headroom` times the rate left at the disk has no value. Rates are compared in coarse
//! steps, so most racks are equal most of the time. Among equal racks, the one with more left on the links into it wins:
//! all racks share the links out of the source, and those may be the bottleneck. Then the emptier wins, then the class of
//! uplink (as in `ccp`), then a seeded hash.
//!
//! Groups of copies are placed one after another. Each group comes from the last placed copy (a chunk of a stripe comes
//! from the writer), so the links out of that copy's host and rack count. Links between the copies of one group do not
//! count.
//!
//! On a network of circuits (`circuit_turn`), the partner rack of a group's source comes before all others;
//! see [`Turns`].
//!
//! Deviations from the papers: Sinbad ranks only links into racks, forgets its placements at the next report, and
//! handles full blocks only. CCP uses no load.

use leeward_fabric::Nanos;
use leeward_ledger::Fade;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::ChainSearch;
use super::circuit::Turns;
use super::first_replica::{explain_chosen, filter, new_copies, place_first};
use super::path_estimates::PathEstimates;
use super::sinbad_settings::WithoutTelemetry;
use super::source::source;
use super::uplink::Guideline;
use super::{Chain, ReplicaRequest, Uniform, UniformSettings, transfers};
use crate::ties::{RequestDraws, Ties};
use crate::{Basis, Context, Decision, Note, Policy, Refusal};

/// Settings of `leeward`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeewardSettings {
    /// Multiple of a disk's free rate above which more link rate has no value. The reserve is for a network that
    /// becomes busier during the write. Default 2.
    pub headroom: f64,
    /// Number of racks to examine for each group of copies; on a mesh, number of hosts. A smaller cluster is examined
    /// completely. Default 500.
    pub sample: u32,
    /// Number of racks for the copies besides the first. Default 1.
    #[serde(deserialize_with = "super::remote_racks")]
    #[schemars(range(min = 1))]
    pub remote_racks: u8,
    /// Behaviour if no candidate's load is known.
    pub without_telemetry: WithoutTelemetry,
    /// On a network of circuits: duration for which each rack's copies go to the same other rack. Default:
    /// the policy ignores circuits.
    pub circuit_turn: Option<Nanos>,
}

impl Default for LeewardSettings {
    fn default() -> Self {
        LeewardSettings {
            headroom: 2.0,
            sample: 500,
            remote_racks: 1,
            without_telemetry: WithoutTelemetry::Refuse,
            circuit_turn: None,
        }
    }
}

/// Placement of whole chains by the ledger's capacities.
#[derive(Clone, Debug)]
pub struct Leeward {
    settings: LeewardSettings,
    default: Uniform,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "leeward",
    aliases: &[],
    summary: "the best rate along the whole chain; among equals the emptier, then the larger uplink",
    source: "this project; combines Sinbad, CCP and the ledger's record of placed work",
    schema: schema::<LeewardSettings>,
    make: |text| {
        let read: LeewardSettings = settings("leeward", text)?;
        if !(1.0..=1000.0).contains(&read.headroom) {
            return Err(setting_error("leeward", "headroom", "expected a factor from 1 to 1000"));
        }
        if read.sample == 0 {
            return Err(setting_error("leeward", "sample", "0: expected at least one rack"));
        }
        if read.circuit_turn == Some(Nanos(0)) {
            return Err(setting_error("leeward", "circuit_turn", "0s: expected more than nothing"));
        }
        Ok(Box::new(Leeward::new(read)))
    },
};

impl Leeward {
    /// Creates the policy from settings.
    pub fn new(settings: LeewardSettings) -> Leeward {
        let default = Uniform::new(UniformSettings { remote_racks: settings.remote_racks });
        Leeward { settings, default }
    }

    fn place_within<'c>(
        &self,
        request: &'c ReplicaRequest,
        guideline: Option<Guideline>,
        context: &'c Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let fabric = context.pool.fabric();
        let mut filter = filter(context.pool, request);
        let first = place_first(request, &mut filter, &mut RequestDraws::new(context.seed, request.id))?;
        let sender = request.writer.unwrap_or(first);
        let storage = request.constraints.storage.as_deref();
        let estimates = PathEstimates::new(context.view, sender, request.id, storage);
        let disk = context.pool.write_rate().map(|rate| rate.as_load().0 as f64);
        let top_rate =
            disk.into_iter().chain(estimates.widest()).fold(f64::INFINITY, f64::min).clamp(1.0, 1e18);
        let mut search = ChainSearch {
            request,
            context,
            filter,
            ties: Ties::new(context.seed, request.id),
            guideline,
            estimates,
            turns: self.settings.circuit_turn.map(Turns),
            partner: None,
            mean_fill: context.pool.mean_fill(),
            sample: self.settings.sample as usize,
            top_rate,
            headroom: self.settings.headroom,
            why: Vec::new(),
            oldest: None,
        };
        let mut note = None;
        match search.place(self.settings.remote_racks) {
            Ok(()) => {}
            Err(Refusal::NoTelemetry { .. })
                if self.settings.without_telemetry == WithoutTelemetry::Default =>
            {
                note = Some(Note::NoTelemetry);
                let copies = self.default.choose(request, context)?;
                search.why = explain_chosen(request, &copies, context);
                search.filter.used = [request.constraints.existing.as_slice(), &copies].concat();
                search.oldest = None;
            }
            Err(refusal) => return Err(refusal),
        }
        let ChainSearch { filter, why, oldest, .. } = search;
        let copies = new_copies(request, filter.used);
        let (cap, now) = (context.pool.write_rate(), context.view.now());
        Ok(Decision {
            change: transfers(fabric, request, &copies, cap, Fade::WithEstimator, now),
            basis: Basis {
                epoch: context.view.epoch(),
                oldest,
                policy: self.name(),
                note,
                gaps: None,
                estimate: None,
                source: source(request),
            },
            why,
            choice: copies,
        })
    }
}

impl Policy<ReplicaRequest> for Leeward {
    fn name(&self) -> &'static str {
        "leeward"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let guideline = Guideline::of_sample(self.settings.sample as usize, context.pool, context.view);
        self.place_within(request, guideline, context)
    }
}
