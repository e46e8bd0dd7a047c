//! Reads of a SQLite store on a second connection. In a file, a reader sees the last commit and does not block the
//! writer.

use std::path::Path;

use leeward_records::{ClusterVersion, DecisionRecord, Period, PeriodLength};
use rusqlite::{Connection, ToSql};

use super::row::{self, Cell, signed};
use super::search::Search;
use super::sqlite_rows::rows;
use super::{Reader, StoreError, TimeRange, period_row, schema};

/// A second connection to a SQLite store.
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    /// Opens the file, or the memory that has this address.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened.
    pub fn open(path: &Path, is_memory: bool) -> Result<SqliteReader, StoreError> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "query_only", true)?;
        if is_memory {
            // Connections that share memory would otherwise wait for each other's locks. A reader may see a transaction
            // before its end.
            connection.pragma_update(None, "read_uncommitted", true)?;
        }
        Ok(SqliteReader { connection })
    }

    /// Decisions by a query for their ids, in the order of the query.
    fn decisions<P: ToSql>(&self, ids: &str, parameters: &[P]) -> Result<Vec<DecisionRecord>, StoreError> {
        let sql = format!(
            "SELECT id, at, client, sequence, request_key, shown, expires, released, NULL
             FROM ({ids}) AS found JOIN decisions ON id = found.decision"
        );
        rows(&self.connection, &sql, parameters, |row| Ok(row::read_decision(row)?.0))
    }
}

impl Reader for SqliteReader {
    fn search(&mut self, search: &Search, limit: usize) -> Result<Vec<DecisionRecord>, StoreError> {
        let (sql, mut cells) = search.ids();
        cells.push(Cell::Number(Some(signed(limit as u64))));
        let mut found = self.decisions(&sql, &cells)?;
        found.sort_by_key(|record| std::cmp::Reverse(record.id));
        Ok(found)
    }

    fn largest_gains(
        &mut self,
        TimeRange { since, until }: TimeRange,
        limit: usize,
    ) -> Result<Vec<DecisionRecord>, StoreError> {
        let parameters = [signed(since.0), signed(until.0), signed(limit as u64)];
        let mut found = self.decisions(schema::LARGEST_GAINS, &parameters)?;
        super::search::sort_by_gain(&mut found);
        Ok(found)
    }

    fn periods(
        &mut self,
        length: PeriodLength,
        range: TimeRange,
        links: bool,
    ) -> Result<Vec<Period>, StoreError> {
        let sql = if links { schema::PERIODS } else { schema::PERIODS_WITHOUT_LINKS };
        rows(&self.connection, sql, &period_row::range(length, range), period_row::read_period)
    }

    fn link_names(&mut self, cluster: ClusterVersion) -> Result<Vec<String>, StoreError> {
        let names =
            rows(&self.connection, schema::LINK_NAMES, &[signed(cluster.0)], period_row::read_link_names)?;
        Ok(names.into_iter().next().unwrap_or_default())
    }
}
