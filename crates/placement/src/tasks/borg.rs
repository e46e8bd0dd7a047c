//! Policies `borg`, `utp-proactive`, `utp-reactive` and `utp`: the scheduler of a cell, and UTP, the paper's
//! placement of tasks that avoids hot uplinks (Hotspots section 5.1).
//!
//! For each task the policy draws a sample of hosts that can take the task, and ranks them by objectives in
//! lexicographic order. The order is: fewest tasks of the job in the rack (spread), then balance, then fewest
//! processors left (packing), then a seeded hash. Spread and balance count in steps, so that lower objectives can
//! decide. By default, a step of spread is a twentieth of the job's tasks; two racks with the same number of whole
//! steps are equal.
//!
//! `borg` balances processors and memory. `utp-proactive` puts the load of the busier direction of the rack's link in
//! the place of this balance; with `host_balance`, the balance of hosts stays, as the next objective. The load includes
//! telemetry, placements that are not in telemetry yet, and the task's peak demand. `utp` also moves tasks from hot racks
//! (crate `moves`). `utp-reactive` places like `borg`, and also moves tasks from hot racks.
//!
//! Borg's own objectives are not published; the paper names the objectives above. No policy overcommits hosts.

use leeward_fabric::input::InputError;
use leeward_fabric::{DomainId, Fabric, HostId, Nanos};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::{CapacityCheck, Taken};
use super::score::{Balance, Racks, rack_links};
use super::{AppRequest, Assignment, TaskPolicy, transaction};
use crate::decision::oldest_of;
use crate::ties::{RequestDraws, Ties};
use crate::{Considered, Context, Decision, Explain, Objectives, Policy, Refusal};

/// Maximum number of draws per host of the sample. If no drawn host can take the task, the policy scans all hosts.
const DRAWS: u32 = 4;

/// Settings of `borg` and `utp`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BorgSettings {
    /// Number of hosts to examine for a task, among the hosts that can take it. Default 100.
    pub sample: u32,
    /// Step of load: shares within one step are equal. From 0.001 to 1. Default 0.02.
    pub step: f64,
    /// Step of spread: shares of a job's tasks in a rack within one step are equal. From 0 (each task counts)
    /// to 1. Default 0.05.
    pub spread: f64,
    /// For `utp` and `utp-proactive`: if true, the balance of processors and memory decides between hosts whose racks'
    /// links are equally loaded. Default false.
    pub host_balance: bool,
    /// For `utp` and its variants: if true, a rack's link whose load is flat below its capacity counts as full. Default
    /// false.
    pub learn_capacity: bool,
}

impl Default for BorgSettings {
    fn default() -> Self {
        BorgSettings { sample: 100, step: 0.02, spread: 0.05, host_balance: false, learn_capacity: false }
    }
}

/// Placement by a sample of hosts and lexicographic objectives.
#[derive(Clone, Debug)]
pub struct Borg {
    name: &'static str,
    settings: BorgSettings,
    /// True if the policy balances racks' links rather than hosts.
    proactive: bool,
    /// Name of the move policy that completes this policy.
    move_policy: Option<&'static str>,
}

pub(super) const BORG: Registration<dyn TaskPolicy> = Registration {
    name: "borg",
    aliases: &[],
    summary: "the best of a sample of hosts: spread, then balance of hosts, then packing",
    source: "Hotspots (2024), section 5.1: the scheduler that UTP changes",
    schema: schema::<BorgSettings>,
    make: |text| make("borg", false, None, text),
};

pub(super) const UTP_REACTIVE: Registration<dyn TaskPolicy> = Registration {
    name: "utp-reactive",
    aliases: &[],
    summary: "as borg; tasks are moved from hot racks",
    source: "Hotspots (2024), section 5.1, the reactive part",
    schema: schema::<BorgSettings>,
    make: |text| make("utp-reactive", false, Some("utp-reactive"), text),
};

pub(super) const UTP_PROACTIVE: Registration<dyn TaskPolicy> = Registration {
    name: "utp-proactive",
    aliases: &[],
    summary: "as borg, but balances the load of racks' links, which includes the task's peak",
    source: "Hotspots (2024), section 5.1, the proactive part",
    schema: schema::<BorgSettings>,
    make: |text| make("utp-proactive", true, None, text),
};

pub(super) const UTP: Registration<dyn TaskPolicy> = Registration {
    name: "utp",
    aliases: &[],
    summary: "as utp-proactive, and tasks are moved from hot racks",
    source: "Hotspots (2024), section 5.1",
    schema: schema::<BorgSettings>,
    make: |text| make("utp", true, Some("utp"), text),
};

