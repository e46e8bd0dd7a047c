//! Commits in one round trip: the whole transaction is sent as a pipeline, then all responses are read.

use std::pin::Pin;
use std::task::Poll;

use leeward_records::DecisionRecord;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::{Client, Error, Statement};

use super::super::row::{self, Cell, signed};
use super::super::{Change, MAX_DELETED, StoreError, period_row, schema, search};
use super::error_text;
use super::text::{Value, columns, value};
use super::touched::Touched;

/// Number of commits kept in the table `commits` for followers; a follower further behind loads everything.
const KEPT_COMMITS: i64 = 10_000;

/// Numbers a commit, and verifies that the term is still the latest. Otherwise the number is null, the table `commits`
/// rejects it, and the transaction fails.
const COMMIT: &str = "
WITH led AS (UPDATE leadership SET commits = commits + 1 WHERE term = $1 RETURNING commits)
INSERT INTO commits (number, touched) SELECT max(commits), $2 FROM led";
/// Inserts many decisions at once.
const INSERT_DECISION: &str = "
INSERT INTO decisions SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[],
    $6::text[], $7::text[], $8::bigint[], $9::bigint[])";
/// Inserts the searchable fields of many decisions at once.
pub const INSERT_SEARCH: &str = "
INSERT INTO decision_search SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[],
    $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[])";
const INSERT_COMMITMENT: &str = "INSERT INTO commitments SELECT * FROM unnest($1::bigint[], $2::text[])";
const DELETE_COMMITMENT: &str = "DELETE FROM commitments WHERE decision = ANY($1)";
const RELEASE: &str = "
UPDATE decisions SET released = ended.at FROM unnest($1::bigint[], $2::bigint[]) AS ended (at, id)
WHERE decisions.id = ended.id AND decisions.released IS NULL";
/// Deletes at most $2 decisions, oldest first. They hold no resources and are older than the last $1. The array makes
/// the planner use the index, regardless of its row estimates.
const FORGET: &str = "
DELETE FROM decisions WHERE id = ANY(ARRAY(
    SELECT id FROM decisions WHERE id < (SELECT max(id) FROM decisions) - $1
    AND NOT EXISTS (SELECT 1 FROM commitments WHERE decision = id) ORDER BY id LIMIT $2))";
const TRIM: &str = "DELETE FROM commits WHERE number <= (SELECT commits - $1 FROM leadership)";

/// Prepared statements of a connection.
pub struct Statements {
    commit: Statement,
    insert_decision: Statement,
    insert_search: Statement,
    update_search: Statement,
    upsert_period: Statement,
    forget_periods: Statement,
    insert_link_names: Statement,
    insert_commitment: Statement,
    update_details: Statement,
    update_commitment: Statement,
    upsert_migration: Statement,
    upsert_job: Statement,
    delete_job: Statement,
    upsert_modes: Statement,
    upsert_promises: Statement,
    upsert_enforcer: Statement,
    delete_enforcer: Statement,
    insert_cluster: Statement,
    delete_commitment: Statement,
    release: Statement,
    forget: Statement,
    sweeps: [Statement; 3],
    trim: Statement,
}

