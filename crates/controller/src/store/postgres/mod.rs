//! A store in a PostgreSQL, which several services may share. The schema is the one that a file has, in the schema of the
//! database that the connection looks in first.
//!
//! Who leads holds a lock of its session (an advisory lock), so it ends with the session: when the service is killed, or
//! when nothing is heard of it for [`IDLE`]. Each leader takes a term, the number after the last one's, and whatever it
//! writes is written in one transaction with the proof that the term is still its own: a leader that was deposed and does
//! not know it yet writes nothing. The same transaction numbers the commit and notes what it touches, and by that those
//! who follow find what is new to them.

mod database;
mod session;
mod touched;

use std::error::Error as _;
use std::sync::Arc;

pub use self::database::Database;
use self::session::Session;
use super::{Change, Durability, Kind, Standing, State, Store, StoreError};
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
    /// The connection; `None` while there is none.
    session: Option<Session>,
    /// The last commit that was loaded or told of.
    seen: Option<i64>,
    transactions: u64,
    /// Whether the last changes could not be written.
    failed: bool,
}

/// What the server or the client says, without the request.
fn told(error: &postgres::Error) -> String {
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

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> StoreError {
        StoreError::Database(told(&error))
    }
}

impl Postgres {
    /// Connects, and brings the database to the schema of this version. Of decisions that hold nothing the last `keep` are
    /// kept.
    ///
    /// # Errors
    /// The server is not reached, does not let in, or the database is of a later version.
    pub fn open(database: Database, durability: Durability, keep: u64) -> Result<Postgres, StoreError> {
        let mut client = database.connect()?;
        session::make(&mut client)?;
        let session = Some(Session::begin(client, durability)?);
        Ok(Postgres { database, durability, keep, session, seen: None, transactions: 0, failed: false })
    }

    /// The connection, or a new one.
    fn session(&mut self) -> Result<&mut Session, StoreError> {
        if self.session.as_ref().is_some_and(Session::is_over) {
            self.session = None;
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => Session::begin(self.database.connect()?, self.durability)?,
        };
        Ok(self.session.insert(session))
    }

    /// Takes the lead if nobody has it. Whether there is room again after a failure is found out by writing.
    fn lead(&mut self, address: &str) -> Result<Option<u64>, StoreError> {
        let failed = self.failed;
        let session = self.session()?;
        let mut term = None;
        if session.leads() {
            term = session.still_leads(failed)?;
            if term.is_none() {
                // The lock ends with the session.
                self.session = None;
            }
        }
        if term.is_none() {
            term = self.session()?.take_the_lead(address)?;
        }
        self.failed = false;
        Ok(term)
    }
}

impl Store for Postgres {
    fn kind(&self) -> Kind {
        Kind::Postgres(self.durability)
    }

    fn stand(&mut self, address: &str) -> Result<Standing, StoreError> {
        if let Some(term) = self.lead(address)? {
            return Ok(Standing::Leads { term });
        }
        let seen = self.seen;
        let (leader, last, news) = self.session()?.follow(seen)?;
        self.seen = Some(last);
        Ok(Standing::Follows { leader: leader.map(Arc::from), news })
    }

    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError> {
        let (state, commits) = self.session()?.load(decisions, callers)?;
        self.seen = Some(commits);
        Ok(state)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let forget = self.transactions.is_multiple_of(super::SWEEP).then_some(self.keep);
        let Some(session) = self.session.as_mut() else { return Err(StoreError::Deposed) };
        match session.write(changes, forget) {
            Ok(commit) => {
                self.seen = Some(commit);
                self.transactions += 1;
                Ok(())
            }
            Err(error) => {
                self.failed = true;
                if session.is_over() || error == StoreError::Deposed {
                    self.session = None;
                }
                Err(error)
            }
        }
    }

    fn decision(&mut self, id: u64) -> Result<Option<Record>, StoreError> {
        self.session()?.decision(id)
    }
}
