//! `leeward` for tasks: one policy for a scheduler's single tasks and for apps with a traffic matrix.
//!
//! An app with transfers begins as `choreo` places it. Local search then shortens the time that its slowest link takes
//! ([`super::completion()`]): a task whose transfers cross that link moves to another host or changes places with
//! another task. When nothing helps any more, a few of these tasks are thrown elsewhere and the search goes on from
//! there; the best placement it met is taken. It ends after so many tries or steps, never by a clock.
//!
//! What has no transfers is placed as `utp` places it, and on a mesh, where there are no racks to compare, anywhere.

use leeward_fabric::{Fabric, HostId, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::borg::{Borg, BorgSettings};
use super::choreo::{Choreo, ChoreoSettings};
use super::rates::Estimate;
use super::search::{Effort, improve};
use super::seats::{Seats, shuffled};
use super::{AppRequest, Assignment, change};
use crate::policy::{setting_error, settings};
use crate::{Context, Decision, Peer, Policy, Rating, Refusal, Registration};

/// Settings of `leeward` for tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeewardSettings {
    /// How often the search begins anew after it could not improve any more. Default 200.
    pub tries: u32,
    /// How many millions of links the search may look at, over all tries; what bounds its time. Default 2.
    pub effort: u32,
    /// Whether on a hose mesh the links into hosts count too. Default false, as in the paper, whose hose is limited at
    /// the source alone.
    pub into_hosts: bool,
    /// Whether flows alone are counted, C / (N + 1), whatever telemetry shows. Default false.
    pub flows_only: bool,
}

impl Default for LeewardSettings {
    fn default() -> Self {
        LeewardSettings { tries: 200, effort: 2, into_hosts: false, flows_only: false }
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Leeward {
    settings: LeewardSettings,
    first: Choreo,
    single: Borg,
}

pub(super) const REGISTRATION: Registration<AppRequest> = Registration {
    name: "leeward",
    summary: "apps: choreo improved by local search on the slowest link; single tasks: as utp",
    source: "this project; unites Choreo and UTP",
    schema: || schemars::schema_for!(LeewardSettings).to_value(),
    make: |text| {
        let read: LeewardSettings = settings("leeward", text)?;
        if read.effort > 10_000 {
            return Err(setting_error("leeward", "effort", "expected at most 10000"));
        }
        Ok(Box::new(Leeward::new(read)))
    },
};

impl Leeward {
    /// The policy with these settings.
    pub fn new(settings: LeewardSettings) -> Leeward {
        let LeewardSettings { into_hosts, flows_only, .. } = settings;
        let first = Choreo::new(ChoreoSettings { into_hosts, flows_only, ..ChoreoSettings::default() });
        Leeward { settings, first, single: Borg::proactive(BorgSettings::default()) }
    }

    /// The model that it places apps by.
    pub(super) fn estimate(&self) -> Estimate {
        let LeewardSettings { into_hosts, flows_only, .. } = self.settings;
        Estimate { into_hosts, flows_only }
    }

    /// Links that a search may look at.
    fn links(&self) -> u64 {
        u64::from(self.settings.effort) * 1_000_000
    }

    /// How often hosts and links are looked at for an app.
    pub(super) fn looks_for_app(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        let search = if request.has_traffic() { self.links() } else { 0 };
        Choreo::looks(request, fabric).saturating_add(search)
    }

    /// Where the tasks of an app go.
    pub(super) fn assign(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
    ) -> Result<Assignment, Refusal> {
        // Where greedy is stuck, the largest tasks first may still fit.
        let first = self.first.assign(request, context);
        let first = first.or_else(|refusal| by_size(request, context).ok_or(refusal))?;
        let effort = Effort { tries: self.settings.tries, links: self.links() };
        Ok(improve(request, context, self.estimate(), first, effort))
    }
}

impl Policy<AppRequest> for Leeward {
    fn name(&self) -> &'static str {
        "leeward"
    }

    fn place(
        &self,
        batch: &[AppRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Assignment>, Refusal>> {
        change::one_by_one(self.name(), batch, context, |request, context, notes| {
            let racks = context.view.fabric().shape() == Shape::Tree;
            if request.transfers.is_empty() && racks {
                let hosts = self.single.assign(request, context, &mut notes.why)?;
                notes.oldest = self.single.rests_on(&hosts, context);
                return Ok(hosts);
            }
            notes.estimate = Some(self.estimate());
            self.assign(request, context)
        })
    }

    fn looks(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        if request.transfers.is_empty() && fabric.shape() == Shape::Tree {
            self.single.looks(request, fabric)
        } else {
            self.looks_for_app(request, fabric)
        }
    }

    fn rate(
        &self,
        request: &AppRequest,
        peers: &[Peer],
        hosts: &[HostId],
        context: &Context<'_, '_>,
    ) -> Option<Vec<Rating>> {
        self.single.rate(request, peers, hosts, context)
    }
}

/// Tasks by size, each on the first host that has room.
fn by_size(request: &AppRequest, context: &Context<'_, '_>) -> Option<Assignment> {
    let mut seats = Seats::new(context.pool, request);
    let order = shuffled(context.pool, context.seed, request.id);
    let mut tasks: Vec<u32> = (0..request.tasks.len() as u32).collect();
    let size = |task: &u32| (request.tasks[*task as usize].cpus, request.tasks[*task as usize].memory);
    tasks.sort_by_key(|task| (std::cmp::Reverse(size(task)), *task));
    for task in tasks {
        seats.take_first(task, order.iter().copied()).ok()?;
    }
    Some(seats.assignment())
}
