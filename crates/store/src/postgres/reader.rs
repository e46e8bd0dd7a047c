//! Reads of a PostgreSQL store on a session of their own.

use std::time::Duration;

use leeward_records::{ClusterVersion, DecisionRecord, Period, PeriodLength};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::super::row::{self, Cell, signed};
use super::super::search::{Search, sort_by_gain};
use super::super::{Reader, StoreError, TimeRange, period_row, schema};
use super::database::Database;
use super::text::{Value, value};

/// Longest time of a query; the server ends it then.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session that only reads. It is opened at the first read, and again after a lost connection.
pub struct PostgresReader {
    database: Database,
    /// Runtime of all I/O; present until drop.
    runtime: Option<Runtime>,
    session: Option<(Client, JoinHandle<()>)>,
}

impl Drop for PostgresReader {
    fn drop(&mut self) {
        self.session = None;
        // The drop may happen inside another runtime, where blocking is forbidden.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl PostgresReader {
    /// Creates a reader of a database.
    ///
    /// # Errors
    /// [`StoreError`] if its runtime cannot be started.
    pub fn new(database: Database) -> Result<PostgresReader, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Database(error.to_string()))?;
        Ok(PostgresReader { database, runtime: Some(runtime), session: None })
    }

    fn query(&mut self, sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let Some(runtime) = &self.runtime else { return Ok(Vec::new()) };
        let (database, session) = (&self.database, &mut self.session);
        let rows = runtime.block_on(async {
            // Processes pending input of the connection first, such as its end.
            tokio::task::yield_now().await;
            let (client, _) = match session.take().filter(|(client, _)| !client.is_closed()) {
                Some(open) => session.insert(open),
                None => session.insert(begin(database).await?),
            };
            let parameters: Vec<&(dyn ToSql + Sync)> =
                parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync)).collect();
            let rows = tokio::time::timeout(PATIENCE, client.query(sql, &parameters)).await;
            Ok(rows.map_err(|_| StoreError::Silent(PATIENCE))??)
        });
        if matches!(rows, Err(StoreError::Silent(_))) {
            self.session = None;
        }
        rows
    }

    /// Decisions by a query for their ids.
    fn decisions(&mut self, ids: &str, parameters: &[Value<'_>]) -> Result<Vec<DecisionRecord>, StoreError> {
        let sql = format!(
            "SELECT id, at, client, sequence, request_key, shown, expires, released, CAST(NULL AS TEXT)
             FROM ({ids}) AS found JOIN decisions ON id = found.decision"
        );
        let rows = self.query(&sql, parameters)?;
        rows.iter().map(|row| Ok(row::read_decision(row)?.0)).collect()
    }
}

async fn begin(database: &Database) -> Result<(Client, JoinHandle<()>), StoreError> {
    let (client, driver) = database.connect().await?;
    let set =
        format!("SET default_transaction_read_only = on; SET statement_timeout = '{}s'", PATIENCE.as_secs());
    let done = tokio::time::timeout(PATIENCE, client.batch_execute(&set)).await;
    done.map_err(|_| StoreError::Silent(PATIENCE))??;
    Ok((client, driver))
}

fn numbers<'a>(numbers: impl IntoIterator<Item = i64>) -> Vec<Value<'a>> {
    numbers.into_iter().map(|number| Box::new(number) as Value<'a>).collect()
}

impl Reader for PostgresReader {
    fn search(&mut self, search: &Search, limit: usize) -> Result<Vec<DecisionRecord>, StoreError> {
        let (sql, mut cells) = search.ids();
        cells.push(Cell::Number(Some(signed(limit as u64))));
        let parameters: Vec<Value<'_>> = cells.into_iter().map(value).collect();
        let mut found = self.decisions(&sql, &parameters)?;
        found.sort_by_key(|record| std::cmp::Reverse(record.id));
        Ok(found)
    }

    fn largest_gains(
        &mut self,
        TimeRange { since, until }: TimeRange,
        limit: usize,
    ) -> Result<Vec<DecisionRecord>, StoreError> {
        let parameters = numbers([signed(since.0), signed(until.0), signed(limit as u64)]);
        let mut found = self.decisions(schema::LARGEST_GAINS, &parameters)?;
        sort_by_gain(&mut found);
        Ok(found)
    }

    fn periods(
        &mut self,
        length: PeriodLength,
        range: TimeRange,
        links: bool,
    ) -> Result<Vec<Period>, StoreError> {
        let sql = if links { schema::PERIODS } else { schema::PERIODS_WITHOUT_LINKS };
        let rows = self.query(sql, &numbers(period_row::range(length, range)))?;
        rows.iter().map(|row| period_row::read_period(row)).collect()
    }

    fn link_names(&mut self, cluster: ClusterVersion) -> Result<Vec<String>, StoreError> {
        let rows = self.query(schema::LINK_NAMES, &numbers([signed(cluster.0)]))?;
        rows.first().map_or(Ok(Vec::new()), |row| period_row::read_link_names(row))
    }
}
