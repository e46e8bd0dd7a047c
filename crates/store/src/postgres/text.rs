//! Rows and values of PostgreSQL, whose texts cannot contain NUL characters.

use std::borrow::Cow;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::StoreError;
use super::super::row::{Cell, ResultRow};

/// A value of a statement.
pub type Value<'a> = Box<dyn ToSql + Sync + 'a>;

impl ResultRow for Row {
    fn number(&self, at: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(at)?)
    }

    fn text(&self, at: usize) -> Result<Option<String>, StoreError> {
        Ok(self.try_get::<_, Option<String>>(at)?.map(unescape))
    }

    fn plain(&self, at: usize) -> Result<Option<String>, StoreError> {
        Ok(self.try_get(at)?)
    }
}

/// Converts a cell to a value.
pub fn value(cell: Cell<'_>) -> Value<'_> {
    match cell {
        Cell::Number(number) => Box::new(number),
        Cell::Text(text) => Box::new(text.map(escape)),
        Cell::Plain(text) => Box::new(text),
    }
}

/// Converts rows to columns, each an array.
pub fn columns<const N: usize>(rows: Vec<[Cell<'_>; N]>) -> Vec<Value<'_>> {
    let mut columns: [Vec<Cell<'_>>; N] = std::array::from_fn(|_| Vec::with_capacity(rows.len()));
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
    }
    columns.into_iter().map(column).collect()
}

/// Array of cells of one kind, or of the two text kinds.
fn column(cells: Vec<Cell<'_>>) -> Value<'_> {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Cell::Number(number) => numbers.push(number),
            Cell::Text(text) => texts.push(text.map(escape)),
            Cell::Plain(text) => texts.push(Some(text)),
        }
    }
    if texts.is_empty() { Box::new(numbers) } else { Box::new(texts) }
}

/// Escapes a text for PostgreSQL.
pub fn escape(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) { text.replace('\\', "\\\\").replace('\0', "\\0").into() } else { text }
}

/// Restores an escaped text.
pub fn unescape(escaped: String) -> String {
    if !escaped.contains('\\') {
        return escaped;
    }
    let (mut text, mut characters) = (String::with_capacity(escaped.len()), escaped.chars());
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' if characters.next() == Some('0') => '\0',
            other => other,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_round_trips_without_nul() {
        for text in ["", "a", "\0", "\\", "\\0", "\0\\", "a\\\0\\0b", "\u{fffd}0"] {
            assert!(!escape(text.into()).contains('\0'));
            assert_eq!(unescape(escape(text.into()).into_owned()), text);
        }
    }
}
