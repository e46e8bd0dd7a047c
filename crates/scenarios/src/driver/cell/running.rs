//! Tasks on hosts: their location, current traffic, and end.

use leeward_fabric::{DomainId, Fabric, HostId};
use leeward_workloads::{CellKind, GrownDemand, Workload};

use super::levels::{Levels, Moment};
use super::loads::{Loads, Rates};

/// Position of a task without a host.
const NOWHERE: u32 = u32::MAX;

/// A task on a host.
#[derive(Clone, Copy, Debug)]
struct PlacedTask {
    task: u32,
    host: HostId,
    rack: DomainId,
    /// Requested rates; zero while it is down.
    rates: Rates,
    /// End of its work in seconds, without further delay.
    ends: f64,
    down: bool,
    tolerant: bool,
    /// Position among the tasks of its rack with the same tolerance.
    at_rack: u32,
    /// Carried traffic of the last report to the engine, in bit/s; `None` before the first.
    reported: Option<[u64; 2]>,
    /// Mean send and receive rates in bit/s, and properties of the task's kind. They are copied here so that the data
    /// to draw a rate are adjacent in memory.
    means: [u64; 2],
    peak: f64,
    day: f64,
    network_share: f64,
    growth: Option<GrownDemand>,
}

/// All tasks on hosts.
#[derive(Debug)]
pub(super) struct Running {
    levels: Levels,
    /// Tasks by group; rates of a group change at the same step.
    groups: Vec<Vec<PlacedTask>>,
    /// Position of each task in its group.
    position: Vec<u32>,
    /// Tasks of each rack: intolerant ones, and tolerant ones.
    racks: Vec<[Vec<u32>; 2]>,
    /// Thousandths of processors in use, and in total.
    cpus: (u64, u64),
}

impl Running {
    /// Creates an empty state for `tasks` tasks.
    pub fn new(fabric: &Fabric, tasks: usize, levels: Levels) -> Running {
        let all = fabric.all_hosts().filter_map(|host| fabric.cpus(host)).map(|cpus| cpus.0).sum();
        Running {
            levels,
            groups: vec![Vec::new(); levels.groups()],
            position: vec![NOWHERE; tasks],
            racks: vec![[Vec::new(), Vec::new()]; fabric.rack_count()],
            cpus: (0, all),
        }
    }

    /// Number of tasks on hosts.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Share of processors in use; zero if hosts state none.
    pub fn processors(&self) -> f64 {
        if self.cpus.1 == 0 { 0.0 } else { self.cpus.0 as f64 / self.cpus.1 as f64 }
    }

    fn get(&self, task: u32) -> Option<&PlacedTask> {
        self.groups[self.levels.group(task)].get(self.position[task as usize] as usize)
    }

    fn get_mut(&mut self, task: u32) -> &mut PlacedTask {
        &mut self.groups[self.levels.group(task)][self.position[task as usize] as usize]
    }

    /// Returns the end of a task; `None` if it has no host.
    pub fn ends(&self, task: u32) -> Option<f64> {
        self.get(task).map(|placed| placed.ends)
    }

    /// Returns true if a task is on a host and down.
    pub fn is_down(&self, task: u32) -> bool {
        self.get(task).is_some_and(|placed| placed.down)
    }

    /// Appends the tolerant tasks of a rack whose traffic has changed since the last report. Each entry has the task
    /// and its carried traffic in bit/s.
    pub fn changed_traffic(&mut self, rack: DomainId, loads: &Loads, traffic: &mut Vec<(u32, [u64; 2])>) {
        let shares = loads.shares(rack);
        for &task in &self.racks[rack.index()][1] {
            let placed = &mut self.groups[self.levels.group(task)][self.position[task as usize] as usize];
            let carried = placed.carried(shares);
            if placed.reported.replace(carried) != Some(carried) {
                traffic.push((task, carried));
            }
        }
    }

    /// Appends all running tasks whose rates change at this step, with the traffic carried at the ending rate in bit/s.
    /// Each task is appended once per rate.
    pub fn ending_traffic(&mut self, step: u64, loads: &Loads, traffic: &mut Vec<(u32, [u64; 2])>) {
        let group = self.levels.changing(step);
        for placed in self.groups[group].iter_mut().filter(|placed| !placed.down) {
            let carried = placed.carried(loads.shares(placed.rack));
            placed.reported = Some(carried);
            traffic.push((placed.task, carried));
        }
    }

    /// Returns the tasks of a host.
    pub fn of_host(&self, fabric: &Fabric, host: HostId) -> Vec<u32> {
        let on_host = |task: &u32| self.get(*task).is_some_and(|placed| placed.host == host);
        let of_rack = self.racks[fabric.rack_of(host).index()].iter().flatten();
        let mut tasks: Vec<u32> = of_rack.copied().filter(on_host).collect();
        tasks.sort_unstable();
        tasks
    }

