//! A store in a PostgreSQL, which several services may share. The schema is the one that a file has, in the schema of the
//! database that the connection looks in first.
//!
//! Who leads holds a lock of its session (an advisory lock), so it ends with the session: when the service is killed, or
//! when nothing is heard of it for [`IDLE`]. Each leader takes a term, the number after the last one's, and whatever it
//! writes is written in one transaction with the proof that the term is still its own: a leader that was deposed and does
//! not know it yet writes nothing. The same transaction numbers the commit and notes what it touches, and by that those
//! who follow find what is new to them.
//!
//! A server that says nothing is not waited for: its connection is ended, and what it may have kept is told as not known.

mod batch;
mod database;
mod session;
mod text;
mod touched;

use std::error::Error as _;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

pub use self::database::Database;
use self::session::Session;
use super::{Change, Durability, Kind, Leadership, SWEEP, State, Store, StoreError};
use crate::desk::Record;

/// After so long without a word, the server ends a session and with it the lead; within a transaction too. A word is said
/// twice a second.
const IDLE: &str = "3s";
/// The first of the two numbers of all locks; the second is that of the schema.
const LOCK: i32 = 0x6c65_6577;
/// The same while the schema is made.
const MAKING: i32 = LOCK + 1;

/// A store in a PostgreSQL.
pub struct Postgres {
    database: Database,
    durability: Durability,
    /// Decisions that are kept, besides those that hold something.
    keep: u64,
    /// What everything is said in; it is there until this is dropped.
    runtime: Option<Runtime>,
    /// The connection; `None` while there is none.
    session: Option<Session>,
    /// The last term in which it led; 0 before the first.
    term: u64,
    /// Changes since what is old was looked for.
    changes: usize,
    /// Whether the last changes could not be written.
    failed: bool,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.session = None;
        // It may be dropped within a runtime, where nothing may be waited for.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// What the server or the client says, without the request.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("PostgreSQL: {}", said.message());
    }
    let (mut text, mut cause) = (format!("PostgreSQL: {error}"), error.source());
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        StoreError::Database(told(&error))
    }
}

impl Postgres {
    /// Connects, and brings the database to the schema of this version. Of decisions that hold nothing the last `keep` are
    /// kept. Not to be called within a runtime of tokio's: it waits.
    ///
    /// # Errors
    /// The server is not reached, does not let in, or the database is of a later version.
    pub fn open(database: Database, durability: Durability, keep: u64) -> Result<Postgres, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Database(error.to_string()))?;
        // What is old is looked for at the beginning.
        let (session, term, changes, failed) = (None, 0, SWEEP, false);
        let runtime = Some(runtime);
        let mut store = Postgres { database, durability, keep, runtime, session, term, changes, failed };
        store.within(async |store| {
            store.session = Some(Session::begin(&store.database, durability, true).await?);
            Ok(())
        })?;
        Ok(store)
    }

    /// Says something, and waits for what comes of it. A connection that says nothing, or on which it is not known what
    /// was done, is ended.
    fn within<T>(
        &mut self,
        say: impl AsyncFnOnce(&mut Postgres) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(runtime) = self.runtime.take() else { return Err(StoreError::Deposed) };
        let said = runtime.block_on(async {
            // What came over the connection meanwhile is heard first, such as that it is over.
            tokio::task::yield_now().await;
            say(self).await
        });
        self.runtime = Some(runtime);
        let is_lost =
            matches!(said, Err(StoreError::Silent(_) | StoreError::Unknown(_) | StoreError::Deposed));
        if is_lost || self.session.as_ref().is_some_and(Session::is_over) {
            self.session = None;
        }
        said
    }

    /// The connection, or a new one.
    async fn session(&mut self) -> Result<&mut Session, StoreError> {
        let session = match self.session.take().filter(|session| !session.is_over()) {
            Some(session) => session,
            None => Session::begin(&self.database, self.durability, false).await?,
        };
        Ok(self.session.insert(session))
    }

    /// Takes the lead if nobody has it. Whether there is room again after a failure is found out by writing.
    async fn lead(&mut self, address: &str) -> Result<Option<u64>, StoreError> {
        let (failed, knew) = (self.failed, self.term);
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
            term = self.session().await?.take_the_lead(address, knew).await?;
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

    fn stand(&mut self, address: &str) -> Result<Leadership, StoreError> {
        self.within(async |store| {
            if let Some(term) = store.lead(address).await? {
                return Ok(Leadership::Leads { term });
            }
            let (leader, news) = store.session().await?.follow().await?;
            Ok(Leadership::Follows { leader: leader.map(Arc::from), news })
        })
    }

    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError> {
        self.within(async |store| store.session().await?.load(decisions, callers).await)
    }

    fn decisions(&mut self, ids: &[u64]) -> Result<Vec<Record>, StoreError> {
        self.within(async |store| store.session().await?.decisions(ids).await)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let forget = (self.changes >= SWEEP).then_some(self.keep);
        let written = self.within(async |store| {
            let session = store.session.as_ref().filter(|session| !session.is_over());
            session.ok_or(StoreError::Deposed)?.write(changes, forget).await
        });
        self.changes = if forget.is_some() { 0 } else { self.changes } + changes.len();
        self.failed |= written.is_err();
        written
    }
}
