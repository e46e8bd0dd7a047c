//! Driver of files: a fluid [`Network`] carries a scenario's arrivals, and an engine sees them only by telemetry.
//!
//! The driver owns the true state (capacities, demands, hosts that are up); the engine owns the state that it assumes.
//! A block is one flow along its whole chain, over links and devices, so it moves at the rate of its slowest hop. A
//! writer requests the first block of a file when its task has fetched its input, and each further block when the
//! previous one is on disk. A fetch is a flow from host to host, and a read is a flow from a device to a host.
//! Background is never moved: it competes as flows, or reduces capacities as profiles.
//!
//! Events at the same time are handled in this order: completions, changes of the true state, reports, background,
//! files, reads, requests. After the horizon nothing new starts. Files and reads in progress continue, but not beyond
//! twice the horizon.

mod events;
mod reads;
mod stored;
mod tasks;
mod writes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use leeward_engine::{Engine, Input, Output};
use leeward_fabric::{Bytes, Endpoint, Fabric, Hop, HostId, Nanos};
use leeward_fluid::{FlowId, Network};
use leeward_ledger::{EntryId, Ledger, Sample};
use leeward_placement::{Candidate, Explain, Note, replicas};

use super::profiles::Profiles;
use crate::driver::error::{Progress, RunError};
use crate::outage::Outages;
use crate::record::{Host, Job, LinkRecorder, Record};
use crate::scenario::{Event, PolicySpec, Scenario};
use crate::telemetry::Reporters;
use crate::workload::{self, Workload};

/// A block in progress.
struct ActiveBlock {
    /// One flow for the chain, or one for each unwritten chunk.
    flows: Vec<FlowId>,
    entries: Vec<EntryId>,
}

/// A file with unwritten blocks.
struct OpenFile {
    /// Number of requested blocks.
    requested: u64,
    /// Bytes that are not yet requested.
    left: Bytes,
    /// Hosts that failed during the write of its current block.
    excluded: Vec<HostId>,
}

/// Purpose of a flow that is not background.
#[derive(Clone, Copy)]
enum FlowPurpose {
    /// A block, or one of its chunks.
    Block(u32),
    /// An input that the task of a file fetches.
    Fetch(u32),
    /// A read, or a chunk for it.
    Read(u32),
}

/// An event at a known time.
enum Pending {
    Samples(Vec<Sample>),
    Retry(u32),
    Event(Event),
}

/// A run.
pub struct Driver<'a> {
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
    /// Purpose of each flow; flows that are missing here are background.
    purposes: HashMap<FlowId, FlowPurpose>,
    blocks: BTreeMap<u32, ActiveBlock>,
    /// Remaining fetches of each file's task.
    fetching: BTreeMap<u32, Vec<FlowId>>,
    open: Vec<OpenFile>,
    jobs: Vec<tasks::JobProgress>,
    reads: reads::Reads<'a>,
    pending: BTreeMap<(Nanos, u64), Pending>,
    sequence: u64,
    outputs: Vec<Output>,
    wake: Option<Nanos>,
    /// Number of requested and active blocks, fetching tasks, and reads.
    working: u64,
    /// Blocks to request at the end of the current step.
    requests: Vec<u32>,
    hops: Vec<Hop>,
}

