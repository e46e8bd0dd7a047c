//! Bytes by interval, pair of places and class of service, with the sampling error.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::fast::FixedState;

use crate::classes::{CODE_POINTS, ClassId, Classes};
use crate::counter::Counter;
use crate::discards::Discards;
use crate::flow::Flow;
use crate::places::PlaceId;

/// Largest number of cells of a matrix.
pub const MOST_CELLS: usize = 20_000_000;
/// Largest number of bytes, and of packets, of one record and of all records together, after scaling: two hours at a
/// petabit per second. No cell and no sum of cells is larger, so all of them fit the integers of tables.
pub const MOST_BYTES: u128 = 10_u128.pow(18);
/// Largest number of intervals of one record.
pub const MOST_INTERVALS: i64 = 4096;
const SECOND: i64 = 1_000_000_000;

/// Traffic of a pair in an interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cell {
    /// Bytes, scaled by the sampling rate.
    pub bytes: u128,
    /// Packets, scaled by the sampling rate.
    pub packets: u128,
    /// Number of observed packets.
    pub samples: u64,
    /// Variance of the bytes from sampling.
    variance: f64,
}

impl Cell {
    /// Standard error of the bytes; 0 if every packet was observed.
    ///
    /// Each packet is sampled independently with probability 1/N. The estimate of the bytes is N times the bytes of the
    /// sampled packets. It is unbiased, with a variance of (N - 1) Σ L² over all packets of lengths L. The sum
    /// N (N - 1) Σ L² over the sampled packets estimates that variance (Horvitz and Thompson). For equal packets and
    /// large N, the error from n samples is the published one: bytes √(1/n), or 196 √(1/n) % at 95 %. Packets within
    /// one exported record are assumed to be equal.
    pub fn standard_error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Adds the traffic of another cell, which was sampled independently.
    pub(crate) fn add(&mut self, other: &Cell) {
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.samples += other.samples;
        self.variance += other.variance;
    }
}

/// A cell with its interval and pair.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    /// Start of the interval, in seconds since 1970: a multiple of its length.
    pub start_s: i64,
    /// Source of the traffic, as an index into [`Matrix::places`].
    pub source: PlaceId,
    /// Destination of the traffic, as an index into [`Matrix::places`].
    pub destination: PlaceId,
    /// Class of service, as an index into [`Matrix::classes`]; `None` in a matrix without classes.
    pub class: Option<ClassId>,
    /// Traffic of the pair in the interval.
    pub cell: Cell,
}

/// Observer of traffic: a captured file, an sFlow agent, an exporter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Source {
    /// `packets`, `sflow`, `netflow 5`, `netflow 9` or `ipfix`.
    pub protocol: &'static str,
    /// Name of the file, or address.
    pub name: String,
    /// Number of the observer's packets or records, with or without known places.
    pub flows: u64,
    /// Bytes of these packets or records, scaled by the sampling rate.
    pub bytes: u128,
}

/// Traffic matrix of one or more files.
pub struct Matrix {
    /// Names of the places.
    pub places: Vec<String>,
    /// Names of the classes of service; empty in a matrix without classes.
    pub classes: Vec<String>,
    /// Length of an interval, in seconds.
    pub interval_s: u32,
    /// Cells, by time, then by the names of places, then by class.
    pub pairs: Vec<Pair>,
    /// Observers of the traffic. Traffic that two of them observed is counted twice.
    pub sources: Vec<Source>,
    /// Addresses without a place, with their bytes, the largest first.
    pub unknown: Vec<(IpAddr, u128)>,
    /// Traffic that was not counted, or was counted under an assumption.
    pub discards: Discards,
    /// Counters of interfaces that sFlow agents sent, in order of arrival.
    pub counters: Vec<Counter>,
}

/// Limit that a flow exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowLimit {
    /// The number of intervals of one record.
    Time,
    /// The total number of bytes or packets.
    Bytes,
}

impl FlowLimit {
    /// Name of the limit in reports.
    pub fn name(self) -> &'static str {
        match self {
            FlowLimit::Time => "time",
            FlowLimit::Bytes => "bytes",
        }
    }
}

/// Sums flows.
pub struct Sums {
    interval_ns: i64,
    /// Cells of each class, or of all traffic.
    cells: Vec<HashMap<(i64, PlaceId, PlaceId), Cell, FixedState>>,
    by_class: bool,
    bytes: u128,
    packets: u128,
}

