//! Local search for the placement of an app with the shortest completion time.
//!
//! A placement is better if its slowest link takes less time. Among equals, the smaller sum of squares of all links'
//! times is better. The second criterion lets the search cross plateaus. Only changes that affect the slowest link can
//! help, so the search moves only tasks whose transfers cross it.

use leeward_fabric::{Fabric, HostId, ResourceId};

use super::capacity_check::{CapacityCheck, shuffled};
use super::completion::seconds;
use super::rates::{Rates, SLOWEST};
use super::{AppRequest, Assignment};
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

/// Objective of the search.
#[derive(Clone, Copy)]
struct Cost {
    /// Time of the slowest link, in seconds.
    slowest: f64,
    /// Sum of the squares of all links' times.
    squares: f64,
}

impl Cost {
    fn beats(self, other: Cost) -> bool {
        let less = |ours: f64, theirs: f64| ours < theirs - theirs.abs() * ROUNDING;
        less(self.slowest, other.slowest)
            || (self.slowest <= other.slowest && less(self.squares, other.squares))
    }
}

/// A transfer, seen from one of its endpoints.
struct Edge {
    other: u32,
    outgoing: bool,
    bytes: u64,
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
    /// Bytes on each link, the links with any bytes, and the position of each link in that list.
    bytes: Vec<u64>,
    crossed: Vec<ResourceId>,
    positions: Vec<u32>,
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
    if !request.has_traffic() {
        return first;
    }
    let mut search = Search::new(request, context, estimate, first);
    let mut draws = RequestDraws::new(context.seed, request.id ^ 0x5eed);
    let mut cost = search.descend(effort.links);
    let (mut best, mut best_cost) = (search.hosts.clone(), cost);
    let mut failed = 0;
    while failed < effort.tries && search.lookups < effort.links && best_cost.slowest > 0.0 {
        search.perturb(&mut draws);
        cost = search.descend(effort.links);
        if cost.beats(best_cost) {
            (best, best_cost, failed) = (search.hosts.clone(), cost, 0);
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
            let (from, to, bytes) = (transfer.from, transfer.to, transfer.bytes.0);
            edges[from as usize].push(Edge { other: to, outgoing: true, bytes });
            edges[to as usize].push(Edge { other: from, outgoing: false, bytes });
        }
        let links = fabric.resource_count();
        let mut search = Search {
            rates: Rates::new(context.view, estimate),
            room: fabric.all_hosts().map(left).collect(),
            bytes: vec![0; links],
            positions: vec![0; links],
            crossed: Vec::new(),
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
            search.change_traffic(from, to, transfer.bytes.0, true);
        }
        search
    }

    fn host(&self, task: u32) -> HostId {
        self.hosts[task as usize]
    }

    /// Improves the placement until no change helps.
    fn descend(&mut self, most: u64) -> Cost {
        let (mut cost, mut slowest) = self.cost();
        while self.lookups < most && self.step(&mut cost, slowest, most) {
            slowest = self.cost().1;
        }
        cost
    }