fn make(
    name: &'static str,
    proactive: bool,
    move_policy: Option<&'static str>,
    text: &str,
) -> Result<Box<dyn TaskPolicy>, InputError> {
    let read: BorgSettings = settings(name, text)?;
    if read.sample == 0 {
        return Err(setting_error(name, "sample", "0: expected at least one host"));
    }
    if !(0.001..=1.0).contains(&read.step) {
        return Err(setting_error(name, "step", "expected a share from 0.001 to 1"));
    }
    if !(0.0..=1.0).contains(&read.spread) {
        return Err(setting_error(name, "spread", "expected a share from 0 to 1"));
    }
    if read.host_balance && !proactive {
        let message = "expected false: this policy balances hosts anyway, and only hosts";
        return Err(setting_error(name, "host_balance", message));
    }
    if read.learn_capacity && !proactive && move_policy.is_none() {
        return Err(setting_error(
            name,
            "learn_capacity",
            "expected false: this policy uses no loads of links",
        ));
    }
    Ok(Box::new(Borg { name, settings: read, proactive, move_policy }))
}

impl Borg {
    /// Creates the proactive part of UTP.
    pub fn proactive(settings: BorgSettings) -> Borg {
        Borg { name: "utp-proactive", settings, proactive: true, move_policy: None }
    }

    /// Places the tasks of a request one after another.
    ///
    /// # Errors
    /// [`Refusal`] if a task finds no host, or loads are unknown.
    pub(crate) fn assign(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
        why: &mut Vec<Considered>,
    ) -> Result<Assignment, Refusal> {
        self.assign_beside(request, None, context, &mut Taken::default(), why)
    }

    /// Decides one request in the name of `policy`.
    ///
    /// # Errors
    /// [`Refusal`] if a task finds no host, or loads are unknown.
    pub(super) fn decide(
        &self,
        policy: &'static str,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        let mut notes = transaction::Notes::default();
        let hosts = self.assign(request, context, &mut notes.why)?;
        notes.oldest = self.oldest_window(&hosts, context);
        Ok(transaction::decision(policy, request, hosts, notes, context))
    }

    /// End of the oldest window among the links that ranked the racks of these hosts; `None` if the policy
    /// does not use links.
    fn oldest_window(&self, hosts: &[HostId], context: &Context<'_, '_>) -> Option<Nanos> {
        let hosts = hosts.iter().filter(|_| self.proactive);
        oldest_of(context.view, hosts.flat_map(|&host| rack_links(context.view.fabric(), host)))
    }

    /// Places the tasks of a request on hosts of `racks`, or of all racks if it is `None`. `taken` is the capacity that
    /// tasks outside of the pool take. The function adds the capacity of the tasks that it places.
    ///
    /// # Errors
    /// [`Refusal`] if a task finds no host, or loads are unknown.
    pub fn assign_beside(
        &self,
        request: &AppRequest,
        racks: Option<&[DomainId]>,
        context: &mut Context<'_, '_>,
        taken: &mut Taken,
        why: &mut Vec<Considered>,
    ) -> Result<Assignment, Refusal> {
        let fabric = context.pool.fabric();
        if self.proactive && fabric.all_racks().any(|rack| fabric.out_of_domain(rack).is_none()) {
            return Err(Refusal::NoRackLinks);
        }
        let before = context.view.checkpoint();
        let mut capacity = CapacityCheck::beside(context.pool, request, std::mem::take(taken));
        let mut result = Ok(());
        for (index, task) in (0..).zip(&request.tasks) {
            result = self.place_task(index, request, racks, &mut capacity, context, why);
            let Some(host) = capacity.host_of(index) else { break };
            if request.tasks.len() > 1 {
                let entries = transaction::task_streams(fabric, request, task, host, context.view.now());
                entries.for_each(|entry| context.view.add(&entry));
            }
        }
        context.view.rollback(before);
        let result = result.map(|()| capacity.assignment());
        *taken = capacity.into_taken();
        result
    }

    fn place_task(
        &self,
        index: u32,
        request: &AppRequest,
        among: Option<&[DomainId]>,
        capacity: &mut CapacityCheck<'_>,
        context: &Context<'_, '_>,
        why: &mut Vec<Considered>,
    ) -> Result<(), Refusal> {
        let id = request.id.wrapping_add(u64::from(index) << 40);
        let ties = Ties::new(context.seed, id);
        let in_racks = context.pool.racks_of(request.job);
        let spread_step = self.spread_step(in_racks, request);
        let mut racks = Racks::new(self.balance(), (request, index), context, in_racks, spread_step);
        let explained = context.explain.limit() > 0;
        let (mut best, mut ranked) = (None::<Rank>, Vec::new());
        let mut newest = Nanos(0);
        let population = Population::new(context.pool.fabric(), among);
        for host in self.sample(index, &population, capacity, &mut RequestDraws::new(context.seed, id)) {
            // Skip hosts that cannot win, unless the caller wants an explanation.
            let to_beat = best.filter(|((unseen, ..), _)| !explained && !unseen);
            let to_beat = to_beat.map(|((_, spread, steps, ..), _)| (spread, steps));
            let Some(score) = racks.score(host, capacity, to_beat) else { continue };
            if let Some(known_until) = score.unseen {
                newest = newest.max(known_until);
            }
            let steps = self.balance().steps(score.objectives.balance);
            let tie = ties.rank(u64::from(host.0));
            let Objectives { in_rack, hosts, left, .. } = score.objectives;
            let fill = self.balance().steps(hosts.unwrap_or(0.0));
            let rank = ((score.unseen.is_some(), in_rack / spread_step, steps, fill, left, tie), host);
            if best.is_none_or(|least| rank < least) {
                best = Some(rank);
            }
            if explained {
                ranked.push((rank, score));
            }
        }
        let Some(((unseen, ..), chosen)) = best else {
            // Moves from hot racks may try thousands of tasks and ignore the reasons, so the policy does not count the
            // reasons for `among`.
            let none =
                Refusal::NoHost { task: index, alone: true, far_from: None, by_constraint: Vec::new() };
            return Err(if among.is_none() { capacity.no_host(index) } else { none });
        };
        if unseen {
            return Err(Refusal::NoTelemetry { newest: (newest > Nanos(0)).then_some(newest) });
        }
        if explained {
            ranked.sort_by_key(|(rank, _)| *rank);
            ranked.dedup_by_key(|((_, host), _)| *host);
            if context.explain != Explain::All {
                // Hosts of a rack are similar, so the best host of each rack is more informative.
                let mut seen = std::collections::BTreeSet::new();
                ranked.retain(|((_, host), _)| seen.insert(context.pool.fabric().rack_of(*host)));
            }
            let shown = ranked.iter().take(context.explain.limit());
            why.extend(shown.map(|((_, host), score)| score.considered(*host, *host == chosen, context)));
        }
        capacity.take(index, chosen);
        Ok(())
    }

