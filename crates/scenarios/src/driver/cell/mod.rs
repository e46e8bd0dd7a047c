//! Driver of a cell: a scheduler's stream of tasks that arrive, run on hosts and leave. An engine places them, sees the
//! links of their racks only by telemetry, and moves tasks (Hotspots section 5.1).
//!
//! Time advances in steps of the telemetry interval. Events within a step take effect at its end. First,
//! finished tasks leave and moved tasks run again. Next, the true state changes, reports arrive and tasks are
//! moved. Last, arrived tasks are placed. Then rates are drawn for the next step.
//!
//! **Traffic of tasks.** All traffic of a task, in both directions, leaves its rack. So the traffic crosses the link of
//! the rack and the link of the pod. (A cell's tasks talk to storage and to other tasks anywhere; locality is not
//! modeled.) Every five minutes, each task's rate is drawn by a hash of seed, task and time. The rate is the task's
//! mean rate times a level. The level is `peak (1 - (1 - u)^(1 / (peak - 1)))` for a uniform u; it has a mean of 1 and
//! is at most `peak`. The rate does not depend on the location of a task, nor on any other task. During the growth of a
//! service, its rates are multiplied as they are drawn.
//!
//! **Traffic of disk servers** crosses the links of their racks and pods too. It is drawn in the same way, in both
//! directions alike.
//!
//! **Loads of links.** Tasks share a link in proportion to their requested rates. The link carries the sum of these
//! rates, or its capacity if that is less. Hosts' own interfaces are not modeled.
//!
//! **Effect on tasks.** A share phi of a tolerant task's work waits for the network. If its link carries a share s of
//! the requested load, the task runs at 1 / (1 - phi + phi / s) of its speed. The run time of services is fixed.
//!
//! A task without a host waits and is requested again in each interval. A moved task is down for its restart time and
//! then continues. A task whose host fails also restarts, after it gets another host.

mod disk_servers;
mod events;
mod levels;
mod loads;
mod running;
mod telemetry;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_engine::{CommittedDecision, Engine, Input, Output, Policies, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{Ledger, Sample};
use leeward_placement::tasks::{AppRequest, Assignment, TaskId};
use leeward_placement::{Explain, Refusal};
use leeward_workloads::{CellTask, Workload};

use crate::driver::error::{Progress, RunError};
use crate::outage::Outages;
use crate::record::{CellInterval, CellTasks, Host, LinkRecorder, Record, Task};
use crate::scenario::{Event, Scenario};
use crate::telemetry::{Counter, Reporters, Telemetry};

use disk_servers::DiskServers;
use levels::Levels;
use loads::Loads;
use running::Running;

/// A run.
struct Driver<'a> {
    scenario: &'a Scenario,
    fabric: Arc<Fabric>,
    workload: &'a Workload,
    engine: Engine,
    /// True if the policy moves tasks, so that the engine needs their traffic.
    moves: bool,
    outages: Outages,
    reporters: Reporters,
    links: LinkRecorder,
    loads: Loads,
    running: Running,
    disk_servers: DiskServers,
    /// Tasks by the step at which they end without further delay.
    ends: BTreeMap<u64, Vec<u32>>,
    /// Tasks by the step at which their restart ends.
    restarts: BTreeMap<u64, Vec<u32>>,
    /// Samples in transit.
    late: BTreeMap<(Nanos, u64), Vec<Sample>>,
    sequence: u64,
    arrived: usize,
    waiting_tasks: waiting::WaitingTasks,
    /// Events of the scenario and of the workload, by time.
    events: Vec<Event>,
    /// Number of applied events.
    applied: usize,
    step: u64,
    outputs: Vec<Output>,
    /// Activity of tasks since the last recorded interval.
    activity: CellTasks,
    record: Record,
}

