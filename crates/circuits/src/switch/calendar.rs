//! Calendar of a week: all its events by time, and the switch's position among them.

use super::settings::Settings;
use leeward_fabric::Nanos;

use super::resize::Leads;
use super::{CALENDAR, Output, Switch, SwitchError};
use crate::Schedule;
use crate::timers::NEVER;

/// An event at a time of the week.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum CalendarEvent {
    /// A day ends: its circuits go down.
    End { day: u32 },
    /// The night before a day begins: its pairs leave the packet path.
    Night { day: u32 },
    /// A day begins: its circuits come up.
    Day { day: u32 },
    /// The capacity of a pair's queue changes.
    Capacity { source: u32, destination: u32, packets: u32 },
    /// The announcement of a pair's circuit starts or ends.
    Mark { source: u32, destination: u32, on: bool },
}

/// A week that repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    /// Events by time; events at the same time are in the order of [`CalendarEvent`].
    pub(super) events: Vec<(u64, CalendarEvent)>,
    /// At the beginning of the week: the pairs with a large queue, and the pairs with an announced circuit.
    pub(super) big_at_first: Vec<(u32, u32)>,
    pub(super) marked_at_first: Vec<(u32, u32)>,
    /// Circuits of all days, and for each day the range of its circuits.
    circuits: Vec<(u32, u32)>,
    days: Vec<(usize, usize)>,
    /// End of each day.
    ends: Vec<u64>,
    pub(super) length: u64,
}

impl Calendar {
    /// Translates a schedule into events for a switch with these settings.
    pub(super) fn of(schedule: &Schedule, settings: &Settings) -> Calendar {
        let mut calendar = Calendar { length: schedule.length().0, ..Calendar::default() };
        let mut at = 0;
        for (index, day) in schedule.days().iter().enumerate() {
            let first = calendar.circuits.len();
            calendar.circuits.extend(day.matching.circuits().map(|(from, to)| (from as u32, to as u32)));
            calendar.days.push((first, calendar.circuits.len()));
            let (start, end) = (at + schedule.night().0, at + schedule.night().0 + day.length.0);
            let day = index as u32;
            calendar.events.extend([
                (at, CalendarEvent::Night { day }),
                (start, CalendarEvent::Day { day }),
                (end, CalendarEvent::End { day }),
            ]);
            calendar.ends.push(end);
            at = end;
        }
        // Without time to grow before days, a queue never grows (Etalon, section 4.3).
        if let Some(resize) = settings.resize.filter(|resize| resize.early().0 > 0) {
            for lead in Leads::of(schedule, resize.early()).0 {
                let (source, destination) = (lead.source as u32, lead.destination as u32);
                if lead.at_first {
                    calendar.big_at_first.push((source, destination));
                }
                calendar.events.extend(lead.turns.iter().map(|&(at, on)| {
                    let packets = if on { resize.big() } else { resize.small() };
                    (at, CalendarEvent::Capacity { source, destination, packets })
                }));
            }
        }
        if let Some(early) = settings.circuit_marks {
            for lead in Leads::of(schedule, early).0 {
                let (source, destination) = (lead.source as u32, lead.destination as u32);
                if lead.at_first {
                    calendar.marked_at_first.push((source, destination));
                }
                calendar.events.extend(
                    lead.turns.iter().map(|&(at, on)| (at, CalendarEvent::Mark { source, destination, on })),
                );
            }
        }
        calendar.events.sort_unstable();
        calendar
    }

    /// Range of a day's circuits, as arguments of [`Calendar::circuit`].
    pub(super) fn circuits_of(&self, day: u32) -> std::ops::Range<usize> {
        let (first, last) = self.days[day as usize];
        first..last
    }

    /// A circuit as source and destination.
    pub(super) fn circuit(&self, at: usize) -> (usize, usize) {
        let (source, destination) = self.circuits[at];
        (source as usize, destination as usize)
    }

    /// Number of days.
    pub(super) fn days(&self) -> usize {
        self.days.len()
    }

    /// End of a day, from the beginning of the week.
    pub(super) fn end_of(&self, day: u32) -> u64 {
        self.ends[day as usize]
    }
}

