//! Policy `leeward` for tasks: one policy for a scheduler's single tasks and for apps with a traffic matrix.
//!
//! An app with transfers starts at the placement of `choreo`. Local search then shortens the time of its slowest link
//! ([`super::completion()`]). It moves a task whose transfers cross that link to another host, or swaps it with another
//! task. If no change helps, the search moves a few tasks at random and continues from there; the best placement wins.
//! The search ends after a number of tries or lookups, never by a clock. Among equally fast placements, cheaper hosts win;
//! with the goal `cost`, the other way round.
//!
//! Requests without transfers are placed as by `utp`, unless their goal is `cost`. On a mesh, which has no racks to compare, they are
//! placed on any host.

use leeward_fabric::{Fabric, Shape};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::borg::{Borg, BorgSettings};
use super::capacity_check::{CapacityCheck, shuffled};
use super::choreo::{Choreo, ChoreoSettings};
use super::search::{Effort, improve};
use super::{AppRequest, Assignment, Balance, Goal, TaskPolicy, transaction};
use crate::estimate::Estimate;
use crate::{Context, Decision, Policy, Refusal};

/// Settings of `leeward` for tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeewardSettings {
    /// Number of restarts of the search without an improvement. Default 200.
    pub tries: u32,
    /// Budget of the search, in millions of link lookups over all tries; it limits the time. Default 2.
    pub effort: u32,
    /// On a hose mesh, counts the links into hosts too. Default false, as in the paper, whose hose is limited
    /// at the source only.
    pub into_hosts: bool,
    /// Computes rates from the number of flows only, as C / (N + 1) with N flows on a link of capacity C, and ignores
    /// telemetry. Default false.
    pub flows_only: bool,
    /// If true, a rack's link whose load is flat below its capacity counts as full. Default false.
    pub learn_capacity: bool,
}

impl Default for LeewardSettings {
    fn default() -> Self {
        LeewardSettings { tries: 200, effort: 2, into_hosts: false, flows_only: false, learn_capacity: false }
    }
}

/// Greedy placement, improved by local search.
#[derive(Clone, Debug)]
pub struct Leeward {
    settings: LeewardSettings,
    first: Choreo,
    single: Borg,
}

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "leeward",
    aliases: &[],
    summary: "apps: choreo improved by local search on the slowest link; single tasks: as utp",
    source: "this project; combines Choreo and UTP",
    schema: schema::<LeewardSettings>,
    make: |text| {
        let read: LeewardSettings = settings("leeward", text)?;
        if read.effort > 10_000 {
            return Err(setting_error("leeward", "effort", "expected at most 10000"));
        }
        Ok(Box::new(Leeward::new(read)))
    },
};

impl Leeward {
    /// Creates the policy from settings.
    pub fn new(settings: LeewardSettings) -> Leeward {
        let LeewardSettings { into_hosts, flows_only, .. } = settings;
        let first = Choreo::new(ChoreoSettings { into_hosts, flows_only, ..ChoreoSettings::default() });
        Leeward { settings, first, single: Borg::proactive(BorgSettings::default()) }
    }

    /// Model of transfer rates for apps.
    pub(super) fn estimate(&self) -> Estimate {
        let LeewardSettings { into_hosts, flows_only, .. } = self.settings;
        Estimate { into_hosts, flows_only }
    }

    /// Budget of a search, in link lookups.
    fn links(&self) -> u64 {
        u64::from(self.settings.effort) * 1_000_000
    }

    /// Estimated number of host and link lookups for an app.
    pub(super) fn lookups_for_app(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        let search = if request.has_traffic() { self.links() } else { 0 };
        Choreo::lookups(request, fabric).saturating_add(search)
    }

    /// Hosts of the tasks of an app.
    ///
    /// # Errors
    /// [`Refusal`] if no placement is found.
    pub(super) fn assign(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
    ) -> Result<Assignment, Refusal> {
        // If the greedy policy fails, placing the largest tasks first may still succeed.
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

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        if places_alone(request, context.view.fabric()) {
            return self.single.decide(self.name(), request, context);
        }
        let notes = transaction::Notes { estimate: Some(self.estimate()), ..transaction::Notes::default() };
        let hosts = self.assign(request, context)?;
        Ok(transaction::decision(self.name(), request, hosts, notes, context))
    }
}

impl TaskPolicy for Leeward {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        if places_alone(request, fabric) {
            self.single.cost_estimate(request, fabric)
        } else {
            self.lookups_for_app(request, fabric)
        }
    }

    fn host_balance(&self) -> Option<Balance> {
        self.single.host_balance()
    }

    fn move_policy(&self) -> Option<&'static str> {
        Some("leeward")
    }

    fn learns_capacity(&self) -> bool {
        self.settings.learn_capacity
    }
}

/// True for requests whose tasks are placed as by `utp`.
fn places_alone(request: &AppRequest, fabric: &Fabric) -> bool {
    request.transfers.is_empty() && request.goal == Goal::Time && fabric.shape() == Shape::Tree
}

/// Places tasks by size, each on the first host that can take it.
fn by_size(request: &AppRequest, context: &Context<'_, '_>) -> Option<Assignment> {
    let mut capacity = CapacityCheck::new(context.pool, request);
    let order = shuffled(context.pool, context.seed, request.id);
    let mut tasks: Vec<u32> = (0..request.tasks.len() as u32).collect();
    let size = |task: &u32| (request.tasks[*task as usize].cpus, request.tasks[*task as usize].memory);
    tasks.sort_by_key(|task| (std::cmp::Reverse(size(task)), *task));
    for task in tasks {
        capacity.take_first(task, order.iter().copied()).ok()?;
    }
    Some(capacity.assignment())
}