/// Runs a scenario's tasks under policies. `progress` regularly receives the finished share of the run; it returns
/// false to stop the run.
///
/// # Errors
/// Returns an error for invalid settings or telemetry, or [`RunError::Stopped`] if `progress` stopped it.
pub fn run(
    scenario: &Scenario,
    workload: &Workload,
    policies: Policies,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Record, RunError> {
    Driver::new(scenario, workload, policies, seed)?.run(progress)
}

impl<'a> Driver<'a> {
    fn new(
        scenario: &'a Scenario,
        workload: &'a Workload,
        policies: Policies,
        seed: u64,
    ) -> Result<Driver<'a>, RunError> {
        let fabric = scenario.cluster.fabric.clone();
        let truth = scenario.cluster.capacities.clone();
        let interval = scenario.telemetry.interval;
        let (hot_test, cooldown) = (scenario.moves.test(), u64::from(scenario.moves.cooldown));
        let cooldown = Nanos(interval.0.saturating_mul(cooldown));
        let has_moves = policies.moves.is_some();
        let history = workload.history;
        let policies = Policies { cooldown, hot_test, history, ..policies };
        let ledger = Ledger::new(fabric.clone(), &truth, scenario.ledger.clone())?;
        let levels = Levels::of_tasks(seed, interval);
        let disk_levels = Levels::of_disk_servers(seed, interval);
        Ok(Driver {
            engine: Engine::new(ledger, policies, seed, Explain::Off),
            moves: has_moves,
            reporters: Reporters::new(counters(&scenario.telemetry)?, &fabric, seed),
            links: LinkRecorder::new(&fabric, scenario.ledger.hot).without_hosts(),
            loads: Loads::new(fabric.clone(), scenario.ledger.hot),
            running: Running::new(&fabric, workload.tasks.len(), levels),
            disk_servers: DiskServers::new(&fabric, &workload.disk_servers, disk_levels),
            outages: Outages::new(fabric.clone(), truth),
            ends: BTreeMap::new(),
            restarts: BTreeMap::new(),
            late: BTreeMap::new(),
            sequence: 0,
            arrived: 0,
            waiting_tasks: waiting::WaitingTasks::new(workload),
            events: events::by_time(scenario, workload),
            applied: 0,
            step: 0,
            outputs: Vec::new(),
            activity: CellTasks::default(),
            record: Record {
                tasks: records(workload),
                hosts: vec![Host::default(); fabric.host_count()],
                ..Record::default()
            },
            scenario,
            fabric,
            workload,
        })
    }

    fn run(mut self, progress: Progress<'_>) -> Result<Record, RunError> {
        let (horizon, interval) = (self.scenario.horizon, self.reporters.interval());
        let sample = self.scenario.sample;
        let (mut now, mut interval_end) = (Nanos(0), sample);
        loop {
            self.end_tasks(now);
            if now >= horizon {
                break;
            }
            self.restart_tasks(now);
            self.apply_events(now);
            self.report_rates(now);
            self.read_counters(now);
            self.request_hosts(now);
            let at = now.as_secs_f64();
            self.running.redraw(self.step, at, &mut self.loads);
            self.disk_servers.redraw(self.step, at, &self.outages, &mut self.loads);
            self.loads.settle(self.outages.truth());
            let next = now.plus(interval).min(horizon);
            while interval_end <= next {
                self.record_interval(now, interval_end);
                interval_end = interval_end.plus(sample);
            }
            let seconds = next.since(now).as_secs_f64();
            self.running.slow_down(seconds, &self.loads);
            self.loads.carry(seconds, self.outages.truth());
            (now, self.step) = (next, self.step + 1);
            if !progress(now.as_secs_f64() / horizon.as_secs_f64()) {
                return Err(RunError::Stopped);
            }
        }
        self.links.finish(&mut self.record);
        Ok(self.record)
    }

    /// Returns the step at which an event at this time is due.
    fn step_of(&self, seconds: f64) -> u64 {
        let steps = seconds / self.reporters.interval().as_secs_f64();
        // A rounding error must not delay the event by a step.
        (steps - 1e-6).ceil().max(0.0) as u64
    }

    /// Starts a task on a host; `restarts` is true if it ran elsewhere before.
    fn start(&mut self, now: Nanos, task: u32, host: HostId, left: f64, restarts: bool) {
        let seconds = now.as_secs_f64();
        self.running.start(&self.fabric, task, host, seconds + left, self.workload);
        if restarts {
            self.stop_for_restart(now, task);
        } else {
            self.running.set_up(task, self.step, seconds, &mut self.loads);
        }
        // A restart has delayed its end.
        let ends = self.running.ends(task).unwrap_or(seconds + left);
        let ends = self.step_of(ends).max(self.step + 1);
        self.ends.entry(ends).or_default().push(task);
        let record = &mut self.record.tasks[task as usize];
        record.placed.get_or_insert(seconds);
        record.host = Some(host);
        let (rack, intensive) = (self.fabric.rack_of(host), record.intensive);
        self.count_scheduled(intensive, self.loads.is_hot(rack));
    }

    fn count_scheduled(&mut self, intensive: bool, hot: bool) {
        self.activity.scheduled += 1;
        self.activity.intensive += u32::from(intensive);
        self.activity.intensive_on_hot += u32::from(intensive && hot);
    }

    /// Stops a task for its restart time, which delays its end.
    fn stop_for_restart(&mut self, now: Nanos, task: u32) {
        let kind = self.workload.tasks[task as usize].kind;
        let restart = self.workload.cell_kinds[kind as usize].restart;
        let up = self.step_of(now.as_secs_f64() + restart).max(self.step);
        let down = (up - self.step) as f64 * self.reporters.interval().as_secs_f64();
        self.running.set_down(task, down, &mut self.loads);
        self.record.tasks[task as usize].down += down;
        self.restarts.entry(up).or_default().push(task);
        if up == self.step {
            self.restart_tasks(now);
        }
    }

    fn restart_tasks(&mut self, now: Nanos) {
        for task in self.restarts.remove(&self.step).unwrap_or_default() {
            if self.running.is_down(task) {
                self.running.set_up(task, self.step, now.as_secs_f64(), &mut self.loads);
                self.notify(now, Input::TaskRestarted(TaskId { app: u64::from(task), index: 0 }));
            }
        }
    }

    /// Removes tasks that have finished their work.
    fn end_tasks(&mut self, now: Nanos) {
        for task in self.ends.remove(&self.step).unwrap_or_default() {
            let Some(ends) = self.running.ends(task) else { continue };
            let due = self.step_of(ends);
            if due > self.step {
                // The task was delayed.
                self.ends.entry(due).or_default().push(task);
                continue;
            }
            self.running.remove(task, self.workload, &mut self.loads);
            self.notify(now, Input::Ended(u64::from(task)));
            self.record.tasks[task as usize].finished = Some(now.as_secs_f64());
        }
    }

    fn notify(&mut self, now: Nanos, input: Input<'_>) {
        self.engine.handle(now, input, &mut self.outputs);
        self.drop_wake_ups();
    }

    /// Places a task; the engine decides at once.
    fn place(&mut self, now: Nanos, request: AppRequest) -> Result<CommittedDecision<Assignment>, Refusal> {
        let placed = self.engine.place_app(now, request, Ruling::default(), &mut self.outputs);
        self.drop_wake_ups();
        placed
    }

    /// Drops wake-ups, because the driver acts at every step.
    fn drop_wake_ups(&mut self) {
        self.outputs.retain(|output| !matches!(output, Output::WakeAt(_)));
    }

    /// Records the interval that ends at `end`, in the step that began at `step`.
    fn record_interval(&mut self, step: Nanos, end: Nanos) {
        let (truth, warmup) = (self.outages.truth(), self.scenario.warmup.as_secs_f64());
        let seconds = end.since(step).as_secs_f64();
        let first = self.record.links.len();
        let carried = |link| self.loads.carried(link, seconds);
        self.links.end_interval(end.as_secs_f64(), warmup, truth, carried, &mut self.record);
        let mut tasks = std::mem::take(&mut self.activity);
        let links = &self.record.links[first..];
        if !links.is_empty() {
            tasks.running = self.running.len() as u32;
            tasks.waiting = self.waiting_tasks.waiting() as u32;
            tasks.processors = self.running.processors();
            let (fabric, hot) = (&self.fabric, self.scenario.ledger.hot);
            let interval = CellInterval::of(links, end.as_secs_f64(), fabric, hot, truth, tasks);
            self.record.cell.push(interval);
        }
    }
}

