//! Reads of stored data beside the writes, on a connection of their own: a long search does not delay a decision.

use leeward_fabric::Nanos;
use leeward_records::{ClusterVersion, DecisionRecord, Period, PeriodLength};

use super::row::{self, Cell, ResultRow, number_or_zero};
use super::search::{Search, sort_by_gain};
use super::{StoreError, period_row, schema};

/// A range of times, from its start up to but without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Start.
    pub since: Nanos,
    /// End.
    pub until: Nanos,
}

/// A database connection that only reads.
pub(super) trait Connection: Send {
    /// Runs a query, and passes its rows to `read` in order, up to the first error.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable, or the error of `read`.
    fn query(
        &mut self,
        sql: &str,
        parameters: Vec<Cell<'_>>,
        read: &mut dyn FnMut(&dyn ResultRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;
}

/// Reads of stored data.
pub struct Reader(Box<dyn Connection>);

impl Reader {
    pub(super) fn new(connection: impl Connection + 'static) -> Reader {
        Reader(Box::new(connection))
    }

    /// All rows of a query.
    fn rows<T>(
        &mut self,
        sql: &str,
        parameters: Vec<Cell<'_>>,
        read: impl Fn(&dyn ResultRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        self.0.query(sql, parameters, &mut |row| {
            rows.push(read(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Decisions by a query for their ids, in any order.
    fn decisions(&mut self, ids: &str, parameters: Vec<Cell<'_>>) -> Result<Vec<DecisionRecord>, StoreError> {
        let sql = format!(
            "SELECT id, at, client, sequence, request_key, shown, expires, released, CAST(NULL AS TEXT)
             FROM ({ids}) AS found JOIN decisions ON id = found.decision"
        );
        self.rows(&sql, parameters, |row| Ok(row::read_decision(row)?.0))
    }

    /// The newest decisions that meet the conditions, in descending order of their ids, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn search(&mut self, search: &Search, limit: usize) -> Result<Vec<DecisionRecord>, StoreError> {
        let (sql, mut cells) = search.ids();
        cells.push(Cell::number(limit as u64));
        let mut found = self.decisions(&sql, cells)?;
        found.sort_by_key(|record| std::cmp::Reverse(record.id));
        Ok(found)
    }

    /// Decisions of the range in which the choices of both policies differ most, the largest difference first, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn largest_gains(
        &mut self,
        TimeRange { since, until }: TimeRange,
        limit: usize,
    ) -> Result<Vec<DecisionRecord>, StoreError> {
        let parameters = [since.0, until.0, limit as u64].map(Cell::number).into();
        let mut found = self.decisions(schema::LARGEST_GAINS, parameters)?;
        sort_by_gain(&mut found);
        Ok(found)
    }

    /// Periods of a length of which a part is in the range, in order. Their lists of links are empty.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn periods(&mut self, length: PeriodLength, range: TimeRange) -> Result<Vec<Period>, StoreError> {
        let parameters = period_row::range(length, range).into();
        self.rows(schema::PERIODS_WITHOUT_LINKS, parameters, period_row::read_period)
    }

    /// Passes the same periods with their links to `each`, one after another: a month of a large cluster is large.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn each_period(
        &mut self,
        length: PeriodLength,
        range: TimeRange,
        mut each: impl FnMut(Period),
    ) -> Result<(), StoreError> {
        let parameters = period_row::range(length, range).into();
        self.0.query(schema::PERIODS, parameters, &mut |row| {
            each(period_row::read_period(row)?);
            Ok(())
        })
    }

    /// Versions of the cluster that the periods of a range belong to.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn versions(
        &mut self,
        length: PeriodLength,
        range: TimeRange,
    ) -> Result<Vec<ClusterVersion>, StoreError> {
        let parameters = period_row::range(length, range).into();
        self.rows(schema::PERIOD_VERSIONS, parameters, |row| Ok(ClusterVersion(number_or_zero(row, 0)?)))
    }

    /// Names of the links of a version of the cluster, in order of ids; empty for a version without periods.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    pub fn link_names(&mut self, cluster: ClusterVersion) -> Result<Vec<String>, StoreError> {
        let parameters = vec![Cell::number(cluster.0)];
        let names = self.rows(schema::LINK_NAMES, parameters, period_row::read_link_names)?;
        Ok(names.into_iter().next().unwrap_or_default())
    }
}
