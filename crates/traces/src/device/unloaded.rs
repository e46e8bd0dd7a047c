//! Latencies of requests without any queueing.

use leeward_fabric::Bytes;
use leeward_fabric::input::format_number;

use super::table::interpolate;
use crate::Kind;

/// One measured latency.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Latency {
    /// Reads or writes.
    pub kind: Kind,
    /// Size of the requests, in bytes.
    pub size: u64,
    /// Percentile in percent, above 0 and at most 100.
    pub percentile: f64,
    /// Latency that this share of the requests did not exceed, in seconds.
    pub seconds: f64,
}

/// Invalid latencies, or an invalid query for one.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum UnloadedError {
    /// An invalid row.
    #[error("{field} {}: expected {expected}", format_number(*.number))]
    Row {
        /// Index of the row, from 0.
        row: usize,
        /// Name of the field.
        field: &'static str,
        /// The rejected number.
        number: f64,
        /// Description of valid values.
        expected: &'static str,
    },
    /// Two rows with the same kind, size and percentile.
    #[error("a second row of this kind, size and percentile")]
    Duplicate {
        /// Index of the row, from 0.
        row: usize,
    },
    /// A latency that is smaller than the latency at a lower percentile.
    #[error("{} s at a percentile of {}, but {} s at {}", format_number(*.seconds), format_number(*.percentile), format_number(.lower.1), format_number(.lower.0))]
    NotMonotone {
        /// Index of the row, from 0.
        row: usize,
        /// Percentile of the row.
        percentile: f64,
        /// Latency of the row.
        seconds: f64,
        /// The lower percentile, and its latency.
        lower: (f64, f64),
    },
    /// Latencies of reads without latencies of writes, or the reverse.
    #[error("no latencies of {0}s, only of the other kind: expected both")]
    Kind(&'static str),
    /// An invalid percentile in a query.
    #[error("percentile {}: expected one above 0 and below 100", format_number(*.0))]
    Percentile(f64),
    /// A percentile above all measured percentiles.
    #[error(
        "percentile {}: the profile's latencies without queueing go up to {}; expected one within, or a longer profile",
        format_number(*.requested),
        format_number(*.largest)
    )]
    Beyond {
        /// The requested percentile.
        requested: f64,
        /// The largest measured percentile.
        largest: f64,
    },
    /// A size without a measured latency at the percentile.
    #[error(
        "percentile {}: no latency without queueing was measured for {kind}s of {size} at it, {known}: profile this size \
         longer, use a lower percentile, or state `unloaded` of the workload",
        format_number(*.percentile)
    )]
    Unmeasured {
        /// Kind of the request.
        kind: &'static str,
        /// Size of the request.
        size: Bytes,
        /// The requested percentile.
        percentile: f64,
        /// Description of what was measured.
        known: String,
    },
}

impl UnloadedError {
    /// Index of the row, from 0, if the error is about one.
    pub fn row(&self) -> Option<usize> {
        match self {
            UnloadedError::Row { row, .. }
            | UnloadedError::Duplicate { row }
            | UnloadedError::NotMonotone { row, .. } => Some(*row),
            _ => None,
        }
    }
}

/// Latencies at one percentile: (size, seconds), sizes increasing.
#[derive(Clone, PartialEq, Debug)]
struct Level {
    percentile: f64,
    sizes: Vec<(u64, f64)>,
}

/// Latencies without queueing by kind, size and percentile; empty if nothing was measured.
///
/// For a percentile that was not measured, the latencies of the next higher measured percentile apply. Between two
/// sizes the latency is interpolated linearly, and is not below the latency at a lower percentile. A request smaller than
/// all measured sizes takes as long as the smallest measured size. Outside of the sizes measured at a percentile, nothing
/// is known: profiles omit a percentile that too few requests exceeded, often for large sizes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Unloaded {
    reads: Vec<Level>,
    writes: Vec<Level>,
}

impl Unloaded {
    /// From measured latencies in any order.
    ///
    /// # Errors
    /// Fails for a number out of range, for a duplicate row, for latencies that fall with the percentile, and if only
    /// one of the kinds has latencies.
    pub fn new(rows: &[Latency]) -> Result<Unloaded, UnloadedError> {
        let unloaded = Unloaded { reads: levels(rows, Kind::Read)?, writes: levels(rows, Kind::Write)? };
        match (unloaded.reads.is_empty(), unloaded.writes.is_empty()) {
            (true, false) => Err(UnloadedError::Kind("read")),
            (false, true) => Err(UnloadedError::Kind("write")),
            _ => Ok(unloaded),
        }
    }

