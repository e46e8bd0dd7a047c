//! Schedules of circuits: matchings, days and weeks, and their validity.

use leeward_fabric::Nanos;

/// Circuits of one day: for each destination rack the source rack of its circuit, if any. No source has two circuits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Matching {
    sources: Vec<Option<u32>>,
}

/// Invalid matching.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MatchingError {
    /// A source rack that does not exist.
    #[error(
        "circuit from rack {source_rack} to rack {destination}: there are {racks} racks, numbered from 0"
    )]
    NoRack {
        /// Destination rack of the circuit.
        destination: usize,
        /// Invalid source rack.
        source_rack: usize,
        /// Number of racks.
        racks: usize,
    },
    /// A source with two circuits.
    #[error("source {source_rack} has circuits to {first} and {second}: a port has one")]
    Twice {
        /// Source rack.
        source_rack: usize,
        /// First destination.
        first: usize,
        /// Second destination.
        second: usize,
    },
    /// A destination rack that does not exist.
    #[error("circuit to rack {destination}: there are {racks} racks, numbered from 0")]
    NoDestination {
        /// Invalid destination rack.
        destination: usize,
        /// Number of racks.
        racks: usize,
    },
    /// A circuit from a rack to itself.
    #[error("a circuit from rack {rack} to itself: expected another rack")]
    Itself {
        /// Rack.
        rack: usize,
    },
    /// A destination with two circuits.
    #[error("destination {destination} has circuits from {first} and {second}: a port has one")]
    Shared {
        /// Destination rack.
        destination: usize,
        /// First source.
        first: usize,
        /// Second source.
        second: usize,
    },
}

impl Matching {
    /// Creates a matching from sources by destination: `sources[d]` is the source rack of the circuit to rack `d`.
    ///
    /// # Errors
    /// Returns an error for a source that does not exist or that has two circuits.
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

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.sources.len()
    }

    /// Circuits as (source, destination), by destination.
    pub fn circuits(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.sources.iter().enumerate().filter_map(|(to, from)| from.map(|from| (from as usize, to)))
    }
}

/// One configuration of the circuit switch, and its duration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Day {
    /// Circuits of the day.
    pub matching: Matching,
    /// Time for which the circuits are up, without the night before.
    pub length: Nanos,
}

/// A week: nights and days alternate, beginning with a night.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    racks: usize,
    night: Nanos,
    days: Vec<Day>,
}

/// Invalid schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A day whose number of racks differs from the schedule's.
    #[error("day {day}: {found} racks: must be {expected}")]
    Racks {
        /// Day, from 0.
        day: usize,
        /// Racks of the day.
        found: usize,
        /// Racks of the schedule.
        expected: usize,
    },
    /// A day of length 0.
    #[error("day {day}: a length of 0: must be above 0")]
    Empty {
        /// Day, from 0.
        day: usize,
    },
    /// A total length beyond 64-bit nanoseconds.
    #[error("day {day}: the schedule is too long for 64-bit nanoseconds")]
    Endless {
        /// First day beyond the limit, from 0.
        day: usize,
    },
}

impl Schedule {
    /// Creates a week of days, each after a night of `night`.
    ///
    /// # Errors
    /// Returns the first invalid day.
    pub fn new(racks: usize, night: Nanos, days: Vec<Day>) -> Result<Schedule, ScheduleError> {
        let mut length = 0u64;
        for (index, day) in days.iter().enumerate() {
            let found = day.matching.racks();
            if found != racks {
                return Err(ScheduleError::Racks { day: index, found, expected: racks });
            }
            if day.length == Nanos(0) {
                return Err(ScheduleError::Empty { day: index });
            }
            let longer = length.checked_add(night.0).and_then(|length| length.checked_add(day.length.0));
            length = longer.ok_or(ScheduleError::Endless { day: index })?;
        }
        Ok(Schedule { racks, night, days })
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// Gap before each day.
    pub fn night(&self) -> Nanos {
        self.night
    }

    /// Days in order.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// Total length of all nights and days.
    pub fn length(&self) -> Nanos {
        let up: u64 = self.days.iter().map(|day| day.length.0).sum();
        Nanos(up + self.night.0 * self.days.len() as u64)
    }
}
