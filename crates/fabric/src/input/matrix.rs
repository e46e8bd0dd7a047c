//! A square matrix of numbers as CSV without a header: a row is a source, a column a destination.

use super::table::cells;
use super::{InputError, Line, Lines};

/// Reads a square matrix. `each` receives every number with its row and column, from 0. Returns the number of rows.
///
/// # Errors
///
/// Fails if a line cannot be read, a cell is negative or not a finite number, the matrix is not square, or `each`
/// fails.
pub fn read_matrix(
    lines: &mut Lines,
    mut each: impl FnMut(&Line<'_>, u64, u64, f64) -> Result<(), InputError>,
) -> Result<u64, InputError> {
    let (mut row, mut width) = (0, 0);
    while let Some(line) = lines.next_line()? {
        let columns = cells(line.text).count() as u64;
        width = if row == 0 { columns } else { width };
        if columns != width {
            let message = format!("{columns} numbers, but the first line has {width}");
            return Err(line.error("columns", message));
        }
        if row == width {
            return Err(line.error("rows", format!("more rows than the {width} columns: not a square")));
        }
        for (column, cell) in (0..).zip(cells(line.text)) {
            let amount = line.number(&format!("column {}", column + 1), "an amount", cell)?;
            each(&line, row, column, amount)?;
        }
        row += 1;
    }
    if row < width {
        let message = format!("{row} rows of {width} numbers: not a square; is the file complete?");
        return Err(lines.error(message));
    }
    Ok(row)
}
