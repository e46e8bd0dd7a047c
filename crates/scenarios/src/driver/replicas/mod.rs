//! Driver of files: a fluid network carries a scenario's arrivals, and an engine sees them only by telemetry.
//!
//! The driver owns the true state (capacities, demands, hosts that are up); the engine owns the state that it assumes.
//! A block is one flow along its whole chain, over links and devices, so it moves at the rate of its slowest hop. A
//! writer requests the first block of a file when its task has fetched its input, and each further block when the
//! previous one is on disk. A fetch is a flow from host to host, a read is a flow from a device to a host, and a repair
//! is a flow from a device to other devices.
//! Background is never moved: it competes as flows, or reduces capacities as profiles.
//!
//! Events at the same time are handled in this order: completions, changes of the true state, reports, background,
//! files, reads, requests. After the horizon nothing new starts. Files and reads in progress continue, but not beyond
//! twice the horizon.

mod choices;
mod reads;
mod repairs;
mod stored;
mod tasks;
mod writes;

use std::collections::{BTreeMap, HashMap};

use leeward_engine::{Engine, Input, Output, Policies};
use leeward_fabric::{Bytes, Cluster, HostId, Nanos};
use leeward_fluid::FlowId;
use leeward_ledger::{EntryId, Ledger, Sample};
use leeward_placement::{Explain, Note};
use leeward_workloads::Workload;

use super::world::World;
use crate::driver::error::{Progress, RunError};
use crate::record::{Host, Job, Record};
use crate::scenario::{Event, Scenario};
use repairs::FIRST_REPAIR;

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
    /// Blocks that are not yet written, with the current one.
    blocks_left: u64,
    /// Hosts that failed during the write of its current block, in order.
    excluded: Vec<HostId>,
    /// Written blocks of the first attempt, if that fails.
    written: Vec<u32>,
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
    /// New copies of a block, or a chunk for them.
    Repair(u32),
}

/// An event at a known time.
enum Pending {
    Samples(Vec<Sample>),
    Retry(u32),
    /// A task that failed runs again.
    Restart(u32),
    Event(Event),
    /// A host counts as dead unless it has been up since this time.
    Dead(HostId, Nanos),
    /// A round of repairs begins.
    Round,
}

/// A run.
pub struct Driver<'a> {
    scenario: &'a Scenario,
    workload: &'a Workload,
    world: World<'a, Pending>,
    engine: Engine,
    record: Record,
    /// Purpose of each flow; flows that are missing here are background.
    purposes: HashMap<FlowId, FlowPurpose>,
    blocks: BTreeMap<u32, ActiveBlock>,
    /// Remaining fetches of each file's task.
    fetching: BTreeMap<u32, Vec<FlowId>>,
    open: Vec<OpenFile>,
    jobs: Vec<tasks::JobProgress>,
    reads: reads::Reads<'a>,
    repairs: repairs::Repairs<'a>,
    outputs: Vec<Output>,
    wake: Option<Nanos>,
    /// Number of requested and active blocks, fetching tasks, reads, and repairs.
    working: u64,
    /// Blocks to request at the end of the current step.
    requests: Vec<u32>,
}

