//! Main loop of the simulator: events in order of time.

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

use super::hosts::{Nic, Payload};
use super::placer::Placer;
use super::records::{BlockRecord, FlowRecord, Records, TrainRecord};
use super::settings::{Demand, Plan, Settings, SettingsError};
use super::workload::{Driver, Workload, WorkloadError};
use connections::Flow;
use trains::ActiveTrain;

/// Error that prevents or ends a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SimulatorError {
    /// Invalid settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The switch rejected a schedule, for example one for other racks or without days.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The demand estimate failed.
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    /// The scheduler returned no schedule.
    #[error("schedule request at {} ns: {problem}", at.0)]
    Planner {
        /// Time of the request.
        at: Nanos,
        /// Message of the scheduler.
        problem: String,
    },
    /// The policy found no placement for a block.
    #[error("copies of block {block} at {} ns: {problem}", at.0)]
    Copies {
        /// Number of the block.
        block: usize,
        /// Time at which the block began.
        at: Nanos,
        /// Message of the policy.
        problem: String,
    },
    /// The policy placed copies on invalid hosts.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload is for other hosts.
    #[error("workload for {} racks of {} hosts: expected {} racks of {}", found.0, found.1, expected.0, expected.1)]
    Hosts {
        /// Racks of the workload, and hosts of each.
        found: (usize, usize),
        /// Racks of the simulator, and hosts of each.
        expected: (usize, usize),
    },
}

/// Events other than packets, which are rare in comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Piece(u32),
    Sender(u32),
    Receiver(u32),
    GiveUp(u32),
    Burst(u32),
    Plan,
    Sample,
    Report,
}

/// Alarms, in the order of simultaneous events; the alarms of the hosts' NICs follow.
const TIMER: usize = 0;
const SWITCH: usize = 1;
const HOSTS: usize = 2;

/// A packet simulator that runs a workload.
pub struct Simulator<'a> {
    settings: Settings,
    driver: Driver,
    plan: Plan<'a>,
    now: u64,
    timers: Timers,
    later: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    sequence: u64,
    switch: Switch<Payload>,
    out: Vec<Output<Payload>>,
    nics: Vec<Nic>,
    flows: Vec<Flow>,
    trains: Vec<ActiveTrain>,
    /// Number of trains with packets to send or in flight.
    trains_left: usize,
    due: Vec<(Nanos, u32)>,
    /// Live flows, by pair of racks.
    of_pair: Vec<Vec<u32>>,
    /// Bytes that have arrived in order, by pair of racks.
    arrived: Vec<u64>,
    adus: Option<Adus>,
    /// Placement policy of copies; without it, copies go to the hosts of their layout.
    placer: Option<Placer>,
    /// Current day of the circuit to each rack: its start, and the bytes that the pair's circuits had carried
    /// by then.
    days: Vec<(u64, u64)>,
    week_ends: u64,
    random: ChaCha8Rng,
    records: Records,
}

impl<'a> Simulator<'a> {
    /// Creates a simulator at time 0.
    ///
    /// # Errors
    /// Returns an error for settings out of bounds, a fixed schedule that does not fit the switch, or a
    /// workload of other hosts.
    pub fn new(
        settings: Settings,
        plan: Plan<'a>,
        workload: Workload,
    ) -> Result<Simulator<'a>, SimulatorError> {
        settings.check()?;
        let switch = Switch::new(settings.switch.clone()).map_err(SettingsError::from)?;
        let racks = settings.switch.racks;
        let found = (workload.racks() as usize, workload.hosts() as usize);
        let expected = (racks, settings.hosts_per_rack);
        if found != expected {
            return Err(SimulatorError::Hosts { found, expected });
        }
        let records = Records {
            flows: workload.flows().iter().map(FlowRecord::of).collect(),
            blocks: workload.blocks().iter().map(BlockRecord::of).collect(),
            trains: workload.trains().iter().map(TrainRecord::of).collect(),
            ..Records::default()
        };
        let adus = matches!(&plan, Plan::Weekly { demand: Demand::Adus, .. });
        let mut simulator = Simulator {
            timers: Timers::new(HOSTS + settings.hosts()),
            nics: vec![Nic::new(settings.nic); settings.hosts()],
            random: ChaCha8Rng::seed_from_u64(settings.seed),
            later: BinaryHeap::new(),
            sequence: 0,
            now: 0,
            switch,
            out: Vec::new(),
            flows: workload.flows().iter().map(|_| Flow::Coming).collect(),
            trains: vec![ActiveTrain::default(); workload.trains().len()],
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
        for limit in &simulator.settings.limits {
            simulator.nics[simulator.settings.number(limit.host)].limit(limit);
        }
        for (at, piece) in simulator.driver.first() {
            simulator.schedule(at.0, Timer::Piece(piece));
        }
        for train in 0..simulator.trains.len() {
            let start = simulator.driver.workload().trains()[train].start;
            simulator.schedule(start.0, Timer::Burst(train as u32));
        }
        match &simulator.plan {
            Plan::Packets => {}
            Plan::Fixed(schedule) | Plan::Routed(schedule, _) => {
                let week = Event::NewWeek(schedule.clone());
                simulator.switch.step(Nanos(0), week, &mut simulator.out)?;
                if let Plan::Routed(_, routes) = &simulator.plan {
                    simulator.switch.step(Nanos(0), Event::Routes(routes.clone()), &mut simulator.out)?;
                }
                simulator.handle_outputs()?;
            }
            Plan::Weekly { .. } => simulator.schedule(0, Timer::Plan),
        }
        if simulator.settings.sample_every.is_some() && !simulator.settings.sampled.is_empty() {
            simulator.schedule(0, Timer::Sample);
        }
        simulator.set_alarms();
        Ok(simulator)
    }

