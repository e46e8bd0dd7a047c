//! Main loop of a run, in whole nanoseconds.
//!
//! The engine handles all simultaneous events before it starts any service, so that a server chooses among all present
//! requests. Simultaneous events are handled in this order: servers, device latencies, latencies of servers, limiters,
//! weight controllers, arrivals. Events of the same kind are handled in order of their index.

mod hops;
mod senders;

use leeward_fabric::Nanos;

use self::senders::Sender;
use super::arrival::Source;
use super::clock::{Clock, NEVER};
use super::error::{LATEST, RequestsError};
use super::live::{NONE, Pool};
use super::observer::Observer;
use super::plan::Plan;
use super::report::{Recorder, Report, ServerReport};
use super::scheduling::{Scheduling, WeightController};
use super::setup::Setup;

/// Event of a slot of the clock.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A server ends a service.
    Served(u32),
    /// The latency of a read (0) or write (1) of a device ends.
    Returned(u32, u8),
    /// The latency of a server ends for its first request or packet.
    Leaves(u32),
    /// The first request behind a limiter passes.
    Passes(u32),
    /// A weight controller acts.
    Acts(u32),
    /// A workload sends a request.
    Sends(u32),
}

/// A run in progress.
pub(super) struct Engine<'a, W> {
    setup: &'a Setup,
    now: u64,
    clock: Clock,
    events: Vec<Event>,
    plan: Plan,
    senders: Vec<Sender<'a>>,
    pool: Pool,
    controllers: Vec<WeightController>,
    /// Index of the controller that measures each workload, or [`NONE`].
    controlled: Vec<u32>,
    /// Servers that may start a request.
    dirty: Vec<u32>,
    next_number: u64,
    /// Number of requests in progress; `area` is its integral over time.
    under_way: u64,
    area: u128,
    recorder: Recorder,
    observer: &'a mut W,
}

