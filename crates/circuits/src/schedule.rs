//! What a schedule is, and when it is one.

use leeward_fabric::Nanos;

/// The circuits of a day: for each destination rack the source rack whose circuit leads to it, if any. No source has two.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Matching {
    sources: Vec<Option<u32>>,
}

/// What is no matching.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MatchingError {
    /// A rack that is not there.
    #[error("destination {destination}: source {source_rack} of {racks} racks, numbered from 0")]
    NoRack {
        /// Of which destination.
        destination: usize,
        /// The source given.
        source_rack: usize,
        /// How many racks there are.
        racks: usize,
    },
    /// A source with two circuits.
    #[error("source {source_rack} has circuits to {first} and {second}: a port has one")]
    Twice {
        /// Which source.
        source_rack: usize,
        /// One destination.
        first: usize,
        /// Another.
        second: usize,
    },
    /// A destination that is not there.
    #[error("destination {destination} of {racks} racks, numbered from 0")]
    NoDestination {
        /// The destination given.
        destination: usize,
        /// How many racks there are.
        racks: usize,
    },
    /// A circuit that leads nowhere.
    #[error("a circuit from rack {rack} to itself: expected another rack")]
    Itself {
        /// Which rack.
        rack: usize,
    },
    /// A destination with two circuits.
    #[error("destination {destination} has circuits from {first} and {second}: a port has one")]
    Shared {
        /// Which destination.
        destination: usize,
        /// One source.
        first: usize,
        /// Another.
        second: usize,
    },
}

impl Matching {
    /// Circuits by destination: `sources[d]` is the source rack of the circuit to rack `d`.
    ///
    /// # Errors
    /// A source that is no rack, or has two circuits.
    pub fn new(sources: Vec<Option<u32>>) -> Result<Matching, MatchingError> {
        let racks = sources.len();
        let mut taken = vec![None; racks];
        for (destination, source) in sources.iter().enumerate() {
            let Some(source_rack) = source.map(|source| source as usize) else { continue };
            if source_rack >= racks {
                return Err(MatchingError::NoRack { destination, source_rack, racks });
            }
            if let Some(first) = taken[source_rack].replace(destination) {
                return Err(MatchingError::Twice { source_rack, first, second: destination });
            }
        }
        Ok(Matching { sources })
    }

    /// How many racks there are.
    pub fn racks(&self) -> usize {
        self.sources.len()
    }

    /// The rack whose circuit leads to `destination`.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn source_of(&self, destination: usize) -> Option<usize> {
        self.sources[destination].map(|source| source as usize)
    }

    /// Its circuits as (source, destination), by destination.
    pub fn circuits(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.sources.iter().enumerate().filter_map(|(to, from)| from.map(|from| (from as usize, to)))
    }
}

/// One configuration of the circuit switch and how long it is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Day {
    /// Its circuits.
    pub matching: Matching,
    /// How long they are up, without the night before.
    pub length: Nanos,
}

/// A week: a night and a day, a night and a day, and so on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    racks: usize,
    night: Nanos,
    days: Vec<Day>,
}

/// What is no schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A day of other racks.
    #[error("day {day}: {found} racks: must be {expected}")]
    Racks {
        /// Which day, from 0.
        day: usize,
        /// Its racks.
        found: usize,
        /// Those of the schedule.
        expected: usize,
    },
    /// A day of no length.
    #[error("day {day}: a length of 0: must be above 0")]
    Empty {
        /// Which day, from 0.
        day: usize,
    },
    /// Days that together last longer than time can be counted.
    #[error("day {day}: with it the schedule is longer than time can be counted")]
    Endless {
        /// Which day, from 0.
        day: usize,
    },
}

impl Schedule {
    /// A week of days, each after a night.
    ///
    /// # Errors
    /// The first day that does not fit.
    pub fn new(racks: usize, night: Nanos, days: Vec<Day>) -> Result<Schedule, ScheduleError> {
        let mut length = 0u64;
        for (day, of) in days.iter().enumerate() {
            let found = of.matching.racks();
            if found != racks {
                return Err(ScheduleError::Racks { day, found, expected: racks });
            }
            if of.length == Nanos(0) {
                return Err(ScheduleError::Empty { day });
            }
            let longer = length.checked_add(night.0).and_then(|length| length.checked_add(of.length.0));
            length = longer.ok_or(ScheduleError::Endless { day })?;
        }
        Ok(Schedule { racks, night, days })
    }

    /// How many racks there are.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// The gap before each day.
    pub fn night(&self) -> Nanos {
        self.night
    }

    /// Its days, in order.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// How long all of it takes, nights and days.
    pub fn length(&self) -> Nanos {
        let up: u64 = self.days.iter().map(|day| day.length.0).sum();
        Nanos(up + self.night.0 * self.days.len() as u64)
    }
}
