//! Moves that are advised, and what jobs can bear of them.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use leeward_engine::Availability;
use leeward_fabric::input::excerpt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::network::{LARGEST_PAGE, Part};
use super::problem::Problem;
use super::shapes::Page;
use super::{Answer, Asked, Edge, Named, Shared};
use crate::described::{Id, Name, Time};
use crate::desk::{self, Message, MigrationAnswer, MigrationState, Reply};

/// What becomes of a move.
const STATES: [&str; 4] = ["advised", "done", "refused", "expired"];
/// Characters of a reason at most.
const LONGEST_REASON: usize = 1_000;

/// A move that was advised.
#[derive(Serialize, JsonSchema)]
pub struct Migration {
    /// What it is called.
    #[schemars(with = "Id")]
    id: String,
    /// When it was advised.
    #[schemars(with = "Time")]
    time: String,
    /// The decision that placed the task.
    #[schemars(with = "Id")]
    decision: String,
    /// What the task is called.
    task: String,
    /// Its job; null if it is one by itself.
    job: Option<String>,
    /// Where it was.
    from: String,
    /// Where it is to go.
    to: String,
    /// The hot link that it leaves.
    link: String,
    /// What became of it; `expired` where nobody answered in time.
    #[schemars(extend("enum" = STATES))]
    state: &'static str,
    /// Why it was refused.
    reason: Option<String>,
}

impl Migration {
    fn of(edge: &Edge, migration: desk::Migration) -> Migration {
        Migration {
            id: migration.id.to_string(),
            time: edge.clock.text(migration.at),
            decision: migration.decision.to_string(),
            task: migration.task,
            job: migration.job,
            from: migration.from,
            to: migration.to,
            link: migration.link,
            state: migration.state.word(),
            reason: migration.reason,
        }
    }
}

/// Which moves are wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// In this state only.
    #[schemars(extend("enum" = STATES))]
    state: Option<String>,
    /// So many items at most; 100 if it is not given.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// What `next` of the part before said.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
}

impl Which {
    /// The part of the list.
    pub fn part(&self) -> Part {
        Part { limit: self.limit, after: self.after.clone() }
    }

    /// The state that is wanted.
    pub fn state(&self) -> Result<Option<MigrationState>, Problem> {
        let Some(word) = self.state.as_deref() else { return Ok(None) };
        let detail = || format!("`{}`: expected {}", excerpt(word), STATES.join(", "));
        MigrationState::of(word).map(Some).ok_or_else(|| Problem::field("state", detail()))
    }
}

pub async fn list(State(edge): Shared, Asked(Query(which)): Asked<Query<Which>>) -> Answer {
    let (part, state) = (which.part(), which.state()?);
    let (limit, before) = (part.limit()?, part.after()?);
    let list = Message::Migrations { state, before, limit: limit + 1 };
    let Reply::Migrations(mut found) = edge.reply(|_| Ok(list.clone())).await? else {
        return Err(Problem::broken());
    };
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    let items = found.into_iter().map(|one| Migration::of(&edge, one)).collect();
    Ok(Json(Page::<Migration> { items, next }).into_response())
}

/// What is answered to an advised move.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerBody {
    /// `done`, when the task runs where it was to go, or `refused`, if it stays.
    answer: Word,
    /// Why it stays.
    #[schemars(length(max = LONGEST_REASON))]
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Done,
    Refused,
}

impl AnswerBody {
    /// What it says to the desk of a move.
    pub fn message(&self, id: &str) -> Result<Message, Problem> {
        let number = Id::read(id).ok_or_else(|| Problem::none_kept("move", id))?;
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
            return Err(Problem::field("reason", format!("expected at most {LONGEST_REASON} characters")));
        }
        let answer = match self.answer {
            Word::Done => MigrationAnswer::Done,
            Word::Refused => MigrationAnswer::Refused(self.reason.clone()),
        };
        Ok(Message::Migration(number, answer))
    }
}

pub async fn answer(State(edge): Shared, Asked(Path(id)): Named, Body(body): Body<AnswerBody>) -> Answer {
    match edge.reply(|_| body.message(&id)).await? {
        Reply::Migrations(found) => {
            let one = found.into_iter().next().ok_or_else(Problem::broken)?;
            Ok(Json(Migration::of(&edge, one)).into_response())
        }
        _ => Err(Problem::broken()),
    }
}

/// What a job can bear; null is without limit.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// Tasks that may be down at once.
    down: Option<u32>,
    /// Evictions in an hour.
    evictions_per_hour: Option<u32>,
}

impl JobBody {
    /// What it says to the desk of a job.
    pub fn message(&self, name: &str) -> Result<Message, Problem> {
        if !Name::fits(name) {
            return Err(Problem::name("job"));
        }
        let availability = Availability { down: self.down, evictions_per_hour: self.evictions_per_hour };
        Ok(Message::Job(name.to_owned(), availability))
    }
}

pub async fn job(State(edge): Shared, Asked(Path(name)): Named, Body(body): Body<JobBody>) -> Answer {
    edge.reply(|_| body.message(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub async fn forget_job(State(edge): Shared, Asked(Path(name)): Named) -> Answer {
    edge.reply(|_| JobBody::default().message(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
