//! Dynamic queue sizes: larger queues ahead of a circuit (Etalon, section 4.2), computed from a schedule.

use leeward_fabric::Nanos;

use crate::Schedule;

/// resize(s, b, tau): the queue of a pair of racks holds `big` packets from `early` before the pair's day until the end
/// of that day. At other times, and always if `early` is 0, it holds `small` packets (sections 4.2 and 4.3). A schedule
/// repeats until the next one replaces it, so the changes for a week's first days begin in the week before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resize {
    small: u32,
    big: u32,
    early: Nanos,
}

/// Invalid parameters of dynamic queue sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResizeError {
    /// `small` above `big`.
    #[error("resize: small {small} packets, big {big}: small must not be above big")]
    Order {
        /// Small capacity.
        small: u32,
        /// Big capacity.
        big: u32,
    },
    /// A capacity of 0.
    #[error("resize: small 0 packets: must be at least 1")]
    Nothing,
}

impl Resize {
    /// Creates dynamic queue sizes from capacities in packets and the time by which a change precedes a day.
    ///
    /// # Errors
    /// Returns an error if `small` is above `big` or is 0.
    pub fn new(small: u32, big: u32, early: Nanos) -> Result<Resize, ResizeError> {
        if small > big {
            return Err(ResizeError::Order { small, big });
        }
        if small == 0 {
            return Err(ResizeError::Nothing);
        }
        Ok(Resize { small, big, early })
    }

    /// Capacity outside days.
    pub fn small(&self) -> u32 {
        self.small
    }

    /// Capacity before and during a day.
    pub fn big(&self) -> u32 {
        self.big
    }

    /// Time by which the big capacity precedes a day; 0 means that there is no big capacity.
    pub fn early(&self) -> Nanos {
        self.early
    }
}

/// Times in a repeating week at which a pair is in its day or shortly before it.
pub(super) struct Lead {
    pub(super) source: usize,
    pub(super) destination: usize,
    /// True if the lead is active when the week begins.
    pub(super) at_first: bool,
    /// Times at which the lead becomes active or inactive, in order, at most the week's length.
    pub(super) turns: Vec<(u64, bool)>,
}

/// Leads of all pairs with days, by pair.
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
    /// Computes a lead from a pair's days as (source, destination, start, end), by time.
    fn of(days: &[(usize, usize, u64, u64)], week: u64, early: u64) -> Lead {
        let mut lead = Lead { source: days[0].0, destination: days[0].1, at_first: false, turns: Vec::new() };
        for (index, &(.., end)) in days.iter().enumerate() {
            let last = index + 1 == days.len();
            let next = if last { days[0].2 + week } else { days[index + 1].2 };
            if next - end <= early {
                // The lead of this day continues until the next day's lead begins.
                lead.at_first |= last;
                continue;
            }
            lead.turns.push((end, false));
            // `next > early` holds here, because the gap before `next` is longer than `early`.
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

    /// A week of days of two racks. A day leads from 0 to 1 if its flag in `lengths` is set; otherwise it has no
    /// circuit.
    fn week(lengths: &[(u64, bool)], night: u64) -> Schedule {
        let days = lengths.iter().map(|&(length, up)| {
            let matching = Matching::new(vec![None, up.then_some(0)]).expect("a matching");
            Day { matching, length: Nanos(length) }
        });
        Schedule::new(2, Nanos(night), days.collect()).expect("a schedule")
    }

    proptest! {
        #[test]
        fn a_queue_is_big_only_from_just_before_each_day_to_its_end(
            lengths in prop::collection::vec((1_u64..30, any::<bool>()), 1..8),
            night in 0_u64..5,
            early in 0_u64..200,
        ) {
            let schedule = week(&lengths, night);
            let leads = Leads::of(&schedule, Nanos(early)).0;
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
                let is_big = leads.iter().any(|lead| {
                    lead.turns.iter().rfind(|turn| turn.0 <= now).map_or(lead.at_first, |turn| turn.1)
                });
                prop_assert_eq!(is_big, big, "at {} of {}", now, length);
            }
        }
    }

    #[test]
    fn small_above_big_is_rejected() {
        let error = Resize::new(129, 128, Nanos(0)).expect_err("small is above big");
        assert_eq!(error.to_string(), "resize: small 129 packets, big 128: small must not be above big");
        assert_eq!(Resize::new(0, 128, Nanos(0)), Err(ResizeError::Nothing));
    }
}
