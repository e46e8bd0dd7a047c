//! The loop: what is due next, in the order of time.

mod blocks;
mod connections;
mod network;
mod trains;
mod week;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_circuits::estimate::{Adus, EstimateError};
use leeward_circuits::switch::{self, Event, Output, Switch, SwitchError};
use leeward_circuits::timers::{NEVER, Timers};
use leeward_fabric::Nanos;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::hosts::{Carried, Nic};
use super::placer::Placer;
use super::records::{BlockRecord, FlowRecord, Records, TrainRecord};
use super::settings::{Demand, Plan, Settings, SettingsError};
use super::tcp::Sender;
use super::workload::{Driver, Workload, WorkloadError};
use connections::Flow;
use trains::Sending;

/// Why a run cannot begin or go on.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PlantError {
    /// Its settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// What the switch cannot take: a schedule of other racks or without days.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// What the demand cannot count.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    /// No schedule.
    #[error("schedule asked for at {} ns: {problem}", at.0)]
    Planner {
        /// When it was asked for.
        at: Nanos,
        /// What its maker says.
        problem: String,
    },
    /// No place for a block.
    #[error("copies of block {block} at {} ns: {problem}", at.0)]
    Copies {
        /// Its number.
        block: usize,
        /// When it began.
        at: Nanos,
        /// What the policy says.
        problem: String,
    },
    /// Copies at places that are none.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A workload of other hosts.
    #[error("workload of {} racks of {} hosts: must be of {} racks of {}", found.0, found.1, expected.0, expected.1)]
    Hosts {
        /// Its racks, and hosts of each.
        found: (usize, usize),
        /// Those of the plant.
        expected: (usize, usize),
    },
}

/// What happens seldom, next to packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Piece(u32),
    Sender(u32),
    Receiver(u32),
    GiveUp(u32),
    Burst(u32),
    Plan,
    Sample,
    Report,
}

/// Alarms, in the order of what is due at the same time; then one for each host's NIC.
const LATER: usize = 0;
const SWITCH: usize = 1;
const HOSTS: usize = 2;

/// A packet plant that runs a workload.
pub struct Plant<'a> {
    settings: Settings,
    driver: Driver,
    plan: Plan<'a>,
    now: u64,
    timers: Timers,
    later: BinaryHeap<Reverse<(u64, u64, Later)>>,
    orders: u64,
    switch: Switch<Carried>,
    out: Vec<Output<Carried>>,
    nics: Vec<Nic>,
    flows: Vec<Flow>,
    trains: Vec<Sending>,
    /// Trains that have packets to send or on their way.
    trains_left: usize,
    due: Vec<(Nanos, u32)>,
    /// Flows that live, by pair of racks.
    of_pair: Vec<Vec<u32>>,
    /// Bytes that have arrived in order, by pair of racks.
    arrived: Vec<u64>,
    adus: Option<Adus>,
    /// Who decides where copies go, if they do not go where they were laid out for.
    placer: Option<Placer>,
    /// The day that each rack's circuit has now: since when, and what the pair's circuits had carried by then.
    days: Vec<(u64, u64)>,
    week_ends: u64,
    random: ChaCha8Rng,
    records: Records,
}

