//! `choreo`: greedy placement by a traffic matrix (Choreo section 5, algorithm 1).
//!
//! Transfers are served by bytes, the largest first. Each goes to the path with the largest rate among those that its
//! unplaced ends may take, given the transfers placed before; a path within a host is infinitely fast. A task without
//! transfers goes to any host with room.
//!
//! What the paper leaves open: transfers of equal size are served by the positions of their tasks; among paths of
//! equal rate the first wins in an order of hosts that the seed and the request shuffle, or with `ties: lowest` the
//! first of the cluster file. Where the two ends of a transfer fit on no pair of hosts, though each would fit
//! somewhere, or a task fits nowhere, the app is refused with the task's name: tasks placed before are not moved.

use leeward_fabric::{Fabric, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rates::{Estimate, Rates};
use super::seats::{Seats, looks, shuffled};
use super::{AppRequest, Assignment, change};
use crate::policy::settings;
use crate::{Context, Decision, Policy, Refusal, Registration};

/// Settings of `choreo`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChoreoSettings {
    /// Which of several equally fast paths is taken. Default `seeded`.
    pub ties: Ties,
    /// Whether on a hose mesh the links into hosts count too. Default false, as in the paper, whose hose is limited at
    /// the source alone.
    pub into_hosts: bool,
    /// Whether flows alone are counted, C / (N + 1), whatever telemetry shows. Default false.
    pub flows_only: bool,
}

/// Which of several equally fast paths is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// The first in an order that the seed and the request shuffle.
    #[default]
    Seeded,
    /// The first of the cluster file.
    Lowest,
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct Choreo {
    settings: ChoreoSettings,
}

pub(super) const REGISTRATION: Registration<AppRequest> = Registration {
    name: "choreo",
    summary: "the largest transfer first, on the fastest path that is left",
    source: "LaCurts et al., Choreo (IMC 2013), section 5, algorithm 1",
    schema: || schemars::schema_for!(ChoreoSettings).to_value(),
    make: |text| Ok(Box::new(Choreo::new(settings("choreo", text)?))),
};

impl Choreo {
    /// The policy with these settings.
    pub fn new(settings: ChoreoSettings) -> Choreo {
        Choreo { settings }
    }

    /// The model that it places by.
    fn estimate(&self) -> Estimate {
        let ChoreoSettings { into_hosts, flows_only, .. } = self.settings;
        Estimate { into_hosts, flows_only }
    }

    /// How often hosts are looked at for a request: all of them for each task; and all pairs of them, if its tasks send each
    /// other something and no host has room for two.
    pub(super) fn looks(request: &AppRequest, fabric: &Fabric) -> u64 {
        let hosts = fabric.host_count() as u64;
        let pairs = if request.has_traffic() { hosts.saturating_mul(hosts) } else { 0 };
        looks(request, fabric).saturating_add(pairs)
    }

    /// Where the tasks of one request go.
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
            seats: Seats::new(context.pool, request),
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
            if search.seats.host_of(task).is_none() {
                search.seats.take_first(task, search.order.iter().copied())?;
            }
        }
        Ok(search.seats.assignment())
    }
}

impl Policy<AppRequest> for Choreo {
    fn name(&self) -> &'static str {
        "choreo"
    }

    fn looks(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        Choreo::looks(request, fabric)
    }

    fn place(
        &self,
        batch: &[AppRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Assignment>, Refusal>> {
        change::one_by_one(self.name(), batch, context, |request, context, notes| {
            notes.estimate = Some(self.estimate());
            self.assign(request, context)
        })
    }
}

/// One app to be placed.
struct Search<'a, 'l> {
    seats: Seats<'a>,
    rates: Rates<'a, 'l>,
    /// All hosts, the first of equals first.
    order: Vec<HostId>,
}

impl Search<'_, '_> {
    /// Places what is not placed of a transfer's ends.
    fn serve(&mut self, from: u32, to: u32) -> Result<(), Refusal> {
        let (from_host, to_host) = match (self.seats.host_of(from), self.seats.host_of(to)) {
            (Some(from_host), Some(to_host)) => (from_host, to_host),
            (Some(from_host), None) => {
                let best = self.best(to, |rates, host| rates.between(from_host, host))?;
                (from_host, best)
            }
            (None, Some(to_host)) => (self.best(from, |rates, host| rates.between(host, to_host))?, to_host),
            (None, None) => self.best_pair(from, to)?,
        };
        for (task, host) in [(from, from_host), (to, to_host)] {
            if self.seats.host_of(task).is_none() {
                self.seats.take(task, host);
            }
        }
        self.rates.place(from_host, to_host);
        Ok(())
    }

    /// The host with room for a task to or from which the rate is largest.
    fn best(
        &mut self,
        task: u32,
        rate: impl Fn(&mut Rates<'_, '_>, HostId) -> f64,
    ) -> Result<HostId, Refusal> {
        let mut best = None;
        for &host in &self.order {
            if self.seats.refuses(host, task).is_some() {
                continue;
            }
            let rate = rate(&mut self.rates, host);
            if best.is_none_or(|(most, _)| rate > most) {
                best = Some((rate, host));
            }
        }
        best.map(|(_, host)| host).ok_or_else(|| self.seats.no_host(task))
    }

    /// The pair of hosts with room for two tasks between which the rate is largest: a single one if it has room for
    /// both.
    fn best_pair(&mut self, from: u32, to: u32) -> Result<(HostId, HostId), Refusal> {
        let both = |host: &&HostId| self.seats.refuses_all(**host, &[from, to]).is_none();
        if let Some(&host) = self.order.iter().find(both) {
            return Ok((host, host));
        }
        let takers = |task| {
            let takers = self.order.iter().copied().filter(|&host| self.seats.refuses(host, task).is_none());
            takers.collect::<Vec<HostId>>()
        };
        let (senders, receivers) = (takers(from), takers(to));
        let mut best = None;
        for &sender in &senders {
            // Most senders are no better than the best path so far, whoever receives.
            let bound = self.rates.bound(sender);
            if best.is_some_and(|(most, _)| bound <= most) {
                continue;
            }
            for &receiver in receivers.iter().filter(|&&receiver| receiver != sender) {
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
            // The sender may have the last room there is for the receiver.
            let sender = senders.first().ok_or_else(|| self.seats.no_host(from))?;
            self.seats.take(from, *sender);
            return Err(self.seats.no_host(to));
        };
        Ok(pair)
    }
}
