//! The loop: what is due next, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_circuits::estimate::{self, Adus, EstimateError};
use leeward_circuits::switch::{self, Event, Full, Output, Packet, Switch, SwitchError, Via};
use leeward_circuits::timers::{NEVER, Timers};
use leeward_fabric::Nanos;
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::hosts::{Carried, Nic};
use super::records::{DayRecord, FlowRecord, Records, Sample};
use super::settings::{Demand, Plan, Settings, SettingsError};
use super::tcp::{self, Ack, Receiver, Segment, Sender};
use super::workload::{Driver, Flow as Between, Place, Workload};

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
    /// A workload of other hosts.
    #[error("workload of {} racks of {} hosts: must be of {} racks of {}", found.0, found.1, expected.0, expected.1)]
    Hosts {
        /// Its racks, and hosts of each.
        found: (usize, usize),
        /// Those of the plant.
        expected: (usize, usize),
    },
}

/// Both ends of a flow.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    source: u32,
    destination: u32,
    source_rack: u32,
    destination_rack: u32,
    closed: bool,
    /// When the heap next looks at the sender's, the receiver's timer; deadlines that are later are looked at again then.
    sender_armed: u64,
    receiver_armed: u64,
}

enum Flow {
    Coming,
    Live(Box<Connection>),
    Done,
}

