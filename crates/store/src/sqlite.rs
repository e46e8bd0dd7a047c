//! A store in one SQLite file with a write-ahead log.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leeward_records::{DecisionId, DecisionRecord};
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};

use super::checkpoints::Checkpoints;
use super::file_lock::FileLock;
use super::period_row;
use super::row::{self, Cell, signed};
use super::search;
use super::sqlite_reader::SqliteReader;
use super::sqlite_rows::rows;
use super::{
    Change, Durability, Kind, Leadership, MAX_DELETED, Reader, SWEEP, State, Store, StoreError, schema,
};

/// The last $1 decisions, and all older ones that hold resources.
const DECISIONS: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, held
FROM decisions LEFT JOIN commitments ON decision = id
WHERE id IN (SELECT id FROM (SELECT id FROM decisions ORDER BY id DESC LIMIT $1)
    UNION SELECT decision FROM commitments)";
/// A decision by id.
const DECISION: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, NULL FROM decisions WHERE id = $1";
/// Deletes at most $2 decisions, oldest first. They hold no resources and are older than the last $1.
const FORGET: &str = "
DELETE FROM decisions WHERE id IN (
    SELECT id FROM decisions WHERE id < (SELECT max(id) FROM decisions) - $1
    AND NOT EXISTS (SELECT 1 FROM commitments WHERE decision = id) ORDER BY id LIMIT $2)";

/// No parameters.
const NONE: &[i64] = &[];
/// Time to wait for another process that writes to the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store in a SQLite file.
pub struct Sqlite {
    /// Dropped before the connection, because the connection then checkpoints the rest of the log.
    checkpoints: Option<Checkpoints>,
    connection: Connection,
    /// File or address of the database, for further connections.
    path: PathBuf,
    /// Lock against other services; none for memory. It is dropped last, because a process that closes a file loses the
    /// locks of SQLite on it.
    _lock: Option<FileLock>,
    kind: Kind,
    /// Number of decisions to keep, besides those that hold resources.
    keep: u64,
    /// Changes since the last sweep.
    changes: usize,
    /// True if the last write failed.
    failed: bool,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Database(error.to_string())
    }
}

impl Sqlite {
    /// Opens or creates the file, and upgrades its schema. Keeps the last `keep` decisions without held
    /// resources.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be opened or written, is not a database, has a newer schema, or is
    /// in use by another service.
    pub fn open(path: &Path, durability: Durability, keep: u64) -> Result<Sqlite, StoreError> {
        let (lock, path) = FileLock::take(path)?;
        let connection = Connection::open(&path)?;
        let mut store = Sqlite::begin(connection, path.clone(), Some(lock), Kind::Sqlite(durability), keep)?;
        store.checkpoints = Some(Checkpoints::start(&path, &store.connection, PATIENCE)?);
        Ok(store)
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// [`StoreError`] if memory is exhausted.
    pub fn in_memory() -> Result<Sqlite, StoreError> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        // With a shared cache, a second connection reads the same memory.
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("file:leeward-{number}?mode=memory&cache=shared"));
        Sqlite::begin(Connection::open(&path)?, path, None, Kind::Memory, u64::MAX)
    }

    fn begin(
        mut connection: Connection,
        path: PathBuf,
        lock: Option<FileLock>,
        kind: Kind,
        keep: u64,
    ) -> Result<Sqlite, StoreError> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match kind.durability() {
            Some(Durability::Power) => "FULL",
            Some(Durability::Process) | None => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let migration = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = migration.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let known = schema::STEPS.len() as i64;
        if found > known {
            return Err(StoreError::Newer { found, known });
        }
        for step in &schema::STEPS[usize::try_from(found).unwrap_or(0)..] {
            // Only a column of this type is the row id itself and needs no further index.
            migration.execute_batch(&step.replace("BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY"))?;
        }
        if (1..schema::SEARCHABLE).contains(&found) {
            add_searchable(&migration)?;
        }
        migration.pragma_update(None, "user_version", known)?;
        migration.commit()?;
        // A sweep is due at the first write.
        let (checkpoints, changes, failed) = (None, SWEEP, false);
        Ok(Sqlite { checkpoints, connection, path, _lock: lock, kind, keep, changes, failed })
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        changes.iter().try_for_each(|change| write(&transaction, change))?;
        let sweeps = self.changes >= SWEEP;
        if sweeps {
            transaction.execute(FORGET, [signed(self.keep), signed(MAX_DELETED)])?;
            schema::SWEEPS.iter().try_for_each(|sweep| transaction.execute(sweep, []).map(drop))?;
        }
        transaction.commit()?;
        self.changes = if sweeps { 0 } else { self.changes } + changes.len();
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.committed(&self.connection, changes.len());
        }
        Ok(())
    }
}

