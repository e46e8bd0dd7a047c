//! Local search for the placement of an app with the shortest completion time.
//!
//! A placement is better if the slowest links of its phases together take less time. Among equals, cheaper hosts are
//! better, and then the smaller sum of squares of all links' times, which lets the search cross plateaus. With the goal
//! `cost`, the cost comes first. If hosts have no costs, only changes that affect a slowest link can help, so the search
//! moves only tasks whose transfers cross one.

use leeward_fabric::{Bytes, Fabric, HostId, ResourceId};

use super::capacity_check::{CapacityCheck, shuffled};
use super::completion::seconds;
use super::rates::{Rates, SLOWEST};
use super::{AppRequest, Assignment, Goal, Transfer};
use crate::Context;
use crate::estimate::Estimate;
use crate::ties::RequestDraws;

/// Number of tasks moved at random at a restart of the search.
const PERTURBED_TASKS: u32 = 3;
/// Improvements smaller than this share are rounding errors.
const ROUNDING: f64 = 1e-9;

/// Budget of a search.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Restarts without an improvement.
    pub tries: u32,
    /// Link lookups.
    pub links: u64,
}

/// Objectives of the search.
#[derive(Clone, Copy)]
struct Score {
    /// Time of the slowest link of each phase together, in seconds.
    slowest: f64,
    /// Cost of the hosts with tasks.
    cost: u64,
    /// Sum of the squares of all links' times.
    squares: f64,
}

impl Score {
    fn beats(self, other: Score, goal: Goal) -> bool {
        let less = |ours: f64, theirs: f64| ours < theirs - theirs.abs() * ROUNDING;
        let is_faster = less(self.slowest, other.slowest);
        let is_equal = self.slowest <= other.slowest && self.cost == other.cost;
        let is_more_even = is_equal && less(self.squares, other.squares);
        let (is_cheaper, costs_more) = (self.cost < other.cost, self.cost > other.cost);
        match goal {
            Goal::Time => is_faster || (self.slowest <= other.slowest && is_cheaper) || is_more_even,
            Goal::Cost => is_cheaper || (is_faster && !costs_more) || is_more_even,
        }
    }

    /// True if no placement can be better.
    fn is_perfect(self) -> bool {
        self.slowest <= 0.0 && self.cost == 0
    }
}

/// A link in a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lane {
    phase: u32,
    link: ResourceId,
}

/// A transfer, seen from one of its endpoints.
struct Edge {
    other: u32,
    outgoing: bool,
    bytes: u64,
    phase: u32,
}

/// Search state of one app.
struct Search<'a, 'l> {
    request: &'a AppRequest,
    rates: Rates<'a, 'l>,
    edges: Vec<Vec<Edge>>,
    /// Hosts that are open to tasks and have free capacity.
    open: Vec<HostId>,
    /// Processors and memory left, by host.
    room: Vec<(u64, u64)>,
    hosts: Assignment,
    fabric: &'a Fabric,
    /// Bytes on each lane, phase by phase; the lanes with any bytes, and the position of each lane in that list.
    bytes: Vec<u64>,
    crossed: Vec<Lane>,
    positions: Vec<u32>,
    /// Slowest lane of each phase with its time, as of the last score.
    slowest: Vec<(f64, Option<ResourceId>)>,
    /// Number of tasks on each host, and the cost of the hosts with any; only if hosts have costs.
    tasks_on: Vec<u32>,
    cost: u64,
    /// Sum of the squares of all links' times.
    squares: f64,
    /// Link lookups so far.
    lookups: u64,
}

