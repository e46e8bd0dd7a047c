//! Driver of apps: apps arrive, are placed as a whole, and send the transfers of their matrices over a [`Network`].
//! Placement does not affect the background (Choreo sections 2.3, 2.4 and 6.3).
//!
//! All transfers of an app begin at its placement, each as a flow from host to host. The app ends with the last of
//! them. A transfer within a host takes no time. The engine sees the network only by telemetry, and knows its own
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
mod events;
mod moves;
mod running;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use leeward_engine::{Engine, Input, Output, Policies};
use leeward_fabric::{Endpoint, Fabric, Hop, HostId, Nanos};
use leeward_fluid::{FlowId, Network};
use leeward_ledger::{Ledger, Sample};
use leeward_placement::{Candidate, Explain, tasks};

use super::profiles::Profiles;
use super::replicas::class_of;
use crate::driver::error::{Progress, RunError};
use crate::outage::Outages;
use crate::record::{App, Host, LinkRecorder, Record};
use crate::scenario::{Event, PolicySpec, Scenario};
use crate::telemetry::Reporters;
use crate::workload::{AppArrival, Workload};
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
    fabric: Arc<Fabric>,
    workload: &'a Workload,
    network: Network,
    engine: Engine,
    outages: Outages,
    profiles: Profiles,
    reporters: Reporters,
    links: LinkRecorder,
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
    pending: BTreeMap<(Nanos, u64), Pending>,
    sequence: u64,
    hops: Vec<Hop>,
}

