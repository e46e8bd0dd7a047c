//! A run: the loop over events, and what happens to a block.
//!
//! A block arrives at its writer and is placed at once at home, or another cell is asked (`crossing`). Then its write
//! starts, loads the links of its chain of copies for its duration, and ends (`writes`). `telemetry` ends windows,
//! reports them, and sends digests.

mod crossing;
mod telemetry;
mod writes;

use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_fabric::{DomainId, HostId, Nanos};

use crate::agenda::{Agenda, Event};
use crate::arrivals::{Arrival, Scope};
use crate::asks::Asks;
use crate::background::Background;
use crate::channel::Channel;
use crate::controller::Controller;
use crate::digest::Directory;
use crate::geometry::{Direction, Geometry};
use crate::grants::Grants;
use crate::network;
use crate::plan::{Arm, Plan};
use crate::records::{Counts, Residue, RunRecord};
use crate::truth::{Means, Truth};
use writes::Writes;

/// A cell beside its controller: what it knows of the others, and what passes between them.
struct Cell {
    directory: Directory,
    asks: Asks,
    grants: Grants,
}

/// A run.
pub(crate) struct Simulation<'a> {
    plan: &'a Plan,
    arm: Arm,
    arrivals: &'a [Arrival],
    /// Number of arrivals so far.
    arrived: usize,
    geometry: Geometry,
    truth: Truth,
    background: Background,
    /// One controller for all cells, or one for each.
    controllers: Vec<Controller>,
    /// Empty with one ledger.
    cells: Vec<Cell>,
    channel: Channel,
    agenda: Agenda,
    writes: Writes,
    record: RunRecord,
    /// Load of writes out of pods and into pods, in bit/s.
    placed: [i64; 2],
    /// Memory to use again: links of a chain, means of a window, utilizations.
    links: Vec<usize>,
    means: Vec<Means>,
    scratch: Vec<f64>,
}

