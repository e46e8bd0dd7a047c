//! Move policy `utp`: moves the largest tolerant tasks first, until no link of a rack is hot (Hotspots
//! section 5.1).
//!
//! A link is hot if it was hot for a telemetry interval and would stay hot after the moves decided so far
//! ([`crate::HotTest`] has the load and the number of intervals). The policy serves the hottest link first. Of a link's
//! tasks, the one with the most bandwidth in the link's direction leaves first, to keep the number of moves low. The
//! proactive rule chooses the destination of the task, but never a rack with a link that would then exceed the hot
//! threshold minus `margin`. The hot threshold is a setting of the ledger, 75 % by default. At the destination the task
//! counts with the larger of its stated and measured traffic in each direction.
//!
//! The paper leaves points open. Without the margin, two racks near the threshold would exchange tasks. The caller
//! manages cooldowns and budgets. If a task finds no host, the policy does not try tasks with at least the same demand
//! in the same round.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_fabric::input::InputError;
use leeward_fabric::{DomainId, Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Entry, Owner, OwnerKind, Sign, Transaction};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cooling::{CoolRacks, all_unseen};
use crate::{Kept, Move, MoveRequest, Moves, Running, Stays};
use leeward_placement::tasks::{
    AppRequest, Borg, BorgSettings, Taken, Task, TaskId, Traffic, rack_links, streams,
};
use leeward_placement::{Basis, Constraints, Context, Decision, Policy, Refusal, Ties, oldest_of};

/// Settings of `utp` for moves.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReactiveSettings {
    /// Distance below the hot threshold that the links of a destination rack must keep, as a share. Default
    /// 0.05.
    pub margin: f64,
    /// Number of hosts with room, in racks that stay cool, to examine for a task. Default 100.
    pub sample: u32,
}

impl Default for ReactiveSettings {
    fn default() -> Self {
        ReactiveSettings { margin: 0.05, sample: 100 }
    }
}

/// Moves of large tolerant tasks from hot racks.
#[derive(Clone, Debug)]
pub struct Reactive {
    name: &'static str,
    settings: ReactiveSettings,
}

/// Registers the policy under the name of a task policy.
macro_rules! registration {
    ($name:literal) => {
        Registration {
            name: $name,
            aliases: &[],
            summary: "the largest tolerant tasks leave hot racks for cool ones",
            source: "Hotspots (2024), section 5.1, the reactive part",
            schema: schema::<ReactiveSettings>,
            make: |text| make($name, text),
        }
    };
}

pub(super) const UTP_REACTIVE: Registration<dyn Policy<MoveRequest>> = registration!("utp-reactive");
pub(super) const UTP: Registration<dyn Policy<MoveRequest>> = registration!("utp");
pub(super) const LEEWARD: Registration<dyn Policy<MoveRequest>> = registration!("leeward");

fn make(name: &'static str, text: &str) -> Result<Box<dyn Policy<MoveRequest>>, InputError> {
    let read: ReactiveSettings = settings(name, text)?;
    if !(0.0..=1.0).contains(&read.margin) {
        return Err(setting_error(name, "margin", "expected a share from 0 to 1"));
    }
    if read.sample == 0 {
        return Err(setting_error(name, "sample", "0: expected at least one host"));
    }
    Ok(Box::new(Reactive { name, settings: read }))
}

impl Reactive {
    fn choose(&self, request: &MoveRequest, context: &mut Context<'_, '_>) -> Moves {
        let mut hot: Vec<(f64, Side)> = Vec::new();
        for rack in context.pool.fabric().all_racks() {
            for side in Side::both(context.pool.fabric(), rack) {
                if request.test.is_hot(context.view, side.link) {
                    let utilization = request.test.utilization(context.view, side.link).unwrap_or(0.0);
                    hot.push((utilization, side));
                }
            }
        }
        let ties = Ties::new(context.seed, request.id);
        let tie = |side: &Side| ties.rank(u64::from(side.link.0));
        hot.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| tie(&a.1).cmp(&tie(&b.1))));
        let budgets = request.budgets.iter().map(|budget| budget.moves).collect();
        let moved = vec![false; request.running.len()];
        let (taken, stuck, answer) = (Taken::default(), Vec::new(), Moves::default());
        let mut by_rack = vec![Vec::new(); context.pool.fabric().rack_count()];
        for (at, task) in (0..).zip(&request.running) {
            by_rack[context.pool.fabric().rack_of(task.host).index()].push(at);
        }
        let ranks = BorgSettings { sample: self.settings.sample, ..BorgSettings::default() };
        let most = context.view.hot_above() - self.settings.margin;
        let (destination, cool) = (Borg::proactive(ranks), CoolRacks::new(context, most, request.test));
        let mut round =
            Round { destination, cool, request, context, by_rack, budgets, moved, taken, stuck, answer };
        hot.iter().for_each(|(_, side)| round.cool(*side));
        // A move from one link of a rack may have cooled the rack's other link.
        let mut kept = std::mem::take(&mut round.answer.kept);
        kept.retain(|kept| round.is_hot(kept.link));
        Moves { kept, ..round.answer }
    }
}

