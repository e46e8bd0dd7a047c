//! The main loop: events in order of time.

mod calls;
mod jobs;
mod packets;
mod slots;

use leeward_circuits::timers::NEVER;
use leeward_fabric::{HostId, Nanos, ResourceId};
use leeward_registry::random::{Draws, Kind};
use leeward_tcp::SettingsError;

use crate::agenda::Agenda;
use crate::draws::Stream;
use crate::event::Event;
use crate::media::Device;
use crate::network::{Network, is_counted};
use crate::plan::Plan;
use crate::records::{LinkRecord, Records};
use crate::transport::Connections;
use calls::{ActiveOperation, Call};
use jobs::{ActiveJob, Worker};
use slots::Slots;

const WORKER: Kind = Kind::named("operations.worker");
const GAPS: Kind = Kind::named("operations.gaps");
/// Most jobs at once, and most records of operations or workers.
const MOST_JOBS: usize = 1_000_000;
const MOST_RECORDS: usize = 50_000_000;
/// Bytes of a packet, and share of capacity, for an estimate of the time between events.
const USUAL_BYTES: f64 = 4000.0;
const USUAL_LOAD: f64 = 0.4;

/// Error that ends a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub(crate) enum SimulatorError {
    /// Invalid settings of TCP.
    #[error("tcp: {0}")]
    Tcp(#[from] SettingsError),
    /// More jobs at once than memory may hold.
    #[error(
        "{job}: {} jobs at once after {} s: they arrive faster than links and devices serve them",
        MOST_JOBS,
        at.as_secs_f64()
    )]
    Jobs { job: String, at: Nanos },
    /// More records than memory may hold.
    #[error(
        "more than {} records after {} s: set `record: false` for background, or a shorter horizon",
        MOST_RECORDS,
        at.as_secs_f64()
    )]
    Records { at: Nanos },
}

/// A run of a plan.
pub(crate) struct Simulator<'a> {
    plan: &'a Plan,
    now: u64,
    agenda: Agenda<Event>,
    network: Network,
    connections: Connections,
    calls: Slots<Call>,
    operations: Slots<ActiveOperation>,
    workers: Slots<Worker>,
    jobs: Slots<ActiveJob>,
    /// Number of jobs of each kind that have begun, and the stream of their arrivals.
    begun: Vec<u32>,
    gaps: Vec<Stream>,
    draws: Draws,
    /// Devices by host, then medium; made when they are first used.
    devices: Vec<Option<Device>>,
    /// Links whose traffic is recorded.
    counted: Vec<ResourceId>,
    /// Start of the present window of telemetry; `None` in the warm-up.
    window: Option<Nanos>,
    records: Records,
}

