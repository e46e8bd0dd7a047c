//! Policy `choreo`: greedy placement by a traffic matrix (Choreo section 5, algorithm 1).
//!
//! The policy serves transfers by bytes, the largest first. Each transfer takes the path with the largest rate for its
//! unplaced endpoints, given the transfers placed before. A path within a host is infinitely fast. A task without
//! transfers goes to any host that can take it.
//!
//! Points that the paper leaves open: transfers of equal size are served by the positions of their tasks. Among paths
//! of equal rate the first wins. The seed and the request shuffle the order of hosts; `ties: lowest` uses the order of
//! the cluster file. The policy refuses the app, with the task's name, if a task fits nowhere. The policy also refuses
//! if the endpoints of a transfer fit on no pair of hosts, though each fits somewhere. Placed tasks are not moved.

use leeward_fabric::{Fabric, HostId};
use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::{CapacityCheck, estimated_lookups, shuffled};
use super::rates::Rates;
use super::{AppRequest, Assignment, TaskPolicy, transaction};
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
        let mut search = Search {
            capacity: CapacityCheck::new(context.pool, request),
            rates: Rates::new(context.view, self.estimate()),
            order,
        };
        let mut transfers: Vec<_> =
            request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0).collect();
        transfers.sort_by_key(|transfer| (std::cmp::Reverse(transfer.bytes), transfer.from, transfer.to));
        for transfer in transfers {
            search.serve(transfer.from, transfer.to)?;
        }
        for task in 0..request.tasks.len() as u32 {
            if search.capacity.host_of(task).is_none() {
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
struct Search<'a, 'l> {
    capacity: CapacityCheck<'a>,
    rates: Rates<'a, 'l>,
    /// All hosts, in the order that breaks ties.
    order: Vec<HostId>,
}

impl Search<'_, '_> {
    /// Places the unplaced endpoints of a transfer.
    fn serve(&mut self, from: u32, to: u32) -> Result<(), Refusal> {
        let (from_host, to_host) = match (self.capacity.host_of(from), self.capacity.host_of(to)) {
            (Some(from_host), Some(to_host)) => (from_host, to_host),
            (Some(from_host), None) => {
                let best = self.best(to, |rates, host| rates.between(from_host, host))?;
                (from_host, best)
            }
            (None, Some(to_host)) => (self.best(from, |rates, host| rates.between(host, to_host))?, to_host),
            (None, None) => self.best_pair(from, to)?,
        };
        for (task, host) in [(from, from_host), (to, to_host)] {
            if self.capacity.host_of(task).is_none() {
                self.capacity.take(task, host);
            }
        }
        self.rates.place(from_host, to_host);
        Ok(())
    }

    /// Host with the largest rate among the hosts that can take a task.
    fn best(
        &mut self,
        task: u32,
        rate: impl Fn(&mut Rates<'_, '_>, HostId) -> f64,
    ) -> Result<HostId, Refusal> {
        let mut best = None;
        for &host in &self.order {
            if self.capacity.refuses(host, task).is_some() {
                continue;
            }
            let rate = rate(&mut self.rates, host);
            if best.is_none_or(|(most, _)| rate > most) {
                best = Some((rate, host));
            }
        }
        best.map(|(_, host)| host).ok_or_else(|| self.capacity.no_host(task))
    }

    /// Pair of hosts that can take two tasks and have the largest rate between them; a single host if it can take both.
    fn best_pair(&mut self, from: u32, to: u32) -> Result<(HostId, HostId), Refusal> {
        let both = |host: &&HostId| self.capacity.refuses_all(**host, &[from, to]).is_none();
        if let Some(&host) = self.order.iter().find(both) {
            return Ok((host, host));
        }
        let takers = |task| {
            let takers =
                self.order.iter().copied().filter(|&host| self.capacity.refuses(host, task).is_none());
            takers.collect::<Vec<HostId>>()
        };
        let (senders, receivers) = (takers(from), takers(to));
        let mut best = None;
        for &sender in &senders {
            // For most senders, no receiver can improve on the best path so far.
            let bound = self.rates.bound(sender);
            if best.is_some_and(|(most, _)| bound <= most) {
                continue;
            }
            let too_close = |receiver| self.capacity.are_too_close((from, sender), (to, receiver));
            for &receiver in receivers.iter().filter(|&&to| to != sender && !too_close(to)) {
                let rate = self.rates.between(sender, receiver);
                if best.is_none_or(|(most, _)| rate > most) {
                    best = Some((rate, (sender, receiver)));
                    if rate >= bound {
                        break;
                    }
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