    /// Runs until `until`, events at this time included.
    ///
    /// # Errors
    /// Returns an error if a schedule or a placement fails, or if the switch rejects a schedule.
    pub fn run(&mut self, until: Nanos) -> Result<(), SimulatorError> {
        while self.step(until)? {}
        Ok(())
    }

    /// Runs until the workload has ended, or until `until`; packets may remain in flight. Returns true if the workload
    /// has ended. At its end, sampled pairs are sampled once more.
    ///
    /// # Errors
    /// Returns the errors of [`Simulator::run`].
    pub fn run_to_end(&mut self, until: Nanos) -> Result<bool, SimulatorError> {
        while !self.is_finished() {
            if !self.step(until)? {
                return Ok(false);
            }
            if self.is_finished() && self.settings.sample_every.is_some() {
                self.sample_pairs();
            }
        }
        Ok(true)
    }

    /// Handles the next event and returns true. If it is after `until`, advances the time to `until` and
    /// returns false.
    fn step(&mut self, until: Nanos) -> Result<bool, SimulatorError> {
        let at = self.timers.earliest();
        if at > until.0 || at == NEVER {
            self.now = self.now.max(until.0);
            return Ok(false);
        }
        self.now = at;
        match self.timers.first() {
            SWITCH => {
                // Other due events wait until the switch has no more output.
                self.timers.set(SWITCH, NEVER);
                let until = Nanos(self.timers.earliest().min(until.0));
                self.now = self.switch.run(until, &mut self.out)?.0;
                self.handle_outputs()?;
                self.set_alarms();
            }
            TIMER => {
                if let Some(Reverse((_, _, timer))) = self.later.pop() {
                    self.handle_timer(timer)?;
                }
                self.set_alarms();
            }
            host => self.depart(host - HOSTS)?,
        }
        Ok(true)
    }

    /// Current time.
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// Returns the records of the run so far.
    pub fn records(&mut self) -> &Records {
        for flow in 0..self.flows.len() {
            self.record_flow(flow);
        }
        self.records.uplink_bytes = self.switch.uplink_bytes();
        &self.records
    }

    /// Returns true if all data of the workload has arrived, except for abandoned flows and lost packets of
    /// trains.
    pub fn is_finished(&self) -> bool {
        self.driver.is_finished() && self.trains_left == 0
    }

    /// Returns the byte counters of the switch.
    pub fn balance(&self) -> switch::Balance {
        self.switch.balance()
    }

    /// Returns the number of bytes that hosts have sent to the switch and that are not yet delivered or lost.
    pub fn in_switch(&self) -> u64 {
        self.switch.buffered_bytes()
    }

    fn schedule(&mut self, at: u64, timer: Timer) {
        self.sequence += 1;
        self.later.push(Reverse((at, self.sequence, timer)));
    }

    #[inline]
    fn set_alarms(&mut self) {
        let later = self.later.peek().map_or(NEVER, |&Reverse((at, ..))| at);
        self.timers.set(TIMER, later.max(self.now));
        self.timers.set(SWITCH, self.switch.wake_at().map_or(NEVER, |at| at.0));
    }

    fn handle_timer(&mut self, timer: Timer) -> Result<(), SimulatorError> {
        let now = Nanos(self.now);
        match timer {
            Timer::Piece(piece) => self.write(piece)?,
            Timer::Sender(flow) => {
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
                if connection.sender_armed != self.now {
                    return Ok(());
                }
                connection.sender_armed = NEVER;
                connection.sender.on_timer(now);
                self.pump(flow);
            }
            Timer::Receiver(flow) => {
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
                if connection.receiver_armed != self.now {
                    return Ok(());
                }
                connection.receiver_armed = NEVER;
                if let Some(ack) = connection.receiver.on_timer(now) {
                    self.send_ack(flow, ack);
                }
                self.arm(flow);
            }
            Timer::GiveUp(flow) => self.give_up(flow),
            Timer::Burst(train) => self.send_train(train),
            Timer::Plan => self.plan_week()?,
            Timer::Sample => self.sample(),
            Timer::Report => self.report(),
        }
        Ok(())
    }
}