impl<'a> Simulator<'a> {
    /// Creates a run at time 0.
    pub fn new(plan: &'a Plan) -> Simulator<'a> {
        let fabric = &plan.cluster.fabric;
        let links = fabric.all_resources().take(fabric.link_count());
        let gaps = Draws::new(plan.seed, GAPS);
        let mut simulator = Simulator {
            plan,
            now: 0,
            agenda: Agenda::new(event_gap(plan)),
            network: Network::new(&plan.cluster, &plan.network),
            connections: Connections::default(),
            calls: Slots::default(),
            operations: Slots::default(),
            workers: Slots::default(),
            jobs: Slots::default(),
            begun: vec![0; plan.jobs.len()],
            gaps: (0..plan.jobs.len() as u64).map(|kind| Stream::new(gaps, kind)).collect(),
            draws: Draws::new(plan.seed, WORKER),
            devices: vec![None; fabric.host_count() * plan.media.len()],
            counted: links.filter(|&link| is_counted(fabric.kind(link))).collect(),
            window: None,
            records: Records::default(),
        };
        simulator.agenda.push(plan.warmup.0, Event::Sample);
        for (number, change) in plan.changes.iter().enumerate() {
            simulator.agenda.push(change.at.0, Event::Change(number as u32));
        }
        for kind in 0..plan.jobs.len() {
            simulator.begin_arrivals(kind);
        }
        simulator
    }

    /// Runs until `until`, events at this time included.
    ///
    /// # Errors
    /// Returns an error if jobs or records are too many.
    pub fn run(&mut self, until: Nanos) -> Result<(), SimulatorError> {
        while self.agenda.next_at().is_some_and(|at| at <= until.0) {
            let Some((at, event)) = self.agenda.pop() else { break };
            self.now = at;
            self.handle(event)?;
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), SimulatorError> {
        match event {
            Event::Packet(number) => self.arrive(number)?,
            Event::Port(port) => self.network.serve(self.now, port, &mut self.agenda),
            Event::Sender(connection) => self.check_sender(connection),
            Event::Receiver(connection) => self.check_receiver(connection),
            Event::Served(call) => self.answer(call)?,
            Event::Computed(worker) => self.follow(worker)?,
            Event::Arrival(kind) => self.job_arrives(kind as usize)?,
            Event::Degrade(operation) => self.degrade(operation)?,
            Event::Change(number) => {
                let change = self.plan.changes[number as usize];
                self.network.set_rate(change.link, change.rate);
            }
            Event::Sample => self.sample(),
        }
        Ok(())
    }

    /// Records the traffic of the window that ends now. The traffic of the warm-up is dropped.
    fn sample(&mut self) {
        for &link in &self.counted {
            for (class, traffic) in self.network.take_traffic(link).into_iter().enumerate() {
                if let Some(start) = self.window {
                    self.records.links.push(LinkRecord { start, link, class: class as u32, traffic });
                }
            }
        }
        self.window = Some(Nanos(self.now));
        let next = self.now.saturating_add(self.plan.sample.0);
        if next <= self.plan.horizon.0 {
            self.agenda.push(next, Event::Sample);
        }
    }

    /// Returns the records at the end of a run.
    pub fn finish(mut self) -> Records {
        let counts = self.connections.all().iter().map(|connection| connection.sender.counts());
        for counts in counts {
            self.records.segments += counts.segments;
            self.records.retransmitted += counts.retransmitted;
            self.records.timeouts += counts.timeouts;
        }
        let is_recorded =
            |kind: usize, began: u64| self.plan.jobs[kind].is_recorded && began >= self.plan.warmup.0;
        let open = self.operations.iter().filter(|operation| !operation.is_done);
        let open = open.filter(|operation| is_recorded(operation.job, operation.began)).count();
        let open_jobs = self.jobs.iter().filter(|job| is_recorded(job.kind, job.began)).count();
        (self.records.unfinished, self.records.unfinished_jobs) = (open as u64, open_jobs as u64);
        self.records
    }

    /// The device of a host for a medium.
    fn device(&mut self, host: HostId, medium: usize) -> &mut Device {
        let plan = self.plan;
        let place = host.index() * plan.media.len() + medium;
        self.devices[place].get_or_insert_with(|| Device::new(&plan.media[medium]))
    }
}

/// Estimate of the nanoseconds between events, from the rates of all links.
fn event_gap(plan: &Plan) -> f64 {
    let rates = plan.cluster.capacities.as_slice().iter().take(plan.cluster.fabric.link_count());
    let kinds = plan.cluster.fabric.all_resources().map(|link| plan.cluster.fabric.kind(link));
    let of_racks = rates.zip(kinds).filter(|(_, kind)| is_counted(*kind));
    let bits: f64 = of_racks.map(|(rate, _)| rate.0 as f64).sum();
    // A packet crosses a link of a host for each link of a rack.
    let per_second = 2.0 * USUAL_LOAD * bits / (8.0 * USUAL_BYTES);
    if per_second > 0.0 { 1e9 / per_second } else { 1e9 }
}

/// Deadline as nanoseconds; [`NEVER`] for none.
fn deadline(at: Option<Nanos>) -> u64 {
    at.map_or(NEVER, |at| at.0)
}
