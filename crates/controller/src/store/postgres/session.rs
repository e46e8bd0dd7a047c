//! A connection, and what is said over it.

use std::borrow::Cow;

use leeward_engine::Availability;
use leeward_fabric::Nanos;
use postgres::types::ToSql;
use postgres::{Client, GenericClient, IsolationLevel, Row as Found, Statement, Transaction};

use super::super::row::{self, Row, signed, unsigned};
use super::super::{Change, Durability, Held, News, State, StoreError, schema};
use super::touched::Touched;
use super::{IDLE, LOCK, MAKING};
use crate::desk::{Migration, MigrationState, Record};

/// Commits that are noted for those who follow; who is further behind loads everything.
const NOTED: i64 = 10_000;

const COMMIT: &str = "
WITH led AS (UPDATE leadership SET commits = commits + 1 WHERE term = $1 RETURNING commits)
INSERT INTO commits (number, touched) SELECT commits, $2 FROM led RETURNING number";
const DECIDE: &str = "
INSERT INTO decisions (id, at, kind, client, sequence, request_key, shown, expires, released)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
    $8::bigint[], $9::bigint[])";
const COMMIT_TO: &str = "
INSERT INTO commitments (decision, held) SELECT * FROM unnest($1::bigint[], $2::text[])";
const END: &str = "DELETE FROM commitments WHERE decision = ANY($1)";
const RELEASE: &str = "
UPDATE decisions SET released = ended.at FROM unnest($1::bigint[], $2::bigint[]) AS ended (id, at)
WHERE decisions.id = ended.id";
const TOUCHED: &str = "SELECT number, touched FROM commits WHERE number > $1 ORDER BY number";
const TOUCHED_DECISIONS: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, held
FROM decisions LEFT JOIN commitments ON decision = id WHERE id = ANY($1) ORDER BY at, id";
const TOUCHED_MIGRATIONS: &str = "
SELECT id, at, decision, position, task, job, host_from, host_to, link, state, reason FROM migrations
WHERE id = ANY($1) ORDER BY id";
const TOUCHED_JOBS: &str =
    "SELECT name, down, evictions_per_hour FROM jobs WHERE name = ANY($1) ORDER BY name";

/// Brings a database to the schema of this version.
pub fn make(client: &mut Client) -> Result<(), StoreError> {
    let mut making = client.transaction()?;
    // Services that start together make it one after the other.
    making.batch_execute(&format!(
        "SELECT pg_advisory_xact_lock({MAKING}, hashtext(current_schema()));
         SET LOCAL client_min_messages = warning;
         CREATE TABLE IF NOT EXISTS made (steps BIGINT NOT NULL)"
    ))?;
    let found = making.query_opt("SELECT steps FROM made", &[])?;
    let found = found.map_or(Ok(0), |row| row.try_get(0))?;
    let known = schema::STEPS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for step in &schema::STEPS[usize::try_from(found).unwrap_or(0)..] {
        making.batch_execute(step)?;
    }
    if found < known {
        making.batch_execute(&format!("DELETE FROM made; INSERT INTO made VALUES ({known})"))?;
    }
    Ok(making.commit()?)
}

/// A connection to a database that has the schema.
pub struct Session {
    client: Client,
    /// The term in which it leads.
    term: Option<i64>,
    statements: Statements,
}

/// What is said with every commit.
struct Statements {
    commit: Statement,
    decide: Statement,
    commit_to: Statement,
    end: Statement,
    release: Statement,
}

impl Session {
    pub fn begin(mut client: Client, durability: Durability) -> Result<Session, StoreError> {
        client.batch_execute(&format!(
            "SET idle_session_timeout = '{IDLE}'; SET idle_in_transaction_session_timeout = '{IDLE}';
             SET lock_timeout = '{IDLE}'"
        ))?;
        if durability == Durability::Power {
            client.batch_execute("SET synchronous_commit = on")?;
        }
        let statements = Statements {
            commit: client.prepare(COMMIT)?,
            decide: client.prepare(DECIDE)?,
            commit_to: client.prepare(COMMIT_TO)?,
            end: client.prepare(END)?,
            release: client.prepare(RELEASE)?,
        };
        Ok(Session { client, term: None, statements })
    }

