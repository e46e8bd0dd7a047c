//! Decisions, and the resources that they hold.

use std::borrow::Cow;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use leeward_agreements::Grant;
use leeward_ledger::Epoch;
use leeward_placement::Reason;
use leeward_placement::tasks::ReevaluationRecord;
use leeward_records::schema::{Id, Name, Reference, Time};
use leeward_records::{
    Beside, Caller, Clock, DecisionId, DecisionRecord, Limit, Mode, PlacementSpec, Redecision,
};
use leeward_service::{Confirm, ConfirmDryRun, DecisionQuery, GetDecision, Release, WhatIf, WhatIfResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::dry_run::DryRunQuery;
use super::pages::{LARGEST_PAGE, Page, PageQuery};
use super::shapes::Kind;
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::{Problem, refusal_text};

/// A decision.
#[derive(Serialize, JsonSchema)]
pub struct Decision<'a> {
    /// Id of the decision.
    #[schemars(with = "Id")]
    id: String,
    /// Time of the decision.
    #[schemars(with = "Time")]
    time: String,
    /// The request.
    #[serde(flatten)]
    spec: &'a PlacementSpec,
    /// Policy with its settings.
    policy: &'a str,
    /// Name of the placed thing in the client's words; null if the request named none.
    #[serde(rename = "ref")]
    #[schemars(with = "Option<Reference>")]
    reference: Option<&'a str>,
    /// Names of the hosts: in the order of the chain, or of the tasks. For a workload, the host of its volume.
    hosts: &'a [String],
    /// Names of the racks of the hosts, each once.
    racks: &'a [String],
    /// Host that sends the copies, if the block had copies before; null otherwise.
    source: Option<&'a str>,
    /// Bottleneck that the policy saw; null if the policy used no loads.
    limit: Option<&'a Limit>,
    /// Epoch of the ledger at the decision.
    epoch: Epoch,
    /// End of the oldest telemetry window used; null if none was used.
    #[schemars(with = "Option<Time>")]
    oldest_telemetry: Option<String>,
    /// Age of the oldest telemetry used at the decision, in seconds.
    telemetry_age_s: Option<f64>,
    /// Reason why the policy left the choice to the default policy. In a what-if, it may be the reason why the policy
    /// would place nothing. Null without a reason.
    note: Option<Cow<'a, str>>,
    /// Candidates level by level, each with its verdict.
    why: &'a [Reason],
    /// Last re-evaluation of the hosts of an app; only after one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reevaluation: Option<&'a ReevaluationRecord>,
    /// Current guarantee of the workload; only in decisions about workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<&'a Grant>,
    /// Last decision about the workload after its requests had changed; only after one.
    #[serde(skip_serializing_if = "Option::is_none")]
    redecision: Option<&'a Redecision>,
    /// Client of the request; null if the request named none.
    #[schemars(with = "Option<Name>")]
    client: Option<&'a str>,
    /// Sequence number of the client's request.
    sequence: Option<u64>,
    /// Idempotency key of the request.
    key: Option<&'a str>,
    /// Time at which the decision expires; null for no expiry.
    #[schemars(with = "Option<Time>")]
    expires: Option<String>,
    /// Time at which the decision ends unless it is confirmed; null if it needs no confirmation, or has it.
    #[schemars(with = "Option<Time>")]
    reserved_until: Option<String>,
    /// End of the decision's work; null before its end.
    #[schemars(with = "Option<Time>")]
    released: Option<String>,
    /// Mode of the kind of request at the decision.
    mode: Mode,
    /// True if the default policy decided.
    by_default: bool,
    /// Choice of the other policy, Leeward's or the default one, on the same view of the network. In a what-if, the
    /// decision that was made. Null if there was no comparison.
    beside: Option<&'a Beside>,
    /// True in the answer to a dry run: nothing was committed, and `id` is the id that the next decision will have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
}

