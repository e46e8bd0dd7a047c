//! A store in one file, by SQLite with a write-ahead log.

use std::path::Path;
use std::time::Duration;

use leeward_engine::Availability;
use leeward_fabric::Nanos;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::row::{self, Row, signed, unsigned};
use super::{Change, Durability, Kind, SWEEP, Standing, State, Store, StoreError, schema};
use crate::desk::{Migration, MigrationState, Record};

/// How long another process that writes to the file is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store in a file.
pub struct Sqlite {
    connection: Connection,
    kind: Kind,
    /// Decisions that are kept, besides those that hold something.
    keep: u64,
    transactions: u64,
    /// Whether the last changes could not be written.
    failed: bool,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Database(error.to_string())
    }
}

impl Sqlite {
    /// Opens the file, or makes it, and brings it to the schema of this version. Of decisions that hold nothing the last
    /// `keep` are kept.
    ///
    /// # Errors
    /// The file cannot be opened or written, is no database, or is of a later version.
    pub fn open(path: &Path, durability: Durability, keep: u64) -> Result<Sqlite, StoreError> {
        Sqlite::begin(Connection::open(path)?, Kind::Sqlite(durability), keep)
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// There is no memory.
    pub fn in_memory() -> Result<Sqlite, StoreError> {
        Sqlite::begin(Connection::open_in_memory()?, Kind::Memory, u64::MAX)
    }

    fn begin(mut connection: Connection, kind: Kind, keep: u64) -> Result<Sqlite, StoreError> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match kind.durability() {
            Some(Durability::Power) => "FULL",
            Some(Durability::Process) | None => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let migration = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = migration.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let known = schema::STEPS.len() as i64;
        if found > known {
            return Err(StoreError::Newer { found, known });
        }
        for step in &schema::STEPS[usize::try_from(found).unwrap_or(0)..] {
            migration.execute_batch(step)?;
        }
        migration.pragma_update(None, "user_version", known)?;
        migration.commit()?;
        Ok(Sqlite { connection, kind, keep, transactions: 0, failed: false })
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        changes.iter().try_for_each(|change| write(&transaction, change))?;
        if self.transactions.is_multiple_of(SWEEP) {
            transaction.execute(schema::FORGET, [signed(self.keep)])?;
        }
        transaction.commit()?;
        self.transactions += 1;
        Ok(())
    }
}

impl Store for Sqlite {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn stand(&mut self, address: &str) -> Result<Standing, StoreError> {
        if self.failed {
            // Whether there is room again is found out by writing.
            self.connection.execute("UPDATE leadership SET address = ?", [address])?;
            self.failed = false;
        }
        Ok(Standing::Leads { term: 0 })
    }

    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError> {
        let transaction = self.connection.transaction()?;
        let mut state = State::default();
        let last: Option<i64> = transaction.query_row(schema::LAST, [], |row| row.get(0))?;
        state.next = last.map_or(0, |last| unsigned(last) + 1);
        let mut rows = transaction.prepare(schema::JOBS)?;
        let jobs = rows.query_map([], |row| {
            let (down, evictions_per_hour) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, Availability { down, evictions_per_hour }))
        })?;
        state.jobs = jobs.collect::<Result<_, _>>()?;
        let mut rows = transaction.prepare(schema::MIGRATIONS)?;
        let migrations = rows.query_map([], |row| {
            Ok(Migration {
                id: unsigned(row.get(0)?),
                at: Nanos(unsigned(row.get(1)?)),
                decision: unsigned(row.get(2)?),
                index: row.get(3)?,
                task: row.get(4)?,
                job: row.get(5)?,
                from: row.get(6)?,
                to: row.get(7)?,
                link: row.get(8)?,
                state: MigrationState::of(&row.get::<_, String>(9)?).unwrap_or_default(),
                reason: row.get(10)?,
            })
        })?;
        state.migrations = migrations.collect::<Result<_, _>>()?;
        let version = |query| {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            transaction.query_row(query, [], read).optional()
        };
        state.cluster = version(schema::CLUSTER)?.map(row::version);
        state.file = version(schema::FILE)?.map(row::version);
        let mut rows = transaction.prepare(schema::DECISIONS)?;
        let rows = rows.query_map([signed(decisions as u64)], |row| {
            Ok((read(row)?, row.get::<_, Option<String>>(8)?))
        })?;
        for found in rows {
            let (row, held) = found?;
            state.decisions.push(row.with_held(held)?);
        }
        let mut rows = transaction.prepare(schema::CALLERS)?;
        let rows = rows.query_map([signed(callers as u64)], |row| {
            Ok((row::caller(row.get(0)?, row.get(1)?, row.get(2)?), row.get::<_, i64>(3)?))
        })?;
        for found in rows {
            let (caller, id) = found?;
            state.callers.extend(caller.map(|caller| (caller, unsigned(id))));
        }
        Ok(state)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let written = self.write(changes);
        self.failed = written.is_err();
        written
    }

    fn decision(&mut self, id: u64) -> Result<Option<Record>, StoreError> {
        let mut query = self.connection.prepare_cached(schema::DECISION)?;
        query.query_row([signed(id)], read).optional()?.map(Row::record).transpose()
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        id: row.get(0)?,
        at: row.get(1)?,
        client: row.get(2)?,
        sequence: row.get(3)?,
        request_key: row.get(4)?,
        shown: row.get(5)?,
        expires: row.get(6)?,
        released: row.get(7)?,
    })
}

fn write(transaction: &Transaction<'_>, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::Decided(record, held) => {
            let row = Row::of(record)?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO decisions (id, at, kind, client, sequence, request_key, shown, expires, released)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            let kind = record.shown.wish.kind();
            let (id, key) = (row.id, row.request_key);
            insert.execute(params![
                id,
                row.at,
                kind,
                row.client,
                row.sequence,
                key,
                row.shown,
                row.expires,
                row.released
            ])?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO commitments (decision, held) VALUES (?, ?)")?;
            insert.execute(params![id, row::held_text(record.id, held)?])?;
        }
        Change::Moved(record, held) => {
            let row = Row::of(record)?;
            let mut update = transaction.prepare_cached(schema::SHOW)?;
            update.execute(params![row.shown, row.id])?;
            let mut update = transaction.prepare_cached(schema::HOLD)?;
            update.execute(params![row::held_text(record.id, held)?, row.id])?;
        }
        Change::Migration(migration) => {
            let mut insert = transaction.prepare_cached(schema::MIGRATE)?;
            let Migration { id, at, decision, index, task, job, from, to, link, state, reason } = migration;
            let (id, at, decision) = (signed(*id), signed(at.0), signed(*decision));
            insert.execute(params![
                id,
                at,
                decision,
                index,
                task,
                job,
                from,
                to,
                link,
                state.word(),
                reason
            ])?;
        }
        Change::Job(name, Availability { down, evictions_per_hour }) => {
            let mut insert = transaction.prepare_cached(schema::BEAR)?;
            insert.execute(params![name, down, evictions_per_hour])?;
        }
        Change::Cluster(version) => {
            let (number, at, origin, text) = row::of_version(version);
            transaction.execute(schema::VERSION, params![number, at, origin, text])?;
        }
        Change::Ended { id, released } => {
            let mut delete = transaction.prepare_cached("DELETE FROM commitments WHERE decision = ?")?;
            delete.execute([signed(*id)])?;
            if let Some(at) = released {
                let mut update =
                    transaction.prepare_cached("UPDATE decisions SET released = ? WHERE id = ?")?;
                update.execute([signed(at.0), signed(*id)])?;
            }
        }
    }
    Ok(())
}
