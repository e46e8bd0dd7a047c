//! The tasks on hosts: where each is, what it sends at the moment, and when it will be done.

use leeward_fabric::{DomainId, Fabric, HostId, Nanos};

use super::loads::{Loads, Rates};
use crate::stage::random::{Draws, Kind};
use crate::stage::workload::Workload;

const LEVEL: Kind = Kind::named("cell.level");

/// How long a task's rate stays as it is, in seconds.
const LEVEL_SECONDS: f64 = 300.0;

const DAY: f64 = 86_400.0;

/// Where a task that is on no host is.
const NOWHERE: u32 = u32::MAX;

/// What tasks' rates are at a time, as a multiple of their means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    draws: Draws,
    /// Steps for which a rate stays.
    steps: u64,
}

impl Levels {
    /// Those of a run with steps of this length.
    pub fn new(seed: u64, step: Nanos) -> Levels {
        let steps = (LEVEL_SECONDS / step.as_secs_f64()).round().max(1.0) as u64;
        Levels { draws: Draws::new(seed, LEVEL), steps }
    }

    /// A task's at a step: from 0 to `peak`, 1 in the mean.
    fn level(&self, task: u32, step: u64, peak: f64) -> f64 {
        if peak <= 1.0 {
            return 1.0;
        }
        let u = self.draws.draw(u64::from(task), (step + u64::from(task)) / self.steps);
        peak * (1.0 - (1.0 - u).powf(1.0 / (peak - 1.0)))
    }

    /// In which group tasks are whose rates change at one step.
    fn group(&self, task: u32) -> usize {
        (u64::from(task) % self.steps) as usize
    }
}

/// A task on a host.
#[derive(Clone, Copy, Debug)]
struct Placed {
    task: u32,
    host: HostId,
    rack: DomainId,
    /// What it asks for; nothing while it is down.
    rates: Rates,
    /// When it will be done, in seconds, if nothing holds it up.
    ends: f64,
    down: bool,
    /// Its places among the tasks of its rack, and of its group.
    at_rack: u32,
    at_group: u32,
}

/// All tasks on hosts.
#[derive(Debug)]
pub(super) struct Running {
    levels: Levels,
    placed: Vec<Placed>,
    /// The place of each task in `placed`.
    place: Vec<u32>,
    /// The tasks of each rack, and of each group.
    racks: Vec<Vec<u32>>,
    groups: Vec<Vec<u32>>,
    /// Thousandths of processors that they have, and that there are.
    cpus: (u64, u64),
}

