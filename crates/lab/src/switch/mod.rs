//! The switch of a lab: frames of real kernels pass through [`leeward_circuits::switch::Switch`] in real time.
//!
//! The loop has one thread. It waits for frames and for the switch's next event, and spins during the last millisecond
//! before an event, because timers of the kernel are late.

mod adus;
mod host_links;
mod ports;
mod shared;
mod views;
mod weeks;

use std::collections::VecDeque;

use leeward_circuits::switch::{Ecn, Event, Full, Output, Packet, Switch, Via};
use leeward_fabric::Nanos;
use leeward_packets::workload::Place;
use leeward_packets::{DayRecord, Plan, Records, Settings};

pub(crate) use adus::AduTable;
pub(crate) use shared::Progress;
pub use shared::Shared;

use crate::clock::{Clock, real_now};
use crate::error::LabError;
use crate::frame;
use crate::frames::Frames;
use crate::hosts::Hosts;
use crate::names::Address;
use crate::precedence::Precedence;
use crate::timing::Timing;
use host_links::HostLinks;
use ports::Ports;

/// Real time before an event from which on the loop spins, in nanoseconds. A sleeping virtual processor needs a quarter of a
/// millisecond to wake up.
const SPIN: u64 = 1_000_000;
/// Longest real wait, so that a stop is noticed.
const LONGEST_WAIT: u64 = 20_000_000;
/// Real time between checks that the run keeps up, in nanoseconds.
const CHECK: u64 = 1_000_000_000;
/// Frames read from one host before the others have their turn.
const BURST: usize = 8;
const NEVER: u64 = u64::MAX;
const NOBODY: u32 = u32::MAX;

/// A frame in the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Carried {
    slot: u32,
    /// Length of the frame, with its header.
    length: u32,
    /// Number of the receiver.
    host: u32,
    has_data: bool,
}

/// A frame on the link of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Leaving {
    carried: Carried,
    read: frame::Packet,
    /// Rack of the receiver.
    rack: u32,
}

/// The switch of a lab, its devices, and the records of the run.
pub struct SwitchLoop<'a> {
    settings: &'a Settings,
    plan: Plan<'a>,
    shared: &'a Shared,
    clock: Clock,
    switch: Switch<Carried>,
    out: Vec<Output<Carried>>,
    frames: Frames,
    ports: Ports<'a>,
    places: &'a [Place],
    /// Number of the host at each place; [`NOBODY`] if the lab has none there.
    numbers: Vec<u32>,
    host_links: HostLinks<Leaving>,
    /// Frames between hosts of one rack, by the time of their delivery.
    local: VecDeque<(u64, Carried)>,
    /// Virtual time at which the workload began; records count from it.
    began: Option<Nanos>,
    next_plan: u64,
    next_sample: u64,
    next_report: u64,
    week_ends: u64,
    /// Start of the last week with circuits, and the real time of its first circuit.
    week: Option<(Nanos, u64)>,
    /// By destination: start of the circuit's day, its real start, and the bytes that the pair's circuits had carried.
    days: Vec<(u64, u64, u64)>,
    records: Records,
    timing: Timing,
    /// Real time between views and of the next one, in nanoseconds.
    view_every: u64,
    next_view: u64,
    /// Packets that were dropped before the last view.
    dropped: u64,
    /// Largest lateness allowed and length of the run, if it ends once too many packets are late.
    limit: Option<(Nanos, Nanos)>,
    /// Real time of the next check of the limit, in nanoseconds.
    next_check: u64,
}

