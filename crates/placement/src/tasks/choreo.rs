//! Policy `choreo`: greedy placement by a traffic matrix (Choreo section 5, algorithm 1).
//!
//! The policy serves transfers by bytes, the largest first. Each transfer takes the path with the largest rate for its
//! unplaced endpoints, given the transfers placed before. A path within a host is infinitely fast. A task without
//! transfers goes to any host that can take it.
//!
//! Points that the paper leaves open: transfers of equal size are served by the positions of their tasks. Among paths
//! of equal rate the first wins. The seed and the request shuffle the order of hosts; `ties: lowest` uses the order of
//! the cluster file; if hosts have costs, the cheaper one wins before that. Transfers share links with those of their
//! phase only. The policy refuses the app, with the task's name, if a task fits nowhere. The policy also refuses
//! if the endpoints of a transfer fit on no pair of hosts, though each fits somewhere. Placed tasks are not moved. With
//! the goal `cost`, the least added cost counts before the rate.

use leeward_fabric::{Cost, Fabric, HostId};
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::{CapacityCheck, estimated_lookups, shuffled};
use super::rank::Rank;
use super::rates::Rates;
use super::{AppRequest, Assignment, Goal, TaskPolicy, Transfer, transaction};
use crate::estimate::Estimate;
use crate::{Context, Decision, Policy, Refusal};

/// Settings of `choreo`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChoreoSettings {
    /// Choice among equally fast paths. Default `seeded`.
    pub ties: Ties,
    /// On a hose mesh, counts the links into hosts too. Default false, as in the paper: its hose is limited at the
    /// source only.
    pub into_hosts: bool,
    /// Computes rates from the number of flows only, as C / (N + 1) with N flows on a link of capacity C, and ignores
    /// telemetry. Default false.
    pub flows_only: bool,
}

/// Choice among equally fast paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// The first in an order that the seed and the request shuffle.
    #[default]
    Seeded,
    /// The first of the cluster file.
    Lowest,
}

/// Greedy placement by a traffic matrix.
#[derive(Clone, Debug, Default)]
pub struct Choreo {
    settings: ChoreoSettings,
}

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "choreo",
    aliases: &[],
    summary: "the largest transfer first, on the fastest remaining path",
    source: "LaCurts et al., Choreo (IMC 2013), section 5, algorithm 1",
    schema: schema::<ChoreoSettings>,
    make: |text| Ok(Box::new(Choreo::new(settings("choreo", text)?))),
};

impl Choreo {
    /// Creates the policy from settings.
    pub fn new(settings: ChoreoSettings) -> Choreo {
        Choreo { settings }
    }

    /// Model of transfer rates.
    fn estimate(&self) -> Estimate {
        let ChoreoSettings { into_hosts, flows_only, .. } = self.settings;
        Estimate { into_hosts, flows_only }
    }

    /// Estimated number of host lookups for a request: all hosts for each task. If tasks exchange data, also
    /// all pairs of hosts, in case no host has room for two tasks.
    pub(super) fn lookups(request: &AppRequest, fabric: &Fabric) -> u64 {
        let hosts = fabric.host_count() as u64;
        let pairs = if request.has_traffic() { hosts.saturating_mul(hosts) } else { 0 };
        estimated_lookups(request, fabric).saturating_add(pairs)
    }

    /// Hosts of the tasks of one request.
    ///
    /// # Errors
    /// [`Refusal::NoHost`] with the task that finds no host.
    pub(super) fn assign(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
    ) -> Result<Assignment, Refusal> {
        let order = match self.settings.ties {
            Ties::Seeded => shuffled(context.pool, context.seed, request.id),
            Ties::Lowest => context.pool.fabric().all_hosts().collect(),
        };
        let fabric = context.pool.fabric();
        let mut search = Search {
            capacity: CapacityCheck::new(context.pool, request),
            order,
            has_costs: fabric.has_costs(),
            goal: if fabric.has_costs() { request.goal } else { Goal::Time },
        };
        // Transfers share links with those of their phase.
        let mut rates: Vec<_> =
            (0..request.phases()).map(|_| Rates::new(context.view, self.estimate())).collect();
        let mut transfers: Vec<&Transfer> =
            request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0).collect();
        transfers.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.from, one.to, one.phase));
        for transfer in transfers {
            search.serve(transfer.from, transfer.to, &mut rates[transfer.phase as usize])?;
        }
        for task in 0..request.tasks.len() as u32 {
            if search.capacity.host_of(task).is_some() {
                continue;
            }
            if search.has_costs {
                let cheapest = search.best(task, |_| 0.0)?;
                search.capacity.take(task, cheapest);
            } else {
                search.capacity.take_first(task, search.order.iter().copied())?;
            }
        }
        Ok(search.capacity.assignment())
    }
}