impl<'a> Simulation<'a> {
    /// Prepares a run of an arm on these arrivals.
    ///
    /// # Errors
    /// Returns an error for an invalid policy or cluster.
    pub fn new(plan: &'a Plan, arm: Arm, arrivals: &'a [Arrival]) -> Result<Simulation<'a>, InputError> {
        let geometry = plan.geometry;
        let (interval, loss) = match arm {
            Arm::OneLedger => (Nanos(0), 0.0),
            Arm::Cells { interval, loss, .. } => (interval, loss),
        };
        let (controllers, cells) = match arm {
            Arm::OneLedger => {
                let whole = network::cluster(&plan.fields, &geometry, geometry.cells)?;
                (vec![Controller::new(plan, &whole, (0, geometry.cells))?], Vec::new())
            }
            Arm::Cells { .. } => {
                let known_for = plan.exchange.known_for(interval);
                let cell = |_| Cell {
                    directory: Directory::new(geometry.cells, known_for),
                    asks: Asks::new(plan.exchange.repeats, plan.exchange.tries),
                    grants: Grants::new(),
                };
                let controllers =
                    (0..geometry.cells).map(|cell| Controller::new(plan, &plan.cell, (cell, 1)));
                (controllers.collect::<Result<Vec<_>, _>>()?, (0..geometry.cells).map(cell).collect())
            }
        };
        let delays = (plan.exchange.delay, plan.exchange.jitter);
        let record = RunRecord {
            arm,
            samples: Vec::new(),
            counts: Counts::default(),
            waits: Vec::new(),
            residue: Residue::default(),
        };
        let mut simulation = Simulation {
            plan,
            arm,
            arrivals,
            arrived: 0,
            geometry,
            truth: truth(plan),
            background: Background::new(plan.background, geometry, plan.seed),
            controllers,
            cells,
            channel: Channel::new(geometry.cells, loss, delays, plan.seed),
            agenda: Agenda::default(),
            writes: Writes::default(),
            record,
            placed: [0; 2],
            links: Vec::new(),
            means: Vec::new(),
            scratch: Vec::new(),
        };
        simulation.schedule();
        Ok(simulation)
    }

    /// Schedules the events that do not follow from others.
    fn schedule(&mut self) {
        self.background.advance(Nanos(0), 0, &mut self.truth);
        self.agenda.add(self.plan.ledger.interval, Event::Tick(1));
        let Arm::Cells { interval, absent, .. } = self.arm else { return };
        let cells = u64::from(self.geometry.cells);
        if interval > Nanos(0) && cells > 1 {
            // Cells send at different times.
            for cell in 0..self.geometry.cells {
                let phase = u128::from(interval.0) * u128::from(cell) / u128::from(cells);
                let first = self.plan.ledger.interval.plus(Nanos(phase as u64));
                self.agenda.add(first, Event::Publish(cell));
            }
        }
        for absence in self.plan.absences.iter().filter(|_| absent) {
            self.agenda.add(absence.from, Event::Absent(absence.cell, true));
            self.agenda.add(absence.until, Event::Absent(absence.cell, false));
        }
    }

    /// Handles everything up to a time.
    pub fn run(&mut self, until: Nanos) {
        loop {
            let arrival = self.arrivals.get(self.arrived).map(|arrival| arrival.at);
            let event = self.agenda.next_time();
            // Events come before arrivals of the same time.
            let arrives = arrival.is_some_and(|at| event.is_none_or(|event| at < event));
            let Some(at) = (if arrives { arrival } else { event }).filter(|&at| at <= until) else { return };
            if arrives {
                self.arrived += 1;
                self.arrive(at, self.arrived - 1);
            } else if let Some((at, event)) = self.agenda.pop() {
                self.handle(at, event);
            }
        }
    }

    fn handle(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Absent(cell, true) => self.controllers[cell as usize].leave(),
            Event::Absent(cell, false) => self.controllers[cell as usize].start_again(),
            Event::Ends(slot) => self.end(now, slot),
            Event::Tick(step) => self.tick(now, step),
            Event::Arrives { from, to, message } => self.receive(now, from, to, message),
            Event::Publish(cell) => self.publish(now, cell),
            Event::Lease(cell, key) => self.expire(now, cell, key),
            Event::TimeOut(key, message) => self.time_out(now, key, message),
        }
    }

    /// Ends the run: nothing arrives any more, all writes end, and all leases. Returns the record.
    pub fn finish(mut self) -> RunRecord {
        let (counts, waits) = (self.record.counts, self.record.waits.len());
        let mut now = self.plan.horizon;
        while let Some((at, event)) = self.agenda.pop() {
            now = now.max(at);
            if !matches!(event, Event::Tick(_) | Event::Publish(_)) {
                self.handle(at, event);
            }
        }
        self.controllers.iter_mut().for_each(|controller| controller.come_back(now));
        let racks = self.geometry.rack_links();
        let background = |link: usize| match link < racks {
            true => self.background.of_rack(link)[0],
            false => self.background_of_pod(link),
        };
        let load = |link: usize| (self.truth.load(link) - background(link)).abs();
        let load_bps = (0..self.geometry.links()).map(load).sum();
        let flows = self.controllers.iter().map(|controller| controller.flows(now)).sum();
        self.record.waits.truncate(waits);
        RunRecord { counts, residue: Residue { load_bps, flows }, ..self.record }
    }

    /// Background on the link of a pod: the sum of its racks' parts.
    fn background_of_pod(&self, link: usize) -> i64 {
        let at = link - self.geometry.rack_links();
        let (pod, up) = ((at / 2) as u32, at.is_multiple_of(2));
        let direction = if up { Direction::Up } else { Direction::Down };
        let racks = pod * self.geometry.racks..(pod + 1) * self.geometry.racks;
        racks.map(|rack| self.background.of_rack(self.geometry.rack_link(rack, direction))[1]).sum()
    }

    /// Numbers of the run, if they count at this time.
    fn counts(&mut self, now: Nanos) -> Option<&mut Counts> {
        (now >= self.plan.warmup).then_some(&mut self.record.counts)
    }

    /// Controller of a cell.
    fn controller(&mut self, cell: u32) -> &mut Controller {
        let number = if self.cells.is_empty() { 0 } else { cell as usize };
        &mut self.controllers[number]
    }

    /// Places a block that arrives, or asks another cell to place it.
    fn arrive(&mut self, now: Nanos, number: usize) {
        let arrival = self.arrivals[number];
        let home = self.geometry.cell_of(arrival.writer);
        if self.cells.is_empty() {
            let all = 0..self.geometry.cells;
            let except: Vec<u32> = match arrival.scope {
                Scope::Home => all.filter(|&cell| cell != home).collect(),
                Scope::Elsewhere => vec![home],
                Scope::Anywhere => Vec::new(),
            };
            return self.place(now, number, home, &except);
        }
        if !self.controllers[home as usize].is_present() {
            return self.place_without(now, number, home);
        }
        match arrival.scope {
            Scope::Home => self.place(now, number, home, &[]),
            Scope::Elsewhere => match self.choose(now, number, home, &[home]) {
                Some((cell, _)) => self.ask(now, number, home, cell),
                None => self.reject(now, number, home),
            },
            Scope::Anywhere => {
                let room = self.controllers[home as usize].digest(now).room();
                let margin = self.plan.margin;
                match self.choose(now, number, home, &[home]).filter(|(_, other)| *other > room + margin) {
                    Some((cell, _)) => self.ask(now, number, home, cell),
                    None => self.place(now, number, home, &[]),
                }
            }
        }
    }

    /// Places a block by the controller of its home, but on no cell in `except`.
    fn place(&mut self, now: Nanos, number: usize, home: u32, except: &[u32]) {
        let arrival = self.arrivals[number];
        let controller = self.controller(home);
        let answer = controller.place(now, number as u64, &arrival, except);
        let answer = answer.map(|placed| {
            let hosts = placed.decision.choice.iter().map(|&host| controller.global(host));
            (hosts.collect::<Vec<HostId>>(), placed.entries)
        });
        match answer {
            Ok((hosts, entries)) => self.start(now, number, &hosts, entries, None),
            Err(_) => self.counts(now).into_iter().for_each(|counts| counts.refused += 1),
        }
    }

    /// Places a block as its writer does while the controller is away.
    fn place_without(&mut self, now: Nanos, number: usize, home: u32) {
        let arrival = self.arrivals[number];
        let controller = self.controller(home);
        let hosts = controller.place_without(now, number as u64, &arrival);
        let hosts =
            hosts.map(|hosts| hosts.into_iter().map(|host| controller.global(host)).collect::<Vec<_>>());
        match hosts {
            Some(hosts) => {
                self.counts(now).into_iter().for_each(|counts| counts.without_controller += 1);
                self.start(now, number, &hosts, Vec::new(), None);
            }
            None => self.counts(now).into_iter().for_each(|counts| counts.refused += 1),
        }
    }
}

/// Links with the capacities of the cluster.
fn truth(plan: &Plan) -> Truth {
    let (geometry, cell) = (&plan.geometry, &plan.cell);
    let fabric = Arc::clone(&cell.fabric);
    let racks = geometry.racks_of_cell();
    let capacities = |domain: u32| {
        let domain = DomainId(domain);
        let links = [fabric.out_of_domain(domain), fabric.into_domain(domain)];
        links.map(|link| link.map_or(0, |link| cell.capacities.get(link).0))
    };
    // In the fabric, the rack for everything outside is between the racks and the pods.
    let of_racks: Vec<i64> = (0..racks).flat_map(capacities).collect();
    let of_pods: Vec<i64> = (racks + 1..racks + 1 + geometry.pods).flat_map(capacities).collect();
    let repeated = |capacities: Vec<i64>| capacities.repeat(geometry.cells as usize);
    Truth::new(repeated(of_racks).into_iter().chain(repeated(of_pods)))
}
