//! What happens when in a week, as one list by time.

use super::resize::Leads;
use super::settings::Settings;
use crate::Schedule;

/// Something that happens at a time of the week.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Turn {
    /// A day is over: its circuits go down.
    End { day: u32 },
    /// The night before a day: its pairs leave the packet path.
    Night { day: u32 },
    /// A day begins: its circuits come up.
    Day { day: u32 },
    /// A pair's queue changes.
    Capacity { source: u32, destination: u32, packets: u32 },
    /// A pair's circuit is announced, or no more.
    Mark { source: u32, destination: u32, on: bool },
}

/// A week that repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    /// By time; what is at the same time in the order of [`Turn`].
    pub(super) turns: Vec<(u64, Turn)>,
    /// The pairs whose queue is big, whose circuit is announced, when the week begins.
    pub(super) big_at_first: Vec<(u32, u32)>,
    pub(super) marked_at_first: Vec<(u32, u32)>,
    /// The circuits of all days, and where those of each day begin and end.
    circuits: Vec<(u32, u32)>,
    days: Vec<(usize, usize)>,
    /// When each day ends.
    ends: Vec<u64>,
    pub(super) length: u64,
}

impl Calendar {
    /// What a schedule means for a switch of such settings.
    pub(super) fn of(schedule: &Schedule, settings: &Settings) -> Calendar {
        let mut calendar = Calendar { length: schedule.length().0, ..Calendar::default() };
        let mut at = 0;
        for (day, of) in schedule.days().iter().enumerate() {
            let first = calendar.circuits.len();
            calendar.circuits.extend(of.matching.circuits().map(|(from, to)| (from as u32, to as u32)));
            calendar.days.push((first, calendar.circuits.len()));
            let (start, end) = (at + schedule.night().0, at + schedule.night().0 + of.length.0);
            let day = day as u32;
            calendar.turns.extend([
                (at, Turn::Night { day }),
                (start, Turn::Day { day }),
                (end, Turn::End { day }),
            ]);
            calendar.ends.push(end);
            at = end;
        }
        if let Some(resize) = settings.resize {
            for lead in Leads::of(schedule, resize.early()).0 {
                let (source, destination) = (lead.source as u32, lead.destination as u32);
                if lead.at_first {
                    calendar.big_at_first.push((source, destination));
                }
                calendar.turns.extend(lead.turns.iter().map(|&(at, on)| {
                    let packets = if on { resize.big() } else { resize.small() };
                    (at, Turn::Capacity { source, destination, packets })
                }));
            }
        }
        if let Some(early) = settings.circuit_marks {
            for lead in Leads::of(schedule, early).0 {
                let (source, destination) = (lead.source as u32, lead.destination as u32);
                if lead.at_first {
                    calendar.marked_at_first.push((source, destination));
                }
                calendar
                    .turns
                    .extend(lead.turns.iter().map(|&(at, on)| (at, Turn::Mark { source, destination, on })));
            }
        }
        calendar.turns.sort_unstable();
        calendar
    }

    /// Where the circuits of a day are in [`Calendar::circuit`].
    pub(super) fn circuits_of(&self, day: u32) -> std::ops::Range<usize> {
        let (first, last) = self.days[day as usize];
        first..last
    }

    /// A circuit, as source and destination.
    pub(super) fn circuit(&self, at: usize) -> (usize, usize) {
        let (source, destination) = self.circuits[at];
        (source as usize, destination as usize)
    }

    /// When a day ends, from the beginning of the week.
    pub(super) fn end_of(&self, day: u32) -> u64 {
        self.ends[day as usize]
    }
}
