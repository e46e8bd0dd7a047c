//! A second connection to a SQLite store. In a file, it sees the last commit and does not block the writer.

use std::path::Path;

use rusqlite::params_from_iter;

use super::StoreError;
use super::reader::Connection;
use super::row::{Cell, ResultRow};

/// A second connection to a SQLite store.
pub struct SqliteReader(rusqlite::Connection);

impl SqliteReader {
    /// Opens the file, or the memory that has this address.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened.
    pub fn open(path: &Path, is_memory: bool) -> Result<SqliteReader, StoreError> {
        let connection = rusqlite::Connection::open(path)?;
        connection.pragma_update(None, "query_only", true)?;
        if is_memory {
            // Connections that share memory would otherwise wait for each other's locks. A reader may see a transaction
            // before its end.
            connection.pragma_update(None, "read_uncommitted", true)?;
        }
        Ok(SqliteReader(connection))
    }
}

impl Connection for SqliteReader {
    fn query(
        &mut self,
        sql: &str,
        parameters: Vec<Cell<'_>>,
        read: &mut dyn FnMut(&dyn ResultRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut query = self.0.prepare(sql)?;
        let mut rows = query.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            read(row)?;
        }
        Ok(())
    }
}