impl Statements {
    pub async fn prepare(client: &Client) -> Result<Statements, Error> {
        let [moves, clusters, names] = schema::SWEEPS.map(|sweep| client.prepare(sweep));
        let sweeps = async { tokio::try_join!(moves, clusters, names) };
        let periods = async {
            tokio::try_join!(client.prepare(schema::UPSERT_PERIOD), client.prepare(schema::FORGET_PERIODS))
        };
        let promises = async {
            tokio::try_join!(
                client.prepare(schema::UPSERT_PROMISES),
                client.prepare(schema::UPSERT_ENFORCER),
                client.prepare(schema::DELETE_ENFORCER),
            )
        };
        let (
            commit,
            insert_decision,
            insert_search,
            update_search,
            (upsert_period, forget_periods),
            insert_link_names,
            insert_commitment,
            update_details,
            update_commitment,
            upsert_migration,
            upsert_job,
            delete_job,
            upsert_modes,
            (upsert_promises, upsert_enforcer, delete_enforcer),
            insert_cluster,
            delete_commitment,
            release,
            forget,
            sweeps,
            trim,
        ) = tokio::try_join!(
            client.prepare(COMMIT),
            client.prepare(INSERT_DECISION),
            client.prepare(INSERT_SEARCH),
            client.prepare(schema::UPDATE_SEARCH),
            periods,
            client.prepare(schema::INSERT_LINK_NAMES),
            client.prepare(INSERT_COMMITMENT),
            client.prepare(schema::UPDATE_DETAILS),
            client.prepare(schema::UPDATE_COMMITMENT),
            client.prepare(schema::UPSERT_MIGRATION),
            client.prepare(schema::UPSERT_JOB),
            client.prepare(schema::DELETE_JOB),
            client.prepare(schema::UPSERT_MODES),
            promises,
            client.prepare(schema::INSERT_CLUSTER),
            client.prepare(DELETE_COMMITMENT),
            client.prepare(RELEASE),
            client.prepare(FORGET),
            sweeps,
            client.prepare(TRIM),
        )?;
        Ok(Statements {
            commit,
            insert_decision,
            insert_search,
            update_search,
            upsert_period,
            forget_periods,
            insert_link_names,
            insert_commitment,
            update_details,
            update_commitment,
            upsert_migration,
            upsert_job,
            delete_job,
            upsert_modes,
            upsert_promises,
            upsert_enforcer,
            delete_enforcer,
            insert_cluster,
            delete_commitment,
            release,
            forget,
            sweeps: sweeps.into(),
            trim,
        })
    }
}

/// Statements with their values, in order.
pub struct Batch<'a> {
    statements: Vec<(&'a Statement, Vec<Value<'a>>)>,
}

