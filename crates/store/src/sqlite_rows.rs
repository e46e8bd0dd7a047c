//! Rows and values of SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::StoreError;
use super::row::{Cell, ResultRow};

/// All rows of a query.
pub(super) fn rows<T, P: ToSql>(
    reading: &Connection,
    sql: &str,
    parameters: &[P],
    read: impl Fn(&dyn ResultRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut query = reading.prepare(sql)?;
    let (mut rows, mut values) = (query.query(params_from_iter(parameters))?, Vec::new());
    while let Some(row) = rows.next()? {
        values.push(read(row)?);
    }
    Ok(values)
}

impl ResultRow for rusqlite::Row<'_> {
    fn number(&self, at: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.get(at)?)
    }

    fn text(&self, at: usize) -> Result<Option<String>, StoreError> {
        Ok(self.get(at)?)
    }

    fn plain(&self, at: usize) -> Result<Option<String>, StoreError> {
        Ok(self.get(at)?)
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Number(Some(number)) => ValueRef::Integer(*number),
            Cell::Text(Some(text)) | Cell::Plain(text) => ValueRef::Text(text.as_bytes()),
            Cell::Number(None) | Cell::Text(None) => ValueRef::Null,
        }))
    }
}