impl Sums {
    /// Sums over intervals of this length, by class if there are classes.
    pub fn new(interval_s: u32, classes: Option<&Classes>) -> Sums {
        let interval_ns = i64::from(interval_s.max(1)) * SECOND;
        let cells = vec![HashMap::default(); classes.map_or(1, Classes::count)];
        Sums { interval_ns, cells, by_class: classes.is_some(), bytes: 0, packets: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.cells.iter().map(HashMap::len).sum::<usize>() > MOST_CELLS
    }

    /// Adds a flow of a class, which is 0 without classes, and spreads it evenly over its duration. A flow beyond a limit
    /// is not added at all.
    #[inline]
    pub fn add(
        &mut self,
        flow: &Flow,
        class: ClassId,
        source: PlaceId,
        destination: PlaceId,
    ) -> Result<(), FlowLimit> {
        let first = flow.start_ns.div_euclid(self.interval_ns);
        // A flow that ends exactly at the edge of an interval belongs to the earlier interval.
        let last =
            if flow.end_ns > flow.start_ns { (flow.end_ns - 1).div_euclid(self.interval_ns) } else { first };
        let rate = u128::from(flow.rate);
        let (bytes, packets) = (u128::from(flow.bytes) * rate, u128::from(flow.packets) * rate);
        let variance = variance(flow);
        if last - first >= MOST_INTERVALS {
            return Err(FlowLimit::Time);
        }
        let (all_bytes, all_packets) = (self.bytes + bytes, self.packets + packets);
        if all_bytes.max(all_packets) > MOST_BYTES {
            return Err(FlowLimit::Bytes);
        }
        (self.bytes, self.packets) = (all_bytes, all_packets);
        let cells = &mut self.cells[usize::from(class)];
        if first == last {
            let cell = cells.entry((first, source, destination)).or_default();
            cell.bytes += bytes;
            cell.packets += packets;
            cell.samples += flow.packets;
            cell.variance += variance;
            return Ok(());
        }
        let length = i128::from(flow.end_ns) - i128::from(flow.start_ns);
        let mut before = (0, 0, 0);
        for interval in first..=last {
            let end = i128::from(interval + 1) * i128::from(self.interval_ns);
            let passed = (end - i128::from(flow.start_ns)).min(length);
            // Computes amounts up to the end of each interval in whole bytes, so that the parts add up to the total.
            let part = |whole: u128| part(whole, passed as u128, length as u128);
            let now = (part(bytes), part(packets), part(flow.packets.into()));
            let cell = cells.entry((interval, source, destination)).or_default();
            cell.bytes += now.0 - before.0;
            cell.packets += now.1 - before.1;
            cell.samples += (now.2 - before.2) as u64;
            let inside = (end.min(i128::from(flow.end_ns))
                - i128::from(flow.start_ns).max(end - i128::from(self.interval_ns)))
                as f64;
            cell.variance += variance * inside / length as f64;
            before = now;
        }
        Ok(())
    }

    /// The cells, by time, then by the names of places, then by class.
    pub fn pairs(self, places: &[String]) -> Vec<Pair> {
        let interval_s = self.interval_ns / SECOND;
        let (by_class, mut pairs) = (self.by_class, Vec::new());
        for (class, cells) in (0..).zip(self.cells) {
            let class = by_class.then_some(class);
            pairs.extend(cells.into_iter().map(|((interval, source, destination), cell)| Pair {
                start_s: interval * interval_s,
                source,
                destination,
                class,
                cell,
            }));
        }
        let rank = ranks(places);
        let rank = |place: PlaceId| rank.get(place as usize);
        pairs.sort_unstable_by_key(|pair| {
            (pair.start_s, rank(pair.source), rank(pair.destination), pair.class)
        });
        pairs
    }
}

/// Names of the classes of pairs. The pairs get the numbers of these names.
pub fn name_classes(classes: Option<Classes>, pairs: &mut [Pair]) -> Vec<String> {
    let Some(classes) = classes else { return Vec::new() };
    let mut is_present = [false; CODE_POINTS];
    for class in pairs.iter().filter_map(|pair| pair.class) {
        is_present[usize::from(class)] = true;
    }
    let (names, numbers) = classes.close(is_present);
    for pair in pairs {
        pair.class = pair.class.map(|class| numbers[usize::from(class)]);
    }
    names
}

/// Rank of each name in sorted order. Millions of cells sort much faster by numbers than by names.
fn ranks(names: &[String]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_unstable_by_key(|&index| &names[index as usize]);
    let mut ranks = vec![0; names.len()];
    for (rank, &index) in (0..).zip(&order) {
        ranks[index as usize] = rank;
    }
    ranks
}

/// Share of `whole` that belongs to the first `passed` of `length` units, if it is spread evenly.
fn part(whole: u128, passed: u128, length: u128) -> u128 {
    // All numbers are below 2^64, except for scaled bytes. Computing with quotient and remainder separately stays
    // within 128 bits.
    whole / length * passed + whole % length * passed / length
}

fn variance(flow: &Flow) -> f64 {
    let rate = f64::from(flow.rate);
    let bytes = flow.bytes as f64;
    rate * (rate - 1.0) * bytes * bytes / flow.packets.max(1) as f64
}
