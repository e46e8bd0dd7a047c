//! What a schedule does for a demand, and whether it is what its scheduler promises.

use leeward_fabric::Nanos;

use crate::{DemandMatrix, Network, Promises, Schedule};

/// What a schedule serves of a demand, and what it leaves for packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluation {
    /// What each day serves.
    pub days: Vec<DayServed>,
    /// What circuits leave, by pair.
    pub left: DemandMatrix,
    /// Bytes that circuits carry.
    pub served: u64,
    /// How long packets take for what is left, were nothing else on the way: the busiest port's time.
    pub packets_take: Nanos,
    /// How many pairs of racks have a circuit on some day.
    pub pairs: usize,
}

/// What a day serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayServed {
    /// When its circuits come up, from the beginning of the week.
    pub start: Nanos,
    /// How long they are up.
    pub length: Nanos,
    /// Its circuits with the bytes that each carries.
    pub circuits: Vec<CircuitServed>,
    /// Bytes that they carry together.
    pub served: u64,
}

/// What a circuit carries on a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitServed {
    /// From which rack.
    pub source: usize,
    /// To which rack.
    pub destination: usize,
    /// How many bytes.
    pub bytes: u64,
}

/// Lets the days of a schedule serve a demand, in order.
///
/// # Errors
/// A schedule of other racks.
pub fn evaluate(
    schedule: &Schedule,
    demand: &DemandMatrix,
    network: &Network,
) -> Result<Evaluation, Invalid> {
    let racks = demand.racks();
    of_racks(schedule, racks)?;
    let mut left = demand.bytes().to_vec();
    let (mut clock, mut served) = (Nanos(0), 0);
    let mut days = Vec::with_capacity(schedule.days().len());
    for day in schedule.days() {
        let carries = network.carries(day.length);
        let mut circuits = Vec::with_capacity(racks);
        for (source, destination) in day.matching.circuits() {
            let entry = &mut left[source * racks + destination];
            let bytes = (*entry).min(carries);
            *entry -= bytes;
            circuits.push(CircuitServed { source, destination, bytes });
        }
        let start = clock.plus(schedule.night());
        clock = start.plus(day.length);
        let bytes = circuits.iter().map(|circuit| circuit.bytes).sum();
        served += bytes;
        days.push(DayServed { start, length: day.length, circuits, served: bytes });
    }
    let left = DemandMatrix::of(racks, left);
    let packets_take = network.packets_take(left.busiest_port());
    let pairs = linked(schedule).into_iter().filter(|&pair| pair).count();
    Ok(Evaluation { days, left, served, packets_take, pairs })
}

/// What a schedule breaks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// Racks that are not those of the demand.
    #[error("a schedule of {found} racks: must be {expected}, as many as the demand has")]
    Racks {
        /// Those of the schedule.
        found: usize,
        /// Those of the demand.
        expected: usize,
    },
    /// A night that is not the network's.
    #[error("nights of {found}: must be {expected}, as the network's")]
    Night {
        /// That of the schedule.
        found: Nanos,
        /// That of the network.
        expected: Nanos,
    },
    /// More than a week.
    #[error("day {day} ends at {end}: must be within the week of {week}")]
    Week {
        /// The first day that is too late, from 0.
        day: usize,
        /// When it ends.
        end: Nanos,
        /// How long a week is.
        week: Nanos,
    },
    /// A day that is too short.
    #[error("day {day}: a length of {length}: must be {min_day} at least")]
    MinDay {
        /// Which day, from 0.
        day: usize,
        /// Its length.
        length: Nanos,
        /// The shortest there may be.
        min_day: Nanos,
    },
    /// A pair without a circuit.
    #[error("no day has a circuit from rack {source_rack} to rack {destination}: every pair must have one")]
    Pair {
        /// The source.
        source_rack: usize,
        /// The destination.
        destination: usize,
    },
}

/// Checks that a schedule is one for so many racks of a network, and keeps what is promised of it. That each day is a
/// matching and lasts some time, [`Schedule::new`] sees to.
///
/// # Errors
/// The first thing that it breaks.
pub fn check(
    schedule: &Schedule,
    racks: usize,
    network: &Network,
    promises: Promises,
) -> Result<(), Invalid> {
    of_racks(schedule, racks)?;
    if schedule.night() != network.night() {
        return Err(Invalid::Night { found: schedule.night(), expected: network.night() });
    }
    let mut end = Nanos(0);
    for (day, of) in schedule.days().iter().enumerate() {
        end = end.plus(schedule.night()).plus(of.length);
        if promises.within_week && end > network.week() {
            return Err(Invalid::Week { day, end, week: network.week() });
        }
        if promises.min_day && of.length < network.min_day() {
            return Err(Invalid::MinDay { day, length: of.length, min_day: network.min_day() });
        }
    }
    match if promises.all_pairs { schedule.unlinked() } else { None } {
        Some((source_rack, destination)) => Err(Invalid::Pair { source_rack, destination }),
        None => Ok(()),
    }
}

fn of_racks(schedule: &Schedule, expected: usize) -> Result<(), Invalid> {
    let found = schedule.racks();
    if found == expected { Ok(()) } else { Err(Invalid::Racks { found, expected }) }
}

impl Schedule {
    /// The first pair of two racks without a circuit on any day, as (source, destination).
    pub fn unlinked(&self) -> Option<(usize, usize)> {
        let (racks, linked) = (self.racks(), linked(self));
        let alone = (0..linked.len()).find(|&pair| pair / racks != pair % racks && !linked[pair]);
        alone.map(|pair| (pair / racks, pair % racks))
    }
}

/// Whether each pair of two racks has a circuit on some day, row by row of sources.
fn linked(schedule: &Schedule) -> Vec<bool> {
    let racks = schedule.racks();
    let mut linked = vec![false; racks * racks];
    for (source, destination) in schedule.days().iter().flat_map(|day| day.matching.circuits()) {
        linked[source * racks + destination] = source != destination;
    }
    linked
}