impl<'a> Decision<'a> {
    /// Borrows the fields of a record.
    pub fn of(record: &'a DecisionRecord, clock: &Clock) -> Decision<'a> {
        let details = &record.details;
        let (client, sequence, key) = match &record.caller {
            None => (None, None, None),
            Some(Caller::Key(key)) => (None, None, Some(&**key)),
            Some(Caller::Client { client, sequence }) => (Some(&**client), Some(*sequence), None),
        };
        Decision {
            id: record.id.to_string(),
            time: clock.text(record.at),
            spec: &details.spec,
            policy: &details.policy,
            reference: details.reference.as_deref(),
            hosts: &details.hosts,
            racks: &details.racks,
            source: details.source.as_deref(),
            limit: details.limit.as_ref(),
            epoch: details.epoch,
            oldest_telemetry: details.oldest.map(|at| clock.text(at)),
            telemetry_age_s: record.age().map(|age| age.as_secs_f64()),
            note: details.note.as_deref().map(Cow::Borrowed),
            why: &details.why,
            reevaluation: details.reevaluation.as_ref(),
            promise: details.promise.as_ref(),
            redecision: details.redecision.as_ref(),
            client,
            sequence,
            key,
            expires: record.expires.map(|at| clock.text(at)),
            reserved_until: details.reserved_until.map(|at| clock.text(at)),
            released: record.released.map(|at| clock.text(at)),
            mode: details.mode,
            by_default: details.by_default,
            beside: details.beside.as_ref(),
            dry_run: false,
        }
    }

    /// Response with a decision, or with what a dry run would make of it.
    pub fn answer(record: &DecisionRecord, app: &AppState, DryRunQuery { dry_run }: DryRunQuery) -> Response {
        Json(Decision { dry_run, ..Decision::of(record, &app.clock) }).into_response()
    }

    /// The decision as the answer to a dry run.
    pub fn in_dry_run(self) -> Decision<'a> {
        Decision { dry_run: true, ..self }
    }
}

/// The body of `POST /v1/decisions/{id}/what-if`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfBody {
    /// A policy of the decision's kind, with settings after colons: `sinbad:remote_racks=2`.
    #[schemars(length(min = 1))]
    policy: String,
}

pub async fn what_if(
    State(app): SharedState,
    Params(Path(id)): NamePath,
    Body(body): Body<WhatIfBody>,
) -> ApiResult {
    let query = WhatIf { id: number(&id)?, policy: body.policy };
    let WhatIfResult { record, refusal, .. } = app.call(|_| Ok(query.clone())).await?;
    let mut decision = Decision::of(&record, &app.clock);
    if let Some(refusal) = refusal {
        decision.note = Some(refusal_text(&refusal, &app.clock).into());
    }
    Ok(Json(decision).into_response())
}

/// Parses the id of a decision.
pub(super) fn number(id: &str) -> Result<DecisionId, Problem> {
    Id::read(id).map(DecisionId).ok_or_else(|| Problem::no_decision(&leeward_fabric::input::excerpt(id)))
}

pub async fn decision(State(app): SharedState, Params(Path(id)): NamePath) -> ApiResult {
    let id = number(&id)?;
    let record = app.call(|_| Ok(GetDecision(id))).await?;
    Ok(Json(Decision::of(&record, &app.clock)).into_response())
}

pub async fn release(
    State(app): SharedState,
    Params(Path(id)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
) -> ApiResult {
    let id = number(&id)?;
    let record = match query.dry_run {
        true => app.call(|_| Ok(GetDecision(id))).await?,
        false => app.call(|_| Ok(Release(id))).await?,
    };
    Ok(Decision::answer(&record, &app, query))
}

/// Confirms a reserved decision.
pub async fn confirm(
    State(app): SharedState,
    Params(Path(id)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
) -> ApiResult {
    let id = number(&id)?;
    let record = match query.dry_run {
        true => app.call(|_| Ok(ConfirmDryRun(id))).await?,
        false => app.call(|_| Ok(Confirm(id))).await?,
    };
    Ok(Decision::answer(&record, &app, query))
}

/// Filter and page of a list of decisions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only decisions of this kind.
    kind: Option<Kind>,
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
}

pub async fn commitments(
    State(app): SharedState,
    Params(Query(query)): Params<Query<ListQuery>>,
) -> ApiResult {
    let page = query.page();
    let (limit, before) = (page.limit()?, page.after()?.map(DecisionId));
    let kind = query.kind.map(Kind::word);
    let query = DecisionQuery { kind, before, limit: limit + 1, holding: true };
    let records = app.call(|_| Ok(query.clone())).await?;
    Ok(Json(Page::cut(&records, limit, |record| record.id.0, |record| Decision::of(record, &app.clock)))
        .into_response())
}
