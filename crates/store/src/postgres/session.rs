//! A connection to the database, and its queries.

use std::time::Duration;

use leeward_records::{DecisionId, DecisionRecord};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, IsolationLevel, Statement, Transaction};

use super::super::row::{self, ResultRow, signed, unsigned};
use super::super::{Change, Durability, State, StoreError, Updates, schema, search};
use super::batch::{Batch, INSERT_SEARCH, Statements};
use super::database::Database;
use super::touched::Touched;
use super::{IDLE, LOCK, SCHEMA_LOCK, text};

/// Response timeout. The server itself gives up waiting for locks after [`IDLE`].
const PATIENCE: Duration = Duration::from_secs(5);
/// Response timeout of queries over all stored data.
const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// Rows per fetch. Each fetch counts as activity of the session.
const FETCH_SIZE: i32 = 1_000;

/// The last $1 decisions, and all older ones that hold resources. The array makes the planner use the index, regardless
/// of its row estimates.
const DECISIONS: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, held
FROM decisions LEFT JOIN commitments ON decision = id
WHERE id = ANY(ARRAY(SELECT id FROM decisions ORDER BY id DESC LIMIT $1) || ARRAY(SELECT decision FROM commitments))";
const TOUCHED: &str = "SELECT number, touched FROM commits WHERE number > $1 ORDER BY number";
const TOUCHED_DECISIONS: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, held
FROM decisions LEFT JOIN commitments ON decision = id WHERE id = ANY($1) ORDER BY at, id";
const TOUCHED_MIGRATIONS: &str = "
SELECT id, at, decision, position, task, job, host_from, host_to, link, state, executor, reason FROM migrations
WHERE id = ANY($1) ORDER BY id";
const TOUCHED_JOBS: &str =
    "SELECT name, down, evictions_per_hour FROM jobs WHERE name = ANY($1) ORDER BY name";

const TOUCHED_ENFORCERS: &str = "SELECT name, value FROM enforcers WHERE name = ANY($1) ORDER BY name";

/// A connection to a database with the current schema.
pub struct Session {
    client: Client,
    /// Task that drives the connection; it ends with this session.
    driver: JoinHandle<()>,
    statements: Statements,
    /// Prepared [`TOUCHED_DECISIONS`].
    decisions_by_id: Statement,
    /// Term in which this session leads; `None` if it does not lead.
    term: Option<i64>,
    /// Number of the last commit that was loaded or reported.
    seen: Option<i64>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Waits for a response, with a timeout.
async fn reply<T>(response: impl Future<Output = Result<T, Error>>) -> Result<T, StoreError> {
    reply_within(PATIENCE, response).await
}

async fn reply_within<T>(
    patience: Duration,
    response: impl Future<Output = Result<T, Error>>,
) -> Result<T, StoreError> {
    Ok(tokio::time::timeout(patience, response).await.map_err(|_| StoreError::Silent(patience))??)
}

/// Upgrades the schema of a database.
async fn upgrade_schema(client: &mut Client) -> Result<(), StoreError> {
    let upgrade = reply(client.transaction()).await?;
    // If several services start together, they upgrade one after another.
    let begin = format!(
        "SELECT pg_advisory_xact_lock({SCHEMA_LOCK}, hashtext(current_schema()));
         SET LOCAL client_min_messages = warning;
         CREATE TABLE IF NOT EXISTS made (steps BIGINT NOT NULL)"
    );
    reply(upgrade.batch_execute(&begin)).await?;
    let found = reply(upgrade.query_opt("SELECT steps FROM made", &[])).await?;
    let found = found.map_or(Ok(0), |row| row.try_get(0))?;
    let known = schema::STEPS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for step in &schema::STEPS[usize::try_from(found).unwrap_or(0)..] {
        // No timeout: an upgrade of many rows may take long.
        upgrade.batch_execute(step).await?;
    }
    if (1..schema::SEARCHABLE).contains(&found) {
        add_searchable(&upgrade).await?;
    }
    if found < known {
        reply(upgrade.batch_execute(&format!("DELETE FROM made; INSERT INTO made VALUES ({known})"))).await?;
    }
    reply(upgrade.commit()).await
}

/// Adds the searchable fields of the decisions of an earlier version of the program.
async fn add_searchable(upgrade: &Transaction<'_>) -> Result<(), StoreError> {
    let insert = reply(upgrade.prepare(INSERT_SEARCH)).await?;
    let all = reply(upgrade.prepare(schema::ALL_DECISIONS)).await?;
    let portal = reply(upgrade.bind_raw(&all, None::<i64>)).await?;
    loop {
        let rows = reply_within(LONG_PATIENCE, upgrade.query_portal(&portal, FETCH_SIZE)).await?;
        let records: Result<Vec<DecisionRecord>, StoreError> =
            rows.iter().map(|row| Ok(row::read_decision(row)?.0)).collect();
        let records = records?;
        // Empty arrays have no type.
        if records.is_empty() {
            return Ok(());
        }
        let searchable = text::columns(records.iter().map(search::searchable).collect());
        reply_within(LONG_PATIENCE, async { upgrade.execute_raw(&insert, searchable).await.map(drop) })
            .await?;
        if rows.len() < FETCH_SIZE as usize {
            return Ok(());
        }
    }
}

impl Session {
    /// Opens a session; the first session of a service also upgrades the schema.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable, or the schema is newer.
    pub async fn begin(
        database: &Database,
        durability: Durability,
        is_first: bool,
    ) -> Result<Session, StoreError> {
        let (mut client, driver) = database.connect().await?;
        if is_first {
            upgrade_schema(&mut client).await?;
        }
        let power = if durability == Durability::Power { "SET synchronous_commit = on" } else { "" };
        let set = format!(
            "SET idle_session_timeout = '{IDLE}'; SET idle_in_transaction_session_timeout = '{IDLE}';
             SET lock_timeout = '{IDLE}'; {power}"
        );
        reply(client.batch_execute(&set)).await?;
        let statements = reply(Statements::prepare(&client)).await?;
        let decisions_by_id = reply(client.prepare(TOUCHED_DECISIONS)).await?;
        Ok(Session { client, driver, statements, decisions_by_id, term: None, seen: None })
    }