/// The switch's position in its week.
impl<P: Copy> Switch<P> {
    pub(super) fn new_week(
        &mut self,
        schedule: &Schedule,
        out: &mut Vec<Output<P>>,
    ) -> Result<(), SwitchError> {
        let (found, expected) = (schedule.racks(), self.racks.len());
        if found != expected {
            return Err(SwitchError::Racks { found, expected });
        }
        if schedule.length().0 == 0 {
            return Err(SwitchError::NoDays);
        }
        let week = Calendar::of(schedule, &self.settings);
        if self.calendar.length > 0 {
            self.next_week = Some(week);
            return Ok(());
        }
        self.week_began = self.now;
        self.adopt(week);
        self.set_calendar();
        self.advance(self.now, out);
        Ok(())
    }

    /// Starts the week of a new schedule.
    fn adopt(&mut self, week: Calendar) {
        let racks = self.racks.len();
        self.calendar = week;
        self.detours = None;
        if let Some(resize) = self.settings.resize {
            self.voqs.iter_mut().for_each(|voq| voq.capacity = resize.small());
            for &(source, destination) in &self.calendar.big_at_first {
                self.voqs[source as usize * racks + destination as usize].capacity = resize.big();
            }
        }
        self.announced.clear();
        for &(source, destination) in &self.calendar.marked_at_first {
            self.announced.put(source as usize, destination as usize, true);
        }
    }

    fn set_calendar(&mut self) {
        let at = self
            .calendar
            .events
            .get(self.next_event)
            .map_or(NEVER, |&(at, _)| self.week_began.saturating_add(at));
        self.set(CALENDAR, 0, at);
    }

    /// Handles all events due at `now`, including the beginning of the next week, before any link moves.
    pub(super) fn run_calendar(&mut self, now: u64, out: &mut Vec<Output<P>>) {
        let mut moved = false;
        loop {
            while let Some(&(at, event)) = self.calendar.events.get(self.next_event) {
                if self.week_began.saturating_add(at) > now {
                    break;
                }
                self.next_event += 1;
                moved |= self.apply(event, now, out);
            }
            if self.next_event < self.calendar.events.len() || self.week_began + self.calendar.length > now {
                break;
            }
            self.week_began += self.calendar.length;
            self.next_event = 0;
            if let Some(week) = self.next_week.take() {
                self.adopt(week);
            }
        }
        self.set_calendar();
        if moved {
            self.offer_all(now);
        }
    }

    /// Handles one event. Returns true if a link may now be able to take a packet.
    fn apply(&mut self, event: CalendarEvent, now: u64, out: &mut Vec<Output<P>>) -> bool {
        let racks = self.racks.len();
        match event {
            CalendarEvent::End { day } => {
                for at in self.calendar.circuits_of(day) {
                    let (source, destination) = self.calendar.circuit(at);
                    self.racks[destination].circuit_from = None;
                    self.racks[source].circuit_to = None;
                    self.off.put(source, destination, false);
                    out.push(circuit(source, destination, false, now));
                }
                true
            }
            CalendarEvent::Night { day } => {
                for at in self.calendar.circuits_of(day) {
                    let (source, destination) = self.calendar.circuit(at);
                    self.off.put(source, destination, self.settings.packet_path_off);
                }
                false
            }
            CalendarEvent::Day { day } => {
                self.day = day;
                let until = self.week_began.saturating_add(self.calendar.end_of(day));
                for at in self.calendar.circuits_of(day) {
                    let (source, destination) = self.calendar.circuit(at);
                    let rack = &mut self.racks[destination];
                    (rack.circuit_from, rack.circuit_until) = (Some(source as u32), until);
                    self.racks[source].circuit_to = Some(destination as u32);
                    out.push(circuit(source, destination, true, now));
                }
                true
            }
            CalendarEvent::Capacity { source, destination, packets } => {
                self.voqs[source as usize * racks + destination as usize].capacity = packets;
                false
            }
            CalendarEvent::Mark { source, destination, on } => {
                self.announced.put(source as usize, destination as usize, on);
                false
            }
        }
    }

    /// Offers the queues to every link again.
    fn offer_all(&mut self, now: u64) {
        for source in 0..self.racks.len() {
            if let Some(destination) = self.waiting.next(source, 0, Some(&self.off)) {
                self.offer(source, destination, now);
            }
        }
        for destination in 0..self.racks.len() {
            let Some(source) = self.racks[destination].circuit_from else { continue };
            let source = source as usize;
            let any = self.detours.as_ref().and_then(|_| self.waiting.next(source, 0, None));
            if let Some(queue) = self.waiting.has(source, destination).then_some(destination).or(any) {
                self.offer(source, queue, now);
            }
        }
    }
}

fn circuit<P>(source: usize, destination: usize, up: bool, at: u64) -> Output<P> {
    Output::Circuit { source: source as u32, destination: destination as u32, up, at: Nanos(at) }
}
