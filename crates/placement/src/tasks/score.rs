//! Sort keys of hosts for a task of `borg` and its variants. Hosts of a rack share the expensive parts. These are
//! computed once per rack, and never for a host that cannot win.

use leeward_fabric::{DomainId, Fabric, HostId, Load, Nanos, ResourceId};

use super::capacity_check::CapacityCheck;
use super::{AppRequest, Task};
use crate::decision::sight;
use crate::{Candidate, Considered, Constraint, Context, Limit, Objectives, Verdict};

/// Rule by which a policy balances load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Balance {
    /// True if the policy balances racks' links rather than hosts.
    pub proactive: bool,
    /// True if a policy that balances links also balances hosts, between equally loaded links.
    pub hosts: bool,
    /// Step of load: shares within one step are equal.
    pub step: f64,
}

impl Balance {
    /// Converts a share of load to steps.
    pub(super) fn steps(self, balance: f64) -> u64 {
        (balance.clamp(0.0, 1e6) / self.step) as u64
    }
}

/// Shared parts of the hosts of a rack for one task, computed once per rack.
pub(super) struct Racks<'c, 'a, 'l> {
    rule: Balance,
    request: &'c AppRequest,
    at: u32,
    context: &'c Context<'a, 'l>,
    /// Number of the job's tasks in each rack.
    in_racks: &'c [(DomainId, u32)],
    /// Number of tasks in one step of spread.
    spread_step: u32,
    computed: Vec<Common>,
    /// For each rack, 1 + its position in `computed`, or 0.
    slots: Vec<u32>,
}

/// Shared parts of one rack.
#[derive(Clone, Copy)]
struct Common {
    in_rack: u32,
    links: Busier,
}

/// State of a rack's busier link, with the task.
#[derive(Clone, Copy)]
enum Busier {
    /// Not computed yet.
    NotComputed,
    /// Busier than the link of a rack with an otherwise equal rank.
    Beaten,
    /// The busier link; `None` if the policy does not use links.
    Found(Option<BusierLink>),
}

/// The busier link of a rack, with the task.
#[derive(Clone, Copy)]
struct BusierLink {
    limit: ResourceId,
    utilization: f64,
    /// For unknown load: the time until which it was known.
    unseen: Option<Nanos>,
}

/// Sort key of one host.
pub(super) struct Score {
    pub objectives: Objectives,
    limit: Option<ResourceId>,
    /// For unknown load: the time until which it was known.
    pub unseen: Option<Nanos>,
}

