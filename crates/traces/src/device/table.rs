//! Numbers by size, between which lies a straight line.

use leeward_fabric::input::shown;

/// What is wrong with a table.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TableError {
    /// No row.
    #[error("the table is empty; expected at least one row")]
    Empty,
    /// A size or distance that does not rise.
    #[error("{at} after {before}: expected a larger one than in the row before")]
    Order {
        /// Which row, from 0.
        row: usize,
        /// Its size or distance, in bytes.
        at: u64,
        /// That of the row before.
        before: u64,
    },
    /// A size of 0.
    #[error("0 bytes; expected a size of at least one byte")]
    Zero {
        /// Which row, from 0.
        row: usize,
    },
    /// A rate or time out of range.
    #[error("{}: expected {expected}", shown(*.number))]
    Number {
        /// Which row, from 0.
        row: usize,
        /// What was given.
        number: f64,
        /// What would do.
        expected: &'static str,
    },
}

impl TableError {
    /// Which row, from 0, if it is about one.
    pub fn row(&self) -> Option<usize> {
        match self {
            TableError::Empty => None,
            TableError::Order { row, .. } | TableError::Zero { row } | TableError::Number { row, .. } => {
                Some(*row)
            }
        }
    }
}

/// Checks that sizes or distances rise.
pub(super) fn rising(rows: &[(u64, f64)]) -> Result<(), TableError> {
    if rows.is_empty() {
        return Err(TableError::Empty);
    }
    for (at, pair) in rows.windows(2).enumerate() {
        if pair[1].0 <= pair[0].0 {
            return Err(TableError::Order { row: at + 1, at: pair[1].0, before: pair[0].0 });
        }
    }
    Ok(())
}

/// The number on the straight line between the two rows about `x`; outside the table, that of its first or last row.
pub(super) fn between(rows: &[(u64, f64)], x: u64) -> f64 {
    let after = rows.partition_point(|row| row.0 <= x);
    match (after.checked_sub(1).map(|before| rows[before]), rows.get(after)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * ((x - x0) as f64 / (x1 - x0) as f64),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => unreachable!("a table has a row"),
    }
}

/// Bytes a second at saturation, by size of request.
///
/// Between two sizes the bandwidth lies on a straight line, as in the released code. A request smaller than the first size takes as
/// long as one of that size: a device does not do more requests a second than were ever measured. (The released code draws the
/// first line on to the left.) One larger than the last size has the bandwidth of the last, as there.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates(Vec<(u64, f64)>);

impl Rates {
    /// From rows of (bytes of a request, bytes a second).
    ///
    /// # Errors
    /// No row; sizes that do not rise or are 0; a rate that is not from 1 to 1e18.
    pub fn new(rows: Vec<(u64, f64)>) -> Result<Rates, TableError> {
        rising(&rows)?;
        for (row, &(size, number)) in rows.iter().enumerate() {
            if size == 0 {
                return Err(TableError::Zero { row });
            }
            if !(1.0..=1e18).contains(&number) {
                let expected = "a rate from 1 to 1e18 bytes a second";
                return Err(TableError::Number { row, number, expected });
            }
        }
        Ok(Rates(rows))
    }

    /// Seconds of service of a request of `size` bytes: its size over the bandwidth, which is one over the IOPS.
    pub fn seconds(&self, size: u64) -> f64 {
        let size = size.max(self.0[0].0);
        size as f64 / between(&self.0, size)
    }
}
