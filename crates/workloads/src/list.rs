//! Lists, CSV or in columns, with optional columns, or columns named by a setting. (If all columns are fixed, use
//! [`leeward_fabric::input::Table`]; the cells follow its rules.)

use leeward_fabric::input::{Cell, InputError, Line, Lines, cells, excerpt};

/// Positions of the wanted columns of a list.
pub(crate) struct List<'a> {
    names: Vec<&'a str>,
    positions: Vec<Option<usize>>,
    width: usize,
}

impl<'a> List<'a> {
    /// Reads the header: required columns, then optional ones.
    pub fn open(
        lines: &mut Lines,
        required: impl IntoIterator<Item = &'a str>,
        optional: impl IntoIterator<Item = &'a str>,
    ) -> Result<List<'a>, InputError> {
        let mut names: Vec<&str> = required.into_iter().collect();
        let needed = names.len();
        names.extend(optional);
        let Some(header) = lines.next_line()? else { return Err(lines.error("the file is empty")) };
        let mut positions = Vec::with_capacity(names.len());
        for (index, &name) in names.iter().enumerate() {
            let mut matches = cells(header.text).enumerate().filter(|(_, cell)| *cell == name);
            let position = matches.next().map(|(position, _)| position);
            if matches.next().is_some() {
                return Err(header.error(name, "two columns have this name"));
            }
            if position.is_none() && index < needed {
                let (expected, found) = (names[..needed].join(","), excerpt(header.text));
                let message = format!("no such column; expected a header with {expected}, found `{found}`");
                return Err(header.error(name, message));
            }
            positions.push(position);
        }
        let width = cells(header.text).count();
        Ok(List { names, positions, width })
    }

    /// Returns the wanted cells of a line, in the order of the columns; cells of missing columns are empty.
    pub fn cells<'b, const N: usize>(&self, line: &Line<'b>) -> Result<[Cell<'b>; N], InputError> {
        let mut row = [Cell::EMPTY; N];
        let mut width = 0;
        for cell in line.cells() {
            for (wanted, position) in row.iter_mut().zip(&self.positions) {
                if *position == Some(width) {
                    *wanted = cell;
                }
            }
            width += 1;
        }
        if width == self.width {
            return Ok(row);
        }
        Err(line.error(self.names[0], format!("{width} cells, but the header has {}", self.width)))
    }
}