    /// Whether the connection is gone.
    pub fn is_over(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether it took the lead, and was not found deposed.
    pub fn leads(&self) -> bool {
        self.term.is_some()
    }

    /// The term, if it is still the last one; `by_writing` if it is to be found out whether anything can be written too.
    pub fn still_leads(&mut self, by_writing: bool) -> Result<Option<u64>, StoreError> {
        let Some(term) = self.term else { return Ok(None) };
        let ask = match by_writing {
            false => "SELECT term FROM leadership WHERE term = $1",
            true => "UPDATE leadership SET commits = commits WHERE term = $1 RETURNING term",
        };
        Ok(self.client.query_opt(ask, &[&term])?.map(|_| unsigned(term)))
    }

    /// Takes the lead if nobody has it.
    pub fn take_the_lead(&mut self, address: &str) -> Result<Option<u64>, StoreError> {
        let lock = format!("SELECT pg_try_advisory_lock({LOCK}, hashtext(current_schema()))");
        if !self.client.query_one(&lock, &[])?.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        // A commit of the leader before that is under way is waited for.
        let term = "UPDATE leadership SET term = term + 1, address = $1 RETURNING term";
        let term = self.client.query_one(term, &[&plain(address)])?.try_get(0)?;
        self.term = Some(term);
        Ok(Some(unsigned(term)))
    }

    /// Writes changes, if it still leads: the number of the commit. `forget` all decisions that hold nothing but the last
    /// so many.
    pub fn write(&mut self, changes: &[Change], forget: Option<u64>) -> Result<i64, StoreError> {
        let term = self.term.ok_or(StoreError::Deposed)?;
        let Session { client, statements, .. } = self;
        let mut transaction = client.transaction()?;
        let touched = Touched::of(changes).text()?;
        let commit = transaction.query_opt(&statements.commit, &[&term, &touched])?;
        let number: i64 = commit.ok_or(StoreError::Deposed)?.try_get(0)?;
        write(&mut transaction, statements, changes)?;
        if let Some(keep) = forget {
            transaction.execute(schema::FORGET, &[&signed(keep)])?;
            transaction.execute("DELETE FROM commits WHERE number <= $1", &[&(number - NOTED)])?;
        }
        // A server that says no has kept nothing; one that says nothing may have.
        transaction.commit().map_err(|error| match error.as_db_error() {
            Some(_) => error.into(),
            None => StoreError::Unknown(super::told(&error)),
        })?;
        Ok(number)
    }

    /// The leader's address, the number of the last commit, and what came after the one that was `seen`.
    pub fn follow(&mut self, seen: Option<i64>) -> Result<(Option<String>, i64, News), StoreError> {
        let mut reading = self.reading()?;
        let (address, last) = {
            let row = reading.query_one("SELECT address, commits FROM leadership", &[])?;
            (row.try_get::<_, Option<String>>(0)?.map(back), row.try_get(1)?)
        };
        let Some(seen) = seen else { return Ok((address, last, News::Everything)) };
        if seen == last {
            return Ok((address, last, News::Changes(Vec::new())));
        }
        let (mut touched, mut expected) = (Touched::default(), seen);
        for row in reading.query(TOUCHED, &[&seen])? {
            expected += 1;
            let number: i64 = row.try_get(0)?;
            if number != expected {
                return Ok((address, last, News::Everything));
            }
            touched.add(number, row.try_get(1)?)?;
        }
        if touched.cluster || expected != last {
            return Ok((address, last, News::Everything));
        }
        let changes = changes(&mut reading, touched)?;
        reading.commit()?;
        Ok((address, last, News::Changes(changes)))
    }

    /// What there is, and the number of the last commit.
    pub fn load(&mut self, decisions: usize, callers: usize) -> Result<(State, i64), StoreError> {
        let mut reading = self.reading()?;
        let commits = reading.query_one("SELECT commits FROM leadership", &[])?.try_get(0)?;
        let last: Option<i64> = reading.query_one(schema::LAST, &[])?.try_get(0)?;
        let mut version = |query| -> Result<_, StoreError> {
            let found = reading.query_opt(query, &[])?;
            let read = |row: &Found| -> Result<_, postgres::Error> {
                Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
            };
            Ok(found.as_ref().map(read).transpose()?.map(row::version))
        };
        let mut state = State {
            next: last.map_or(0, |last| unsigned(last) + 1),
            cluster: version(schema::CLUSTER)?,
            file: version(schema::FILE)?,
            ..State::default()
        };
        state.jobs = reading.query(schema::JOBS, &[])?.iter().map(job).collect::<Result<_, _>>()?;
        let migrations = reading.query(schema::MIGRATIONS, &[])?;
        state.migrations = migrations.iter().map(migration).collect::<Result<_, _>>()?;
        for row in reading.query(schema::DECISIONS, &[&signed(decisions as u64)])? {
            state.decisions.push(decision(&row)?.with_held(row.try_get(8)?)?);
        }
        for row in reading.query(schema::CALLERS, &[&signed(callers as u64)])? {
            let caller = row::caller(text(&row, 0)?, row.try_get(1)?, text(&row, 2)?);
            let id = unsigned(row.try_get(3)?);
            state.callers.extend(caller.map(|caller| (caller, id)));
        }
        reading.commit()?;
        Ok((state, commits))
    }

    pub fn decision(&mut self, id: u64) -> Result<Option<Record>, StoreError> {
        let found = self.client.query_opt(schema::DECISION, &[&signed(id)])?;
        found.map(|row| decision(&row)?.record()).transpose()
    }

    /// A transaction that sees everything as it is now, whatever is written meanwhile.
    fn reading(&mut self) -> Result<Transaction<'_>, StoreError> {
        let reading = self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        Ok(reading.read_only(true).start()?)
    }
}

