//! Conversion of changes to rows and back: values in the order of the columns in [`super::schema`]. Databases have
//! signed integers, so the last valid time is in the year 2312.

use std::borrow::Cow;
use std::sync::Arc;

use leeward_engine::Availability;
use leeward_fabric::Nanos;
use leeward_records::{
    Caller, ClusterVersion, DecisionId, DecisionRecord, Enforcer, Migration, MigrationState, ModesState,
    Origin, PromisesVersion, StoredEntry, Version,
};

use super::StoreError;

/// A value of a row.
pub enum Cell<'a> {
    /// A number or a time.
    Number(Option<i64>),
    /// Text from a user.
    Text(Option<Cow<'a, str>>),
    /// A keyword or JSON, without NUL characters.
    Plain(Cow<'a, str>),
}

impl Cell<'_> {
    pub fn number(value: u64) -> Cell<'static> {
        Cell::Number(Some(signed(value)))
    }

    pub fn text(text: &str) -> Cell<'_> {
        Cell::Text(Some(text.into()))
    }

    fn time(at: Option<Nanos>) -> Cell<'static> {
        Cell::Number(at.map(|at| signed(at.0)))
    }
}

/// A row of a query result.
pub trait ResultRow {
    /// Number at a position.
    fn number(&self, at: usize) -> Result<Option<i64>, StoreError>;

    /// User text at a position.
    fn text(&self, at: usize) -> Result<Option<String>, StoreError>;

    /// Keyword or JSON at a position.
    fn plain(&self, at: usize) -> Result<Option<String>, StoreError>;
}

/// Converts to the database's signed integer.
pub fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts from the database's signed integer.
pub fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Number at a position; 0 for null.
///
/// # Errors
/// [`StoreError`] if the value cannot be read.
pub fn number_or_zero(row: &dyn ResultRow, at: usize) -> Result<u64, StoreError> {
    Ok(row.number(at)?.map_or(0, unsigned))
}

/// Number of at most 32 bits at a position.
fn small_number(row: &dyn ResultRow, at: usize) -> Result<Option<u32>, StoreError> {
    Ok(row.number(at)?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

/// Text at a position; empty for null.
fn text_or_empty(row: &dyn ResultRow, at: usize) -> Result<String, StoreError> {
    Ok(row.text(at)?.unwrap_or_default())
}

/// Row of `decisions`.
///
/// # Errors
/// [`StoreError::Row`] if the details cannot be serialized.
pub fn decision(record: &DecisionRecord) -> Result<[Cell<'_>; 9], StoreError> {
    let (client, sequence, key) = caller_columns(record);
    Ok([
        Cell::number(record.id.0),
        Cell::number(record.at.0),
        Cell::Plain(record.details.spec.kind().into()),
        client,
        sequence,
        key,
        details(record)?,
        Cell::time(record.expires),
        Cell::time(record.released),
    ])
}

/// Client, sequence and key of a decision.
pub fn caller_columns(record: &DecisionRecord) -> (Cell<'_>, Cell<'_>, Cell<'_>) {
    let (client, sequence, key) = match &record.caller {
        None => (None, None, None),
        Some(Caller::Key(key)) => (None, None, Some(&**key)),
        Some(Caller::Client { client, sequence }) => (Some(&**client), Some(signed(*sequence)), None),
    };
    (Cell::Text(client.map(Cow::from)), Cell::Number(sequence), Cell::Text(key.map(Cow::from)))
}

/// Details of a decision as JSON.
///
/// # Errors
/// [`StoreError::Row`] if they cannot be serialized.
pub fn details(record: &DecisionRecord) -> Result<Cell<'static>, StoreError> {
    let shown = serde_json::to_string(&record.details);
    Ok(Cell::Plain(shown.map_err(|error| unreadable("decisions", record.id.0, &error))?.into()))
}

/// Held resources of a decision as JSON.
///
/// # Errors
/// [`StoreError::Row`] if they cannot be serialized.
pub fn entries(id: DecisionId, held: &[StoredEntry]) -> Result<Cell<'static>, StoreError> {
    let held = serde_json::to_string(held);
    Ok(Cell::Plain(held.map_err(|error| unreadable("commitments", id.0, &error))?.into()))
}

