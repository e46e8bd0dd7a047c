//! Ledger entries of placed tasks, and the decision that contains them.

use std::collections::BTreeMap;

use leeward_fabric::{BITS_PER_BYTE, Bytes, DomainId, Endpoint, Fabric, Hop, HostId, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign, Transaction, View};

use super::rates::Rates;
use super::{AppRequest, Assignment, Task, Traffic, Transfer};
use crate::decision::oldest_of;
use crate::estimate::Estimate;
use crate::{Basis, Considered, Context, Decision, Gaps};

/// Parts of an answer besides the hosts.
#[derive(Default)]
pub(super) struct Notes {
    /// See [`Decision::why`].
    pub why: Vec<Considered>,
    /// See [`Basis::gaps`].
    pub gaps: Option<Gaps>,
    /// See [`Basis::estimate`].
    pub estimate: Option<Estimate>,
    /// See [`Basis::oldest`]. The decision adds the windows that the model uses.
    pub oldest: Option<Nanos>,
}

/// Decision to place tasks on these hosts.
pub(super) fn decision(
    policy: &'static str,
    request: &AppRequest,
    hosts: Assignment,
    Notes { why, gaps, estimate, oldest }: Notes,
    context: &Context<'_, '_>,
) -> Decision<Assignment> {
    let of_paths = estimate.and_then(|estimate| oldest_of_paths(request, &hosts, estimate, context.view));
    let oldest = [oldest, of_paths].into_iter().flatten().min();
    Decision {
        change: change(context.pool.fabric(), request, &hosts, context.view.now()),
        basis: Basis {
            epoch: context.view.epoch(),
            oldest,
            policy,
            note: None,
            gaps,
            estimate,
            source: None,
        },
        why,
        choice: hosts,
    }
}

/// End of the oldest window among the links that an app's transfers cross and the model uses.
fn oldest_of_paths(
    request: &AppRequest,
    hosts: &[HostId],
    estimate: Estimate,
    view: &View<'_>,
) -> Option<Nanos> {
    // Flow counts do not come from telemetry.
    let transfers = request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0 && !estimate.flows_only);
    let mut pairs: Vec<(HostId, HostId)> =
        transfers.map(|transfer| (hosts[transfer.from as usize], hosts[transfer.to as usize])).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut rates = Rates::new(view, estimate);
    pairs.iter().filter_map(|&(from, to)| oldest_of(view, rates.path(from, to).iter().copied())).min()
}

/// Ledger entries of a task's traffic out of its rack and into it. The traffic starts or stops now.
pub fn streams(
    fabric: &Fabric,
    owner: Owner,
    egress: Traffic,
    ingress: Traffic,
    host: HostId,
    sign: Sign,
    now: Nanos,
) -> impl Iterator<Item = Entry> + use<> {
    let directions = [(egress, outward(fabric, host)), (ingress, inward(fabric, host))];
    directions.into_iter().filter_map(move |(Traffic { mean_bps, peak_bps }, hops)| {
        let demand = Demand::Stream { mean_bps, peak_bps };
        let entry = Entry { owner, hops, demand, sign, fade: Fade::WithEstimator, starts: Some(now) };
        (peak_bps.max(mean_bps) > 0).then_some(entry)
    })
}

/// Ledger entries of a request's task.
pub(super) fn task_streams(
    fabric: &Fabric,
    request: &AppRequest,
    task: &Task,
    host: HostId,
    now: Nanos,
) -> impl Iterator<Item = Entry> + use<> {
    let owner = Owner { kind: OwnerKind::App, id: request.id };
    streams(fabric, owner, task.total_egress(), task.total_ingress(), host, Sign::Adds, now)
}

/// Ledger entries for all traffic of an app whose tasks go to these hosts.
pub fn traffic(fabric: &Fabric, request: &AppRequest, hosts: &[HostId], now: Nanos) -> Vec<Entry> {
    change(fabric, request, hosts, now).add
}

/// Transfers from one host to another.
#[derive(Default)]
struct Between {
    bytes: u64,
    /// Most transfers of a phase, and those of the last phase.
    flows: u32,
    last: (u32, u32),
}

impl Between {
    /// Adds a transfer; phases are in order.
    fn add(&mut self, transfer: &Transfer) {
        let (phase, count) = self.last;
        self.last = (transfer.phase, if phase == transfer.phase { count + 1 } else { 1 });
        self.flows = self.flows.max(self.last.1);
        self.bytes = self.bytes.saturating_add(transfer.bytes.0);
    }
}

/// One entry for all transfers between two hosts, with the flows of the phase that has most; and one for each direction of a task's own traffic.
pub(super) fn change(fabric: &Fabric, request: &AppRequest, hosts: &[HostId], now: Nanos) -> Transaction {
    let mut between = BTreeMap::<(HostId, HostId), Between>::new();
    for transfer in &request.transfers {
        let (from, to) = (hosts[transfer.from as usize], hosts[transfer.to as usize]);
        if from != to && transfer.bytes > Bytes(0) {
            between.entry((from, to)).or_default().add(transfer);
        }
    }
    let owner = Owner { kind: OwnerKind::App, id: request.id };
    let mut add = Vec::with_capacity(between.len());
    for ((from, to), Between { bytes, flows, .. }) in between {
        let mut hops = Vec::new();
        fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
        let demand = Demand::Elastic { bytes: Bytes(bytes), flows, cap_bps: None };
        let (sign, fade) = (Sign::Adds, Fade::WithEstimator);
        add.push(Entry { owner, hops, demand, sign, fade, starts: Some(now) });
    }
    for (task, &host) in request.tasks.iter().zip(hosts) {
        add.extend(task_streams(fabric, request, task, host, now));
    }
    Transaction { add, ..Transaction::default() }
}

/// Hops from a host out of all its domains.
fn outward(fabric: &Fabric, host: HostId) -> Vec<Hop> {
    hops(fabric, host, fabric.egress(host), |domain| fabric.out_of_domain(domain))
}

/// Hops into a host from outside all its domains.
fn inward(fabric: &Fabric, host: HostId) -> Vec<Hop> {
    hops(fabric, host, fabric.ingress(host), |domain| fabric.into_domain(domain))
}

fn hops(
    fabric: &Fabric,
    host: HostId,
    own: Option<ResourceId>,
    link: impl Fn(DomainId) -> Option<ResourceId>,
) -> Vec<Hop> {
    let domains = std::iter::successors(Some(fabric.rack_of(host)), |&domain| fabric.parent(domain));
    let links = own.into_iter().chain(domains.filter_map(link));
    links.map(|resource| Hop { resource, work: BITS_PER_BYTE }).collect()
}