impl Store for Sqlite {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn renew_lease(&mut self, address: &str) -> Result<Leadership, StoreError> {
        if self.failed {
            // Only a write shows if there is free space again.
            self.connection.execute("UPDATE leadership SET address = ?", [address])?;
            self.failed = false;
        }
        Ok(Leadership::Leader { term: 0 })
    }

    fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError> {
        let (decisions, keys) = (signed(decisions as u64), signed(keys as u64));
        let reading = self.connection.transaction()?;
        let last: Option<i64> = reading.query_row(schema::MAX_DECISION, [], |row| row.get(0))?;
        let mut state = State {
            cluster: rows(&reading, schema::CLUSTER, NONE, row::read_version)?.pop(),
            file: rows(&reading, schema::FILE, NONE, row::read_version)?.pop(),
            next: DecisionId(last.map_or(0, |last| row::unsigned(last) + 1)),
            decisions: rows(&reading, DECISIONS, &[decisions], row::read_decision)?,
            migrations: rows(&reading, schema::MIGRATIONS, NONE, row::read_migration)?,
            modes: rows(&reading, schema::MODES, NONE, row::read_modes)?.pop(),
            promises: rows(&reading, schema::PROMISES, NONE, row::read_promises)?.pop(),
            enforcers: rows(&reading, schema::ENFORCERS, NONE, row::read_enforcer)?,
            jobs: rows(&reading, schema::JOBS, NONE, row::read_job)?,
            callers: rows(&reading, schema::CALLERS, &[keys], row::read_caller)?
                .into_iter()
                .flatten()
                .collect(),
        };
        state.decisions.sort_by_key(|(record, _)| (record.at, record.id));
        Ok(state)
    }