/// Runs one policy of a scenario on its arrivals. `progress` regularly receives the finished share of the run; it
/// returns false to stop the run.
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
        let policy = replicas::REGISTRY.make(&policy.name, &policy.settings)?;
        let capacities: Vec<f64> = truth.as_slice().iter().map(|capacity| capacity.0 as f64).collect();
        let mut driver = Driver {
            network: Network::new(&capacities)?.observed(),
            engine: Engine::new(ledger, policy, seed, Explain::Off),
            reporters: Reporters::new(scenario.telemetry.clone(), &fabric, seed),
            links: LinkRecorder::new(&fabric, scenario.ledger.hot),
            outages: Outages::new(fabric.clone(), truth),
            profiles: Profiles::new(fabric.resource_count()),
            record: empty_record(workload, fabric.host_count()),
            purposes: HashMap::new(),
            blocks: BTreeMap::new(),
            fetching: BTreeMap::new(),
            open: Vec::with_capacity(workload.files.len()),
            jobs: tasks::job_progress(workload),
            reads: reads::Reads::new(workload),
            pending: BTreeMap::new(),
            sequence: 0,
            outputs: Vec::new(),
            wake: None,
            working: 0,
            requests: Vec::new(),
            hops: Vec::new(),
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
        let horizon = self.scenario.horizon.as_secs_f64();
        let seconds = |at: Option<Nanos>| at.map_or(f64::INFINITY, Nanos::as_secs_f64);
        let workload = self.workload;
        let (mut rates, mut flows, mut files) = (0, 0, 0);
        let (interval, sample) = (self.reporters.interval(), self.scenario.sample);
        let (mut tick, mut interval_end) = (interval, sample);
        let mut finished = Vec::new();
        loop {
            let arrivals = [
                workload.rates.get(rates).map_or(f64::INFINITY, |rate| rate.at),
                workload.flows.get(flows).map_or(f64::INFINITY, |flow| flow.start),
                workload.files.get(files).map_or(f64::INFINITY, |file| file.start),
                self.reads.next_arrival(),
            ];
            // Arrivals after the horizon are left out; the run continues while a task is active.
            let arrivals = arrivals.into_iter().fold(f64::INFINITY, f64::min);
            let arrivals = if arrivals < horizon { arrivals } else { f64::INFINITY };
            let clocks = [Some(tick), self.wake, self.pending.first_key_value().map(|(key, _)| key.0)];
            let clocks = seconds(clocks.into_iter().flatten().min()).min(interval_end.as_secs_f64());
            let clocks = clocks.min(self.reads.next_deadline(&self.record));
            let now = self.network.next_completion().unwrap_or(f64::INFINITY).min(arrivals).min(clocks);
            let is_over = now > horizon && self.working == 0 && arrivals == f64::INFINITY;
            if is_over || now > 2.0 * horizon {
                break;
            }
            self.network.advance(now, &mut finished)?;
            for done in finished.drain(..) {
                self.finish_flow(done);
            }
            let clock = Nanos::from_secs_f64(now);
            while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().0 <= clock) {
                match entry.remove() {
                    Pending::Event(event) => self.apply_event(now, event)?,
                    Pending::Samples(samples) => self.report(now, &samples),
                    Pending::Retry(block) => self.requests.push(block),
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
                self.start_background(now, flow)?;
                flows += 1;
            }
            while let Some(file) =
                workload.files.get(files).filter(|file| file.start <= now && file.start < horizon)
            {
                self.open_file(now, file)?;
                files += 1;
            }
            self.start_reads(now)?;
            if self.wake.is_some_and(|at| at <= clock) {
                self.wake = None;
                self.notify(now, Input::Wake);
            }
            self.carry_out(now)?;
        }
        self.links.finish(&mut self.record);
        self.record.flows.1 = flows as u64 - self.record.flows.0;
        Ok(self.record)
    }

    fn start_background(&mut self, now: f64, flow: &workload::Flow) -> Result<(), RunError> {
        self.hops.clear();
        self.fabric.path(&[flow.from, flow.to], &mut self.hops);
        let class = class_of(flow.from).zip(class_of(flow.to)).map(|(from, to)| from << 32 | to);
        self.network.start(now, &self.hops, flow.bytes.0 as f64, 1.0, f64::INFINITY, class)?;
        Ok(())
    }

    fn notify(&mut self, now: f64, input: Input<'_>) {
        self.engine.handle(Nanos::from_secs_f64(now), input, &mut self.outputs);
    }

    fn report(&mut self, now: f64, samples: &[Sample]) {
        let discarded = self.engine.report(Nanos::from_secs_f64(now), samples, &mut self.outputs);
        self.record.discarded += discarded.total();
    }

    /// Sends pending requests and carries out the engine's outputs, until neither has more.
    fn carry_out(&mut self, now: f64) -> Result<(), RunError> {
        while !self.outputs.is_empty() || !self.requests.is_empty() {
            for block in std::mem::take(&mut self.requests) {
                self.request_placement(now, block);
            }
            for output in std::mem::take(&mut self.outputs) {
                match output {
                    Output::WakeAt(at) => self.wake = Some(at),
                    Output::ReplicasPlaced(block, answer) => match answer {
                        Ok(placed) => {
                            let decision = placed.decision;
                            self.record.blocks[block as usize].blind =
                                decision.basis.note == Some(Note::NoTelemetry);
                            self.write(now, block as u32, decision.choice, placed.entries)?;
                        }
                        Err(_) => self.retry(now, block as u32),
                    },
                    Output::MovesAdvised(_) => unreachable!("this driver has no policy for moves"),
                }
            }
        }
        Ok(())
    }

    fn read_counters(&mut self, now: f64, tick: Nanos) {
        let (network, profiles, outages) = (&self.network, &self.profiles, &self.outages);
        let carried = |r| network.carried(r, now) + profiles.carried(r, now);
        let messages = self.reporters.read(tick, carried, |source| match source {
            Candidate::Host(host) => outages.is_up(host),
            Candidate::Domain(domain) => outages.is_domain_up(domain),
        });
        for (arrives, samples) in messages {
            if arrives <= tick {
                self.report(now, &samples);
            } else {
                self.schedule(arrives, Pending::Samples(samples));
            }
        }
    }

    fn record_interval(&mut self, now: f64) {
        let (network, profiles, truth) = (&self.network, &self.profiles, self.outages.truth());
        let carried = |r| network.carried(r, now) + profiles.carried(r, now);
        self.links.end_interval(now, self.scenario.warmup.as_secs_f64(), truth, carried, &mut self.record);
    }
}

fn empty_record(workload: &Workload, hosts: usize) -> Record {
    let job = |job: &workload::Job| Job {
        name: job.name.clone(),
        start: job.start,
        bytes: Bytes(0),
        write_start: None,
        communication: 0.0,
        finished: None,
    };
    Record {
        jobs: workload.jobs.iter().map(job).collect(),
        hosts: vec![Host::default(); hosts],
        skipped_reads: reads::skipped(workload),
        ..Record::default()
    }
}

/// Returns a number for a host, rack or pod. Background flows between the same two numbers share one entry of the
/// network.
pub(super) fn class_of(endpoint: Endpoint) -> Option<u64> {
    match endpoint {
        Endpoint::Host(host) => Some(u64::from(host.0) << 1),
        Endpoint::Domain(domain) => Some(u64::from(domain.0) << 1 | 1),
        Endpoint::DeviceWrite(..) | Endpoint::DeviceRead(..) => None,
    }
}