impl<'a> Batch<'a> {
    /// Statements that store changes if `term` is the latest one. Frequent kinds are grouped: inserts, then updates,
    /// then deletes. Within one row, changes always come in this order.
    ///
    /// # Errors
    /// [`StoreError`] if a change cannot be serialized.
    pub fn of(
        statements: &'a Statements,
        term: i64,
        changes: &'a [Change],
        forget: Option<u64>,
    ) -> Result<Batch<'a>, StoreError> {
        let touched = Touched::of(changes).text()?;
        let mut batch = vec![(&statements.commit, vec![Box::new(term) as Value<'a>, Box::new(touched)])];
        let (mut decided, mut searchable, mut holds) = (vec![], vec![], vec![]);
        let (mut ended, mut released) = (vec![], vec![]);
        let mut others = Vec::new();
        let number = |number: u64| Cell::Number(Some(signed(number)));
        let update_searchable = |record: &DecisionRecord| {
            let [gain, places] = search::changing(record);
            (&statements.update_search, values([gain, places, number(record.id.0)]))
        };
        for change in changes {
            match change {
                Change::Decided(record, held) => {
                    decided.push(row::decision(record)?);
                    searchable.push(search::searchable(record));
                    holds.push([number(record.id.0), row::entries(record.id, held)?]);
                }
                Change::Moved(record, held) => {
                    let held = row::entries(record.id, held)?;
                    others.push((
                        &statements.update_details,
                        values([row::details(record)?, number(record.id.0)]),
                    ));
                    others.push((&statements.update_commitment, values([held, number(record.id.0)])));
                    others.push(update_searchable(record));
                }
                Change::Migration(migration) => {
                    others.push((&statements.upsert_migration, values(row::migration(migration))));
                }
                Change::JobOver(name) => {
                    others.push((&statements.delete_job, values([Cell::text(name)])));
                }
                Change::Job(name, availability) => {
                    others.push((&statements.upsert_job, values(row::job(name, availability))));
                }
                Change::Modes(modes) => {
                    others.push((&statements.upsert_modes, values([row::modes(modes)?])));
                }
                Change::Promises(version) => {
                    others.push((&statements.upsert_promises, values([row::promises(*version)?])));
                }
                Change::Enforcer(enforcer) => {
                    others.push((&statements.upsert_enforcer, values(row::enforcer(enforcer)?)));
                }
                Change::EnforcerGone(name) => {
                    others.push((&statements.delete_enforcer, values([Cell::text(name)])));
                }
                Change::Compared(record) | Change::Confirmed(record) => {
                    let cells = [row::details(record)?, number(record.id.0)];
                    others.push((&statements.update_details, values(cells)));
                    others.push(update_searchable(record));
                }
                Change::Period(period) => {
                    others.push((&statements.upsert_period, values(period_row::period(period)?)));
                    others.push((&statements.forget_periods, values(period_row::forgotten(period))));
                }
                Change::LinkNames(cluster, names) => {
                    let cells = period_row::link_names(*cluster, names)?;
                    others.push((&statements.insert_link_names, values(cells)));
                }
                Change::Cluster(version) => {
                    others.push((&statements.insert_cluster, values(row::version(version))));
                }
                Change::Ended { id, released: at } => {
                    ended.push([number(id.0)]);
                    released.extend(at.map(|at| [number(at.0), number(id.0)]));
                }
            }
        }
        if !decided.is_empty() {
            batch.push((&statements.insert_decision, columns(decided)));
            batch.push((&statements.insert_search, columns(searchable)));
            batch.push((&statements.insert_commitment, columns(holds)));
        }
        batch.append(&mut others);
        if !ended.is_empty() {
            batch.push((&statements.delete_commitment, columns(ended)));
        }
        if !released.is_empty() {
            batch.push((&statements.release, columns(released)));
        }
        if let Some(keep) = forget {
            batch.push((&statements.forget, values([number(keep), number(MAX_DELETED)])));
            batch.extend(statements.sweeps.iter().map(|sweep| (sweep, Vec::new())));
            batch.push((&statements.trim, vec![Box::new(KEPT_COMMITS)]));
        }
        Ok(Batch { statements: batch })
    }

    /// Sends the transaction and waits for the result.
    ///
    /// # Errors
    /// [`StoreError`] if the transaction failed, or if its result is unknown.
    pub async fn send(self, client: &Client) -> Result<(), StoreError> {
        let mut requests: Vec<Request<'_>> = vec![Box::pin(client.batch_execute("BEGIN"))];
        for (statement, values) in self.statements {
            requests.push(Box::pin(async move { client.execute_raw(statement, values).await.map(drop) }));
        }
        requests.push(Box::pin(client.batch_execute("COMMIT")));
        // The server rolls back a failed transaction, and treats its COMMIT as a rollback.
        match in_order(requests).await {
            Ok(()) => Ok(()),
            Err(error) => Err(write_error(&error)),
        }
    }
}

fn values<const N: usize>(cells: [Cell<'_>; N]) -> Vec<Value<'_>> {
    cells.into_iter().map(value).collect()
}

type Request<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// Sends the requests in this order, then reads all responses. Returns the first error.
async fn in_order(mut requests: Vec<Request<'_>>) -> Result<(), Error> {
    let mut polls = Vec::with_capacity(requests.len());
    // The first poll of a request sends it.
    for request in &mut requests {
        polls.push(std::future::poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await);
    }
    let mut result = Ok(());
    for (request, poll) in requests.into_iter().zip(polls) {
        let response = match poll {
            Poll::Ready(response) => response,
            Poll::Pending => request.await,
        };
        result = result.and(response);
    }
    result
}

/// Converts an error of a write. If the server answered with an error, nothing is stored; without a response, or with a
/// closed connection, the result is unknown.
fn write_error(error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(server) if server.parsed_severity() != Some(Severity::Error) => {
            StoreError::Unknown(error_text(error))
        }
        Some(server)
            if *server.code() == SqlState::NOT_NULL_VIOLATION && server.table() == Some("commits") =>
        {
            StoreError::Deposed
        }
        Some(_) => StoreError::Database(error_text(error)),
        None => StoreError::Unknown(error_text(error)),
    }
}