/// A text that PostgreSQL takes: it has none with a NUL in it.
fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('\0', "\\0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that was made plain.
fn back(plain: String) -> String {
    if !plain.contains('\\') {
        return plain;
    }
    let (mut text, mut characters) = (String::with_capacity(plain.len()), plain.chars());
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' if characters.next() == Some('0') => '\0',
            other => other,
        });
    }
    text
}

fn text(row: &Found, at: usize) -> Result<Option<String>, postgres::Error> {
    Ok(row.try_get::<_, Option<String>>(at)?.map(back))
}

fn some_text(row: &Found, at: usize) -> Result<String, postgres::Error> {
    Ok(back(row.try_get(at)?))
}

fn decision(row: &Found) -> Result<Row, postgres::Error> {
    Ok(Row {
        id: row.try_get(0)?,
        at: row.try_get(1)?,
        client: text(row, 2)?,
        sequence: row.try_get(3)?,
        request_key: text(row, 4)?,
        shown: row.try_get(5)?,
        expires: row.try_get(6)?,
        released: row.try_get(7)?,
    })
}

fn job(row: &Found) -> Result<(String, Availability), postgres::Error> {
    let number = |at| -> Result<Option<u32>, postgres::Error> {
        Ok(row.try_get::<_, Option<i64>>(at)?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    Ok((some_text(row, 0)?, Availability { down: number(1)?, evictions_per_hour: number(2)? }))
}

fn migration(row: &Found) -> Result<Migration, postgres::Error> {
    Ok(Migration {
        id: unsigned(row.try_get(0)?),
        at: Nanos(unsigned(row.try_get(1)?)),
        decision: unsigned(row.try_get(2)?),
        index: u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX),
        task: some_text(row, 4)?,
        job: text(row, 5)?,
        from: some_text(row, 6)?,
        to: some_text(row, 7)?,
        link: some_text(row, 8)?,
        state: MigrationState::of(row.try_get(9)?).unwrap_or_default(),
        reason: text(row, 10)?,
    })
}

/// Writes changes: those of one kind together, which is many times faster than one after the other. What is made comes
/// before what is moved, and that before what ends; of one row it is so anyway.
fn write(
    transaction: &mut Transaction<'_>,
    statements: &Statements,
    changes: &[Change],
) -> Result<(), StoreError> {
    let (mut decided, mut ended) = (Decided::default(), (Vec::new(), Vec::new(), Vec::new()));
    for change in changes {
        match change {
            Change::Decided(record, held) => decided.add(record, held)?,
            Change::Ended { id, released } => {
                ended.0.push(signed(*id));
                if let Some(at) = released {
                    ended.1.push(signed(*id));
                    ended.2.push(signed(at.0));
                }
            }
            _ => {}
        }
    }
    if !decided.id.is_empty() {
        transaction.execute(&statements.decide, &decided.columns())?;
        transaction.execute(&statements.commit_to, &[&decided.id, &decided.held])?;
    }
    for change in changes {
        match change {
            Change::Decided(..) | Change::Ended { .. } => {}
            Change::Moved(record, held) => {
                let row = Row::of(record)?;
                transaction.execute(schema::SHOW, &[&row.shown, &row.id])?;
                transaction.execute(schema::HOLD, &[&row::held_text(record.id, held)?, &row.id])?;
            }
            Change::Migration(Migration {
                id,
                at,
                decision,
                index,
                task,
                job,
                from,
                to,
                link,
                state,
                reason,
            }) => {
                let (id, at, decision) = (signed(*id), signed(at.0), signed(*decision));
                let (job, reason) = (job.as_deref().map(plain), reason.as_deref().map(plain));
                let [task, from, to, link] = [task, from, to, link].map(|text| plain(text));
                let (index, state) = (i64::from(*index), state.word());
                transaction.execute(
                    schema::MIGRATE,
                    &[&id, &at, &decision, &index, &task, &job, &from, &to, &link, &state, &reason],
                )?;
            }
            Change::Job(name, Availability { down, evictions_per_hour }) => {
                let (down, evictions) = (down.map(i64::from), evictions_per_hour.map(i64::from));
                transaction.execute(schema::BEAR, &[&plain(name), &down, &evictions])?;
            }
            Change::Cluster(version) => {
                let (number, at, origin, text) = row::of_version(version);
                transaction.execute(schema::VERSION, &[&number, &at, &origin, &text])?;
            }
        }
    }
    if !ended.0.is_empty() {
        transaction.execute(&statements.end, &[&ended.0])?;
    }
    if !ended.1.is_empty() {
        transaction.execute(&statements.release, &[&ended.1, &ended.2])?;
    }
    Ok(())
}

/// Decisions by columns.
#[derive(Default)]
struct Decided {
    id: Vec<i64>,
    at: Vec<i64>,
    kind: Vec<&'static str>,
    client: Vec<Option<String>>,
    sequence: Vec<Option<i64>>,
    request_key: Vec<Option<String>>,
    shown: Vec<String>,
    expires: Vec<Option<i64>>,
    released: Vec<Option<i64>>,
    held: Vec<String>,
}

impl Decided {
    fn add(&mut self, record: &Record, held: &[Held]) -> Result<(), StoreError> {
        let row = Row::of(record)?;
        self.id.push(row.id);
        self.at.push(row.at);
        self.kind.push(record.shown.wish.kind());
        self.client.push(row.client.as_deref().map(|text| plain(text).into_owned()));
        self.sequence.push(row.sequence);
        self.request_key.push(row.request_key.as_deref().map(|text| plain(text).into_owned()));
        self.shown.push(row.shown);
        self.expires.push(row.expires);
        self.released.push(row.released);
        self.held.push(row::held_text(record.id, held)?);
        Ok(())
    }

    fn columns(&self) -> [&(dyn ToSql + Sync); 9] {
        let Decided { id, at, kind, client, sequence, request_key, shown, expires, released, .. } = self;
        [id, at, kind, client, sequence, request_key, shown, expires, released]
    }
}

/// What became of rows that were touched, as changes.
fn changes(reading: &mut impl GenericClient, touched: Touched) -> Result<Vec<Change>, StoreError> {
    let Touched { decided, moved, ended, migrations, jobs, cluster: _ } = touched;
    let (mut changes, mut over) = (Vec::new(), Vec::new());
    let ids: Vec<i64> = decided.iter().chain(&moved).chain(&ended).copied().collect();
    for row in if ids.is_empty() { Vec::new() } else { reading.query(TOUCHED_DECISIONS, &[&ids])? } {
        let (record, held) = decision(&row)?.with_held(row.try_get(8)?)?;
        let (id, number, released) = (record.id, signed(record.id), record.released);
        if decided.contains(&number) {
            changes.push(Change::Decided(record.into(), held));
        } else if moved.contains(&number) && released.is_none() {
            changes.push(Change::Moved(record.into(), held));
        }
        if ended.contains(&number) {
            over.push(Change::Ended { id, released });
        }
    }
    changes.append(&mut over);
    let ids: Vec<i64> = migrations.into_iter().collect();
    if !ids.is_empty() {
        for row in reading.query(TOUCHED_MIGRATIONS, &[&ids])? {
            changes.push(Change::Migration(migration(&row)?));
        }
    }
    let names: Vec<String> = jobs.iter().map(|name| plain(name).into_owned()).collect();
    if !names.is_empty() {
        for row in reading.query(TOUCHED_JOBS, &[&names])? {
            let (name, availability) = job(&row)?;
            changes.push(Change::Job(name, availability));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_made_plain_and_comes_back() {
        for text in ["", "a", "\0", "\\", "\\0", "\0\\", "a\\\0\\0b", "\u{fffd}0"] {
            assert!(!plain(text).contains('\0'));
            assert_eq!(back(plain(text).into_owned()), text);
        }
    }
}