/// Improves a placement within the request's constraints. The result satisfies them too, and is never worse.
pub(super) fn improve(
    request: &AppRequest,
    context: &Context<'_, '_>,
    estimate: Estimate,
    first: Assignment,
    effort: Effort,
) -> Assignment {
    let has_costs = context.pool.fabric().has_costs();
    if !request.has_traffic() && !has_costs {
        return first;
    }
    let goal = request.goal;
    let mut search = Search::new(request, context, estimate, first);
    let mut draws = RequestDraws::new(context.seed, request.id ^ 0x5eed);
    let (mut best_score, mut best) = (search.descend(effort.links), search.hosts.clone());
    let mut failed = 0;
    while failed < effort.tries && search.lookups < effort.links && !best_score.is_perfect() {
        search.perturb(&mut draws);
        let score = search.descend(effort.links);
        if score.beats(best_score, goal) {
            (best_score, best, failed) = (score, search.hosts.clone(), 0);
        } else {
            failed += 1;
            search.move_to(&best);
        }
    }
    best
}

impl<'a, 'l> Search<'a, 'l> {
    fn new(
        request: &'a AppRequest,
        context: &'a Context<'_, 'l>,
        estimate: Estimate,
        hosts: Assignment,
    ) -> Search<'a, 'l> {
        let (pool, fabric) = (context.pool, context.pool.fabric());
        let capacity = CapacityCheck::new(pool, request);
        let mut open = shuffled(pool, context.seed, request.id);
        open.retain(|&host| capacity.refuses_all(host, &[]).is_none());
        let left = |host| {
            let cpus = pool.cpus_left(host).map_or(u64::MAX, |cpus| cpus.0);
            (cpus, pool.memory_left(host).map_or(u64::MAX, |memory| memory.0))
        };
        let mut edges: Vec<Vec<Edge>> = request.tasks.iter().map(|_| Vec::new()).collect();
        for transfer in request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
            let Transfer { from, to, bytes: Bytes(bytes), phase } = *transfer;
            edges[from as usize].push(Edge { other: to, outgoing: true, bytes, phase });
            edges[to as usize].push(Edge { other: from, outgoing: false, bytes, phase });
        }
        let (phases, links) = (request.phases(), fabric.resource_count());
        let costed_hosts = if fabric.has_costs() { fabric.host_count() } else { 0 };
        let mut search = Search {
            rates: Rates::new(context.view, estimate),
            room: fabric.all_hosts().map(left).collect(),
            bytes: vec![0; phases * links],
            positions: vec![0; phases * links],
            crossed: Vec::new(),
            slowest: vec![(0.0, None); phases],
            tasks_on: vec![0; costed_hosts],
            cost: 0,
            squares: 0.0,
            lookups: 0,
            request,
            edges,
            open,
            hosts,
            fabric,
        };
        for task in 0..search.hosts.len() as u32 {
            search.assign(task, search.hosts[task as usize]);
        }
        for transfer in &request.transfers {
            let (from, to) = (search.host(transfer.from), search.host(transfer.to));
            search.change_traffic(transfer.phase, from, to, transfer.bytes.0, true);
        }
        search
    }

    fn host(&self, task: u32) -> HostId {
        self.hosts[task as usize]
    }

    /// Improves the placement until no change helps.
    fn descend(&mut self, most: u64) -> Score {
        let mut score = self.score();
        while self.lookups < most && self.step(&mut score, most) {
            self.score();
        }
        score
    }

    /// Applies the first helpful change to tasks that may help. Stops at `most` lookups: on many hosts a single step may
    /// need more.
    fn step(&mut self, score: &mut Score, most: u64) -> bool {
        for task in self.candidates() {
            let from = self.host(task);
            for index in 0..self.open.len() {
                let to = self.open[index];
                if self.lookups >= most {
                    return false;
                }
                if to != from && self.fits(task, to, None) && self.try_change(&[(task, to)], score) {
                    return true;
                }
            }
            for other in 0..self.hosts.len() as u32 {
                let to = self.host(other);
                if self.lookups >= most {
                    return false;
                }
                let swap =
                    to != from && self.fits(task, to, Some(other)) && self.fits(other, from, Some(task));
                if swap && self.try_change(&[(task, to), (other, from)], score) {
                    return true;
                }
            }
        }
        false
    }

    /// Tasks whose move may help: those with transfers over the slowest lanes, and if hosts have costs, all others.
    fn candidates(&mut self) -> Vec<u32> {
        let mut tasks = self.crossing();
        if !self.tasks_on.is_empty() {
            let mut is_first = vec![true; self.hosts.len()];
            tasks.iter().for_each(|&task| is_first[task as usize] = false);
            tasks.extend((0..).zip(is_first).filter_map(|(task, is_first)| is_first.then_some(task)));
        }
        tasks
    }

    /// Tasks with a transfer over the slowest lane of a phase, in descending order of their bytes there.
    fn crossing(&mut self) -> Vec<u32> {
        let mut bytes_there = vec![0_u64; self.hosts.len()];
        for transfer in &self.request.transfers {
            let (from, to) = (self.hosts[transfer.from as usize], self.hosts[transfer.to as usize]);
            let Some(slowest) = self.slowest[transfer.phase as usize].1 else { continue };
            if transfer.bytes.0 > 0 && self.rates.path(from, to).contains(&slowest) {
                for end in [transfer.from, transfer.to] {
                    let sum = &mut bytes_there[end as usize];
                    *sum = sum.saturating_add(transfer.bytes.0);
                }
            }
        }
        let mut tasks: Vec<u32> =
            (0..bytes_there.len() as u32).filter(|&task| bytes_there[task as usize] > 0).collect();
        tasks.sort_by_key(|&task| (std::cmp::Reverse(bytes_there[task as usize]), task));
        tasks
    }

    /// True if a host has room for a task after the task `leaving` has left the host, and no other task is in its way.
    fn fits(&self, task: u32, host: HostId, leaving: Option<u32>) -> bool {
        let constraints = &self.request.constraints;
        if constraints.relates(task) {
            let others = (0..).zip(self.hosts.iter().copied());
            let others = others.filter(|&(other, _)| other != task && Some(other) != leaving);
            if { others }.any(|other| constraints.conflict(self.fabric, (task, host), other).is_some()) {
                return false;
            }
        }
        let (mut cpus, mut memory) = self.room[host.index()];
        if let Some(leaving) = leaving.map(|leaving| &self.request.tasks[leaving as usize]) {
            cpus = cpus.saturating_add(leaving.cpus.0);
            memory = memory.saturating_add(leaving.memory.0);
        }
        let task = &self.request.tasks[task as usize];
        task.cpus.0 <= cpus && task.memory.0 <= memory
    }

    /// Applies a change and keeps it if it improves the score. Returns true if so.
    fn try_change(&mut self, change: &[(u32, HostId)], score: &mut Score) -> bool {
        let squares = self.squares;
        let before: Vec<(u32, HostId)> = change.iter().map(|&(task, _)| (task, self.host(task))).collect();
        self.apply(change);
        let after = self.score();
        if after.beats(*score, self.request.goal) {
            *score = after;
            return true;
        }
        self.apply(&before);
        self.squares = squares;
        false
    }

    /// Moves a few tasks at random, among them one whose transfers cross a slowest link.
    fn perturb(&mut self, draws: &mut RequestDraws) {
        self.score();
        let crossing = self.crossing();
        for round in 0..PERTURBED_TASKS {
            let task = match round {
                0 if !crossing.is_empty() => crossing[draws.below(crossing.len() as u32) as usize],
                _ => draws.below(self.hosts.len() as u32),
            };
            let to = self.open[draws.below(self.open.len() as u32) as usize];
            if to != self.host(task) && self.fits(task, to, None) {
                self.apply(&[(task, to)]);
            }
        }
    }

    /// Moves every task to its host in another placement.
    fn move_to(&mut self, hosts: &[HostId]) {
        let change: Vec<(u32, HostId)> =
            (0..).zip(hosts.iter().copied()).filter(|&(task, host)| self.host(task) != host).collect();
        self.apply(&change);
    }

    /// Moves tasks, all at once.
    fn apply(&mut self, change: &[(u32, HostId)]) {
        for &(task, to) in change {
            self.change_task_traffic(task, false);
            self.unassign(task);
            self.assign(task, to);
            self.change_task_traffic(task, true);
        }
    }

    fn unassign(&mut self, task: u32) {
        let (host, needs) = (self.host(task), &self.request.tasks[task as usize]);
        let room = &mut self.room[host.index()];
        room.0 = room.0.wrapping_add(needs.cpus.0);
        room.1 = room.1.wrapping_add(needs.memory.0);
        if let Some(tasks) = self.tasks_on.get_mut(host.index()) {
            *tasks -= 1;
            self.cost -= if *tasks == 0 { self.fabric.cost(host).0 } else { 0 };
        }
    }

    fn assign(&mut self, task: u32, host: HostId) {
        let needs = &self.request.tasks[task as usize];
        let room = &mut self.room[host.index()];
        // In a swap, the first task may exceed the free capacity until the other task leaves.
        room.0 = room.0.wrapping_sub(needs.cpus.0);
        room.1 = room.1.wrapping_sub(needs.memory.0);
        self.hosts[task as usize] = host;
        if let Some(tasks) = self.tasks_on.get_mut(host.index()) {
            self.cost += if *tasks == 0 { self.fabric.cost(host).0 } else { 0 };
            *tasks += 1;
        }
    }

    /// Adds or removes all traffic of a task.
    fn change_task_traffic(&mut self, task: u32, add: bool) {
        for index in 0..self.edges[task as usize].len() {
            let Edge { other, outgoing, bytes, phase } = self.edges[task as usize][index];
            let (own, other) = (self.host(task), self.host(other));
            let (from, to) = if outgoing { (own, other) } else { (other, own) };
            self.change_traffic(phase, from, to, bytes, add);
        }
    }

    /// Adds or removes the bytes of a transfer on each link of its path.
    fn change_traffic(&mut self, phase: u32, from: HostId, to: HostId, bytes: u64, add: bool) {
        if from == to {
            return;
        }
        let length = self.rates.path(from, to).len();
        for hop in 0..length {
            let link = self.rates.last_path()[hop];
            let rate = self.rates.of_link(link).max(SLOWEST);
            let lane = Lane { phase, link };
            let index = self.index(lane);
            let carried = &mut self.bytes[index];
            let previous = *carried;
            *carried = if add { previous.wrapping_add(bytes) } else { previous.wrapping_sub(bytes) };
            let (before, after) = (seconds(previous, rate), seconds(*carried, rate));
            self.squares += after * after - before * before;
            match (previous, *carried) {
                (0, 1..) => self.add_crossed(lane),
                (1.., 0) => self.remove_crossed(lane),
                _ => {}
            }
        }
        self.lookups += length as u64;
    }

    /// Position of a lane among all lanes.
    fn index(&self, lane: Lane) -> usize {
        lane.phase as usize * self.fabric.resource_count() + lane.link.index()
    }

    /// Adds a lane with traffic to the list of used lanes.
    fn add_crossed(&mut self, lane: Lane) {
        let index = self.index(lane);
        self.positions[index] = self.crossed.len() as u32;
        self.crossed.push(lane);
    }

    /// Removes a lane that no longer has traffic from the list of used lanes.
    fn remove_crossed(&mut self, lane: Lane) {
        let position = self.positions[self.index(lane)] as usize;
        self.crossed.swap_remove(position);
        if let Some(&moved) = self.crossed.get(position) {
            let index = self.index(moved);
            self.positions[index] = position as u32;
        }
    }

    /// Score of the placement; finds the slowest lane of each phase.
    fn score(&mut self) -> Score {
        self.slowest.fill((0.0, None));
        for index in 0..self.crossed.len() {
            let lane = self.crossed[index];
            let bytes = self.bytes[self.index(lane)];
            let time = seconds(bytes, self.rates.of_link(lane.link).max(SLOWEST));
            let slowest = &mut self.slowest[lane.phase as usize];
            if time > slowest.0 {
                *slowest = (time, Some(lane.link));
            }
        }
        self.lookups += self.crossed.len() as u64 / 8;
        let slowest = self.slowest.iter().map(|(time, _)| time).sum();
        Score { slowest, cost: self.cost, squares: self.squares }
    }
}