impl Policy<AppRequest> for Choreo {
    fn name(&self) -> &'static str {
        "choreo"
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        let notes = transaction::Notes { estimate: Some(self.estimate()), ..transaction::Notes::default() };
        let hosts = self.assign(request, context)?;
        Ok(transaction::decision(self.name(), request, hosts, notes, context))
    }
}

impl TaskPolicy for Choreo {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        Choreo::lookups(request, fabric)
    }
}

/// Placement of one app.
struct Search<'a> {
    capacity: CapacityCheck<'a>,
    /// All hosts, in the order that breaks ties.
    order: Vec<HostId>,
    /// True if a host has a cost.
    has_costs: bool,
    goal: Goal,
}

impl Search<'_> {
    /// Places the unplaced endpoints of a transfer.
    fn serve(&mut self, from: u32, to: u32, rates: &mut Rates<'_, '_>) -> Result<(), Refusal> {
        let (from_host, to_host) = match (self.capacity.host_of(from), self.capacity.host_of(to)) {
            (Some(from_host), Some(to_host)) => (from_host, to_host),
            (Some(from_host), None) => (from_host, self.best(to, |host| rates.between(from_host, host))?),
            (None, Some(to_host)) => (self.best(from, |host| rates.between(host, to_host))?, to_host),
            (None, None) => self.best_pair(from, to, rates)?,
        };
        for (task, host) in [(from, from_host), (to, to_host)] {
            if self.capacity.host_of(task).is_none() {
                self.capacity.take(task, host);
            }
        }
        rates.place(from_host, to_host);
        Ok(())
    }

    /// The best of the hosts that can take a task, by the rate and the added cost of each.
    fn best(&self, task: u32, mut rate: impl FnMut(HostId) -> f64) -> Result<HostId, Refusal> {
        let mut best = None;
        for &host in &self.order {
            if self.capacity.refuses(host, task).is_none() {
                self.offer(&mut best, host, rate(host), &[host]);
            }
        }
        best.map(|(_, host)| host).ok_or_else(|| self.capacity.no_host(task))
    }

    /// Keeps a choice of `hosts` if it beats the best one so far.
    fn offer<T>(&self, best: &mut Option<(Rank, T)>, choice: T, speed: f64, hosts: &[HostId]) {
        let cost = hosts.iter().map(|&host| self.capacity.added_cost(host).0).fold(0, u64::saturating_add);
        let rank = Rank { speed, cost: Cost(cost) };
        if best.as_ref().is_none_or(|(most, _)| rank.beats(*most, self.goal)) {
            *best = Some((rank, choice));
        }
    }

    /// True if no path with a rate of at most `bound` beats the best choice so far.
    fn is_beaten<T>(&self, bound: f64, best: Option<&(Rank, T)>) -> bool {
        let is_slow = |most: Rank| bound < most.speed || (bound == most.speed && !self.has_costs);
        self.goal == Goal::Time && best.is_some_and(|(most, _)| is_slow(*most))
    }

    /// The best pair of hosts that can take two tasks, or the best host that can take both.
    fn best_pair(
        &mut self,
        from: u32,
        to: u32,
        rates: &mut Rates<'_, '_>,
    ) -> Result<(HostId, HostId), Refusal> {
        let mut best = None;
        let both = |host: &&HostId| self.capacity.refuses_all(**host, &[from, to]).is_none();
        // Without costs, all these hosts are equal.
        let most = if self.has_costs { usize::MAX } else { 1 };
        for &host in self.order.iter().filter(both).take(most) {
            self.offer(&mut best, (host, host), f64::INFINITY, &[host]);
        }
        let takers = |task| {
            let takers =
                self.order.iter().copied().filter(|&host| self.capacity.refuses(host, task).is_none());
            takers.collect::<Vec<HostId>>()
        };
        // A path within a host is faster than any other.
        let is_found = best.is_some() && self.goal == Goal::Time;
        let (senders, receivers) =
            if is_found { (Vec::new(), Vec::new()) } else { (takers(from), takers(to)) };
        for &sender in &senders {
            // For most senders, no receiver can improve on the best path so far.
            let bound = rates.bound(sender);
            if self.is_beaten(bound, best.as_ref()) {
                continue;
            }
            let in_conflict = |receiver| self.capacity.are_in_conflict((from, sender), (to, receiver));
            for &receiver in receivers.iter().filter(|&&to| to != sender && !in_conflict(to)) {
                let rate = rates.between(sender, receiver);
                self.offer(&mut best, (sender, receiver), rate, &[sender, receiver]);
                if self.is_beaten(bound, best.as_ref()) {
                    break;
                }
            }
        }
        let Some((_, pair)) = best else {
            // The sender may take the last free capacity of the receiver's only host.
            let sender = senders.first().ok_or_else(|| self.capacity.no_host(from))?;
            self.capacity.take(from, *sender);
            return Err(self.capacity.no_host(to));
        };
        Ok(pair)
    }
}