impl Policy<MoveRequest> for Reactive {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place_one(
        &self,
        request: &MoveRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Moves>, Refusal> {
        let before = context.view.checkpoint();
        let choice = self.choose(request, context);
        let (fabric, now) = (context.pool.fabric(), context.view.now());
        let arrivals = choice.moves.iter().flat_map(|planned| {
            let task = &request.running[planned.at as usize];
            traffic(fabric, task.task, task.assumed_traffic(), planned.to, Sign::Adds, now)
        });
        let change = Transaction { add: arrivals.collect(), ..Transaction::default() };
        let links =
            choice.moves.iter().flat_map(|planned| rack_links(fabric, planned.to).chain([planned.link]));
        let oldest = oldest_of(context.view, links);
        let (epoch, policy) = (context.view.epoch(), self.name);
        let basis = Basis { epoch, oldest, policy, note: None, gaps: None, estimate: None, source: None };
        context.view.rollback(before);
        Ok(Decision { choice, change, basis, why: Vec::new() })
    }

    fn place(
        &self,
        batch: &[MoveRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Moves>, Refusal>> {
        let decide = |request: &MoveRequest| {
            let decision = self.place_one(request, context)?;
            apply(request, &decision.choice, context);
            Ok(decision)
        };
        batch.iter().map(decide).collect()
    }
}

/// Adds the effects of moves to the view: each task's measured traffic leaves its host, and its demand arrives at the
/// destination.
fn apply(request: &MoveRequest, moves: &Moves, context: &mut Context<'_, '_>) {
    for planned in &moves.moves {
        move_traffic(&request.running[planned.at as usize], planned.to, context);
    }
}

fn move_traffic(task: &Running, to: HostId, context: &mut Context<'_, '_>) {
    let (fabric, now) = (context.pool.fabric(), context.view.now());
    let departures = traffic(fabric, task.task, task.measured(), task.host, Sign::Relieves, now);
    let arrivals = traffic(fabric, task.task, task.assumed_traffic(), to, Sign::Adds, now);
    departures.chain(arrivals).for_each(|entry| context.view.add(&entry));
}

/// One direction of a rack's link.
#[derive(Clone, Copy)]
struct Side {
    rack: DomainId,
    link: ResourceId,
    outward: bool,
}

impl Side {
    /// Both directions of a rack; none on a mesh.
    fn both(fabric: &Fabric, rack: DomainId) -> impl Iterator<Item = Side> + use<> {
        let links = [(fabric.out_of_domain(rack), true), (fabric.into_domain(rack), false)];
        links.into_iter().filter_map(move |(link, outward)| link.map(|link| Side { rack, link, outward }))
    }

    /// Traffic of a task over the link, in bit/s.
    fn rate(self, task: &Running) -> u64 {
        if self.outward { task.egress_bps } else { task.ingress_bps }
    }
}

/// A task that found no host.
#[derive(Clone, Copy)]
struct Stuck {
    /// Peak egress and ingress, processors and memory.
    demand: [u64; 4],
    tags: u64,
    constraints: Option<u32>,
    why: Stays,
}

impl Stuck {
    /// True if a task has the same constraints.
    fn is_like(&self, task: &Running) -> bool {
        self.tags == task.tags && self.constraints == task.constraints
    }
}

/// State of one round: the decision of a request.
struct Round<'t, 'a, 'l> {
    /// The proactive rule.
    destination: Borg,
    /// Possible destinations.
    cool: CoolRacks,
    request: &'t MoveRequest,
    context: &'t mut Context<'a, 'l>,
    /// Tasks of each rack.
    by_rack: Vec<Vec<u32>>,
    /// Remaining moves of each job.
    budgets: Vec<u32>,
    /// True for each task that was moved.
    moved: Vec<bool>,
    /// Capacity that moved tasks take on their new hosts.
    taken: Taken,
    /// Tasks that found no host outside the current rack.
    stuck: Vec<Stuck>,
    answer: Moves,
}

impl Round<'_, '_, '_> {
    /// Moves tasks away from one link until it is no longer hot.
    fn cool(&mut self, side: Side) {
        let request = self.request;
        // A task without a host outside one rack may find a host outside another rack.
        self.stuck.clear();
        let here = self.by_rack[side.rack.index()].iter().filter(|at| !self.moved[**at as usize]);
        let ranked = here.map(|&at| {
            let task = &request.running[at as usize];
            (side.rate(task), Reverse(task.task), at)
        });
        // Usually the first few tasks suffice, so a heap replaces a sort.
        let mut tasks: BinaryHeap<_> = ranked.filter(|(rate, ..)| *rate > 0).collect();
        let mut kept = Vec::new();
        let mut hot = self.is_hot(side.link);
        while hot && let Some((_, _, at)) = tasks.pop() {
            match self.leave(&request.running[at as usize], side) {
                Ok(to) => {
                    self.moved[at as usize] = true;
                    self.answer.moves.push(Move { at, to, link: side.link });
                    hot = self.is_hot(side.link);
                }
                Err(why) => kept.push(Kept { at, link: side.link, why }),
            }
        }
        if hot {
            self.answer.kept.extend(kept);
        }
    }

    fn is_hot(&self, link: ResourceId) -> bool {
        self.request.test.exceeds(self.context.view, link)
    }

    /// Moves a task out of its rack if it may leave and a destination exists.
    fn leave(&mut self, task: &Running, side: Side) -> Result<HostId, Stays> {
        if !task.demand.tolerant {
            return Err(Stays::Sensitive);
        }
        if task.cooling {
            return Err(Stays::Cooling);
        }
        let budget = self.budgets[task.job as usize];
        let remaining = budget.checked_sub(1).ok_or(Stays::Budget)?;
        let assumed_demand = task.assumed_demand();
        let to = self.find_destination(task, assumed_demand, side.rack)?;
        self.budgets[task.job as usize] = remaining;
        move_traffic(task, to, self.context);
        self.cool.occupy(&assumed_demand, to);
        for host in [task.host, to] {
            self.cool.update(self.context, self.context.pool.fabric().rack_of(host));
        }
        Ok(to)
    }

    /// Destination of a task outside its rack by the proactive rule, if the destination stays cool.
    fn find_destination(
        &mut self,
        task: &Running,
        assumed_demand: Task,
        rack: DomainId,
    ) -> Result<HostId, Stays> {
        let (egress, ingress) = (assumed_demand.total_egress(), assumed_demand.total_ingress());
        let demand = [egress.peak_bps, ingress.peak_bps, assumed_demand.cpus.0, assumed_demand.memory.0];
        let no_less = |other: &&Stuck| {
            other.is_like(task) && demand.iter().zip(&other.demand).all(|(ours, theirs)| ours >= theirs)
        };
        if let Some(known) = self.stuck.iter().find(no_less) {
            return Err(known.why);
        }
        let racks = self.cool.racks_for(self.context.pool.fabric(), &assumed_demand, rack);
        if racks.is_empty() {
            let unseen = all_unseen(self.context, rack);
            return Err(self.record_stay(task, demand, if unseen { Stays::Unseen } else { Stays::NoHost }));
        }
        let app = AppRequest {
            id: self.request.id ^ task.task.app.rotate_left(32) ^ u64::from(task.task.index),
            job: self.request.budgets[task.job as usize].job,
            tasks: vec![assumed_demand],
            transfers: Vec::new(),
            constraints: match task.constraints {
                Some(at) => Constraints::clone(&self.request.constraints[at as usize]),
                None => Constraints { tags: task.tags, ..Constraints::default() },
            },
            ..AppRequest::default()
        };
        let (destination, taken) = (&self.destination, &mut self.taken);
        let hosts = destination.assign_beside(&app, Some(&racks), self.context, taken, &mut Vec::new());
        hosts.map(|hosts| hosts[0]).map_err(|_| self.record_stay(task, demand, Stays::NoHost))
    }

    /// Records and returns the reason for which a task of this demand stays.
    fn record_stay(&mut self, task: &Running, demand: [u64; 4], why: Stays) -> Stays {
        // An entry for a demand also covers larger demands.
        let more = |other: &Stuck| {
            other.is_like(task) && demand.iter().zip(&other.demand).all(|(ours, theirs)| ours <= theirs)
        };
        self.stuck.retain(|known| !more(known));
        self.stuck.push(Stuck { demand, tags: task.tags, constraints: task.constraints, why });
        why
    }
}

/// Ledger entries of a task's traffic that leaves a host (`Relieves`) or comes to it (`Adds`) at the time `now`.
pub fn traffic(
    fabric: &Fabric,
    task: TaskId,
    [egress, ingress]: [Traffic; 2],
    host: HostId,
    sign: Sign,
    now: Nanos,
) -> impl Iterator<Item = Entry> + use<> {
    let owner = Owner { kind: OwnerKind::App, id: task.app };
    streams(fabric, owner, egress, ingress, host, sign, now)
}
