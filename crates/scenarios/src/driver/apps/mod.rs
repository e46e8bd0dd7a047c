//! Driver of apps: apps arrive, are placed as a whole, and send the transfers of their matrices over a fluid network.
//! Placement does not affect the background (Choreo sections 2.3, 2.4 and 6.3).
//!
//! All transfers of an app's first phase begin at its placement, and those of each later phase when the earlier ones have
//! ended, each as a flow from host to host. The app ends with the last of them. A transfer within a host takes no time. The engine sees the network only by telemetry, and knows its own
//! placements. Running apps are cross traffic for new ones, and so is other load on links (`cross`). An app that fits
//! nowhere waits, and is requested again when another app ends.
//!
//! With `migration`, every running app is placed again at an interval. An app that moves stops sending. The memory of
//! each moved task crosses the network as a flow. After a pause, the app's remaining transfers continue from its new
//! hosts. The capacity on its former hosts is free at once.
//!
//! Events at the same time are handled in this order: completions, changes of the true state, late reports and ends of
//! pauses, recording, reports, background, arrivals, waiting apps, re-placement. After the horizon nothing new arrives.
//! Running and waiting apps continue, but not beyond twice the horizon.

mod cross;
mod moves;
mod running;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leeward_engine::{Engine, Input, Output, Policies};
use leeward_fabric::{Cluster, HostId, Nanos};
use leeward_fluid::FlowId;
use leeward_ledger::{Ledger, Sample};
use leeward_placement::Explain;
use leeward_workloads::{AppArrival, Workload};

use super::world::World;
use crate::driver::error::{Progress, RunError};
use crate::record::{App, Host, Record};
use crate::scenario::{Event, Scenario};
use crate::telemetry::TimedSamples;
use cross::Cross;
use running::Running;

/// Purpose of an app's flow: a transfer, or the memory of a moving task.
struct FlowPurpose {
    app: u32,
    /// Position of the transfer, or of the task.
    part: u32,
    ends: (HostId, HostId),
    /// Its total bytes, and the bytes counted so far.
    bytes: f64,
    counted: f64,
}

/// An event at a known time.
enum Pending {
    /// A report, with the apps' traffic for each sample.
    Samples(Vec<Sample>, Vec<f64>),
    Event(Event),
    /// End of the pause of an app.
    Resume(u32),
}

/// A run.
struct Driver<'a> {
    scenario: &'a Scenario,
    workload: &'a Workload,
    world: World<'a, Pending>,
    engine: Engine,
    record: Record,
    /// Purpose of each flow; flows that are missing here are background. No loop iterates over the map, so its order
    /// has no effect.
    purposes: HashMap<FlowId, FlowPurpose>,
    cross: Cross,
    running: BTreeMap<u32, Running>,
    /// Apps without hosts; the value is true if the policy lacked data.
    waiting: BTreeMap<u32, bool>,
    /// True if capacity became free after the last requests of waiting apps.
    freed: bool,
    /// True if reports arrived after the last requests of waiting apps.
    reported: bool,
    /// Hosts whose failure was not announced, but detected by a placement on them.
    detected_failures: BTreeSet<HostId>,
}

