//! Demand matrix: the bytes that racks have to send to each other in one week.

/// Largest number of racks of a demand matrix.
pub const MAX_RACKS: usize = 2048;

/// Largest sum of a demand matrix in bytes, so that signed 64-bit counters can hold it too.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// Bytes from each rack to each other rack. The diagonal, which is traffic within racks, crosses no switch: it is
/// counted and takes no part in schedules.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DemandMatrix {
    racks: usize,
    bytes: Vec<u64>,
    within: u64,
}

/// Invalid demand matrix. Rows are sources and columns destinations, both counted from 0.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DemandError {
    /// Too few or too many racks.
    #[error("a demand of {racks} racks: must be 2 to {MAX_RACKS}")]
    Racks {
        /// Number of racks.
        racks: usize,
    },
    /// A row whose length differs from the number of rows.
    #[error("row {row}: {found} columns: must be {expected}, as many as there are rows")]
    Square {
        /// Row, from 0.
        row: usize,
        /// Number of columns in this row.
        found: usize,
        /// Number of rows.
        expected: usize,
    },
    /// A number of entries that is not the square of the number of racks.
    #[error("{found} entries: must be {expected}, for {racks} racks")]
    Entries {
        /// Number of entries.
        found: usize,
        /// Expected number of entries.
        expected: usize,
        /// Number of racks.
        racks: usize,
    },
    /// A value that is not a number of bytes: negative or not finite.
    #[error("row {row}, column {column}: {value} bytes: must be 0 or more and finite")]
    Value {
        /// Source rack.
        row: usize,
        /// Destination rack.
        column: usize,
        /// Invalid value.
        value: f64,
    },
    /// A sum above [`MAX_BYTES`].
    #[error("row {row}, column {column}: the sum exceeds {MAX_BYTES} bytes")]
    Sum {
        /// Source rack of the first entry above the limit.
        row: usize,
        /// Destination rack of that entry.
        column: usize,
    },
}

impl DemandMatrix {
    /// Creates a demand of `racks` racks; entry `source * racks + destination` of `bytes` goes from `source` to
    /// `destination`. Bytes from a rack to itself are counted in [`DemandMatrix::within`] and dropped.
    ///
    /// # Errors
    /// Returns the first invalid entry in row-major order, or an invalid number of racks or of entries.
    pub fn new(racks: usize, mut bytes: Vec<u64>) -> Result<DemandMatrix, DemandError> {
        if !(2..=MAX_RACKS).contains(&racks) {
            return Err(DemandError::Racks { racks });
        }
        if bytes.len() != racks * racks {
            return Err(DemandError::Entries { found: bytes.len(), expected: racks * racks, racks });
        }
        let (mut sum, mut within) = (0u64, 0);
        for (at, entry) in bytes.iter_mut().enumerate() {
            let (row, column) = (at / racks, at % racks);
            let more = sum.checked_add(*entry).filter(|&sum| sum <= MAX_BYTES);
            sum = more.ok_or(DemandError::Sum { row, column })?;
            if row == column {
                within += std::mem::take(entry);
            }
        }
        Ok(DemandMatrix { racks, bytes, within })
    }

    /// Creates a demand from rows of numbers, each rounded to whole bytes.
    ///
    /// # Errors
    /// Returns the first row of the wrong length or the first invalid entry.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<DemandMatrix, DemandError> {
        let racks = rows.len();
        if !(2..=MAX_RACKS).contains(&racks) {
            return Err(DemandError::Racks { racks });
        }
        let mut bytes = Vec::with_capacity(racks * racks);
        for (row, entries) in rows.iter().map(AsRef::as_ref).enumerate() {
            if entries.len() != racks {
                return Err(DemandError::Square { row, found: entries.len(), expected: racks });
            }
            for (column, &value) in entries.iter().enumerate() {
                // Negative zero counts as zero bytes.
                if !value.is_finite() || value < 0.0 {
                    return Err(DemandError::Value { row, column, value });
                }
                bytes.push(value.round() as u64);
            }
        }
        DemandMatrix::new(racks, bytes)
    }

    /// Creates a demand from entries known to be valid.
    pub(crate) fn of(racks: usize, bytes: Vec<u64>) -> DemandMatrix {
        DemandMatrix { racks, bytes, within: 0 }
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// Bytes from `source` to `destination`.
    ///
    /// # Panics
    /// Panics if either rack does not exist.
    pub fn get(&self, source: usize, destination: usize) -> u64 {
        assert!(destination < self.racks, "destination {destination} of {} racks", self.racks);
        self.bytes[source * self.racks + destination]
    }

    /// All entries, row by row.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Bytes from racks to themselves, which were dropped.
    pub fn within(&self) -> u64 {
        self.within
    }

    /// Sum of all entries in bytes.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Largest number of bytes that one rack sends or receives. A schedule that serves the whole demand lasts at least
    /// as long as these bytes take.
    pub fn busiest_port(&self) -> u64 {
        let (rows, columns) = sums(self.racks, &self.bytes);
        rows.into_iter().chain(columns).max().unwrap_or(0)
    }
}

/// Sums of the rows and of the columns of a square matrix.
pub(crate) fn sums(racks: usize, entries: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let mut columns = vec![0; racks];
    let rows = entries
        .chunks_exact(racks)
        .map(|row| {
            columns.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry);
            row.iter().sum()
        })
        .collect();
    (rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_demands_are_rejected_by_row_and_column() {
        let message = |rows: &[&[f64]]| DemandMatrix::from_rows(rows).unwrap_err().to_string();
        assert_eq!(message(&[&[0.0]]), "a demand of 1 racks: must be 2 to 2048");
        assert_eq!(message(&[&[0.0, 1.0], &[1.0]]), "row 1: 1 columns: must be 2, as many as there are rows");
        let below = "row 0, column 1: -5 bytes: must be 0 or more and finite";
        assert_eq!(message(&[&[0.0, -5.0], &[1.0, 0.0]]), below);
        let nan = "row 1, column 0: NaN bytes: must be 0 or more and finite";
        assert_eq!(message(&[&[0.0, 5.0], &[f64::NAN, 0.0]]), nan);
        assert!(message(&[&[0.0, f64::INFINITY], &[0.0, 0.0]]).starts_with("row 0, column 1: inf bytes"));
        let own = "row 1, column 1: -7 bytes: must be 0 or more and finite";
        assert_eq!(message(&[&[0.0, 5.0], &[1.0, -7.0]]), own);
        let sum = message(&[&[0.0, 9e18], &[9e18, 0.0]]);
        assert_eq!(sum, "row 1, column 0: the sum exceeds 9223372036854775807 bytes");
        let entries = DemandMatrix::new(2, vec![0; 3]).unwrap_err().to_string();
        assert_eq!(entries, "3 entries: must be 4, for 2 racks");
    }

    #[test]
    fn the_diagonal_is_traffic_within_racks() {
        let demand = DemandMatrix::from_rows(&[[3.0, 5.0], [1.0, 7.0]]).unwrap();
        assert_eq!((demand.within(), demand.total(), demand.busiest_port()), (10, 6, 5));
        assert_eq!(demand.bytes(), [0, 5, 1, 0]);
    }

    #[test]
    fn a_demand_has_rows_of_sources() {
        let demand = DemandMatrix::from_rows(&[[0.0, 2.4, 3.0], [4.0, 0.0, -0.0], [6.0, 7.0, 0.0]]).unwrap();
        assert_eq!((demand.get(0, 1), demand.get(1, 0), demand.get(2, 0)), (2, 4, 6));
        assert_eq!((demand.total(), demand.busiest_port()), (22, 13));
    }
}