    /// Adds a task to a host; it is down until [`Running::set_up`].
    pub fn start(&mut self, fabric: &Fabric, task: u32, host: HostId, ends: f64, workload: &Workload) {
        debug_assert!(self.get(task).is_none(), "task {task} is on a host already");
        let rack = fabric.rack_of(host);
        let demand = &workload.tasks[task as usize];
        let CellKind { peak, day, network_share, demand: declared, growth, .. } =
            workload.cell_kinds[demand.kind as usize];
        let of_rack = &mut self.racks[rack.index()][usize::from(declared.tolerant)];
        let of_group = &mut self.groups[self.levels.group(task)];
        self.position[task as usize] = of_group.len() as u32;
        of_group.push(PlacedTask {
            task,
            host,
            rack,
            rates: [0; 2],
            ends,
            down: true,
            tolerant: declared.tolerant,
            at_rack: of_rack.len() as u32,
            reported: None,
            means: [demand.egress_bps, demand.ingress_bps],
            peak,
            day,
            network_share,
            growth,
        });
        of_rack.push(task);
        self.cpus.0 += cpus(task, workload);
    }

    /// Removes a task from its host. Returns the time at which it would have ended.
    pub fn remove(&mut self, task: u32, workload: &Workload, loads: &mut Loads) -> Option<f64> {
        let placed = *self.get(task)?;
        loads.add_request(placed.rack, placed.rates.map(|rate| -rate));
        self.leave_rack(placed);
        let group = &mut self.groups[self.levels.group(task)];
        let position = std::mem::replace(&mut self.position[task as usize], NOWHERE);
        group.swap_remove(position as usize);
        if let Some(other) = group.get(position as usize) {
            self.position[other.task as usize] = position;
        }
        self.cpus.0 -= cpus(task, workload);
        Some(placed.ends)
    }

    /// Moves a task to another host.
    pub fn relocate(&mut self, fabric: &Fabric, task: u32, to: HostId, loads: &mut Loads) {
        let placed = *self.get_mut(task);
        loads.add_request(placed.rack, placed.rates.map(|rate| -rate));
        self.leave_rack(placed);
        let rack = fabric.rack_of(to);
        loads.add_request(rack, placed.rates);
        let of_rack = &mut self.racks[rack.index()][usize::from(placed.tolerant)];
        let at_rack = of_rack.len() as u32;
        of_rack.push(task);
        let placed = self.get_mut(task);
        (placed.host, placed.rack, placed.at_rack) = (to, rack, at_rack);
    }

    fn leave_rack(&mut self, placed: PlacedTask) {
        let rack = &mut self.racks[placed.rack.index()][usize::from(placed.tolerant)];
        rack.swap_remove(placed.at_rack as usize);
        if let Some(&other) = rack.get(placed.at_rack as usize) {
            self.get_mut(other).at_rack = placed.at_rack;
        }
    }

    /// Stops a task until [`Running::set_up`], and delays its end by `seconds`.
    pub fn set_down(&mut self, task: u32, seconds: f64, loads: &mut Loads) {
        let placed = self.get_mut(task);
        placed.down = true;
        placed.ends += seconds;
        let (rack, rates) = (placed.rack, std::mem::take(&mut placed.rates));
        loads.add_request(rack, rates.map(|rate| -rate));
    }

    /// Starts a task that was down, from this step on.
    pub fn set_up(&mut self, task: u32, step: u64, now: f64, loads: &mut Loads) {
        let levels = self.levels;
        let placed = self.get_mut(task);
        placed.down = false;
        placed.draw(&levels, step, Moment::new(now), loads);
    }

    /// Draws the rates that change at a step.
    pub fn redraw(&mut self, step: u64, now: f64, loads: &mut Loads) {
        let (group, moment) = (self.levels.changing(step), Moment::new(now));
        for placed in self.groups[group].iter_mut().filter(|placed| !placed.down) {
            placed.draw(&self.levels, step, moment, loads);
        }
    }

    /// Delays tolerant tasks if the network carries less than their requested rates.
    pub fn slow_down(&mut self, seconds: f64, loads: &Loads) {
        for (rack, [_, tasks]) in self.racks.iter().enumerate() {
            let shares = loads.shares(DomainId(rack as u32));
            if shares == [1.0; 2] {
                continue;
            }
            for &task in tasks {
                let placed = &mut self.groups[self.levels.group(task)][self.position[task as usize] as usize];
                let share =
                    |direction: usize| if placed.rates[direction] > 0 { shares[direction] } else { 1.0 };
                let share = share(0).min(share(1));
                placed.ends += seconds * (1.0 - speed(placed.network_share, share));
            }
        }
    }
}

impl PlacedTask {
    /// Returns the carried traffic, given the carried shares.
    fn carried(&self, shares: [f64; 2]) -> [u64; 2] {
        [0, 1].map(|direction| (self.rates[direction] as f64 * shares[direction]).round() as u64)
    }

    /// Draws the rates for a step.
    fn draw(&mut self, levels: &Levels, step: u64, moment: Moment, loads: &mut Loads) {
        let grown = self.growth.map_or(1.0, |growth| growth.factor_at(moment.now));
        let factor = levels.level(self.task, step, self.peak) * (1.0 + self.day * moment.swing) * grown;
        let rates = self.means.map(|mean| (mean as f64 * factor + 0.5) as i64);
        let before = std::mem::replace(&mut self.rates, rates);
        loads.add_request(self.rack, [rates[0] - before[0], rates[1] - before[1]]);
    }
}

/// Returns the relative speed of a task. The share `phi` of its work waits for the network, which carries `share` of
/// its traffic.
fn speed(phi: f64, share: f64) -> f64 {
    if phi == 0.0 { 1.0 } else { share / ((1.0 - phi) * share + phi) }
}

fn cpus(task: u32, workload: &Workload) -> u64 {
    workload.cell_kinds[workload.tasks[task as usize].kind as usize].demand.cpus.0
}