    /// True if the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// True if the session took the leadership. A new leader may have deposed it meanwhile.
    pub fn leads(&self) -> bool {
        self.term.is_some()
    }

    /// The term, if it is still the latest one. With `by_writing` the query also tests that writes succeed.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable, or the write fails.
    pub async fn still_leads(&self, by_writing: bool) -> Result<Option<u64>, StoreError> {
        let Some(term) = self.term else { return Ok(None) };
        let query = match by_writing {
            false => "SELECT term FROM leadership WHERE term = $1",
            true => "UPDATE leadership SET commits = commits WHERE term = $1 RETURNING term",
        };
        Ok(reply(self.client.query_opt(query, &[&term])).await?.map(|_| unsigned(term)))
    }

    /// Takes the leadership if there is no leader. The new term exceeds the last term in the database and `last_term`,
    /// the last term of this service. A restored database may lack that term.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable.
    pub async fn take_leadership(
        &mut self,
        address: &str,
        last_term: u64,
    ) -> Result<Option<u64>, StoreError> {
        let lock = format!("SELECT pg_try_advisory_lock({LOCK}, hashtext(current_schema()))");
        if !reply(self.client.query_one(&lock, &[])).await?.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        // The statement waits for a pending commit of the previous leader.
        let take = "UPDATE leadership SET term = greatest(term, $2) + 1, address = $1 RETURNING term";
        let address = text::escape(address.into());
        let taken = reply(self.client.query_one(take, &[&address, &signed(last_term)])).await?;
        self.term = Some(taken.try_get(0)?);
        Ok(self.term.map(unsigned))
    }

    /// Stores changes if this session still leads. `forget` is the number of decisions to keep in a sweep.
    ///
    /// # Errors
    /// [`StoreError`] if the service does not lead, the write failed, or its result is unknown.
    pub async fn write(&self, changes: &[Change], forget: Option<u64>) -> Result<(), StoreError> {
        let term = self.term.ok_or(StoreError::Deposed)?;
        let batch = Batch::of(&self.statements, term, changes, forget)?;
        let patience = if forget.is_some() { LONG_PATIENCE } else { PATIENCE };
        match tokio::time::timeout(patience, batch.send(&self.client)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unknown(StoreError::Silent(patience).to_string())),
        }
    }

    /// Address of the leader, and the changes since the last seen commit.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable or a row is invalid.
    pub async fn follow(&mut self) -> Result<(Option<String>, Updates), StoreError> {
        let seen = self.seen;
        let reading = self.reading().await?;
        let (address, last) = {
            let row = reply(reading.query_one("SELECT address, commits FROM leadership", &[])).await?;
            (row.text(0)?, row.try_get(1)?)
        };
        let updates = match seen {
            None => Updates::Everything,
            Some(seen) if seen == last => Updates::Changes(Vec::new()),
            Some(seen) => updates(&reading, seen, last).await?,
        };
        reply(reading.commit()).await?;
        self.seen = Some(last);
        Ok((address, updates))
    }

    /// Loads the state.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable or a row is invalid.
    pub async fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError> {
        let (decisions, keys) = (signed(decisions as u64), signed(keys as u64));
        let reading = self.reading().await?;
        let commits = reply(reading.query_one("SELECT commits FROM leadership", &[])).await?.try_get(0)?;
        let last: Option<i64> = reply(reading.query_one(schema::MAX_DECISION, &[])).await?.try_get(0)?;
        let mut state = State {
            cluster: rows(&reading, schema::CLUSTER, None, row::read_version).await?.pop(),
            file: rows(&reading, schema::FILE, None, row::read_version).await?.pop(),
            next: DecisionId(last.map_or(0, |last| unsigned(last) + 1)),
            decisions: rows(&reading, DECISIONS, Some(decisions), row::read_decision).await?,
            migrations: rows(&reading, schema::MIGRATIONS, None, row::read_migration).await?,
            modes: rows(&reading, schema::MODES, None, row::read_modes).await?.pop(),
            promises: rows(&reading, schema::PROMISES, None, row::read_promises).await?.pop(),
            enforcers: rows(&reading, schema::ENFORCERS, None, row::read_enforcer).await?,
            jobs: rows(&reading, schema::JOBS, None, row::read_job).await?,
            callers: rows(&reading, schema::CALLERS, Some(keys), row::read_caller)
                .await?
                .into_iter()
                .flatten()
                .collect(),
        };
        reply(reading.commit()).await?;
        self.seen = Some(commits);
        state.decisions.sort_by_key(|(record, _)| (record.at, record.id));
        Ok(state)
    }

