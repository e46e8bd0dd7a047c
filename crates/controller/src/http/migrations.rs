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
use super::network::Part;
use super::problem::Problem;
use super::shapes::Page;
use super::{Answer, Asked, Edge, Named, Shared};
use crate::desk::{self, Message, MigrationAnswer, MigrationState, Reply};

/// Characters of a reason at most.
const LONGEST_REASON: usize = 1_000;

/// A move that was advised.
#[derive(Serialize, JsonSchema)]
pub struct Migration {
    /// What it is called.
    id: String,
    /// When it was advised.
    time: String,
    /// The decision that placed the task.
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
    /// `advised`, `done`, `refused`, or `expired` where nobody answered in time.
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
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    state: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

pub async fn list(State(edge): Shared, Asked(Query(which)): Asked<Query<Which>>) -> Answer {
    let part = Part { limit: which.limit, after: which.after };
    let (limit, before) = (part.limit()?, part.after()?);
    let state = match which.state.as_deref() {
        None => None,
        Some(word) => Some(MigrationState::of(word).ok_or_else(|| {
            let detail = format!("`{}`: expected advised, done, refused or expired", excerpt(word));
            Problem::field("state", detail)
        })?),
    };
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
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Done,
    Refused,
}

pub async fn answer(State(edge): Shared, Asked(Path(id)): Named, Body(body): Body<AnswerBody>) -> Answer {
    let number = id.bytes().all(|byte| byte.is_ascii_digit()).then(|| id.parse().ok()).flatten();
    let number = number.ok_or_else(|| Problem::none_kept("move", &id))?;
    if body.reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
        return Err(Problem::field("reason", format!("expected at most {LONGEST_REASON} characters")));
    }
    let answer = match body.answer {
        Word::Done => MigrationAnswer::Done,
        Word::Refused => MigrationAnswer::Refused(body.reason),
    };
    let message = Message::Migration(number, answer);
    match edge.reply(|_| Ok(message.clone())).await? {
        Reply::Migrations(found) => {
            let one = found.into_iter().next().ok_or_else(Problem::broken)?;
            Ok(Json(Migration::of(&edge, one)).into_response())
        }
        _ => Err(Problem::broken()),
    }
}

/// What a job can bear; null is without limit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// Tasks that may be down at once.
    down: Option<u32>,
    /// Evictions in an hour.
    evictions_per_hour: Option<u32>,
}

pub async fn job(State(edge): Shared, Asked(Path(name)): Named, Body(body): Body<JobBody>) -> Answer {
    let availability = Availability { down: body.down, evictions_per_hour: body.evictions_per_hour };
    if !(1..=super::place::LONGEST_NAME).contains(&name.len()) {
        let detail = format!("expected a name of 1 to {} bytes", super::place::LONGEST_NAME);
        return Err(Problem::field("job", detail));
    }
    edge.reply(|_| Ok(Message::Job(name.clone(), availability))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