    fn decisions(&mut self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError> {
        let mut query = self.connection.prepare_cached(DECISION)?;
        let mut decisions = Vec::new();
        for &id in ids {
            if let Some(row) = query.query([signed(id.0)])?.next()? {
                decisions.push(row::read_decision(row)?.0);
            }
        }
        Ok(decisions)
    }

    fn reader(&self) -> Result<Reader, StoreError> {
        Ok(Reader::new(SqliteReader::open(&self.path, self.kind == Kind::Memory)?))
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let written = self.write(changes);
        self.failed = written.is_err();
        written
    }
}

/// Adds the searchable fields of the decisions of an earlier version of the program.
fn add_searchable(migration: &Transaction<'_>) -> Result<(), StoreError> {
    let mut decisions = migration.prepare(schema::ALL_DECISIONS)?;
    let mut insert = migration.prepare(schema::INSERT_SEARCH)?;
    let mut rows = decisions.query([])?;
    while let Some(row) = rows.next()? {
        let (record, _) = row::read_decision(row)?;
        insert.execute(params_from_iter(&search::searchable(&record)))?;
    }
    Ok(())
}

fn write(transaction: &Transaction<'_>, change: &Change) -> Result<(), StoreError> {
    let execute = |statement: &str, cells: &[Cell<'_>]| -> Result<(), StoreError> {
        transaction.prepare_cached(statement)?.execute(params_from_iter(cells))?;
        Ok(())
    };
    let number = |number: u64| Cell::Number(Some(signed(number)));
    let update_searchable = |record: &DecisionRecord| {
        let [gain, places] = search::changing(record);
        execute(schema::UPDATE_SEARCH, &[gain, places, number(record.id.0)])
    };
    match change {
        Change::Decided(record, held) => {
            execute(schema::INSERT_DECISION, &row::decision(record)?)?;
            execute(schema::INSERT_SEARCH, &search::searchable(record))?;
            execute(schema::INSERT_COMMITMENT, &[number(record.id.0), row::entries(record.id, held)?])
        }
        Change::Moved(record, held) => {
            execute(schema::UPDATE_DETAILS, &[row::details(record)?, number(record.id.0)])?;
            update_searchable(record)?;
            execute(schema::UPDATE_COMMITMENT, &[row::entries(record.id, held)?, number(record.id.0)])
        }
        Change::Migration(migration) => execute(schema::UPSERT_MIGRATION, &row::migration(migration)),
        Change::JobOver(name) => execute(schema::DELETE_JOB, &[Cell::text(name)]),
        Change::Job(name, availability) => execute(schema::UPSERT_JOB, &row::job(name, availability)),
        Change::Cluster(version) => execute(schema::INSERT_CLUSTER, &row::version(version)),
        Change::Modes(modes) => execute(schema::UPSERT_MODES, &[row::modes(modes)?]),
        Change::Promises(version) => execute(schema::UPSERT_PROMISES, &[row::promises(*version)?]),
        Change::Enforcer(enforcer) => execute(schema::UPSERT_ENFORCER, &row::enforcer(enforcer)?),
        Change::EnforcerGone(name) => execute(schema::DELETE_ENFORCER, &[Cell::text(name)]),
        Change::Compared(record) | Change::Confirmed(record) => {
            execute(schema::UPDATE_DETAILS, &[row::details(record)?, number(record.id.0)])?;
            update_searchable(record)
        }
        Change::Period(period) => {
            execute(schema::UPSERT_PERIOD, &period_row::period(period)?)?;
            execute(schema::FORGET_PERIODS, &period_row::forgotten(period))
        }
        Change::LinkNames(cluster, names) => {
            execute(schema::INSERT_LINK_NAMES, &period_row::link_names(*cluster, names)?)
        }
        Change::Ended { id, released } => {
            execute(schema::DELETE_COMMITMENT, &[number(id.0)])?;
            match released {
                Some(at) => execute(schema::RELEASE, &[number(at.0), number(id.0)]),
                None => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// A store with this number of decisions by ten clients. 100 decisions hold resources, and the first ones have
    /// keys.
    fn store_with(decisions: u32) -> Sqlite {
        let store = Sqlite::in_memory().expect("an in-memory store opens");
        let rows = format!(
            "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {decisions})
            INSERT INTO decisions SELECT id, id, 'replicas', CASE WHEN id > 200 THEN 'client ' || (id % 10) END,
                CASE WHEN id > 200 THEN id END, CASE WHEN id <= 200 THEN 'key ' || id END, '{{}}', NULL, NULL FROM n;
            INSERT INTO commitments SELECT id, '[]' FROM decisions WHERE id % {} = 0",
            decisions / 100
        );
        store.connection.execute_batch(&rows).expect("enough room");
        store
    }

    /// Work of SQLite for a query, in virtual machine steps.
    fn steps(store: &Sqlite, sql: &str, parameters: &[i64]) -> i32 {
        let mut query = store.connection.prepare(sql).expect("a valid query");
        let mut rows = query.query(params_from_iter(parameters)).expect("a valid query");
        while rows.next().expect("the store is readable").is_some() {}
        drop(rows);
        query.get_status(StatementStatus::VmStep)
    }

    #[test]
    fn the_cost_of_queries_does_not_grow_with_the_store() {
        let [few, many] = [2_000, 40_000].map(|decisions| {
            let store = store_with(decisions);
            let forgotten = [i64::from(decisions) - 100, 1_000];
            let queries = [(DECISIONS, &[300][..]), (schema::CALLERS, &[100][..]), (FORGET, &forgotten[..])];
            queries.map(|(sql, parameters)| steps(&store, sql, parameters))
        });
        for (few, many) in few.into_iter().zip(many) {
            assert!(many < few + few / 4, "{few} steps, and {many}");
        }
    }
}