impl<'a> Plant<'a> {
    /// A plant at time 0.
    ///
    /// # Errors
    /// Settings out of bounds, a fixed schedule that does not fit the switch, a workload of other hosts.
    pub fn new(settings: Settings, plan: Plan<'a>, workload: Workload) -> Result<Plant<'a>, PlantError> {
        settings.check()?;
        let switch = Switch::new(settings.switch.clone()).map_err(SettingsError::from)?;
        let racks = settings.switch.racks;
        let found = (workload.racks() as usize, workload.hosts() as usize);
        let expected = (racks, settings.hosts_per_rack);
        if found != expected {
            return Err(PlantError::Hosts { found, expected });
        }
        let records = Records {
            flows: workload.flows().iter().map(FlowRecord::of).collect(),
            blocks: workload.blocks().iter().map(BlockRecord::of).collect(),
            trains: workload.trains().iter().map(TrainRecord::of).collect(),
            ..Records::default()
        };
        let adus = matches!(&plan, Plan::Weekly { demand: Demand::Adus, .. });
        let mut plant = Plant {
            timers: Timers::new(HOSTS + settings.hosts()),
            nics: vec![Nic::new(settings.nic); settings.hosts()],
            random: ChaCha8Rng::seed_from_u64(settings.seed),
            later: BinaryHeap::new(),
            orders: 0,
            now: 0,
            switch,
            out: Vec::new(),
            flows: workload.flows().iter().map(|_| Flow::Coming).collect(),
            trains: vec![Sending::default(); workload.trains().len()],
            trains_left: workload.trains().len(),
            due: Vec::new(),
            of_pair: vec![Vec::new(); racks * racks],
            arrived: vec![0; racks * racks],
            adus: adus.then(|| Adus::new(racks)),
            placer: None,
            days: vec![(0, 0); racks],
            week_ends: 0,
            records,
            settings,
            driver: Driver::new(workload),
            plan,
        };
        for limit in &plant.settings.limits {
            plant.nics[plant.settings.number(limit.host)].limit(limit);
        }
        for (at, piece) in plant.driver.first() {
            plant.order(at.0, Later::Piece(piece));
        }
        for train in 0..plant.trains.len() {
            let start = plant.driver.workload().trains()[train].start;
            plant.order(start.0, Later::Burst(train as u32));
        }
        match &plant.plan {
            Plan::Packets => {}
            Plan::Fixed(schedule) | Plan::Routed(schedule, _) => {
                let week = Event::NewWeek(schedule.clone());
                plant.switch.step(Nanos(0), week, &mut plant.out)?;
                if let Plan::Routed(_, routes) = &plant.plan {
                    plant.switch.step(Nanos(0), Event::Routes(routes.clone()), &mut plant.out)?;
                }
                plant.take_out()?;
            }
            Plan::Weekly { .. } => plant.order(0, Later::Plan),
        }
        if plant.settings.sample_every.is_some() && !plant.settings.sampled.is_empty() {
            plant.order(0, Later::Sample);
        }
        plant.set_alarms();
        Ok(plant)
    }

    /// Runs until `until`: all that is due by then has happened.
    ///
    /// # Errors
    /// What a workload or a scheduler asks for that cannot be.
    pub fn run(&mut self, until: Nanos) -> Result<(), PlantError> {
        while self.go_on(until)? {}
        Ok(())
    }

    /// Runs until the workload is over, and no further: what is on its way then stays there. Or until `until`, if it is not over
    /// by then. Returns whether it is. Pairs that are sampled are looked at a last time when it is over.
    ///
    /// # Errors
    /// What a workload or a scheduler asks for that cannot be.
    pub fn run_to_end(&mut self, until: Nanos) -> Result<bool, PlantError> {
        while !self.is_finished() {
            if !self.go_on(until)? {
                return Ok(false);
            }
            if self.is_finished() && self.settings.sample_every.is_some() {
                self.look();
            }
        }
        Ok(true)
    }

    /// Does what is due next, unless that is after `until`: then it is `until`, and false is returned.
    fn go_on(&mut self, until: Nanos) -> Result<bool, PlantError> {
        let at = self.timers.earliest();
        if at > until.0 || at == NEVER {
            self.now = self.now.max(until.0);
            return Ok(false);
        }
        self.now = at;
        match self.timers.first() {
            SWITCH => {
                // Whatever else is due, it is not before the switch has something for it.
                self.timers.set(SWITCH, NEVER);
                let until = Nanos(self.timers.earliest().min(until.0));
                self.now = self.switch.run(until, &mut self.out)?.0;
                self.take_out()?;
                self.set_alarms();
            }
            LATER => {
                if let Some(Reverse((_, _, what))) = self.later.pop() {
                    self.do_later(what)?;
                }
                self.set_alarms();
            }
            host => self.depart(host - HOSTS)?,
        }
        Ok(true)
    }

    /// The time that it is.
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// What has happened so far.
    pub fn records(&mut self) -> &Records {
        for flow in 0..self.flows.len() {
            self.record_flow(flow);
        }
        self.records.raised_bytes = self.switch.raised();
        &self.records
    }

    /// Whether the workload is over: all that it has to send has arrived, but for flows that were given up and what is lost of trains.
    pub fn is_finished(&self) -> bool {
        self.driver.is_finished() && self.trains_left == 0
    }

    /// Bytes that entered the switch, and where they are.
    pub fn balance(&self) -> switch::Balance {
        self.switch.balance()
    }

    /// Bytes that hosts have sent to the switch and that are neither with their host nor lost.
    pub fn in_switch(&self) -> u64 {
        self.switch.held()
    }

    /// The sender of a flow, while it lives.
    pub fn sender(&self, flow: usize) -> Option<&Sender> {
        match self.flows.get(flow)? {
            Flow::Live(connection) => Some(&connection.sender),
            _ => None,
        }
    }

    fn order(&mut self, at: u64, what: Later) {
        self.orders += 1;
        self.later.push(Reverse((at, self.orders, what)));
    }

    #[inline]
    fn set_alarms(&mut self) {
        let later = self.later.peek().map_or(NEVER, |&Reverse((at, ..))| at);
        self.timers.set(LATER, later.max(self.now));
        self.timers.set(SWITCH, self.switch.wake_at().map_or(NEVER, |at| at.0));
    }

    fn do_later(&mut self, what: Later) -> Result<(), PlantError> {
        let now = Nanos(self.now);
        match what {
            Later::Piece(piece) => self.write(piece)?,
            Later::Sender(flow) => {
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
                if connection.sender_armed != self.now {
                    return Ok(());
                }
                connection.sender_armed = NEVER;
                connection.sender.on_timer(now);
                self.pump(flow);
            }
            Later::Receiver(flow) => {
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
                if connection.receiver_armed != self.now {
                    return Ok(());
                }
                connection.receiver_armed = NEVER;
                if let Some(ack) = connection.receiver.on_timer(now) {
                    self.answer(flow, ack);
                }
                self.arm(flow);
            }
            Later::GiveUp(flow) => self.give_up(flow),
            Later::Burst(train) => self.send_train(train),
            Later::Plan => self.plan_week()?,
            Later::Sample => self.sample(),
            Later::Report => self.report(),
        }
        Ok(())
    }
}