/// Runs a scenario's apps under policies. `progress` regularly receives the finished share of the run; it returns
/// false to stop the run.
///
/// # Errors
/// Returns an error for invalid settings or arrivals, or [`RunError::Stopped`] if `progress` stopped it.
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
        let Cluster { fabric, capacities, .. } = &scenario.cluster;
        let ledger = Ledger::new(fabric.clone(), capacities, scenario.ledger.clone())?;
        let record = Record {
            apps: workload.apps.iter().map(app_record).collect(),
            hosts: vec![Host::default(); fabric.host_count()],
            ..Record::default()
        };
        Ok(Driver {
            world: World::new(scenario, workload, seed, Pending::Event)?,
            engine: Engine::new(ledger, policies, seed, Explain::Off),
            purposes: HashMap::new(),
            cross: Cross::new(fabric.resource_count()),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            freed: false,
            reported: false,
            detected_failures: BTreeSet::new(),
            record,
            scenario,
            workload,
        })
    }

    fn run(mut self, progress: Progress<'_>) -> Result<Record, RunError> {
        let (workload, horizon) = (self.workload, self.scenario.horizon.as_secs_f64());
        let every = self.scenario.migration.as_ref().map(|migration| migration.every);
        let mut next_reevaluation = every;
        let mut apps = 0;
        let mut finished = Vec::new();
        loop {
            let arrival = workload.apps.get(apps).map_or(f64::INFINITY, |app| app.arrive);
            let clock = next_reevaluation.map_or(f64::INFINITY, Nanos::as_secs_f64);
            let Some(now) = self.world.next_step(arrival, clock, !self.running.is_empty()) else { break };
            self.world.network.advance(now, &mut finished)?;
            for done in finished.drain(..) {
                self.finish_flow(done)?;
            }
            let clock = Nanos::from_secs_f64(now);
            while let Some((at, pending)) = self.world.pop_due(clock) {
                match pending {
                    Pending::Event(event) => self.apply_event(now, event)?,
                    Pending::Samples(samples, own) => self.report(now, &samples, &own),
                    Pending::Resume(app) => self.resume(now, app, at)?,
                }
            }
            self.world.end_interval(now, &mut self.record);
            if let Some((read, messages)) = self.world.read_counters(now) {
                self.deliver(now, read, messages);
                if !progress(self.world.progress(now)) {
                    return Err(RunError::Stopped);
                }
            }
            self.world.start_background(now)?;
            while workload.apps.get(apps).is_some_and(|app| app.arrive <= now && app.arrive < horizon) {
                self.request_hosts(now, apps as u32)?;
                apps += 1;
            }
            self.retry_waiting(now)?;
            if next_reevaluation.is_some_and(|at| at <= clock) {
                next_reevaluation = next_reevaluation.zip(every).map(|(at, every)| at.plus(every));
                self.reevaluate_apps(now)?;
                // The apps that moved have freed capacity.
                self.retry_waiting(now)?;
            }
        }
        self.world.finish(&mut self.record);
        Ok(self.record)
    }

    fn notify(&mut self, now: f64, input: Input<'_>) {
        self.call(now, |engine, at, out| engine.handle(at, input, out));
    }

    /// Runs an operation of the engine. Its outputs are dropped: the ledger advances with the engine's next input, and
    /// apps move only on request.
    fn call<T>(&mut self, now: f64, operation: impl FnOnce(&mut Engine, Nanos, &mut Vec<Output>) -> T) -> T {
        operation(&mut self.engine, Nanos::from_secs_f64(now), &mut Vec::new())
    }

    fn report(&mut self, now: f64, samples: &[Sample], own: &[f64]) {
        let discarded = self.call(now, |engine, at, out| engine.report(at, samples, out));
        self.record.discarded += discarded.total();
        self.update_cross_traffic(now, samples, own);
        self.reported = true;
    }

    /// Delivers the reports of a reading; those with a delay arrive later.
    fn deliver(&mut self, now: f64, read: Nanos, messages: TimedSamples) {
        let own = self.own_rates(now, self.world.reporters.interval().as_secs_f64());
        for (arrives, samples) in messages {
            let own: Vec<f64> = samples.iter().map(|sample| own[sample.resource.index()]).collect();
            if arrives <= read {
                self.report(now, &samples, &own);
            } else {
                self.world.schedule(arrives, Pending::Samples(samples, own));
            }
        }
    }

    fn apply_event(&mut self, now: f64, event: Event) -> Result<(), RunError> {
        for input in self.world.apply_event(now, event, &mut self.detected_failures)? {
            self.notify(now, input);
        }
        // Hosts may be up again, or may have more capacity.
        self.freed = true;
        self.restart_failed_apps(now)
    }

    /// Restarts apps with a task on a failed host, elsewhere.
    fn restart_failed_apps(&mut self, now: f64) -> Result<(), RunError> {
        let has_failed =
            |running: &Running| running.hosts.iter().any(|&host| !self.world.outages.is_up(host));
        let failed: Vec<u32> =
            self.running.iter().filter(|(_, running)| has_failed(running)).map(|(&app, _)| app).collect();
        failed.into_iter().try_for_each(|app| self.restart(now, app))
    }
}

/// Creates an empty record of an app.
fn app_record(arrival: &AppArrival) -> App {
    let request = &arrival.request;
    App {
        name: arrival.name.clone(),
        arrived: arrival.arrive,
        tasks: request.tasks.len() as u32,
        bytes: request.transfers.iter().map(|transfer| transfer.bytes.0).sum(),
        ..App::default()
    }
}