impl<'a> SwitchLoop<'a> {
    /// Creates the switch of hosts.
    ///
    /// # Errors
    /// Returns an error for invalid settings.
    pub fn new(
        settings: &'a Settings,
        plan: Plan<'a>,
        shared: &'a Shared,
        clock: Clock,
        hosts: &'a Hosts,
        mtu: u32,
    ) -> Result<SwitchLoop<'a>, LabError> {
        settings.check()?;
        let racks = settings.switch.racks;
        let mut numbers = vec![NOBODY; racks * settings.hosts_per_rack];
        for (number, place) in hosts.places().iter().enumerate() {
            numbers[place.rack as usize * settings.hosts_per_rack + place.host as usize] = number as u32;
        }
        Ok(SwitchLoop {
            switch: Switch::new(settings.switch.clone()).map_err(leeward_packets::SettingsError::from)?,
            out: Vec::new(),
            frames: Frames::new(mtu as usize, 64 * racks),
            ports: Ports::new(hosts.devices())?,
            places: hosts.places(),
            numbers,
            host_links: HostLinks::new(hosts.places().len(), settings.nic),
            local: VecDeque::new(),
            began: None,
            next_plan: NEVER,
            next_sample: NEVER,
            next_report: NEVER,
            week_ends: 0,
            week: None,
            days: vec![(0, 0, 0); racks],
            records: Records::default(),
            timing: Timing { dilation: clock.dilation(), ..Timing::default() },
            view_every: 0,
            next_view: NEVER,
            dropped: 0,
            limit: None,
            next_check: NEVER,
            settings,
            plan,
            shared,
            clock,
        })
    }

    /// Ends the run with an error once more than 1 % of the packets of a run of length `horizon` are later than `bound`.
    pub(crate) fn end_when_late(&mut self, bound: Nanos, horizon: Nanos) {
        (self.limit, self.next_check) = (Some((bound, horizon)), 0);
    }

    fn check_if_due(&mut self, real: u64) -> Result<(), LabError> {
        if real >= self.next_check
            && let (Some((bound, horizon)), Some(began)) = (self.limit, self.began)
        {
            self.next_check = real + CHECK;
            self.timing.check_during(bound, self.clock.at(real).since(began), horizon)?;
        }
        Ok(())
    }

    /// Runs until [`Shared::stop`]. Returns the records of packets, days and samples, the timing, and the bytes in the
    /// switch.
    ///
    /// # Errors
    /// Returns an error if the scheduler fails, or a device cannot be read.
    pub fn run(mut self) -> Result<(Records, Timing, u64), LabError> {
        let mut precedence = Precedence::take();
        while !self.shared.is_stopped() {
            let real = real_now();
            precedence.keep(real);
            self.show_if_due(real);
            self.check_if_due(real)?;
            let now = self.clock.at(real);
            self.begin_if_due(now)?;
            self.advance(now)?;
            let wait = self.wait();
            for port in 0..self.ports.wait(wait)? {
                let host = self.ports.ready(port);
                self.take(host)?;
            }
        }
        self.records.uplink_bytes = self.switch.uplink_bytes();
        Ok((self.records, self.timing, self.switch.buffered_bytes()))
    }

    /// Real time to wait for frames, in nanoseconds.
    fn wait(&self) -> u64 {
        let mut next = self.switch.wake_at().map_or(NEVER, |at| at.0);
        next = next.min(self.next_plan).min(self.next_sample).min(self.next_report);
        next = next.min(self.local.front().map_or(NEVER, |&(at, _)| at));
        next = next.min(self.host_links.next().unwrap_or(NEVER));
        if self.began.is_none() {
            next = next.min(self.shared.begin().map_or(NEVER, |begin| begin.0));
        }
        if next == NEVER {
            return LONGEST_WAIT;
        }
        match self.clock.until(Nanos(next)) {
            ..=SPIN => 0,
            until => (until - SPIN).min(LONGEST_WAIT),
        }
    }

    fn begin_if_due(&mut self, now: Nanos) -> Result<(), LabError> {
        match self.shared.begin() {
            Some(begin) if self.began.is_none() && begin <= now => self.begin(begin, now),
            _ => Ok(()),
        }
    }

    /// Begins the workload and the schedule of circuits.
    fn begin(&mut self, begin: Nanos, now: Nanos) -> Result<(), LabError> {
        self.advance(now)?;
        self.began = Some(begin);
        self.records = Records::default();
        self.timing = Timing { dilation: self.timing.dilation, ..Timing::default() };
        match &self.plan {
            Plan::Packets => {}
            Plan::Fixed(schedule) => {
                self.switch.step(now, Event::NewWeek(schedule.clone()), &mut self.out)?
            }
            Plan::Routed(schedule, routes) => {
                self.switch.step(now, Event::NewWeek(schedule.clone()), &mut self.out)?;
                self.switch.step(now, Event::Routes(routes.clone()), &mut self.out)?;
            }
            Plan::Weekly { .. } => self.next_plan = now.0,
        }
        if self.settings.sample_every.is_some() && !self.settings.sampled.is_empty() {
            self.next_sample = now.0;
        }
        if let Some(every) = self.shared.report_every() {
            self.next_report = now.0 + every.0;
        }
        self.handle_outputs()
    }

    /// Carries out everything that is due.
    fn advance(&mut self, now: Nanos) -> Result<(), LabError> {
        self.enter_until(now)?;
        if self.switch.wake_at().is_some_and(|at| at <= now) {
            self.switch.step(now, Event::Wake, &mut self.out)?;
            self.handle_outputs()?;
        }
        while let Some(&(at, carried)) = self.local.front().filter(|(at, _)| *at <= now.0) {
            self.local.pop_front();
            self.timing.packets.add(now.since(Nanos(at)));
            self.write(carried);
        }
        if now.0 >= self.next_plan {
            self.plan_week(now)?;
        }
        if now.0 >= self.next_sample {
            self.sample(now);
        }
        if now.0 >= self.next_report {
            self.report(now);
        }
        Ok(())
    }

    /// Takes the frames that a host has sent.
    fn take(&mut self, sender: usize) -> Result<(), LabError> {
        for _ in 0..BURST {
            let slot = self.frames.take();
            let length = self.ports.read(sender, self.frames.slot(slot))?;
            if length == 0 {
                self.frames.give_back(slot);
                return Ok(());
            }
            let now = self.clock.now();
            // The first packets of the workload may arrive before the loop looks at the time.
            self.begin_if_due(now)?;
            match self.leaving(slot, length) {
                Some(leaving) => self.host_links.push(sender, now.0, leaving.read.bytes, leaving),
                None => {
                    self.timing.stray += 1;
                    self.frames.give_back(slot);
                }
            }
        }
        Ok(())
    }

    /// Reads a frame that a host has sent; returns `None` if it is not for another host of the lab.
    fn leaving(&mut self, slot: u32, length: usize) -> Option<Leaving> {
        let read = frame::read(&self.frames.slot(slot)[..length])?;
        let (racks, hosts) = (self.settings.switch.racks, self.settings.hosts_per_rack);
        let place = Address::place(read.destination)?;
        if place.rack as usize >= racks || place.host as usize >= hosts {
            return None;
        }
        let host = self.numbers[place.rack as usize * hosts + place.host as usize];
        let carried = Carried { slot, length: length as u32, host, has_data: read.has_data };
        (host != NOBODY).then_some(Leaving { carried, read, rack: place.rack })
    }

    /// Passes the frames to the switch that have left their hosts. Each enters at its own time, so that the loop's lateness
    /// does not change the order of events.
    fn enter_until(&mut self, now: Nanos) -> Result<(), LabError> {
        while let Some((at, sender, leaving)) = self.host_links.pop(now.0) {
            self.enter(sender, leaving, Nanos(at))?;
        }
        Ok(())
    }

    /// Passes a frame that has left its host to the switch.
    fn enter(&mut self, sender: usize, leaving: Leaving, at: Nanos) -> Result<(), LabError> {
        let Leaving { carried, read, rack } = leaving;
        let source = self.places[sender].rack;
        self.records.sent.add(read.bytes);
        if source == rack {
            self.records.local.add(read.bytes);
            self.local.push_back((at.0 + self.settings.local_delay.0, carried));
            return Ok(());
        }
        let packet = Packet {
            payload: carried,
            source,
            destination: rack,
            bytes: read.bytes,
            ecn: read.ecn,
            entered: at,
        };
        self.switch.step(at, Event::Arrive(packet), &mut self.out)?;
        // The output for a dropped packet is the last one.
        if !matches!(self.out.last(), Some(Output::Drop { by: Full::Voq, .. })) {
            self.shared.see(&read);
        }
        self.handle_outputs()
    }

    fn handle_outputs(&mut self) -> Result<(), LabError> {
        let mut out = std::mem::take(&mut self.out);
        for output in out.drain(..) {
            match output {
                Output::Deliver { packet, at, via, hops, circuit_mark } => {
                    self.records.hops[usize::from(hops) - 1].add(packet.bytes);
                    self.records.delivered[via as usize].add(packet.bytes);
                    let carried = packet.payload;
                    if carried.has_data {
                        self.records.latency[via as usize].add(at.since(packet.entered));
                        self.records.data_packets += 1;
                    }
                    let frame = &mut self.frames.slot(carried.slot)[..carried.length as usize];
                    if packet.ecn == Ecn::Congested {
                        frame::mark_congested(frame);
                    }
                    if circuit_mark {
                        frame::announce_circuit(frame);
                    }
                    self.write(carried);
                    self.timing.packets.add(self.clock.now().since(at));
                }
                Output::Drop { packet, .. } => {
                    self.records.dropped.add(packet.bytes);
                    self.frames.give_back(packet.payload.slot);
                }
                Output::Circuit { source, destination, up, at } => {
                    self.change_circuit(source as usize, destination as usize, up, at);
                }
            }
        }
        self.out = out;
        Ok(())
    }

    fn write(&mut self, carried: Carried) {
        let frame = &self.frames.slot(carried.slot)[..carried.length as usize];
        if !self.ports.write(carried.host as usize, frame) {
            self.timing.refused += 1;
        }
        self.frames.give_back(carried.slot);
    }

    fn change_circuit(&mut self, source: usize, destination: usize, up: bool, at: Nanos) {
        let real = real_now();
        self.timing.circuits.add(self.clock.at(real).since(at));
        let carried = self.switch.sent_bytes(source, destination, Via::Circuit);
        let since = |began: u64| Nanos((real - began) / u64::from(self.clock.dilation()));
        if up {
            self.days[destination] = (at.0, real, carried);
            // The switch may be in the next week already, if the loop was late.
            if let Some(week) = self.switch.week_began().filter(|week| *week <= at)
                && self.week.is_none_or(|(last, _)| last < week)
            {
                self.timing.weeks.extend(self.week.map(|(_, began)| since(began)));
                self.week = Some((week, real));
            }
            return;
        }
        let (day_began, real_began, before) = self.days[destination];
        let began = self.began.unwrap_or_default();
        self.timing.days.push(since(real_began));
        self.records.days.push(DayRecord {
            source,
            destination,
            began: Nanos(day_began).since(began),
            ended: at.since(began),
            bytes: carried - before,
        });
    }
}
