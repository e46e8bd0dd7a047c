//! Advised moves, and budgets of jobs.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use leeward_engine::Availability;
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use leeward_records::MigrationState;
use leeward_records::schema::{Id, Name, Time};
use leeward_service::{AnswerDryRun, AnswerMigration, MigrationAnswer, MigrationQuery, SetJob};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::dry_run::DryRunQuery;
use super::pages::{LARGEST_PAGE, Page, PageQuery};
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::Problem;

/// States of a move.
const STATES: [&str; 7] = ["advised", "taken", "done", "refused", "failed", "expired", "considered"];
/// Largest number of characters of a reason.
const LONGEST_REASON: usize = 1_000;
/// Largest number of characters of an executor's name.
const LONGEST_NAME: usize = 200;

/// An advised move.
#[derive(Serialize, JsonSchema)]
pub struct Migration {
    /// Id of the move.
    #[schemars(with = "Id")]
    id: String,
    /// Time of the advice.
    #[schemars(with = "Time")]
    time: String,
    /// Decision that placed the task.
    #[schemars(with = "Id")]
    decision: String,
    /// Name of the task.
    task: String,
    /// Job of the task; null for a task without a job.
    job: Option<String>,
    /// Current host.
    from: String,
    /// Destination host.
    to: String,
    /// Hot link that the task leaves.
    link: String,
    /// State of the move; `expired` if it was not answered in time.
    #[schemars(extend("enum" = STATES))]
    state: &'static str,
    /// Executor of a move in the state `taken`; null in other states.
    executor: Option<String>,
    /// Reason of a refusal or a failure; null without one.
    reason: Option<String>,
    /// Time of the next answer, after which the move expires; null if the move is not open.
    #[schemars(with = "Option<Time>")]
    expires: Option<String>,
}

impl Migration {
    fn of(app: &AppState, migration: leeward_records::Migration) -> Migration {
        let timeout = app.configured.load().moves.timeout;
        let taken = migration.state == MigrationState::Taken;
        let (executor, reason) = if taken { (migration.reason, None) } else { (None, migration.reason) };
        let expires = migration.at.plus(Nanos(timeout.0.saturating_mul(if taken { 2 } else { 1 })));
        Migration {
            id: migration.id.to_string(),
            time: app.clock.text(migration.at),
            decision: migration.decision.to_string(),
            task: migration.task,
            job: migration.job,
            from: migration.from,
            to: migration.to,
            link: migration.link,
            state: migration.state.word(),
            executor,
            reason,
            expires: migration.state.is_open().then(|| app.clock.text(expires)),
        }
    }
}

/// Filter and page of a list of moves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only moves in this state.
    #[schemars(extend("enum" = STATES))]
    state: Option<String>,
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
}

impl ListQuery {
    /// Page of the list.
    pub fn page(&self) -> PageQuery {
        PageQuery { limit: self.limit, after: self.after.clone() }
    }

    /// Requested state; `None` for all.
    ///
    /// # Errors
    /// [`Problem`] for an unknown state.
    pub fn state(&self) -> Result<Option<MigrationState>, Problem> {
        let Some(word) = self.state.as_deref() else { return Ok(None) };
        let detail = || format!("`{}`: expected {}", excerpt(word), STATES.join(", "));
        MigrationState::of(word).map(Some).ok_or_else(|| Problem::field("state", detail()))
    }
}

pub async fn list(State(app): SharedState, Params(Query(query)): Params<Query<ListQuery>>) -> ApiResult {
    let (page, state) = (query.page(), query.state()?);
    let (limit, before) = (page.limit()?, page.after()?);
    let query = MigrationQuery { state, before, limit: limit + 1 };
    let moves = app.call(|_| Ok(query)).await?;
    Ok(Json(Page::cut(&moves, limit, |one| one.id, |one| Migration::of(&app, one.clone()))).into_response())
}

/// Answer to an advised move.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerBody {
    /// `taken` if an executor carries the move out, `done` if the task runs on its destination, `refused` if it stays, and
    /// `failed` if the executor could not move it.
    answer: Word,
    /// Name of the executor; required with `taken`.
    #[schemars(length(min = 1, max = LONGEST_NAME))]
    executor: Option<String>,
    /// Reason for which the task stays.
    #[schemars(length(max = LONGEST_REASON))]
    reason: Option<String>,
}

/// Outcome of an advised move.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Taken,
    Done,
    Refused,
    Failed,
}

impl AnswerBody {
    /// Returns the operation for the move with this id.
    ///
    /// # Errors
    /// The id or the reason is invalid.
    pub fn operation(&self, id: &str) -> Result<AnswerMigration, Problem> {
        let number = Id::read(id).ok_or_else(|| Problem::not_stored("move", id))?;
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
            return Err(Problem::field("reason", format!("expected at most {LONGEST_REASON} characters")));
        }
        let executor = self.executor.as_deref();
        if executor.is_some_and(|name| name.is_empty() || name.chars().count() > LONGEST_NAME) {
            return Err(Problem::field("executor", format!("expected 1 to {LONGEST_NAME} characters")));
        }
        let answer = match (self.answer, executor) {
            (Word::Taken, Some(name)) => MigrationAnswer::Taken(name.to_owned()),
            (Word::Taken, None) => {
                return Err(Problem::field("executor", "missing; expected the name of the executor"));
            }
            (Word::Done, _) => MigrationAnswer::Done,
            (Word::Refused, _) => MigrationAnswer::Refused(self.reason.clone()),
            (Word::Failed, _) => MigrationAnswer::Failed(self.reason.clone()),
        };
        Ok(AnswerMigration(number, answer))
    }
}

pub async fn answer(
    State(app): SharedState,
    Params(Path(id)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(body): Body<AnswerBody>,
) -> ApiResult {
    let migration = if query.dry_run {
        app.call(|_| Ok(AnswerDryRun(body.operation(&id)?))).await?
    } else {
        app.call(|_| body.operation(&id)).await?
    };
    Ok(Json(Migration::of(&app, migration)).into_response())
}

/// Budget of a job; null for no limit.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// Largest number of tasks that may be down at the same time.
    down: Option<u32>,
    /// Largest number of evictions per hour.
    evictions_per_hour: Option<u32>,
}

impl JobBody {
    /// Returns the operation for the job with this name.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn operation(&self, name: &str) -> Result<SetJob, Problem> {
        if !Name::fits(name) {
            return Err(Problem::name("job"));
        }
        let availability = Availability { down: self.down, evictions_per_hour: self.evictions_per_hour };
        Ok(SetJob(name.to_owned(), availability))
    }
}

pub async fn set_job_limit(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(body): Body<JobBody>,
) -> ApiResult {
    set_limit(&app, &body, &name, query).await
}

/// Sets the budget of a job, unless the request is a dry run.
async fn set_limit(app: &AppState, body: &JobBody, name: &str, query: DryRunQuery) -> ApiResult {
    let operation = body.operation(name)?;
    if !query.dry_run {
        app.call(|_| Ok(operation.clone())).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub async fn remove_job_limit(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
) -> ApiResult {
    set_limit(&app, &JobBody::default(), &name, query).await
}