    /// Decisions by id.
    ///
    /// # Errors
    /// [`StoreError`] if the server is unavailable or a row is invalid.
    pub async fn decisions(&self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| signed(id.0)).collect();
        let rows = reply(self.client.query(&self.decisions_by_id, &[&ids])).await?;
        rows.iter().map(|row| Ok(row::read_decision(row)?.0)).collect()
    }

    /// A read transaction with a consistent snapshot.
    async fn reading(&mut self) -> Result<Transaction<'_>, StoreError> {
        let reading = self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        reply(reading.read_only(true).start()).await
    }
}

/// All rows of a query, fetched in parts.
async fn rows<T>(
    reading: &Transaction<'_>,
    query: &str,
    parameter: Option<i64>,
    read: impl Fn(&dyn ResultRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let statement = reply(reading.prepare(query)).await?;
    let portal = reply(reading.bind_raw(&statement, parameter)).await?;
    let mut values = Vec::new();
    loop {
        let batch = reply_within(LONG_PATIENCE, reading.query_portal(&portal, FETCH_SIZE)).await?;
        for row in &batch {
            values.push(read(row)?);
        }
        if batch.len() < FETCH_SIZE as usize {
            return Ok(values);
        }
    }
}

/// Changes of the commits after number `seen`, up to number `last`.
async fn updates(reading: &Transaction<'_>, seen: i64, last: i64) -> Result<Updates, StoreError> {
    let (mut touched, mut expected) = (Touched::default(), seen);
    for row in reply(reading.query(TOUCHED, &[&seen])).await? {
        expected += 1;
        let number: i64 = row.try_get(0)?;
        if number != expected {
            return Ok(Updates::Everything);
        }
        touched.add(number, row.try_get(1)?)?;
    }
    if touched.cluster || expected != last {
        return Ok(Updates::Everything);
    }
    Ok(Updates::Changes(changes(reading, touched).await?))
}

/// Current state of touched rows, as changes.
async fn changes(reading: &Transaction<'_>, touched: Touched) -> Result<Vec<Change>, StoreError> {
    let Touched { decided, moved, ended, migrations, jobs, compared, enforcers, promises, modes, cluster: _ } =
        touched;
    let (mut changes, mut ends) = (Vec::new(), Vec::new());
    let ids: Vec<i64> = decided.iter().chain(&moved).chain(&ended).chain(&compared).copied().collect();
    for row in if ids.is_empty() { vec![] } else { reply(reading.query(TOUCHED_DECISIONS, &[&ids])).await? } {
        let (record, held) = row::read_decision(&row)?;
        let (id, number, released) = (record.id, signed(record.id.0), record.released);
        if decided.contains(&number) {
            changes.push(Change::Decided(record.into(), held));
        } else if moved.contains(&number) {
            changes.push(Change::Moved(record.into(), held));
        } else if compared.contains(&number) {
            changes.push(Change::Compared(record.into()));
        }
        if ended.contains(&number) {
            ends.push(Change::Ended { id, released });
        }
    }
    changes.append(&mut ends);
    let ids: Vec<i64> = migrations.into_iter().collect();
    if !ids.is_empty() {
        for row in reply(reading.query(TOUCHED_MIGRATIONS, &[&ids])).await? {
            changes.push(Change::Migration(row::read_migration(&row)?));
        }
    }
    let mut deleted = jobs.clone();
    let names: Vec<_> = jobs.iter().map(|name| text::escape(name.into())).collect();
    if !names.is_empty() {
        for row in reply(reading.query(TOUCHED_JOBS, &[&names])).await? {
            let (name, availability) = row::read_job(&row)?;
            deleted.remove(&name);
            changes.push(Change::Job(name, availability));
        }
    }
    changes.extend(deleted.into_iter().map(Change::JobOver));
    let mut gone = enforcers.clone();
    let names: Vec<_> = enforcers.iter().map(|name| text::escape(name.into())).collect();
    if !names.is_empty() {
        for row in reply(reading.query(TOUCHED_ENFORCERS, &[&names])).await? {
            let enforcer = row::read_enforcer(&row)?;
            gone.remove(&enforcer.name);
            changes.push(Change::Enforcer(enforcer.into()));
        }
    }
    changes.extend(gone.into_iter().map(Change::EnforcerGone));
    if promises {
        for row in reply(reading.query(schema::PROMISES, &[])).await? {
            changes.push(Change::Promises(row::read_promises(&row)?));
        }
    }
    if modes {
        for row in reply(reading.query(schema::MODES, &[])).await? {
            changes.push(Change::Modes(row::read_modes(&row)?));
        }
    }
    Ok(changes)
}
