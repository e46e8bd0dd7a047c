//! Tables by size, with linear interpolation.

use leeward_fabric::input::format_number;

/// An invalid table.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TableError {
    /// No row.
    #[error("the table is empty; expected at least one row")]
    Empty,
    /// A size or distance that does not increase.
    #[error("{at} after {before}: expected more than in the previous row")]
    Order {
        /// Index of the row, from 0.
        row: usize,
        /// Size or distance of the row, in bytes.
        at: u64,
        /// Size or distance of the previous row.
        before: u64,
    },
    /// A size of 0.
    #[error("0 bytes; expected a size of at least one byte")]
    Zero {
        /// Index of the row, from 0.
        row: usize,
    },
    /// A rate or time out of range.
    #[error("{}: expected {expected}", format_number(*.number))]
    Number {
        /// Index of the row, from 0.
        row: usize,
        /// The rejected number.
        number: f64,
        /// Description of valid values.
        expected: &'static str,
    },
}

impl TableError {
    /// Index of the row, from 0, if the error is about one.
    pub fn row(&self) -> Option<usize> {
        match self {
            TableError::Empty => None,
            TableError::Order { row, .. } | TableError::Zero { row } | TableError::Number { row, .. } => {
                Some(*row)
            }
        }
    }
}

/// Checks that sizes or distances increase.
pub(super) fn check_increasing(rows: &[(u64, f64)]) -> Result<(), TableError> {
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

/// Linear interpolation at `x`. Outside the table, the value of the nearest row applies.
pub(super) fn interpolate(rows: &[(u64, f64)], x: u64) -> f64 {
    let after = rows.partition_point(|row| row.0 <= x);
    match (after.checked_sub(1).map(|before| rows[before]), rows.get(after)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * ((x - x0) as f64 / (x1 - x0) as f64),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => unreachable!("a table has a row"),
    }
}

/// Bandwidth at saturation in bytes per second, by size of request.
///
/// Between two sizes the bandwidth is interpolated linearly, as in the released code. A request smaller than the first
/// size takes as long as a request of the first size, because a device cannot serve more requests per second than
/// measured. (The released code extends the first line to the left.) A request larger than the last size has the
/// bandwidth of the last size, as in the released code.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates(Vec<(u64, f64)>);

impl Rates {
    /// From rows of (bytes of a request, bytes per second).
    ///
    /// # Errors
    /// Fails without rows, for sizes that do not increase or are 0, and for a rate outside of 1 to 1e18.
    pub fn new(rows: Vec<(u64, f64)>) -> Result<Rates, TableError> {
        check_increasing(&rows)?;
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

    /// Seconds of service of a request of `size` bytes: its size divided by the bandwidth, or one divided by the IOPS.
    pub fn seconds(&self, size: u64) -> f64 {
        let size = size.max(self.0[0].0);
        size as f64 / interpolate(&self.0, size)
    }
}
