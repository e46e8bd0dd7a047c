//! Causes of hot links: the heaviest work of decisions on them, and the reason for which no task moves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::NoMove;
use leeward_fabric::{Bytes, DomainId, Fabric, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::{EntryId, find_link};
use leeward_moves::{Running, Stays};
use leeward_records::{DecisionId, DecisionRecord, PlacementSpec};

use super::{Addresses, Coordinator};

/// Number of tasks and transfers that are shown for a link.
const SHOWN: usize = 3;

/// Work on a hot link.
#[derive(Clone, PartialEq, Debug)]
pub struct HotLinkCause {
    /// The heaviest tasks by rate, and after them the largest transfers; at most three.
    pub heaviest: Vec<HeavyWork>,
    /// Measured load in bit/s; `None` if the link is unseen.
    pub measured_bps: Option<u64>,
    /// Measured load beyond the rates of all known tasks, in bit/s; `None` if the link is unseen.
    pub unexplained_bps: Option<u64>,
    /// Reason for which no task moves; `None` if an advised or taken move off the link is under way.
    pub no_move: Option<NoMove>,
}

/// A task, or a transfer of a block's copy.
#[derive(Clone, PartialEq, Debug)]
pub struct HeavyWork {
    /// The decision that placed it.
    pub decision: DecisionId,
    /// Job of the task.
    pub job: Option<String>,
    /// Name of the task; `None` for a transfer.
    pub task: Option<String>,
    /// Host of the task, or receiver of the transfer.
    pub host: Option<String>,
    /// Rate of the task, in bit/s; `None` for a transfer, which uses the rate it gets.
    pub rate_bps: Option<u64>,
    /// Reason for which the task may not be moved now; `None` if it may, and for a transfer.
    pub stays: Option<Stays>,
    /// Size of the transferred block; `None` for a task.
    pub size: Option<Bytes>,
}

/// Tasks and transfers of a link during the search.
#[derive(Default)]
struct Found {
    /// Sum of the rates of tasks, in bit/s.
    known_bps: u64,
    /// Heaviest tasks first.
    tasks: Vec<(u64, Running)>,
    /// Largest transfers first.
    transfers: Vec<(Bytes, DecisionId, Option<HostId>)>,
}

/// Inserts into a list in descending order of keys, of at most [`SHOWN`] items.
fn keep_largest<T, K: Ord>(list: &mut Vec<T>, item: T, key: impl Fn(&T) -> K) {
    let at = list.partition_point(|other| key(other) >= key(&item));
    if at < SHOWN {
        list.insert(at, item);
        list.truncate(SHOWN);
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Causes of the load on links, in the order of their names; `None` for a link that the cluster does not have.
    pub fn hot_links(&mut self, now: Nanos, names: &[String]) -> Vec<Option<HotLinkCause>> {
        self.wake(now);
        let fabric = self.engine.ledger().fabric().clone();
        let ids: Vec<Option<ResourceId>> = names.iter().map(|name| find_link(&fabric, name).ok()).collect();
        let links: Vec<ResourceId> = ids.iter().copied().flatten().collect();
        let mut found: BTreeMap<ResourceId, Found> =
            links.iter().map(|&link| (link, Found::default())).collect();
        let racks: BTreeSet<DomainId> = links.iter().flat_map(|&link| racks_of(&fabric, link)).collect();
        for rack in racks {
            self.find_tasks(&fabric, rack, &mut found);
        }
        self.find_transfers(&fabric, &mut found);
        let waiting = self.migrations.last().filter(|one| one.state.is_open());
        let waiting: BTreeSet<&str> = waiting.map(|one| one.link.as_str()).collect();
        let waits: Vec<bool> = names.iter().map(|name| waiting.contains(name.as_str())).collect();
        let causes = ids.into_iter().zip(waits).map(|(link, waits)| {
            let link = link?;
            let found = found.remove(&link).unwrap_or_default();
            let view = self.engine.ledger().view(self.now, &mut self.scratch);
            let measured = view.measured(link).map(|Load(load)| u64::try_from(load).unwrap_or(0));
            Some(HotLinkCause {
                measured_bps: measured,
                unexplained_bps: measured.map(|load| load.saturating_sub(found.known_bps)),
                no_move: (!waits).then(|| self.engine.no_move(link)),
                heaviest: self.heaviest(&fabric, found),
            })
        });
        causes.collect()
    }

    /// Adds the tasks of a rack to the links that their traffic crosses.
    fn find_tasks(&self, fabric: &Fabric, rack: DomainId, found: &mut BTreeMap<ResourceId, Found>) {
        let mut above = vec![rack];
        while let Some(parent) = above.last().and_then(|&domain| fabric.parent(domain)) {
            above.push(parent);
        }
        let out: Vec<ResourceId> = above.iter().filter_map(|&domain| fabric.out_of_domain(domain)).collect();
        let into: Vec<ResourceId> = above.iter().filter_map(|&domain| fabric.into_domain(domain)).collect();
        for task in self.engine.tasks_in(rack) {
            let sides = [
                (task.egress_bps, fabric.egress(task.host), &out),
                (task.ingress_bps, fabric.ingress(task.host), &into),
            ];
            for (rate, own, shared) in sides.into_iter().filter(|&(rate, ..)| rate > 0) {
                for link in own.iter().chain(shared) {
                    let Some(found) = found.get_mut(link) else { continue };
                    found.known_bps = found.known_bps.saturating_add(rate);
                    keep_largest(&mut found.tasks, (rate, task), |&(rate, task)| (rate, Reverse(task.task)));
                }
            }
        }
    }

    /// Adds the transfers of copies whose load telemetry does not show wholly yet.
    fn find_transfers(&self, fabric: &Fabric, found: &mut BTreeMap<ResourceId, Found>) {
        let ledger = self.engine.ledger();
        let lifetime = self.evicted.lifetime();
        let is_recent = |record: &&Arc<DecisionRecord>| {
            record.released.is_none() && self.now.since(record.at) <= lifetime
        };
        for record in self.records.last(None).filter(is_recent) {
            let PlacementSpec::Replicas(spec) = &record.details.spec else { continue };
            for entry in record.entries.iter().filter_map(|&id: &EntryId| ledger.entry(id)) {
                let hops = || entry.hops.iter().map(|hop| hop.resource);
                let to = hops().rfind(|&at| fabric.kind(at) == ResourceKind::HostIngress);
                for link in hops() {
                    let Some(found) = found.get_mut(&link) else { continue };
                    let to = to.and_then(|at| fabric.host_of(at));
                    keep_largest(&mut found.transfers, (spec.piece(), record.id, to), |&(size, id, _)| {
                        (size, id)
                    });
                }
            }
        }
    }

    fn heaviest(&self, fabric: &Fabric, found: Found) -> Vec<HeavyWork> {
        let name_of = |host: HostId| fabric.host_name(host).to_owned();
        let task = |(rate, running): (u64, Running)| {
            let decision = DecisionId(running.task.app);
            let record = self.records.get(decision);
            let (job, name) = match record.map(|record| &record.details.spec) {
                Some(PlacementSpec::Tasks(spec)) => {
                    let task = spec.tasks.get(running.task.index as usize);
                    (spec.job.clone(), task.map(|task| task.name.clone()))
                }
                _ => (None, None),
            };
            let (host, rate_bps) = (Some(name_of(running.host)), Some(rate));
            let (task, stays) = (Some(name.unwrap_or_default()), self.engine.stays(running.task));
            HeavyWork { decision, job, task, host, rate_bps, stays, size: None }
        };
        let transfer = |(size, decision, host): (Bytes, DecisionId, Option<HostId>)| HeavyWork {
            decision,
            job: None,
            task: None,
            host: host.map(name_of),
            rate_bps: None,
            stays: None,
            size: Some(size),
        };
        let tasks = found.tasks.into_iter().map(task);
        tasks.chain(found.transfers.into_iter().map(transfer)).take(SHOWN).collect()
    }
}

/// Racks whose tasks may send traffic over a link; none on a mesh.
fn racks_of(fabric: &Fabric, link: ResourceId) -> Vec<DomainId> {
    match (fabric.host_of(link), fabric.domain_of_link(link)) {
        (Some(host), _) => vec![fabric.rack_of(host)],
        (None, Some(domain)) if domain.index() < fabric.rack_count() => vec![domain],
        (None, Some(domain)) => fabric.children(Some(domain)).collect(),
        (None, None) => Vec::new(),
    }
}