    /// Latency of a request in seconds; `None` if nothing was measured.
    ///
    /// # Errors
    /// Fails for an invalid percentile, and for a percentile above all measured ones.
    pub fn seconds(&self, kind: Kind, size: u64, percentile: f64) -> Result<Option<f64>, UnloadedError> {
        if !(percentile > 0.0 && percentile < 100.0) {
            return Err(UnloadedError::Percentile(percentile));
        }
        let levels = if kind == Kind::Read { &self.reads } else { &self.writes };
        let Some(highest) = levels.last() else { return Ok(None) };
        if highest.percentile < percentile {
            return Err(UnloadedError::Beyond { requested: percentile, largest: highest.percentile });
        }
        let smallest = smallest(levels);
        let mut known = levels.iter().filter_map(|level| Some((level.percentile, level.at(size, smallest)?)));
        let below = |(at, _): &(f64, f64)| *at < percentile;
        let lower = known.clone().take_while(below).map(|(_, seconds)| seconds).fold(0.0, f64::max);
        match known.find(|known| !below(known)) {
            Some((_, seconds)) => Ok(Some(seconds.max(lower))),
            None => Err(unmeasured(levels, kind, size, percentile)),
        }
    }

    /// Highest percentile that was measured for a size; `None` if there is none.
    pub fn highest_percentile(&self, kind: Kind, size: u64) -> Option<f64> {
        let levels = if kind == Kind::Read { &self.reads } else { &self.writes };
        let smallest = smallest(levels);
        levels.iter().rev().find(|level| level.at(size, smallest).is_some()).map(|level| level.percentile)
    }
}

/// Smallest measured size.
fn smallest(levels: &[Level]) -> u64 {
    levels.iter().map(|level| level.sizes[0].0).min().unwrap_or(0)
}

impl Level {
    /// Latency of a size; `None` outside of the sizes measured at this percentile. Sizes up to `smallest`, the smallest
    /// measured at any percentile, are as fast as that size.
    fn at(&self, size: u64, smallest: u64) -> Option<f64> {
        let size = size.max(smallest);
        let within = self.sizes[0].0 <= size && size <= self.sizes[self.sizes.len() - 1].0;
        within.then(|| interpolate(&self.sizes, size))
    }
}

/// Error for a size without a latency at a percentile.
fn unmeasured(levels: &[Level], kind: Kind, size: u64, percentile: f64) -> UnloadedError {
    let smallest = smallest(levels);
    let own = levels.iter().rev().find(|level| level.at(size, smallest).is_some());
    let level =
        levels.iter().find(|level| level.percentile >= percentile).expect("a percentile is high enough");
    let (first, last) = (Bytes(level.sizes[0].0), Bytes(level.sizes[level.sizes.len() - 1].0));
    let sizes = if first == last { format!("only {first}") } else { format!("only {first} to {last}") };
    let known = match own {
        Some(own) => format!("only up to {}", format_number(own.percentile)),
        None => sizes,
    };
    let kind = if kind == Kind::Read { "read" } else { "write" };
    UnloadedError::Unmeasured { kind, size: Bytes(size), percentile, known }
}

/// The rows of one kind, by percentile and size.
fn levels(rows: &[Latency], kind: Kind) -> Result<Vec<Level>, UnloadedError> {
    let mut chosen: Vec<(usize, &Latency)> = Vec::new();
    for (row, latency) in rows.iter().enumerate().filter(|(_, latency)| latency.kind == kind) {
        let invalid = |field, number, expected| Err(UnloadedError::Row { row, field, number, expected });
        if !(latency.percentile > 0.0 && latency.percentile <= 100.0) {
            return invalid("percentile", latency.percentile, "one above 0 and at most 100");
        }
        if latency.size == 0 {
            return invalid("size", 0.0, "at least one byte");
        }
        if !(latency.seconds > 0.0 && latency.seconds <= 1e6) {
            return invalid("seconds", latency.seconds, "a time above 0 and at most 1e6 s");
        }
        chosen.push((row, latency));
    }
    chosen.sort_by(|(_, a), (_, b)| a.percentile.total_cmp(&b.percentile).then(a.size.cmp(&b.size)));
    let mut levels: Vec<Level> = Vec::new();
    for (row, &Latency { size, percentile, seconds, .. }) in chosen {
        let lower = levels.iter().rev().filter(|level| level.percentile < percentile).find_map(|level| {
            let index = level.sizes.binary_search_by_key(&size, |row| row.0).ok()?;
            Some((level.percentile, level.sizes[index].1))
        });
        if let Some(lower) = lower.filter(|lower| lower.1 > seconds) {
            return Err(UnloadedError::NotMonotone { row, percentile, seconds, lower });
        }
        match levels.last_mut().filter(|level| level.percentile == percentile) {
            Some(level) if level.sizes.last().is_some_and(|last| last.0 == size) => {
                return Err(UnloadedError::Duplicate { row });
            }
            Some(level) => level.sizes.push((size, seconds)),
            None => levels.push(Level { percentile, sizes: vec![(size, seconds)] }),
        }
    }
    Ok(levels)
}