impl<'a, W: Observer> Engine<'a, W> {
    pub(super) fn new(
        setup: &'a Setup,
        sources: Vec<Source<'a>>,
        observer: &'a mut W,
    ) -> Result<Engine<'a, W>, RequestsError> {
        if sources.len() != setup.workloads.len() {
            let (sources, workloads) = (sources.len(), setup.workloads.len());
            return Err(RequestsError::Sources { sources, workloads });
        }
        let plan = Plan::new(setup)?;
        let mut engine = Engine {
            now: 0,
            clock: Clock::new(&[]),
            events: Vec::new(),
            senders: Vec::with_capacity(sources.len()),
            pool: Pool::default(),
            controllers: Vec::new(),
            controlled: vec![NONE; sources.len()],
            dirty: Vec::new(),
            next_number: 0,
            under_way: 0,
            area: 0,
            recorder: Recorder::new(setup),
            observer,
            plan,
            setup,
        };
        engine.assign_slots();
        for (workload, source) in sources.into_iter().enumerate() {
            engine.add_sender(workload, source)?;
        }
        for controller in &engine.controllers {
            engine.clock.set(controller.slot, controller.settings.interval.0.min(LATEST));
        }
        Ok(engine)
    }

    /// Assigns a slot to every event source, in the order of simultaneous events.
    fn assign_slots(&mut self) {
        let events = &mut self.events;
        let mut slot = |event| {
            events.push(event);
            (events.len() - 1) as u32
        };
        for (index, server) in self.plan.servers.iter_mut().enumerate() {
            server.slot = slot(Event::Served(index as u32));
        }
        for (index, server) in self.plan.servers.iter_mut().enumerate() {
            if let Some(device) = &mut server.device {
                device.return_slots = [0, 1].map(|way| slot(Event::Returned(index as u32, way)));
            }
        }
        for (index, server) in self.plan.servers.iter_mut().enumerate() {
            if server.latency > 0 {
                server.leave_slot = slot(Event::Leaves(index as u32));
            }
        }
        for (index, limiter) in self.plan.limiters.iter_mut().enumerate() {
            limiter.slot = slot(Event::Passes(index as u32));
        }
        for (index, server) in self.setup.servers.iter().enumerate() {
            let Scheduling::Cake(settings) = server.order else { continue };
            let number = self.controllers.len() as u32;
            let mut objectives = vec![None; self.setup.workloads.len()];
            for (workload, enforced) in self.setup.workloads.iter().enumerate() {
                let comes_here = enforced.stages.iter().any(|limits| limits.route.contains(&index));
                if comes_here && self.controlled[workload] == NONE {
                    self.controlled[workload] = number;
                    objectives[workload] = enforced.slo.map(|slo| (slo.percentile, slo.latency * 1e9));
                }
            }
            let weights = self.setup.workloads.iter().map(|workload| workload.weight).collect();
            let slot = slot(Event::Acts(number));
            self.controllers.push(WeightController::new(settings, weights, objectives, index as u32, slot));
        }
        for workload in 0..self.setup.workloads.len() {
            slot(Event::Sends(workload as u32));
        }
        // Groups of the clock: servers with their latencies, limiters, and the sources that act on their own.
        let limiters = self.plan.limiters.len();
        let is_served =
            |event: &&Event| matches!(event, Event::Served(_) | Event::Returned(..) | Event::Leaves(_));
        let servers = self.events.iter().filter(is_served).count();
        self.clock = Clock::new(&[servers, limiters, self.events.len() - servers - limiters]);
    }

    /// Runs to the end and returns the report.
    pub(super) fn run(mut self) -> Result<Report, RequestsError> {
        loop {
            let (now, _) = self.clock.first();
            // Controllers act as long as other events remain.
            if now == NEVER || (self.under_way == 0 && !self.has_requests_to_send()) {
                break;
            }
            self.area += u128::from(self.under_way) * u128::from(now - self.now);
            self.now = now;
            self.recorder.advance_to(now);
            // The server that ended a service, if this is the only event now. Its slot is written when it starts the
            // next service.
            let mut last = None;
            loop {
                let (time, slot) = self.clock.first();
                if time != now {
                    break;
                }
                let Some(server) = self.handle(slot)? else { continue };
                if self.clock.is_alone(slot, now) {
                    last = Some((server as usize, slot));
                    break;
                }
                self.clock.set(slot, NEVER);
            }
            while let Some(server) = self.dirty.pop() {
                self.begin(server as usize)?;
            }
            if let Some((_, slot)) = last.filter(|&(server, _)| self.plan.servers[server].in_service == NONE)
            {
                self.clock.set(slot, NEVER);
            }
        }
        let servers = self.plan.servers.iter().zip(&self.setup.servers);
        let servers = servers.map(|(server, setup)| ServerReport {
            name: setup.name.clone(),
            served: server.served,
            busy: Nanos(server.busy),
            starved: Nanos(server.starved),
        });
        Ok(self.recorder.finish(servers.collect(), Nanos(self.now), self.area))
    }

    /// Handles the event of a slot. Returns the server if it ended a service, so that the caller writes its slot.
    fn handle(&mut self, slot: u32) -> Result<Option<u32>, RequestsError> {
        match self.events[slot as usize] {
            Event::Served(server) => {
                self.served(server as usize)?;
                return Ok(Some(server));
            }
            Event::Returned(server, way) => self.returned(server as usize, way as usize)?,
            Event::Leaves(server) => self.leaves(server as usize)?,
            Event::Passes(limiter) => self.passes(limiter as usize)?,
            Event::Acts(controller) => {
                let controller = &mut self.controllers[controller as usize];
                if let Some(weights) = self.plan.servers[controller.queue as usize].waiting.weights() {
                    weights.copy_from_slice(controller.adjust());
                }
                self.clock.set(controller.slot, self.now + controller.settings.interval.0.min(LATEST));
            }
            Event::Sends(workload) => self.send(workload as usize)?,
        }
        Ok(None)
    }

    fn too_long(&self, what: String) -> Result<(), RequestsError> {
        Err(RequestsError::TooLong { what })
    }
}
