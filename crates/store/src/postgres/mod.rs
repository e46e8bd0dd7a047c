//! A store in a PostgreSQL database that several services may share. The schema is the same as in a SQLite file; its
//! tables are in the first schema of the connection's search path.
//!
//! The leader holds a session-level advisory lock. The lock ends with the session: when the service is killed, or after
//! [`IDLE`] without activity. Each leader starts a new term, one above the last. Every write transaction verifies that
//! its term is still the latest. A deposed leader therefore writes nothing, even before it learns of the new leader.
//! The same transaction numbers the commit and records the changed rows. Followers find new data through these records.
//!
//! A server that does not respond is abandoned: the connection is closed, and the result of a pending commit
//! is unknown.

mod batch;
mod database;
mod reader;
mod session;
mod text;
mod touched;

use std::error::Error as _;
use std::sync::Arc;

use leeward_records::{DecisionId, DecisionRecord};
use tokio::runtime::{Builder, Runtime};

pub use self::database::Database;
use self::reader::PostgresReader;
use self::session::Session;
use super::{Change, Durability, Kind, Leadership, Reader, SWEEP, State, Store, StoreError};

/// Idle time after which the server ends a session, even within a transaction. The leadership ends with the session.
/// The service sends a statement twice a second.
const IDLE: &str = "3s";
/// First key of all advisory locks; the second key is a hash of the schema name.
const LOCK: i32 = 0x6c65_6577;
/// First key of the lock while the schema is upgraded.
const SCHEMA_LOCK: i32 = LOCK + 1;

/// A store in a PostgreSQL database.
pub struct Postgres {
    database: Database,
    durability: Durability,
    /// Number of decisions to keep, besides those that hold resources.
    keep: u64,
    /// Runtime of all I/O; present until drop.
    runtime: Option<Runtime>,
    /// Connection; `None` while disconnected.
    session: Option<Session>,
    /// Last term in which this service led; 0 before the first.
    term: u64,
    /// Changes since the last sweep.
    changes: usize,
    /// True if the last write failed.
    failed: bool,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.session = None;
        // The drop may happen inside another runtime, where blocking is forbidden.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Error message of the server or the client, without the request.
fn error_text(error: &tokio_postgres::Error) -> String {
    if let Some(server) = error.as_db_error() {
        return format!("PostgreSQL: {}", server.message());
    }
    let (mut text, mut cause) = (format!("PostgreSQL: {error}"), error.source());
    while let Some(error) = cause {
        let reason = error.to_string();
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        StoreError::Database(error_text(&error))
    }
}

impl Postgres {
    /// Connects, and upgrades the schema. Keeps the last `keep` decisions without held resources. The call
    /// blocks, so it must not run inside a tokio runtime.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unreachable or rejects the login, or if its schema is newer.
    pub fn open(database: Database, durability: Durability, keep: u64) -> Result<Postgres, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Database(error.to_string()))?;
        // A sweep is due at the first write.
        let (session, term, changes, failed) = (None, 0, SWEEP, false);
        let runtime = Some(runtime);
        let mut store = Postgres { database, durability, keep, runtime, session, term, changes, failed };
        store.run(async |store| {
            store.session = Some(Session::begin(&store.database, durability, true).await?);
            Ok(())
        })?;
        Ok(store)
    }

    /// Runs an operation and waits for its result. Closes a connection that does not respond, or whose last
    /// result is unknown.
    fn run<T>(
        &mut self,
        operation: impl AsyncFnOnce(&mut Postgres) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(runtime) = self.runtime.take() else { return Err(StoreError::Deposed) };
        let result = runtime.block_on(async {
            // Processes pending input of the connection first, such as its end.
            tokio::task::yield_now().await;
            operation(self).await
        });
        self.runtime = Some(runtime);
        let is_lost =
            matches!(result, Err(StoreError::Silent(_) | StoreError::Unknown(_) | StoreError::Deposed));
        if is_lost || self.session.as_ref().is_some_and(Session::is_closed) {
            self.session = None;
        }
        result
    }

    /// The connection, or a new one.
    async fn session(&mut self) -> Result<&mut Session, StoreError> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => Session::begin(&self.database, self.durability, false).await?,
        };
        Ok(self.session.insert(session))
    }

    /// Takes the leadership if no service leads. After a failed write, a test write also shows if there is free space
    /// again.
    async fn lead(&mut self, address: &str) -> Result<Option<u64>, StoreError> {
        let (failed, last_term) = (self.failed, self.term);
        let session = self.session().await?;
        let mut term = None;
        if session.leads() {
            term = session.still_leads(failed).await?;
            if term.is_none() {
                // The lock ends with the session.
                self.session = None;
            }
        }
        if term.is_none() {
            term = self.session().await?.take_leadership(address, last_term).await?;
        }
        self.term = term.unwrap_or(self.term);
        self.failed = false;
        Ok(term)
    }
}

impl Store for Postgres {
    fn kind(&self) -> Kind {
        Kind::Postgres(self.durability)
    }

    fn renew_lease(&mut self, address: &str) -> Result<Leadership, StoreError> {
        self.run(async |store| {
            if let Some(term) = store.lead(address).await? {
                return Ok(Leadership::Leader { term });
            }
            let (leader, updates) = store.session().await?.follow().await?;
            Ok(Leadership::Follower { leader: leader.map(Arc::from), updates })
        })
    }

    fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError> {
        self.run(async |store| store.session().await?.load(decisions, keys).await)
    }

    fn decisions(&mut self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError> {
        self.run(async |store| store.session().await?.decisions(ids).await)
    }

    fn reader(&self) -> Result<Reader, StoreError> {
        Ok(Reader::new(PostgresReader::new(self.database.clone())?))
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let forget = (self.changes >= SWEEP).then_some(self.keep);
        let written = self.run(async |store| {
            let session = store.session.as_ref().filter(|session| !session.is_closed());
            session.ok_or(StoreError::Deposed)?.write(changes, forget).await
        });
        self.changes = if forget.is_some() { 0 } else { self.changes } + changes.len();
        self.failed |= written.is_err();
        written
    }
}
