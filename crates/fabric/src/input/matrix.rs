//! A square matrix of numbers without a header: a row is a source, a column a destination.
//!
//! Semicolons, commas, tabs or other white space separate the numbers, the first of these that the first line has. All
//! lines have the same separator. White space around a semicolon or comma does not count.

use super::table::unquoted;
use super::{InputError, Line, Lines};

/// Separator of the numbers of a line.
#[derive(Clone, Copy)]
enum Separator {
    /// This character, once between two numbers.
    One(char),
    /// Any number of white-space characters.
    Blanks,
}

impl Separator {
    fn of(line: &str) -> Separator {
        let one = [';', ',', '\t'].into_iter().find(|&separator| line.contains(separator));
        one.map_or(Separator::Blanks, Separator::One)
    }

    /// The cells of a line, without the quotes that some programs put around them.
    fn cells(self, line: &str) -> Vec<&str> {
        match self {
            Separator::One(separator) => line.split(separator).map(unquoted).collect(),
            Separator::Blanks => line.split_whitespace().map(unquoted).collect(),
        }
    }
}

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
    let (mut row, mut width, mut separator) = (0, 0, Separator::Blanks);
    while let Some(line) = lines.next_line()? {
        if row == 0 {
            separator = Separator::of(line.text);
        }
        let cells = separator.cells(line.text);
        let columns = cells.len() as u64;
        width = if row == 0 { columns } else { width };
        if columns != width {
            let message = format!("{columns} numbers, but the first line has {width}");
            return Err(line.error("columns", message));
        }
        if row == width {
            return Err(line.error("rows", format!("more rows than the {width} columns: not a square")));
        }
        for (column, cell) in (0..).zip(cells) {
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