/// What happens seldom, next to packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Piece(u32),
    Sender(u32),
    Receiver(u32),
    Plan,
    Sample,
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
    due: Vec<(Nanos, u32)>,
    /// Flows that live, by pair of racks.
    of_pair: Vec<Vec<u32>>,
    /// Bytes that have arrived in order, by pair of racks.
    arrived: Vec<u64>,
    adus: Option<Adus>,
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
        let records =
            Records { flows: workload.flows().iter().map(FlowRecord::of).collect(), ..Records::default() };
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
            due: Vec::new(),
            of_pair: vec![Vec::new(); racks * racks],
            arrived: vec![0; racks * racks],
            adus: adus.then(|| Adus::new(racks)),
            days: vec![(0, 0); racks],
            week_ends: 0,
            records,
            settings,
            driver: Driver::new(workload),
            plan,
        };
        for (at, piece) in plant.driver.first() {
            plant.order(at.0, Later::Piece(piece));
        }
        match &plant.plan {
            Plan::Packets => {}
            Plan::Fixed(schedule) => {
                let week = Event::NewWeek(schedule.clone());
                plant.switch.step(Nanos(0), week, &mut plant.out)?;
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
        loop {
            let at = self.timers.earliest();
            if at > until.0 || at == NEVER {
                self.now = self.now.max(until.0);
                return Ok(());
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
        }
    }

    /// What has happened so far.
    pub fn records(&mut self) -> &Records {
        for flow in 0..self.flows.len() {
            self.record_flow(flow);
        }
        &self.records
    }

    /// Whether all that the workload has to send has arrived.
    pub fn is_finished(&self) -> bool {
        self.driver.is_finished()
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

    /// A packet has left a host's NIC.
    #[inline]
    fn depart(&mut self, host: usize) -> Result<(), PlantError> {
        let Some((packet, next)) = self.nics[host].pop(self.now) else { return Ok(()) };
        self.timers.set(HOSTS + host, next.unwrap_or(NEVER));
        self.records.sent.add(packet.bytes);
        if packet.source == packet.destination {
            self.records.local.add(packet.bytes);
            self.arrive(packet, false)?;
            self.set_alarms();
            return Ok(());
        }
        self.switch.step(Nanos(self.now), Event::Arrive(packet), &mut self.out)?;
        if let (Some(adus), Carried::Data { flow, segment }) = (&mut self.adus, packet.payload) {
            // A packet that found no room is the last to be told of.
            if !matches!(self.out.last(), Some(Output::Drop { by: Full::Voq, .. })) {
                adus.seen(flow as usize, segment.end());
            }
        }
        if !self.out.is_empty() {
            self.take_out()?;
        }
        self.set_alarms();
        Ok(())
    }

    /// Takes what the switch has done.
    fn take_out(&mut self) -> Result<(), PlantError> {
        let mut out = std::mem::take(&mut self.out);
        for output in out.drain(..) {
            match output {
                Output::Deliver { packet, at, via, circuit_mark } => {
                    self.records.delivered[via as usize].add(packet.bytes);
                    if matches!(packet.payload, Carried::Data { .. }) {
                        self.records.latency[via as usize].add(at.since(packet.entered));
                    }
                    self.arrive(packet, circuit_mark)?;
                }
                Output::Drop { packet, .. } => self.records.dropped.add(packet.bytes),
                Output::Circuit { source, destination, up, at } => {
                    self.turn(source as usize, destination as usize, up, at)?;
                }
            }
        }
        self.out = out;
        Ok(())
    }

    /// A packet comes to its host.
    #[inline]
    fn arrive(&mut self, packet: Packet<Carried>, circuit_mark: bool) -> Result<(), PlantError> {
        match packet.payload {
            Carried::Data { flow, mut segment } => {
                if packet.ecn == switch::Ecn::Congested {
                    segment.ecn = tcp::Ecn::Marked;
                }
                self.records.data_packets += 1;
                self.take_data(flow, &segment)
            }
            Carried::Ack { flow, mut ack } => {
                // Beside what the receiver echoes; with reTCP nothing else sets it.
                ack.ece |= circuit_mark;
                self.take_ack(flow, &ack);
                Ok(())
            }
        }
    }

    fn take_data(&mut self, flow: u32, segment: &Segment) -> Result<(), PlantError> {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
        let before = connection.receiver.delivered();
        let ack = connection.receiver.on_segment(Nanos(self.now), segment);
        let after = connection.receiver.delivered();
        let done = connection.closed && after == connection.sender.written();
        if after > before {
            let racks = self.settings.switch.racks;
            let pair = connection.source_rack as usize * racks + connection.destination_rack as usize;
            self.arrived[pair] += after - before;
        }
        if let Some(ack) = ack {
            self.answer(flow, ack);
        }
        self.arm(flow);
        if after == before {
            return Ok(());
        }
        let now = Nanos(self.now);
        if done {
            self.records.flows[flow as usize].finished.get_or_insert(now);
        }
        let mut due = std::mem::take(&mut self.due);
        self.driver.arrive(now, flow, after, &mut due);
        for (at, piece) in due.drain(..) {
            self.order(at.0, Later::Piece(piece));
        }
        self.due = due;
        Ok(())
    }

    fn take_ack(&mut self, flow: u32, ack: &Ack) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        connection.sender.on_ack(Nanos(self.now), ack);
        self.pump(flow);
        self.end_if_done(flow);
    }

    /// Lets a sender send what it may.
    fn pump(&mut self, flow: u32) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        let host = connection.source as usize;
        while let Some(segment) = connection.sender.next_segment(Nanos(self.now)) {
            let packet = Packet {
                payload: Carried::Data { flow, segment },
                source: connection.source_rack,
                destination: connection.destination_rack,
                bytes: segment.wire_bytes(),
                ecn: match segment.ecn {
                    tcp::Ecn::No => switch::Ecn::Incapable,
                    tcp::Ecn::Capable => switch::Ecn::Capable,
                    tcp::Ecn::Marked => switch::Ecn::Congested,
                },
                entered: Nanos(0),
            };
            let begin = begin(&mut self.random, &self.settings, &self.nics[host], self.now);
            if let Some(at) = self.nics[host].push(packet, begin) {
                self.timers.set(HOSTS + host, at);
            }
        }
        self.arm(flow);
    }

    /// A receiver's answer sets off.
    fn answer(&mut self, flow: u32, ack: Ack) {
        let Flow::Live(connection) = &self.flows[flow as usize] else { return };
        let host = connection.destination as usize;
        let packet = Packet {
            payload: Carried::Ack { flow, ack },
            source: connection.destination_rack,
            destination: connection.source_rack,
            bytes: ack.wire_bytes(),
            ecn: switch::Ecn::Incapable,
            entered: Nanos(0),
        };
        let begin = begin(&mut self.random, &self.settings, &self.nics[host], self.now);
        if let Some(at) = self.nics[host].push(packet, begin) {
            self.timers.set(HOSTS + host, at);
        }
    }

    /// Sees to it that the heap looks at a flow's timers in time.
    #[inline]
    fn arm(&mut self, flow: u32) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        let sender = connection.sender.deadline().map_or(NEVER, |at| at.0);
        let receiver = connection.receiver.deadline().map_or(NEVER, |at| at.0);
        let sooner = (sender < connection.sender_armed, receiver < connection.receiver_armed);
        if sooner.0 {
            connection.sender_armed = sender;
        }
        if sooner.1 {
            connection.receiver_armed = receiver;
        }
        if sooner.0 {
            self.order(sender, Later::Sender(flow));
        }
        if sooner.1 {
            self.order(receiver, Later::Receiver(flow));
        }
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
            Later::Plan => self.plan_week()?,
            Later::Sample => self.sample(),
        }
        Ok(())
    }

    /// An application writes a piece.
    fn write(&mut self, piece: u32) -> Result<(), PlantError> {
        let written = self.driver.write(piece);
        let flow = written.flow as usize;
        if written.opens {
            self.begin(flow)?;
        }
        let Flow::Live(connection) = &mut self.flows[flow] else { return Ok(()) };
        connection.sender.write(written.bytes);
        if written.closes {
            connection.sender.close();
            connection.closed = true;
        }
        if let Some(adus) = self.adus.as_mut().filter(|_| connection.crosses()) {
            adus.write(flow, written.bytes)?;
        }
        self.pump(written.flow);
        Ok(())
    }

    /// A flow begins.
    fn begin(&mut self, flow: usize) -> Result<(), PlantError> {
        let Between { source, destination, .. } = self.driver.workload().flows()[flow];
        let host = |place: Place| place.rack * self.settings.hosts_per_rack as u32 + place.host;
        let mut connection = Box::new(Connection {
            sender: Sender::new(self.settings.tcp).map_err(SettingsError::from)?,
            receiver: Receiver::new(&self.settings.tcp).map_err(SettingsError::from)?,
            source: host(source),
            destination: host(destination),
            source_rack: source.rack,
            destination_rack: destination.rack,
            closed: false,
            sender_armed: NEVER,
            receiver_armed: NEVER,
        });
        let (source, destination) = (source.rack as usize, destination.rack as usize);
        let division = u8::from(self.switch.has_circuit(source, destination));
        connection.sender.set_division(division);
        connection.receiver.set_division(division);
        if let Some(adus) = self.adus.as_mut().filter(|_| connection.crosses()) {
            adus.open(flow, source, destination)?;
        }
        self.flows[flow] = Flow::Live(connection);
        self.of_pair[source * self.settings.switch.racks + destination].push(flow as u32);
        self.records.flows[flow].began = Some(Nanos(self.now));
        Ok(())
    }

    /// Forgets a flow of which all is known to have arrived.
    fn end_if_done(&mut self, flow: u32) {
        let Flow::Live(connection) = &self.flows[flow as usize] else { return };
        if !connection.sender.is_finished() {
            return;
        }
        let racks = self.settings.switch.racks;
        let pair = connection.source_rack as usize * racks + connection.destination_rack as usize;
        self.of_pair[pair].retain(|&other| other != flow);
        self.record_flow(flow as usize);
        self.flows[flow as usize] = Flow::Done;
        if let Some(adus) = &mut self.adus {
            adus.close(flow as usize);
        }
    }

    fn record_flow(&mut self, flow: usize) {
        let Flow::Live(connection) = &self.flows[flow] else { return };
        let record = &mut self.records.flows[flow];
        let counts = connection.sender.counts();
        record.written = connection.sender.written();
        record.delivered = connection.receiver.delivered();
        (record.segments, record.again, record.timeouts) = (counts.segments, counts.again, counts.timeouts);
    }

    /// A circuit comes up or goes down.
    fn turn(&mut self, source: usize, destination: usize, up: bool, at: Nanos) -> Result<(), PlantError> {
        let carried = self.switch.carried(source, destination, Via::Circuit);
        if up {
            self.days[destination] = (at.0, carried);
        } else {
            let (began, before) = self.days[destination];
            let bytes = carried - before;
            self.records.days.push(DayRecord { source, destination, began: Nanos(began), ended: at, bytes });
        }
        if self.settings.tcp.divisions > 1 {
            let pair = source * self.settings.switch.racks + destination;
            for index in 0..self.of_pair[pair].len() {
                let flow = self.of_pair[pair][index];
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { continue };
                connection.sender.set_division(u8::from(up));
                connection.receiver.set_division(u8::from(up));
                self.pump(flow);
            }
        }
        Ok(())
    }

    /// Asks for the next week.
    fn plan_week(&mut self) -> Result<(), PlantError> {
        let racks = self.settings.switch.racks;
        let Plan::Weekly { demand, ahead, planner } = &mut self.plan else { return Ok(()) };
        let live = || {
            self.flows.iter().filter_map(|flow| match flow {
                Flow::Live(connection) => Some(connection),
                _ => None,
            })
        };
        let of = |connection: &Connection, left: u64| {
            (connection.source_rack as usize, connection.destination_rack as usize, left)
        };
        let bytes = match demand {
            Demand::Queues => estimate::of_queues(&self.switch),
            Demand::Adus => self.adus.as_ref().map_or_else(Vec::new, Adus::demand),
            Demand::Sockets => {
                let left = live().map(|c| of(c, c.sender.written() - c.sender.acknowledged()));
                estimate::of_flows(racks, left)?
            }
            Demand::Oracle => {
                let left = live().map(|c| of(c, c.sender.written() - c.receiver.delivered()));
                estimate::of_flows(racks, left)?
            }
        };
        let at = Nanos(self.now);
        let schedule = planner(&bytes).map_err(|problem| PlantError::Planner { at, problem })?;
        let (length, ahead) = (schedule.length().0, ahead.0.max(1));
        self.switch.step(at, Event::NewWeek(schedule), &mut self.out)?;
        self.take_out()?;
        let begins = self.week_ends.max(self.now);
        self.week_ends = begins + length;
        self.order(self.week_ends.saturating_sub(ahead).max(begins), Later::Plan);
        Ok(())
    }

    fn sample(&mut self) {
        let racks = self.settings.switch.racks;
        for &(source, destination) in &self.settings.sampled {
            let (packets, bytes) = self.switch.queued(source, destination);
            self.records.samples.push(Sample {
                at: Nanos(self.now),
                source,
                destination,
                packets,
                bytes,
                capacity: self.switch.capacity(source, destination),
                delivered: self.arrived[source * racks + destination],
            });
        }
        if let Some(every) = self.settings.sample_every {
            self.order(self.now + every.0, Later::Sample);
        }
    }
}

impl Connection {
    /// Whether it is between racks.
    fn crosses(&self) -> bool {
        self.source_rack != self.destination_rack
    }
}

/// When a host begins to send a packet that finds its NIC idle.
#[inline]
fn begin(random: &mut ChaCha8Rng, settings: &Settings, nic: &Nic, now: u64) -> u64 {
    match settings.jitter {
        Nanos(most) if most > 0 && nic.is_idle() => now + random.random_range(0..=most),
        _ => now,
    }
}