    /// Applies the first helpful change to tasks whose transfers cross the slowest link. Stops at `most`
    /// lookups: on many hosts a single step may need more.
    fn step(&mut self, cost: &mut Cost, slowest: Option<ResourceId>, most: u64) -> bool {
        let Some(slowest) = slowest else { return false };
        for task in self.crossing(slowest) {
            let from = self.host(task);
            for index in 0..self.open.len() {
                let to = self.open[index];
                if self.lookups >= most {
                    return false;
                }
                if to != from && self.fits(task, to, None) && self.try_change(&[(task, to)], cost) {
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
                if swap && self.try_change(&[(task, to), (other, from)], cost) {
                    return true;
                }
            }
        }
        false
    }

    /// Tasks with a transfer over a link, in descending order of their bytes there.
    fn crossing(&mut self, link: ResourceId) -> Vec<u32> {
        let mut bytes_on_link = vec![0_u64; self.hosts.len()];
        for transfer in &self.request.transfers {
            let (from, to) = (self.hosts[transfer.from as usize], self.hosts[transfer.to as usize]);
            if transfer.bytes.0 > 0 && self.rates.path(from, to).contains(&link) {
                for end in [transfer.from, transfer.to] {
                    let sum = &mut bytes_on_link[end as usize];
                    *sum = sum.saturating_add(transfer.bytes.0);
                }
            }
        }
        let mut tasks: Vec<u32> =
            (0..bytes_on_link.len() as u32).filter(|&task| bytes_on_link[task as usize] > 0).collect();
        tasks.sort_by_key(|&task| (std::cmp::Reverse(bytes_on_link[task as usize]), task));
        tasks
    }

    /// True if a host has room for a task after the task `leaving` has left the host, and the task is apart from others.
    fn fits(&self, task: u32, host: HostId, leaving: Option<u32>) -> bool {
        let constraints = &self.request.constraints;
        if constraints.apart.is_some() || constraints.apart_groups.iter().any(|group| group.has(task)) {
            let others = (0..).zip(self.hosts.iter().copied());
            let others = others.filter(|&(other, _)| other != task && Some(other) != leaving);
            if { others }.any(|other| constraints.are_too_close(self.fabric, (task, host), other)) {
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

    /// Applies a change and keeps it if it lowers the cost. Returns true if so.
    fn try_change(&mut self, change: &[(u32, HostId)], cost: &mut Cost) -> bool {
        let squares = self.squares;
        let before: Vec<(u32, HostId)> = change.iter().map(|&(task, _)| (task, self.host(task))).collect();
        self.apply(change);
        let after = self.cost().0;
        if after.beats(*cost) {
            *cost = after;
            return true;
        }
        self.apply(&before);
        self.squares = squares;
        false
    }

    /// Moves a few tasks at random, among them one whose transfers cross the slowest link.
    fn perturb(&mut self, draws: &mut RequestDraws) {
        let (_, slowest) = self.cost();
        let crossing = slowest.map(|link| self.crossing(link)).unwrap_or_default();
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
    }

    fn assign(&mut self, task: u32, host: HostId) {
        let needs = &self.request.tasks[task as usize];
        let room = &mut self.room[host.index()];
        // In a swap, the first task may exceed the free capacity until the other task leaves.
        room.0 = room.0.wrapping_sub(needs.cpus.0);
        room.1 = room.1.wrapping_sub(needs.memory.0);
        self.hosts[task as usize] = host;
    }

    /// Adds or removes all traffic of a task.
    fn change_task_traffic(&mut self, task: u32, add: bool) {
        for index in 0..self.edges[task as usize].len() {
            let Edge { other, outgoing, bytes } = self.edges[task as usize][index];
            let (own, other) = (self.host(task), self.host(other));
            let (from, to) = if outgoing { (own, other) } else { (other, own) };
            self.change_traffic(from, to, bytes, add);
        }
    }

    /// Adds or removes the bytes of a transfer on each link of its path.
    fn change_traffic(&mut self, from: HostId, to: HostId, bytes: u64, add: bool) {
        if from == to {
            return;
        }
        let length = self.rates.path(from, to).len();
        for hop in 0..length {
            let link = self.rates.last_path()[hop];
            let rate = self.rates.of_link(link).max(SLOWEST);
            let carried = &mut self.bytes[link.index()];
            let previous = *carried;
            *carried = if add { previous.wrapping_add(bytes) } else { previous.wrapping_sub(bytes) };
            let (before, after) = (seconds(previous, rate), seconds(*carried, rate));
            self.squares += after * after - before * before;
            match (previous, *carried) {
                (0, 1..) => self.add_crossed(link),
                (1.., 0) => self.remove_crossed(link),
                _ => {}
            }
        }
        self.lookups += length as u64;
    }

    /// Adds a link with traffic to the list of used links.
    fn add_crossed(&mut self, link: ResourceId) {
        self.positions[link.index()] = self.crossed.len() as u32;
        self.crossed.push(link);
    }

    /// Removes a link that no longer has traffic from the list of used links.
    fn remove_crossed(&mut self, link: ResourceId) {
        let position = self.positions[link.index()] as usize;
        self.crossed.swap_remove(position);
        if let Some(moved) = self.crossed.get(position) {
            self.positions[moved.index()] = position as u32;
        }
    }

    /// Cost of the placement, and its slowest link.
    fn cost(&mut self) -> (Cost, Option<ResourceId>) {
        let mut slowest = (0.0, None);
        for index in 0..self.crossed.len() {
            let link = self.crossed[index];
            let time = seconds(self.bytes[link.index()], self.rates.of_link(link).max(SLOWEST));
            if time > slowest.0 {
                slowest = (time, Some(link));
            }
        }
        self.lookups += self.crossed.len() as u64 / 8;
        (Cost { slowest: slowest.0, squares: self.squares }, slowest.1)
    }
}