impl Running {
    /// No task runs yet; there will be `tasks` of them.
    pub fn new(fabric: &Fabric, tasks: usize, levels: Levels) -> Running {
        let all = fabric.all_hosts().filter_map(|host| fabric.cpus(host)).map(|cpus| cpus.0).sum();
        Running {
            levels,
            placed: Vec::new(),
            place: vec![NOWHERE; tasks],
            racks: vec![Vec::new(); fabric.rack_count()],
            groups: vec![Vec::new(); levels.steps as usize],
            cpus: (0, all),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.placed.len()
    }

    /// Share of processors that they have; zero where hosts state none.
    pub fn processors(&self) -> f64 {
        if self.cpus.1 == 0 { 0.0 } else { self.cpus.0 as f64 / self.cpus.1 as f64 }
    }

    fn get(&self, task: u32) -> Option<&Placed> {
        self.placed.get(self.place[task as usize] as usize)
    }

    fn get_mut(&mut self, task: u32) -> &mut Placed {
        &mut self.placed[self.place[task as usize] as usize]
    }

    /// When a task will be done; `None` of one that is on no host.
    pub fn ends(&self, task: u32) -> Option<f64> {
        self.get(task).map(|placed| placed.ends)
    }

    /// Whether a task is on a host and does not run.
    pub fn is_down(&self, task: u32) -> bool {
        self.get(task).is_some_and(|placed| placed.down)
    }

    /// The tolerant tasks of a rack with what of their traffic the network carries, in bit/s.
    pub fn of_rack(
        &self,
        rack: DomainId,
        workload: &Workload,
        loads: &Loads,
    ) -> impl Iterator<Item = (u32, [u64; 2])> {
        let shares = loads.shares(rack);
        let carried = move |rates: Rates| [0, 1].map(|at| (rates[at] as f64 * shares[at]).round() as u64);
        let kind = |task: u32| &workload.cell_kinds[workload.tasks[task as usize].kind as usize];
        let tolerant = move |task: &&u32| kind(**task).told.tolerant;
        self.racks[rack.index()].iter().filter(tolerant).map(move |&task| {
            let placed = self.get(task).expect("tasks of a rack are on hosts");
            (task, carried(placed.rates))
        })
    }

    /// The tasks of a host.
    pub fn of_host(&self, fabric: &Fabric, host: HostId) -> Vec<u32> {
        let there = |task: &u32| self.get(*task).is_some_and(|placed| placed.host == host);
        let mut tasks: Vec<u32> =
            self.racks[fabric.rack_of(host).index()].iter().copied().filter(there).collect();
        tasks.sort_unstable();
        tasks
    }

    // ---- coming and going -----------------------------------------------------------------------------

    /// A task is on a host from now on, and down until [`Running::set_up`].
    pub fn start(&mut self, fabric: &Fabric, task: u32, host: HostId, ends: f64, workload: &Workload) {
        debug_assert!(self.get(task).is_none(), "task {task} is on a host already");
        let rack = fabric.rack_of(host);
        let (of_rack, of_group) = (&mut self.racks[rack.index()], &mut self.groups[self.levels.group(task)]);
        let (at_rack, at_group) = (of_rack.len() as u32, of_group.len() as u32);
        of_rack.push(task);
        of_group.push(task);
        self.place[task as usize] = self.placed.len() as u32;
        self.placed.push(Placed { task, host, rack, rates: [0; 2], ends, down: true, at_rack, at_group });
        self.cpus.0 += cpus(task, workload);
    }

    /// A task is on no host any more. Returns when it would have been done.
    pub fn remove(&mut self, task: u32, workload: &Workload, loads: &mut Loads) -> Option<f64> {
        let placed = *self.get(task)?;
        loads.ask(placed.rack, placed.rates.map(|rate| -rate));
        self.leave_rack(placed);
        let group = &mut self.groups[self.levels.group(task)];
        group.swap_remove(placed.at_group as usize);
        if let Some(&other) = group.get(placed.at_group as usize) {
            self.get_mut(other).at_group = placed.at_group;
        }
        let place = std::mem::replace(&mut self.place[task as usize], NOWHERE);
        self.placed.swap_remove(place as usize);
        if let Some(other) = self.placed.get(place as usize) {
            self.place[other.task as usize] = place;
        }
        self.cpus.0 -= cpus(task, workload);
        Some(placed.ends)
    }

    /// A task is on another host from now on.
    pub fn relocate(&mut self, fabric: &Fabric, task: u32, to: HostId, loads: &mut Loads) {
        let placed = *self.get_mut(task);
        loads.ask(placed.rack, placed.rates.map(|rate| -rate));
        self.leave_rack(placed);
        let rack = fabric.rack_of(to);
        loads.ask(rack, placed.rates);
        let at_rack = self.racks[rack.index()].len() as u32;
        self.racks[rack.index()].push(task);
        let placed = self.get_mut(task);
        (placed.host, placed.rack, placed.at_rack) = (to, rack, at_rack);
    }

    fn leave_rack(&mut self, placed: Placed) {
        let rack = &mut self.racks[placed.rack.index()];
        rack.swap_remove(placed.at_rack as usize);
        if let Some(&other) = rack.get(placed.at_rack as usize) {
            self.get_mut(other).at_rack = placed.at_rack;
        }
    }

    /// A task runs no more until [`Running::set_up`], and will be done so much later.
    pub fn set_down(&mut self, task: u32, seconds: f64, loads: &mut Loads) {
        let placed = self.get_mut(task);
        placed.down = true;
        placed.ends += seconds;
        let (rack, rates) = (placed.rack, std::mem::take(&mut placed.rates));
        loads.ask(rack, rates.map(|rate| -rate));
    }

    /// A task that is down runs from this step on.
    pub fn set_up(&mut self, task: u32, step: u64, now: f64, workload: &Workload, loads: &mut Loads) {
        self.get_mut(task).down = false;
        self.draw(task, step, swing(now), workload, loads);
    }

    // ---- as time passes -------------------------------------------------------------------------------

    /// Draws the rates that change at a step.
    pub fn redraw(&mut self, step: u64, now: f64, workload: &Workload, loads: &mut Loads) {
        let (steps, swing) = (self.levels.steps, swing(now));
        let group = ((steps - step % steps) % steps) as usize;
        for at in 0..self.groups[group].len() {
            self.draw(self.groups[group][at], step, swing, workload, loads);
        }
    }

    fn draw(&mut self, task: u32, step: u64, swing: f64, workload: &Workload, loads: &mut Loads) {
        let levels = self.levels;
        let placed = self.get_mut(task);
        if placed.down {
            return;
        }
        let demand = &workload.tasks[task as usize];
        let kind = &workload.cell_kinds[demand.kind as usize];
        let factor = levels.level(task, step, kind.peak) * (1.0 + kind.day * swing);
        let rates = [demand.egress_bps, demand.ingress_bps].map(|mean| (mean as f64 * factor + 0.5) as i64);
        let before = std::mem::replace(&mut placed.rates, rates);
        loads.ask(placed.rack, [rates[0] - before[0], rates[1] - before[1]]);
    }

    /// Lets tolerant tasks fall behind where the network carries less than they ask for.
    pub fn slow_down(&mut self, seconds: f64, workload: &Workload, loads: &Loads) {
        for (rack, tasks) in self.racks.iter().enumerate() {
            let shares = loads.shares(DomainId(rack as u32));
            if shares == [1.0; 2] {
                continue;
            }
            for &task in tasks {
                let phi = workload.cell_kinds[workload.tasks[task as usize].kind as usize].network_share;
                let placed = &mut self.placed[self.place[task as usize] as usize];
                let asks = placed.rates.into_iter().zip(shares).filter(|&(rate, _)| rate > 0);
                let share = asks.map(|(_, share)| share).fold(1.0, f64::min);
                placed.ends += seconds * (1.0 - speed(phi, share));
            }
        }
    }
}

/// How fast a task works of which a share `phi` waits for the network, where that carries `share` of what it asks for.
fn speed(phi: f64, share: f64) -> f64 {
    if phi == 0.0 { 1.0 } else { share / ((1.0 - phi) * share + phi) }
}

/// How far the time of day lifts rates, as a share of the most: a sine with its mean at the start and its top six hours later.
fn swing(now: f64) -> f64 {
    (std::f64::consts::TAU * now / DAY).sin()
}

fn cpus(task: u32, workload: &Workload) -> u64 {
    workload.cell_kinds[workload.tasks[task as usize].kind as usize].told.cpus.0
}
