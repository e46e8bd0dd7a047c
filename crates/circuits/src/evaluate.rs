//! Evaluates how much demand a schedule serves, and checks a schedule against its scheduler's guarantees.

use leeward_fabric::Nanos;

use crate::{DemandMatrix, Guarantees, Network, Schedule};

/// Demand that a schedule serves, and demand that it leaves to the packet switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluation {
    /// Demand served on each day.
    pub days: Vec<DayServed>,
    /// Demand that circuits leave, by pair.
    pub left: DemandMatrix,
    /// Bytes that circuits carry.
    pub served: u64,
    /// Time that the packet switch needs for the remaining demand without other traffic. It is the time of the busiest
    /// port.
    pub packets_take: Nanos,
    /// Number of pairs of racks with a circuit on at least one day.
    pub pairs: usize,
}

/// Demand served on one day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayServed {
    /// Time at which its circuits come up, from the beginning of the week.
    pub start: Nanos,
    /// Time for which its circuits are up.
    pub length: Nanos,
    /// Circuits of the day and the bytes that each carries.
    pub circuits: Vec<CircuitServed>,
    /// Bytes that all circuits of the day carry.
    pub served: u64,
}

/// Bytes that one circuit carries on one day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitServed {
    /// Source rack.
    pub source: usize,
    /// Destination rack.
    pub destination: usize,
    /// Bytes carried.
    pub bytes: u64,
}

/// Computes the demand that each day of a schedule serves, in the order of the days.
///
/// # Errors
/// Returns an error if the schedule and the demand have different numbers of racks.
pub fn evaluate(
    schedule: &Schedule,
    demand: &DemandMatrix,
    network: &Network,
) -> Result<Evaluation, Violation> {
    let racks = demand.racks();
    check_racks(schedule, racks)?;
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

/// Violation found in a schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A number of racks that differs from the demand's.
    #[error("a schedule of {found} racks: must be {expected}, as many as the demand has")]
    Racks {
        /// Racks of the schedule.
        found: usize,
        /// Racks of the demand.
        expected: usize,
    },
    /// A night that differs from the network's.
    #[error("nights of {found}: must be {expected}, the night of the network")]
    Night {
        /// Night of the schedule.
        found: Nanos,
        /// Night of the network.
        expected: Nanos,
    },
    /// A schedule longer than a week.
    #[error("day {day} ends at {end}: must be within the week of {week}")]
    Week {
        /// First day that ends too late, from 0.
        day: usize,
        /// End of that day.
        end: Nanos,
        /// Length of a week.
        week: Nanos,
    },
    /// A day shorter than the minimum.
    #[error("day {day}: a length of {length}: must be at least {min_day}")]
    MinDay {
        /// Day, from 0.
        day: usize,
        /// Length of the day.
        length: Nanos,
        /// Minimum length of a day.
        min_day: Nanos,
    },
    /// A pair without a circuit on any day.
    #[error("no day has a circuit from rack {source_rack} to rack {destination}: every pair must have one")]
    Pair {
        /// Source rack.
        source_rack: usize,
        /// Destination rack.
        destination: usize,
    },
}

/// Checks that a schedule fits the racks and the network and keeps its scheduler's guarantees. [`Schedule::new`]
/// already checks that each day is a matching of positive length.
///
/// # Errors
/// Returns the first violation.
pub fn check(
    schedule: &Schedule,
    racks: usize,
    network: &Network,
    guarantees: Guarantees,
) -> Result<(), Violation> {
    check_racks(schedule, racks)?;
    if schedule.night() != network.night() {
        return Err(Violation::Night { found: schedule.night(), expected: network.night() });
    }
    let mut end = Nanos(0);
    for (index, day) in schedule.days().iter().enumerate() {
        end = end.plus(schedule.night()).plus(day.length);
        if guarantees.within_week && end > network.week() {
            return Err(Violation::Week { day: index, end, week: network.week() });
        }
        if guarantees.min_day && day.length < network.min_day() {
            return Err(Violation::MinDay { day: index, length: day.length, min_day: network.min_day() });
        }
    }
    match if guarantees.all_pairs { schedule.unlinked() } else { None } {
        Some((source_rack, destination)) => Err(Violation::Pair { source_rack, destination }),
        None => Ok(()),
    }
}

fn check_racks(schedule: &Schedule, expected: usize) -> Result<(), Violation> {
    let found = schedule.racks();
    if found == expected { Ok(()) } else { Err(Violation::Racks { found, expected }) }
}

impl Schedule {
    /// First pair of different racks without a circuit on any day, as (source, destination).
    pub fn unlinked(&self) -> Option<(usize, usize)> {
        let (racks, linked) = (self.racks(), linked(self));
        let unlinked = (0..linked.len()).find(|&pair| pair / racks != pair % racks && !linked[pair]);
        unlinked.map(|pair| (pair / racks, pair % racks))
    }
}

/// Returns, for each pair in row order of sources, true if the pair has a circuit on some day.
fn linked(schedule: &Schedule) -> Vec<bool> {
    let racks = schedule.racks();
    let mut linked = vec![false; racks * racks];
    for (source, destination) in schedule.days().iter().flat_map(|day| day.matching.circuits()) {
        linked[source * racks + destination] = source != destination;
    }
    linked
}