/// Selects the counters of racks and pods; interfaces of hosts and devices are not modeled.
fn counters(telemetry: &Telemetry) -> Result<Telemetry, InputError> {
    let mut telemetry = telemetry.clone();
    if !telemetry.counters.contains(&Counter::Racks) {
        let message = "without `racks`: only counters of racks' links measure the tasks of a cell";
        return Err(InputError::new("telemetry", message).in_field("counters"));
    }
    telemetry.counters.retain(|counter| matches!(counter, Counter::Racks | Counter::Pods));
    Ok(telemetry)
}

/// Creates an empty record of each task.
fn records(workload: &Workload) -> Vec<Task> {
    let kind = |kind: u32| &workload.cell_kinds[kind as usize];
    let intensity = |task: &CellTask| {
        let cpus = kind(task.kind).demand.cpus.0.max(1) as f64;
        (task.egress_bps as f64 + task.ingress_bps as f64) / cpus
    };
    let mut sorted: Vec<f64> = workload.tasks.iter().map(intensity).collect();
    let tenth = sorted.len() / 10;
    let limit = match sorted.len() {
        0 => f64::INFINITY,
        count => *sorted.select_nth_unstable_by(count - 1 - tenth, f64::total_cmp).1,
    };
    let record = |task: &CellTask| Task {
        job: task.job,
        arrived: task.arrive,
        duration: task.duration,
        placed: None,
        finished: None,
        host: None,
        moves: 0,
        refused: 0,
        down: 0.0,
        tolerant: kind(task.kind).demand.tolerant,
        intensive: intensity(task) > limit,
    };
    workload.tasks.iter().map(record).collect()
}
