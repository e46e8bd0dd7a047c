//! Larger queues ahead of a circuit (Etalon, section 4.2), from a schedule.

use leeward_fabric::Nanos;

use crate::Schedule;

/// resize(s, b, tau): the queue of a pair of racks holds `big` packets from `early` before the pair's day until that day ends, and
/// `small` at any other time. A schedule is taken to repeat until there is another, so the days that a week begins with are
/// prepared in the week before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resize {
    small: u32,
    big: u32,
    early: Nanos,
}

/// What is no resizing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResizeError {
    /// The wrong way round.
    #[error("resize: small {small} packets, big {big}: small must not be above big")]
    Order {
        /// The small capacity.
        small: u32,
        /// The big one.
        big: u32,
    },
    /// A queue that holds nothing.
    #[error("resize: small 0 packets: must be at least 1")]
    Nothing,
}

/// What a queue holds from some time of the week on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapacityChange {
    /// From the beginning of the week.
    pub at: Nanos,
    /// The rack the packets come from.
    pub source: usize,
    /// The rack they go to.
    pub destination: usize,
    /// The capacity, in packets.
    pub packets: u32,
}

impl Resize {
    /// Capacities in packets, and how early before a day they change.
    ///
    /// # Errors
    /// `small` above `big`, or 0.
    pub fn new(small: u32, big: u32, early: Nanos) -> Result<Resize, ResizeError> {
        if small > big {
            return Err(ResizeError::Order { small, big });
        }
        if small == 0 {
            return Err(ResizeError::Nothing);
        }
        Ok(Resize { small, big, early })
    }

    /// The capacity away from a day.
    pub fn small(&self) -> u32 {
        self.small
    }

    /// The capacity ahead of a day and in it.
    pub fn big(&self) -> u32 {
        self.big
    }

    /// How early before a day it begins.
    pub fn early(&self) -> Nanos {
        self.early
    }

    /// The changes of a week that repeats, by time: first what every pair that is `big` when the week begins has.
    pub fn changes(&self, schedule: &Schedule) -> Vec<CapacityChange> {
        let mut changes = Vec::new();
        for lead in Leads::of(schedule, self.early).0 {
            let mut change = |at, on: bool| {
                let packets = if on { self.big } else { self.small };
                let (source, destination) = (lead.source, lead.destination);
                changes.push(CapacityChange { at: Nanos(at), source, destination, packets });
            };
            if lead.at_first {
                change(0, true);
            }
            for &(at, on) in &lead.turns {
                change(at, on);
            }
        }
        changes.sort_by_key(|change| (change.at, change.source, change.destination));
        changes
    }
}

/// When, in a week that repeats, a pair is ahead of its day or in it.
pub(super) struct Lead {
    pub(super) source: usize,
    pub(super) destination: usize,
    /// Whether it is when the week begins.
    pub(super) at_first: bool,
    /// From when on it is, or is no more; by time, at most the week's length.
    pub(super) turns: Vec<(u64, bool)>,
}

/// The leads of all pairs that have days, by pair.
pub(super) struct Leads(pub(super) Vec<Lead>);

impl Leads {
    pub(super) fn of(schedule: &Schedule, early: Nanos) -> Leads {
        let week = schedule.length().0;
        let mut days = Vec::new();
        let mut at = 0;
        for day in schedule.days() {
            let (start, end) = (at + schedule.night().0, at + schedule.night().0 + day.length.0);
            days.extend(
                day.matching.circuits().map(|(source, destination)| (source, destination, start, end)),
            );
            at = end;
        }
        days.sort_unstable();
        let of_pair = days.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        Leads(of_pair.map(|days| Lead::of(days, week, early.0)).collect())
    }
}

impl Lead {
    /// From a pair's days as (source, destination, start, end), by time.
    fn of(days: &[(usize, usize, u64, u64)], week: u64, early: u64) -> Lead {
        let mut lead = Lead { source: days[0].0, destination: days[0].1, at_first: false, turns: Vec::new() };
        for (index, &(.., end)) in days.iter().enumerate() {
            let last = index + 1 == days.len();
            let next = if last { days[0].2 + week } else { days[index + 1].2 };
            if next - end <= early {
                // One lasts until the other begins.
                lead.at_first |= last;
                continue;
            }
            lead.turns.push((end, false));
            // Now `next > early`, as the gap before it is.
            let from = next - early;
            if last && from >= week {
                lead.turns.push((from - week, true));
            } else {
                lead.turns.push((from, true));
                lead.at_first |= last;
            }
        }
        lead.turns.sort_unstable();
        lead
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Day, Matching};

    /// A week of days of two racks, where the days of `lengths` lead from 0 to 1 when marked and stand idle when not.
    fn week(lengths: &[(u64, bool)], night: u64) -> Schedule {
        let days = lengths.iter().map(|&(length, up)| {
            let matching = Matching::new(vec![None, up.then_some(0)]).expect("a matching");
            Day { matching, length: Nanos(length) }
        });
        Schedule::new(2, Nanos(night), days.collect()).expect("a schedule")
    }

    proptest! {
        #[test]
        fn a_queue_is_big_from_early_before_each_day_to_its_end_and_at_no_other_time(
            lengths in prop::collection::vec((1_u64..30, any::<bool>()), 1..8),
            night in 0_u64..5,
            early in 0_u64..200,
        ) {
            let schedule = week(&lengths, night);
            let resize = Resize::new(16, 128, Nanos(early)).expect("in order");
            let changes = resize.changes(&schedule);
            let length = schedule.length().0;
            let (mut at, mut days) = (0, Vec::new());
            for &(up, on) in &lengths {
                if on {
                    days.push((at + night, at + night + up));
                }
                at += night + up;
            }
            for now in 0..length {
                let big = (0..=1 + early / length).any(|ahead| {
                    days.iter().any(|&(start, end)| now < end + ahead * length && now + early >= start + ahead * length)
                });
                let ours = changes.iter().rfind(|change| change.at.0 <= now).is_some_and(|change| change.packets == 128);
                prop_assert_eq!(ours, big, "at {} of {}: {:?}", now, length, changes);
            }
        }
    }

    #[test]
    fn small_above_big_is_told() {
        let error = Resize::new(129, 128, Nanos(0)).expect_err("the wrong way round");
        assert_eq!(error.to_string(), "resize: small 129 packets, big 128: small must not be above big");
        assert_eq!(Resize::new(0, 128, Nanos(0)), Err(ResizeError::Nothing));
    }
}