impl<'c, 'a, 'l> Racks<'c, 'a, 'l> {
    /// Starts without known racks, for the task at position `at` of a request.
    pub fn new(
        rule: Balance,
        (request, at): (&'c AppRequest, u32),
        context: &'c Context<'a, 'l>,
        in_racks: &'c [(DomainId, u32)],
        spread_step: u32,
    ) -> Self {
        let slots = vec![0; context.pool.fabric().rack_count()];
        Racks { rule, request, at, context, in_racks, spread_step, computed: Vec::new(), slots }
    }

    /// Score of a host; `None` if it ranks below `beat`, given as steps of spread and of balance.
    pub fn score(
        &mut self,
        host: HostId,
        capacity: &CapacityCheck<'_>,
        beat: Option<(u32, u64)>,
    ) -> Option<Score> {
        let Racks { rule, request, at, context, .. } = *self;
        let (pool, fabric) = (context.pool, context.pool.fabric());
        let (in_rack, links) = self.common(fabric.rack_of(host), capacity, beat)?;
        let task = &request.tasks[at as usize];
        let used = |all: Option<u64>, left: Option<u64>| match (all, left) {
            (Some(all), Some(left)) if all > 0 => 1.0 - left as f64 / all as f64,
            _ => 0.0,
        };
        let taken = capacity.taken(host);
        let cpus = pool.cpus_left(host).map(|left| left.0.saturating_sub(taken.0.0 + task.cpus.0));
        let fill = || {
            let memory = pool.memory_left(host).map(|m| m.0.saturating_sub(taken.1.0 + task.memory.0));
            used(fabric.cpus(host).map(|cpus| cpus.0), cpus)
                .max(used(fabric.memory(host).map(|memory| memory.0), memory))
        };
        let (balance, hosts) = match links {
            Some(links) if rule.proactive => (links.utilization, rule.hosts.then(fill)),
            _ => (fill(), None),
        };
        Some(Score {
            objectives: Objectives { task: at, in_rack, balance, hosts, left: cpus.unwrap_or(0) },
            limit: links.map(|links| links.limit),
            unseen: links.and_then(|links| links.unseen),
        })
    }

    /// Tasks of the job in a rack, and its busier link; `None` if it ranks below `beat`.
    fn common(
        &mut self,
        rack: DomainId,
        capacity: &CapacityCheck<'_>,
        beat: Option<(u32, u64)>,
    ) -> Option<(u32, Option<BusierLink>)> {
        let slot = &mut self.slots[rack.index()];
        if *slot == 0 {
            let before = self.in_racks.binary_search_by_key(&rack, |&(rack, _)| rack);
            let in_rack = before.map_or(0, |at| self.in_racks[at].1) + capacity.in_rack(rack);
            let links = if self.rule.proactive { Busier::NotComputed } else { Busier::Found(None) };
            self.computed.push(Common { in_rack, links });
            *slot = self.computed.len() as u32;
        }
        let common = &mut self.computed[*slot as usize - 1];
        let spread = common.in_rack / self.spread_step;
        if beat.is_some_and(|(least, _)| spread > least) {
            return None;
        }
        if matches!(common.links, Busier::NotComputed) {
            let same = beat.filter(|(least, _)| spread == *least);
            let worse = |utilization| same.is_some_and(|(_, steps)| self.rule.steps(utilization) > steps);
            let task = &self.request.tasks[self.at as usize];
            common.links = busier(self.context, rack, task, worse);
        }
        match common.links {
            Busier::Found(links) => Some((common.in_rack, links)),
            Busier::NotComputed | Busier::Beaten => None,
        }
    }
}

/// The busier direction of a rack's link with the task. `Beaten` if `worse` is true for the load of one direction.
fn busier(context: &Context<'_, '_>, rack: DomainId, task: &Task, worse: impl Fn(f64) -> bool) -> Busier {
    let fabric = context.view.fabric();
    let load = |bps: u64| Load(i64::try_from(bps).unwrap_or(i64::MAX));
    let directions = [
        (fabric.out_of_domain(rack), load(task.total_egress().peak_bps)),
        (fabric.into_domain(rack), load(task.total_ingress().peak_bps)),
    ];
    let mut busier: Option<BusierLink> = None;
    for (link, extra) in directions {
        let Some(limit) = link else { continue };
        let links = match context.view.utilization_with(limit, extra) {
            Some(utilization) => BusierLink { limit, utilization, unseen: None },
            None => {
                let unseen = Some(context.view.measured_until(limit));
                let utilization = f64::INFINITY;
                if worse(utilization) {
                    return Busier::Beaten;
                }
                return Busier::Found(Some(BusierLink { limit, utilization, unseen }));
            }
        };
        if worse(links.utilization) {
            return Busier::Beaten;
        }
        if busier.is_none_or(|most| links.utilization > most.utilization) {
            busier = Some(links);
        }
    }
    Busier::Found(busier)
}

impl Score {
    /// The limiting link, if the policy uses links.
    pub fn limit(&self) -> Option<ResourceId> {
        self.limit
    }

    /// Entry of the host in an explanation.
    pub fn considered(&self, host: HostId, chosen: bool, context: &Context<'_, '_>) -> Considered {
        let verdict = match self.unseen {
            Some(_) => Verdict::Refused(Constraint::Unknown),
            None if chosen => Verdict::Chosen,
            None => Verdict::Outranked,
        };
        Considered {
            candidate: Candidate::Host(host),
            limit: self.limit.map(Limit::Resource),
            value: None,
            sight: self.limit.map(|link| sight(context.view, link)),
            objectives: self.unseen.is_none().then_some(self.objectives),
            verdict,
        }
    }
}

/// Links of a host's rack, out of it and into it; empty on a mesh.
pub fn rack_links(fabric: &Fabric, host: HostId) -> impl Iterator<Item = ResourceId> + use<> {
    let rack = fabric.rack_of(host);
    [fabric.out_of_domain(rack), fabric.into_domain(rack)].into_iter().flatten()
}
