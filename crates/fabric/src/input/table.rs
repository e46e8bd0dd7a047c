//! CSV tables with a header line, and tables in columns: columns are found by name, and others are ignored.
//!
//! No cell of these tables holds free text (names have no commas, see the cluster file), so a line is split at its
//! commas. Quotes around a cell, as some programs write them, are removed.

use super::{Cell, InputError, Line, Lines, Text, excerpt};

/// A table with `N` columns to read.
pub struct Table<const N: usize> {
    lines: Lines,
    names: [&'static str; N],
    places: [usize; N],
    extra: Option<usize>,
    width: usize,
}

/// The requested cells of one line, in the requested order.
pub struct Row<'a, const N: usize> {
    /// The line, for errors about it.
    pub line: Line<'a>,
    /// The cells.
    pub cells: [Cell<'a>; N],
    /// Cell of the optional column; `None` without such a column.
    pub extra: Option<Cell<'a>>,
}

impl<const N: usize> Table<N> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// Fails if the file is empty or cannot be read, or if a column is missing or appears twice.
    pub fn open(text: Text, names: [&'static str; N]) -> Result<Self, InputError> {
        Table::with_extra(text, names, None)
    }

    /// Reads the header, which may contain the optional column `extra`.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::open`] does, and if the optional column appears twice.
    pub fn with_extra(
        text: Text,
        names: [&'static str; N],
        extra: Option<&'static str>,
    ) -> Result<Self, InputError> {
        let mut lines = text.lines();
        let mut places = [0; N];
        let Some(header) = lines.next_line()? else { return Err(lines.error("the file is empty")) };
        let extra = extra.map_or(Ok(None), |name| {
            let mut found = cells(header.text).enumerate().filter(|(_, cell)| *cell == name);
            match (found.next(), found.next()) {
                (_, Some(_)) => Err(header.error(name, "two columns have this name")),
                (first, None) => Ok(first.map(|(at, _)| at)),
            }
        })?;
        for (place, name) in places.iter_mut().zip(names) {
            let mut found = cells(header.text).enumerate().filter(|(_, cell)| *cell == name);
            *place = match (found.next(), found.next()) {
                (Some((at, _)), None) => at,
                (Some(_), Some(_)) => return Err(header.error(name, "two columns have this name")),
                (None, _) => {
                    let (expected, found) = (names.join(","), excerpt(header.text));
                    let message =
                        format!("no such column; expected a header with {expected}, found `{found}`");
                    return Err(header.error(name, message));
                }
            };
        }
        let width = cells(header.text).count();
        Ok(Table { lines, names, places, extra, width })
    }

    /// The next line, or `None` after the last.
    ///
    /// # Errors
    ///
    /// Fails if the line cannot be read or has another number of cells than the header.
    pub fn next_row(&mut self) -> Result<Option<Row<'_, N>>, InputError> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let width = line.width();
        if width != self.width {
            let message = format!("{width} cells, but the header has {}", self.width);
            return Err(line.error(self.names[0], message));
        }
        // The width is checked, so every cell exists.
        let cells = self.places.map(|place| line.cell(place).unwrap_or(Cell::EMPTY));
        let extra = self.extra.and_then(|place| line.cell(place));
        Ok(Some(Row { line, cells, extra }))
    }
}

/// The cells of a line, without the quotes that some programs put around them.
pub fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(unquoted)
}

/// A cell without white space and quotes around it.
pub(super) fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(cell)
}