/// Runs one policy of a scenario on its apps. `progress` regularly receives the finished share of the run; it returns
/// false to stop the run.
///
/// # Errors
/// Returns an error for an invalid policy, invalid settings or arrivals, or [`RunError::Stopped`] if
/// `progress` stopped it.
pub fn run(
    scenario: &Scenario,
    workload: &Workload,
    policy: &PolicySpec,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Record, RunError> {
    Driver::new(scenario, workload, policy, seed)?.run(progress)
}

impl<'a> Driver<'a> {
    fn new(
        scenario: &'a Scenario,
        workload: &'a Workload,
        policy: &PolicySpec,
        seed: u64,
    ) -> Result<Driver<'a>, RunError> {
        let fabric = scenario.cluster.fabric.clone();
        let truth = scenario.cluster.capacities.clone();
        let ledger = Ledger::new(fabric.clone(), &truth, scenario.ledger.clone())?;
        let tasks = Some(tasks::REGISTRY.make(&policy.name, &policy.settings)?);
        let policies = Policies { tasks, ..Policies::default() };
        let capacities: Vec<f64> = truth.as_slice().iter().map(|capacity| capacity.0 as f64).collect();
        let record = Record {
            apps: workload.apps.iter().map(app_record).collect(),
            hosts: vec![Host::default(); fabric.host_count()],
            ..Record::default()
        };
        let mut driver = Driver {
            network: Network::new(&capacities)?.observed(),
            engine: Engine::new(ledger, policies, seed, Explain::Off),
            reporters: Reporters::new(scenario.telemetry.clone(), &fabric, seed),
            links: LinkRecorder::new(&fabric, scenario.ledger.hot),
            outages: Outages::new(fabric.clone(), truth),
            profiles: Profiles::new(fabric.resource_count()),
            purposes: HashMap::new(),
            cross: Cross::new(fabric.resource_count()),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            freed: false,
            reported: false,
            detected_failures: BTreeSet::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            hops: Vec::new(),
            record,
            scenario,
            fabric,
            workload,
        };
        for event in &scenario.events {
            driver.schedule(event.at, Pending::Event(*event));
        }
        Ok(driver)
    }

    fn schedule(&mut self, at: Nanos, pending: Pending) {
        self.sequence += 1;
        self.pending.insert((at, self.sequence), pending);
    }

    fn run(mut self, progress: Progress<'_>) -> Result<Record, RunError> {
        let workload = self.workload;
        let horizon = self.scenario.horizon.as_secs_f64();
        let (interval, sample) = (self.reporters.interval(), self.scenario.sample);
        let (mut tick, mut interval_end) = (interval, sample);
        let every = self.scenario.migration.as_ref().map(|migration| migration.every);
        let mut next_reevaluation = every;
        let (mut rates, mut flows, mut apps) = (0, 0, 0);
        let mut finished = Vec::new();
        loop {
            let arrivals = [
                workload.rates.get(rates).map_or(f64::INFINITY, |rate| rate.at),
                workload.flows.get(flows).map_or(f64::INFINITY, |flow| flow.start),
                workload.apps.get(apps).map_or(f64::INFINITY, |app| app.arrive),
            ];
            // Arrivals after the horizon are left out; the run continues while an app is active.
            let arrivals = arrivals.into_iter().fold(f64::INFINITY, f64::min);
            let arrivals = if arrivals < horizon { arrivals } else { f64::INFINITY };
            let pending = self.pending.first_key_value().map(|(key, _)| key.0);
            let clocks =
                [Some(tick), Some(interval_end), next_reevaluation, pending].into_iter().flatten().min();
            let clocks = clocks.map_or(f64::INFINITY, Nanos::as_secs_f64);
            let now = self.network.next_completion().unwrap_or(f64::INFINITY).min(arrivals).min(clocks);
            let is_over = now > horizon && self.running.is_empty() && arrivals == f64::INFINITY;
            if is_over || now > 2.0 * horizon {
                break;
            }
            self.network.advance(now, &mut finished)?;
            for done in finished.drain(..) {
                self.finish_flow(done)?;
            }
            let clock = Nanos::from_secs_f64(now);
            while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().0 <= clock) {
                let at = entry.key().0;
                match entry.remove() {
                    Pending::Event(event) => self.apply_event(now, event)?,
                    Pending::Samples(samples, own) => self.report(now, &samples, &own),
                    Pending::Resume(app) => self.resume(now, app, at)?,
                }
            }
            if interval_end <= clock {
                if now <= horizon {
                    self.record_interval(now);
                }
                interval_end = interval_end.plus(sample);
            }
            if tick <= clock {
                self.read_counters(now, tick);
                tick = tick.plus(interval);
                if !progress((now / horizon).min(1.0)) {
                    return Err(RunError::Stopped);
                }
            }
            while let Some(rate) =
                workload.rates.get(rates).filter(|rate| rate.at <= now && rate.at < horizon)
            {
                let offered = rate.rate.0.max(0) as f64;
                self.network.set_background(now, rate.resource, offered)?;
                self.profiles.offer(now, rate.resource, offered, self.outages.truth());
                rates += 1;
            }
            while let Some(flow) =
                workload.flows.get(flows).filter(|flow| flow.start <= now && flow.start < horizon)
            {
                self.start_flow(now, flow.from, flow.to, flow.bytes.0 as f64)?;
                flows += 1;
            }
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
        self.links.finish(&mut self.record);
        self.record.flows.1 = flows as u64 - self.record.flows.0;
        Ok(self.record)
    }

    /// Starts a flow. Flows between the same two ends share an entry of the network.
    fn start_flow(&mut self, now: f64, from: Endpoint, to: Endpoint, bytes: f64) -> Result<FlowId, RunError> {
        self.hops.clear();
        self.fabric.path(&[from, to], &mut self.hops);
        let class = class_of(from).zip(class_of(to)).map(|(from, to)| from << 32 | to);
        Ok(self.network.start(now, &self.hops, bytes, 1.0, f64::INFINITY, class)?)
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

    fn read_counters(&mut self, now: f64, tick: Nanos) {
        let own = self.own_rates(now, self.reporters.interval().as_secs_f64());
        let (network, profiles, outages) = (&self.network, &self.profiles, &self.outages);
        let carried = |r| network.carried(r, now) + profiles.carried(r, now);
        let messages = self.reporters.read(tick, carried, |source| match source {
            Candidate::Host(host) => outages.is_up(host),
            Candidate::Domain(domain) => outages.is_domain_up(domain),
        });
        for (arrives, samples) in messages {
            let own: Vec<f64> = samples.iter().map(|sample| own[sample.resource.index()]).collect();
            if arrives <= tick {
                self.report(now, &samples, &own);
            } else {
                self.schedule(arrives, Pending::Samples(samples, own));
            }
        }
    }

    fn record_interval(&mut self, now: f64) {
        let (network, profiles, truth) = (&self.network, &self.profiles, self.outages.truth());
        let carried = |r| network.carried(r, now) + profiles.carried(r, now);
        self.links.end_interval(now, self.scenario.warmup.as_secs_f64(), truth, carried, &mut self.record);
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