/// A decision and its held resources, from a row of the `DECISIONS` query.
///
/// # Errors
/// [`StoreError::Row`] if the row is invalid.
pub fn read_decision(row: &dyn ResultRow) -> Result<(DecisionRecord, Vec<StoredEntry>), StoreError> {
    let id = DecisionId(number_or_zero(row, 0)?);
    let shown = row.plain(5)?.unwrap_or_default();
    let record = DecisionRecord {
        id,
        at: Nanos(number_or_zero(row, 1)?),
        caller: caller(row, 2)?,
        details: serde_json::from_str(&shown).map_err(|error| unreadable("decisions", id.0, &error))?,
        entries: Vec::new(),
        expires: row.number(6)?.map(|at| Nanos(unsigned(at))),
        released: row.number(7)?.map(|at| Nanos(unsigned(at))),
    };
    let held = row.plain(8)?.map(|held| serde_json::from_str(&held)).transpose();
    let held = held.map_err(|error| unreadable("commitments", id.0, &error))?;
    Ok((record, held.unwrap_or_default()))
}

/// Idempotency entry from a row of [`super::schema::CALLERS`].
///
/// # Errors
/// [`StoreError`] if the row is invalid.
pub fn read_caller(row: &dyn ResultRow) -> Result<Option<(Caller, DecisionId)>, StoreError> {
    let id = DecisionId(number_or_zero(row, 3)?);
    Ok(caller(row, 0)?.map(|caller| (caller, id)))
}

/// Client or key, from three columns.
fn caller(row: &dyn ResultRow, at: usize) -> Result<Option<Caller>, StoreError> {
    let (client, sequence, key) = (row.text(at)?, row.number(at + 1)?, row.text(at + 2)?);
    Ok(match (client, sequence, key) {
        (Some(client), Some(sequence), _) => {
            Some(Caller::Client { client: Arc::from(client), sequence: unsigned(sequence) })
        }
        (_, _, key) => key.map(|key| Caller::Key(Arc::from(key))),
    })
}

/// Row of `migrations`.
pub fn migration(migration: &Migration) -> [Cell<'_>; 12] {
    let Migration { id, at, decision, index, task, job, from, to, link, state, executor, reason } = migration;
    [
        Cell::number(*id),
        Cell::number(at.0),
        Cell::number(decision.0),
        Cell::number(u64::from(*index)),
        Cell::text(task),
        Cell::Text(job.as_deref().map(Cow::from)),
        Cell::text(from),
        Cell::text(to),
        Cell::text(link),
        Cell::Plain(state.word().into()),
        Cell::Text(executor.as_deref().map(Cow::from)),
        Cell::Text(reason.as_deref().map(Cow::from)),
    ]
}

/// Move from a row of `migrations`.
///
/// # Errors
/// [`StoreError`] if the row is invalid, or has a state that this version does not know.
pub fn read_migration(row: &dyn ResultRow) -> Result<Migration, StoreError> {
    let (id, word) = (number_or_zero(row, 0)?, row.plain(9)?.unwrap_or_default());
    let problem = || format!("the state `{word}` is unknown: a later version wrote it");
    let state = MigrationState::of(&word);
    let state = state.ok_or_else(|| StoreError::Row { table: "migrations", id, problem: problem() })?;
    Ok(Migration {
        id,
        at: Nanos(number_or_zero(row, 1)?),
        decision: DecisionId(number_or_zero(row, 2)?),
        index: small_number(row, 3)?.unwrap_or_default(),
        task: text_or_empty(row, 4)?,
        job: row.text(5)?,
        from: text_or_empty(row, 6)?,
        to: text_or_empty(row, 7)?,
        link: text_or_empty(row, 8)?,
        state,
        executor: row.text(10)?,
        reason: row.text(11)?,
    })
}

