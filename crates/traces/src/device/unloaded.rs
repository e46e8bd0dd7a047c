//! Latencies of requests without any queueing.

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
/// sizes the latency is interpolated linearly. A request smaller than all measured sizes takes as long as the smallest
/// measured size. A larger request takes the time of the largest measured size in proportion to its size.
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
        let level = levels.iter().find(|level| level.percentile >= percentile);
        let level =
            level.ok_or(UnloadedError::Beyond { requested: percentile, largest: highest.percentile })?;
        let (largest, seconds) = level.sizes[level.sizes.len() - 1];
        if size > largest {
            return Ok(Some(seconds * (size as f64 / largest as f64)));
        }
        Ok(Some(interpolate(&level.sizes, size)))
    }
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
