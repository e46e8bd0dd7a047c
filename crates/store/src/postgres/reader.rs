//! A second session of a PostgreSQL store, which only reads.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::super::StoreError;
use super::super::reader::Connection;
use super::super::row::{Cell, ResultRow};
use super::database::Database;
use super::text::{Value, value};

/// Longest time of a query; the server ends it then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows per fetch; a period of a large cluster has hundreds of kilobytes.
const FETCH_SIZE: i32 = 100;

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
}

async fn begin(database: &Database) -> Result<(Client, JoinHandle<()>), StoreError> {
    let (client, driver) = database.connect().await?;
    let set =
        format!("SET default_transaction_read_only = on; SET statement_timeout = '{}s'", PATIENCE.as_secs());
    let done = tokio::time::timeout(PATIENCE, client.batch_execute(&set)).await;
    done.map_err(|_| StoreError::Silent(PATIENCE))??;
    Ok((client, driver))
}

impl Connection for PostgresReader {
    fn query(
        &mut self,
        sql: &str,
        parameters: Vec<Cell<'_>>,
        read: &mut dyn FnMut(&dyn ResultRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let (database, session) = (&self.database, &mut self.session);
        let parameters: Vec<Value<'_>> = parameters.into_iter().map(value).collect();
        let done = runtime.block_on(async {
            // Processes pending input of the connection first, such as its end.
            tokio::task::yield_now().await;
            let (client, _) = match session.take().filter(|(client, _)| !client.is_closed()) {
                Some(open) => session.insert(open),
                None => session.insert(begin(database).await?),
            };
            let reading = async {
                let reading = client.transaction().await?;
                let statement = reading.prepare(sql).await?;
                let portal = reading.bind_raw(&statement, parameters).await?;
                loop {
                    let rows = reading.query_portal(&portal, FETCH_SIZE).await?;
                    rows.iter().try_for_each(|row| read(row))?;
                    if rows.len() < FETCH_SIZE as usize {
                        return Ok(());
                    }
                }
            };
            tokio::time::timeout(PATIENCE, reading).await.map_err(|_| StoreError::Silent(PATIENCE))?
        });
        if matches!(done, Err(StoreError::Silent(_))) {
            self.session = None;
        }
        done
    }
}