/// Value of the row `modes` of the table `service`.
///
/// # Errors
/// [`StoreError`] if the modes cannot be serialized.
pub fn modes(modes: &ModesState) -> Result<Cell<'static>, StoreError> {
    let value = serde_json::to_string(modes).map_err(|error| unreadable("service", 0, &error))?;
    Ok(Cell::Plain(value.into()))
}

/// Modes, from the row `modes` of the table `service`.
///
/// # Errors
/// [`StoreError::Row`] for an invalid row.
pub fn read_modes(row: &dyn ResultRow) -> Result<ModesState, StoreError> {
    let value = row.plain(0)?.unwrap_or_default();
    serde_json::from_str(&value).map_err(|error| unreadable("service", 0, &error))
}

/// Value of the row `promises` of the table `service`.
///
/// # Errors
/// [`StoreError`] if the version cannot be serialized.
pub fn promises(version: PromisesVersion) -> Result<Cell<'static>, StoreError> {
    let value = serde_json::to_string(&version).map_err(|error| unreadable("service", 0, &error))?;
    Ok(Cell::Plain(value.into()))
}

/// Version of the set of promises, from the row `promises` of the table `service`.
///
/// # Errors
/// [`StoreError::Row`] for an invalid row.
pub fn read_promises(row: &dyn ResultRow) -> Result<PromisesVersion, StoreError> {
    let value = row.plain(0)?.unwrap_or_default();
    serde_json::from_str(&value).map_err(|error| unreadable("service", 0, &error))
}

/// Row of `enforcers`.
///
/// # Errors
/// [`StoreError`] if the enforcer cannot be serialized.
pub fn enforcer(enforcer: &Enforcer) -> Result<[Cell<'_>; 2], StoreError> {
    let value = serde_json::to_string(enforcer).map_err(|error| unreadable("enforcers", 0, &error))?;
    Ok([Cell::text(&enforcer.name), Cell::Plain(value.into())])
}

/// Enforcer from a row of `enforcers`.
///
/// # Errors
/// [`StoreError::Row`] for an invalid row.
pub fn read_enforcer(row: &dyn ResultRow) -> Result<Enforcer, StoreError> {
    let value = row.plain(1)?.unwrap_or_default();
    serde_json::from_str(&value).map_err(|error| unreadable("enforcers", 0, &error))
}

/// Row of `jobs`.
pub fn job<'a>(name: &'a str, availability: &Availability) -> [Cell<'a>; 3] {
    let Availability { down, evictions_per_hour } = *availability;
    [Cell::text(name), Cell::Number(down.map(i64::from)), Cell::Number(evictions_per_hour.map(i64::from))]
}

/// Budget of a job, from a row of `jobs`.
///
/// # Errors
/// [`StoreError`] if the row is invalid.
pub fn read_job(row: &dyn ResultRow) -> Result<(String, Availability), StoreError> {
    Ok((
        text_or_empty(row, 0)?,
        Availability { down: small_number(row, 1)?, evictions_per_hour: small_number(row, 2)? },
    ))
}

/// Row of `clusters`.
pub fn version(version: &Version) -> [Cell<'_>; 4] {
    let origin = match version.origin {
        Origin::File => "file",
        Origin::Request => "request",
    };
    let Version { number, at, text, .. } = version;
    [Cell::number(number.0), Cell::number(at.0), Cell::Plain(origin.into()), Cell::Plain((&**text).into())]
}

/// Version of the cluster, from a row of `clusters`.
///
/// # Errors
/// [`StoreError`] if the row is invalid.
pub fn read_version(row: &dyn ResultRow) -> Result<Version, StoreError> {
    let origin = row.plain(2)?;
    Ok(Version {
        number: ClusterVersion(number_or_zero(row, 0)?),
        at: Nanos(number_or_zero(row, 1)?),
        origin: if origin.as_deref() == Some("file") { Origin::File } else { Origin::Request },
        text: Arc::from(row.plain(3)?.unwrap_or_default()),
    })
}

pub fn unreadable(table: &'static str, id: u64, error: &serde_json::Error) -> StoreError {
    StoreError::Row { table, id, problem: error.to_string() }
}