/// Runs a scenario's arrivals under policies. `progress` regularly receives the finished share of the run; it returns
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
        Ok(Driver {
            world: World::new(scenario, workload, seed, Pending::Event)?,
            engine: Engine::new(ledger, policies, seed, Explain::Off),
            record: empty_record(workload, fabric.host_count()),
            purposes: HashMap::new(),
            blocks: BTreeMap::new(),
            fetching: BTreeMap::new(),
            open: Vec::with_capacity(workload.files.len()),
            jobs: tasks::job_progress(workload),
            reads: reads::Reads::new(workload),
            repairs: repairs::Repairs::new(scenario, seed),
            outputs: Vec::new(),
            wake: None,
            working: 0,
            requests: Vec::new(),
            scenario,
            workload,
        })
    }

    fn run(mut self, progress: Progress<'_>) -> Result<Record, RunError> {
        let (workload, horizon) = (self.workload, self.scenario.horizon.as_secs_f64());
        let mut files = 0;
        let mut finished = Vec::new();
        loop {
            let file = workload.files.get(files).map_or(f64::INFINITY, |file| file.start);
            let arrival = file.min(self.reads.next_arrival());
            let wake = self.wake.map_or(f64::INFINITY, Nanos::as_secs_f64);
            let clock = wake.min(self.reads.next_deadline(&self.record));
            let Some(now) = self.world.next_step(arrival, clock, self.working > 0) else { break };
            self.world.network.advance(now, &mut finished)?;
            for done in finished.drain(..) {
                self.finish_flow(done);
            }
            let clock = Nanos::from_secs_f64(now);
            while let Some((_, pending)) = self.world.pop_due(clock) {
                match pending {
                    Pending::Event(event) => self.apply_event(now, event)?,
                    Pending::Samples(samples) => self.report(now, &samples),
                    Pending::Retry(block) => self.requests.push(block),
                    Pending::Restart(file) => self.restart_task(now, file)?,
                    Pending::Dead(host, failed) => self.lose_host(now, host, failed),
                    Pending::Round => self.start_round(now),
                }
            }
            self.world.end_interval(now, &mut self.record);
            if let Some((read, messages)) = self.world.read_counters(now) {
                for (arrives, samples) in messages {
                    if arrives <= read {
                        self.report(now, &samples);
                    } else {
                        self.world.schedule(arrives, Pending::Samples(samples));
                    }
                }
                if !progress(self.world.progress(now)) {
                    return Err(RunError::Stopped);
                }
            }
            self.world.start_background(now)?;
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
        self.world.finish(&mut self.record);
        let blocks = &self.record.blocks;
        self.record.unrepaired = self.repairs.unrepaired(blocks);
        Ok(self.record)
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
                    Output::ReplicasPlaced(number, answer) if number >= FIRST_REPAIR => {
                        self.start_repair(now, (number - FIRST_REPAIR) as u32, answer)?;
                    }
                    Output::ReplicasPlaced(block, answer) => match answer {
                        Ok(placed) => {
                            let decision = placed.decision;
                            self.record.blocks[block as usize].blind =
                                decision.basis.note == Some(Note::NoTelemetry);
                            self.write(now, block as u32, decision.choice, placed.entries)?;
                        }
                        Err(_) => self.retry(now, block as u32),
                    },
                    Output::MovesAdvised(_) | Output::MovesConsidered(_) => {
                        unreachable!("this driver has no policy for moves")
                    }
                }
            }
        }
        Ok(())
    }

    fn apply_event(&mut self, now: f64, event: Event) -> Result<(), RunError> {
        // Without repairs, the engine does not learn of failures that are not announced.
        for input in self.world.apply_event(now, event, &mut self.repairs.detected)? {
            self.notify(now, input);
        }
        self.watch_hosts(now);
        self.handle_failures(now)
    }

    /// Handles failed hosts. Unfinished blocks on a failed host are placed again, elsewhere. Blocks of a failed writer
    /// are abandoned, and so are tasks that fetch on a failed host. Reads from a failed host continue from another one.
    /// Repairs from or to a failed host are abandoned.
    fn handle_failures(&mut self, now: f64) -> Result<(), RunError> {
        let failed_host = |block: &u32| {
            let record = &self.record.blocks[*block as usize];
            let hosts = record.copies.iter().chain([&record.writer]);
            hosts.copied().find(|&host| !self.world.outages.is_up(host))
        };
        let broken: Vec<(u32, HostId)> =
            self.blocks.keys().filter_map(|block| Some((*block, failed_host(block)?))).collect();
        for (block, host) in broken {
            let ActiveBlock { flows, entries } =
                self.blocks.remove(&block).expect("the list has active blocks only");
            for flow in flows {
                self.world.network.cancel(now, flow)?;
                self.purposes.remove(&flow);
            }
            let copies = std::mem::take(&mut self.record.blocks[block as usize].copies);
            self.undo(now, block, &copies, &entries);
            self.exclude(block, host);
        }
        self.abandon_fetches(now)?;
        self.abandon_repairs(now)?;
        self.abandon_reads(now)
    }
}

fn empty_record(workload: &Workload, hosts: usize) -> Record {
    let job = |job: &leeward_workloads::Job| Job {
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