    /// Number of tasks of a request's job in one step of spread.
    fn spread_step(&self, in_racks: &[(DomainId, u32)], request: &AppRequest) -> u32 {
        let placed: u64 = in_racks.iter().map(|&(_, tasks)| u64::from(tasks)).sum();
        let all = placed + request.tasks.len() as u64;
        (all as f64 * self.settings.spread).clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// Balance rule of this policy.
    fn balance(&self) -> Balance {
        Balance { proactive: self.proactive, hosts: self.settings.host_balance, step: self.settings.step }
    }

    /// Random hosts that can take the task; in a small cluster, all such hosts.
    fn sample(
        &self,
        task: u32,
        population: &Population<'_>,
        capacity: &CapacityCheck<'_>,
        draws: &mut RequestDraws,
    ) -> Vec<HostId> {
        let size = population.size();
        let wanted = self.settings.sample.min(size) as usize;
        let mut sampled = Vec::with_capacity(wanted);
        let fits = |host: &HostId| capacity.refuses(*host, task).is_none();
        // In a small cluster a sample would repeat some hosts and miss others.
        if wanted * 2 >= size as usize {
            return (0..size).filter_map(|position| population.host(position)).filter(fits).collect();
        }
        let mut position = 0;
        for _ in 0..self.settings.sample.saturating_mul(DRAWS) {
            position = draws.below(size);
            sampled.extend(population.host(position).filter(fits));
            if sampled.len() == wanted {
                return sampled;
            }
        }
        if sampled.is_empty() {
            let host_after =
                |i: u32| population.host(((u64::from(position) + u64::from(i)) % u64::from(size)) as u32);
            sampled.extend((0..size).filter_map(host_after).filter(fits).take(wanted));
        }
        sampled
    }
}

/// Hosts to sample from, by position.
struct Population<'a> {
    fabric: &'a Fabric,
    /// Racks to sample from, and the number of hosts in the largest of them. Every rack has this number of positions.
    /// `None` for all hosts.
    racks: Option<(&'a [DomainId], u32)>,
}

impl<'a> Population<'a> {
    fn new(fabric: &'a Fabric, racks: Option<&'a [DomainId]>) -> Population<'a> {
        let largest = |racks: &[DomainId]| racks.iter().map(|&rack| fabric.hosts(rack).len() as u32).max();
        Population { fabric, racks: racks.map(|racks| (racks, largest(racks).unwrap_or(0))) }
    }

    /// Number of positions.
    fn size(&self) -> u32 {
        self.racks.map_or(self.fabric.host_count() as u32, |(racks, largest)| racks.len() as u32 * largest)
    }

    /// Host at a position; `None` beyond the last host of a smaller rack.
    fn host(&self, position: u32) -> Option<HostId> {
        let Some((racks, largest)) = self.racks else { return Some(HostId(position)) };
        self.fabric.hosts(racks[(position / largest) as usize]).nth((position % largest) as usize).map(HostId)
    }
}

impl Policy<AppRequest> for Borg {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        self.decide(self.name, request, context)
    }
}

impl TaskPolicy for Borg {
    /// Estimated number of draws: for each task the maximum, but at most the number of hosts.
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        let drawn = u64::from(self.settings.sample).saturating_mul(u64::from(DRAWS));
        (request.tasks.len() as u64).saturating_mul(drawn.min(fabric.host_count() as u64))
    }

    fn host_balance(&self) -> Option<Balance> {
        Some(self.balance())
    }

    fn move_policy(&self) -> Option<&'static str> {
        self.move_policy
    }

    fn learns_capacity(&self) -> bool {
        self.settings.learn_capacity
    }
}

/// Sort key of a host, least first: unknown load, steps of spread in its rack, steps of balance, steps of balance of
/// hosts beside links, processors left, and a hash; then the host, which is unique.
type Rank = ((bool, u32, u64, u64, u64, u64), HostId);
