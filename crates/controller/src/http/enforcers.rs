//! Enforcers: programs that apply the promises of a host, and acknowledge what they have applied.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_access::Principal;
use leeward_fabric::Nanos;
use leeward_problems::IntoProblem;
use leeward_promises::AcknowledgeError;
use leeward_promises::bodies::AcknowledgementBody;
use leeward_promises::views::{AcknowledgedView, EnforcerView};
use leeward_records::EnforcerKind;
use leeward_records::schema::Name;
use leeward_service::{
    Acknowledge, EnforcerError, EnforcerPlace, EnforcerReply, GetEnforcer, GetPromises, ListEnforcers,
    PreviewPromises, RemoveEnforcer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::pages::{LARGEST_PAGE, PageQuery};
use super::snapshot::LONGEST_WAIT;
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::Problem;

/// Page of a list of enforcers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnforcersQuery {
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    after: Option<String>,
}

/// A page of enforcers by name.
#[derive(Serialize, JsonSchema)]
pub struct Enforcers {
    /// Items of the page.
    items: Vec<EnforcerView>,
    /// Value for `after` to get the next page; null at the end.
    #[schemars(with = "Option<Name>")]
    next: Option<String>,
}

/// The version to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromisesQuery {
    /// Waits for another version of the enforcer's promises than this one.
    since: Option<u64>,
    /// Longest wait for another version than `since`; at most one minute. After it, the response has the current promises.
    wait: Option<Nanos>,
    /// Kind of an enforcer that has not registered, for a dry run; needs `host`. A registered one has its own.
    kind: Option<EnforcerKind>,
    /// Host of an enforcer that has not registered; needs `kind`.
    host: Option<String>,
    /// Device of an enforcer that has not registered; by default all of the host. Only for the kind `nfs`.
    device: Option<String>,
}

impl PromisesQuery {
    /// Kind and place of an enforcer that has not registered; `None` without them.
    fn place(&self) -> Result<Option<EnforcerPlace>, Problem> {
        let place = match (self.kind, self.host.clone()) {
            (Some(kind), Some(host)) => EnforcerPlace { kind, host, device: self.device.clone() },
            (None, None) if self.device.is_none() => return Ok(None),
            (None, _) => return Err(Problem::field("kind", "missing; `host` and `device` need one")),
            (Some(_), None) => return Err(Problem::field("host", "missing; `kind` needs one")),
        };
        if place.device.is_some() && place.kind != EnforcerKind::Nfs {
            let detail = "expected none: only an enforcer of kind nfs serves a device";
            return Err(Problem::field("device", detail));
        }
        match self.since {
            Some(_) => Err(Problem::field("since", "expected none: only a registered enforcer waits")),
            None => Ok(Some(place)),
        }
    }
}

/// The enforcer to remove.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovalQuery {
    /// Instance that has ended; the enforcer stays if another instance has its name. By default any.
    #[schemars(with = "Option<Name>")]
    instance: Option<String>,
}

fn shown(app: &AppState, reply: &EnforcerReply) -> EnforcerView {
    EnforcerView::of(&reply.state, reply.version.set, reply.current, &app.clock)
}

pub async fn list(State(app): SharedState, Params(Query(query)): Params<Query<EnforcersQuery>>) -> ApiResult {
    let EnforcersQuery { limit, after } = query;
    let limit = PageQuery { limit, after: None }.limit()?;
    let list = app.call(|_| Ok(ListEnforcers { after: after.clone(), limit: limit + 1 })).await?;
    let items: Vec<EnforcerView> = list.iter().take(limit).map(|reply| shown(&app, reply)).collect();
    let next = items.last().filter(|_| list.len() > limit).map(|last| last.enforcer.clone());
    Ok(Json(Enforcers { items, next }).into_response())
}

pub async fn one(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let reply = app.call(|_| Ok(GetEnforcer(name.clone()))).await?;
    Ok(Json(shown(&app, &reply)).into_response())
}

pub async fn promises(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<PromisesQuery>>,
) -> ApiResult {
    if let Some(place) = query.place()? {
        let preview = PreviewPromises { name, place };
        return Ok(Json(app.call(|_| Ok(preview.clone())).await?).into_response());
    }
    let PromisesQuery { since, wait, .. } = query;
    if let Some(since) = since {
        let wait = wait.unwrap_or(Nanos(0)).min(LONGEST_WAIT);
        let other = wait_for_other(&app, &name, since);
        if let Ok(other) = tokio::time::timeout(Duration::from_nanos(wait.0), other).await {
            other?;
        }
    }
    let promises = app.call(|_| Ok(GetPromises(name.clone()))).await?;
    Ok(Json(promises).into_response())
}

/// Waits for another version of an enforcer's promises.
async fn wait_for_other(app: &AppState, name: &str, since: u64) -> Result<(), Problem> {
    let mut changes = app.handle.promises();
    loop {
        // A change after this line ends the wait below.
        let seen = changes.borrow_and_update().version;
        let reply = app.call(|_| Ok(GetEnforcer(name.to_owned()))).await?;
        if reply.current != since {
            return Ok(());
        }
        // Of a change elsewhere, the service need not be asked: many enforcers wait.
        let host = &reply.state.record.host;
        let concerned = changes.wait_for(|changes| changes.concern(host, seen)).await;
        concerned.map(drop).map_err(|_| Problem::broken())?;
    }
}

/// Rejects a host outside the token of the request.
fn check_own(Principal { client, hosts }: &Principal, host: &str) -> Result<(), Problem> {
    match hosts {
        Some(hosts) if !hosts.has(host) => {
            let problem = Problem::foreign("host", host, client, hosts);
            tracing::warn!(name = %client, problem = problem.detail(), "request rejected: not a host of the token");
            Err(problem)
        }
        _ => Ok(()),
    }
}

/// Rejects a name outside the token of the request: a host could otherwise take the name of another host's enforcer.
fn check_own_name(
    Principal { client, hosts }: &Principal,
    name: &str,
    body: &AcknowledgementBody,
) -> Result<(), Problem> {
    if hosts.is_none() || is_name_of(name, body.kind, &body.host) {
        return Ok(());
    }
    let problem = Problem::foreign_enforcer(name, client, &format!("{}@{}", body.kind.name(), body.host));
    tracing::warn!(name = %client, problem = problem.detail(), "request rejected: not a name of the token's host");
    Err(problem)
}

/// True if a name is `KIND@HOST`, or begins with it and a colon.
fn is_name_of(name: &str, kind: EnforcerKind, host: &str) -> bool {
    let rest = name.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix('@')?.strip_prefix(host));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

pub async fn acknowledge(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Extension(principal): Extension<Principal>,
    Body(body): Body<AcknowledgementBody>,
) -> ApiResult {
    check_own(&principal, &body.host)?;
    check_own_name(&principal, &name, &body)?;
    let acknowledgement = body.acknowledgement(&name);
    let acknowledgement = acknowledgement.map_err(|invalid| Problem::field(invalid.field, invalid.detail))?;
    let reply = app.call(|_| Ok(Acknowledge(acknowledgement.clone()))).await?;
    let enforcer = shown(&app, &reply);
    Ok(Json(AcknowledgedView { enforcer, unknown: reply.unknown }).into_response())
}

pub async fn remove(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Extension(principal): Extension<Principal>,
    Params(Query(RemovalQuery { instance })): Params<Query<RemovalQuery>>,
) -> ApiResult {
    let before = app.call(|_| Ok(GetEnforcer(name.clone()))).await?;
    check_own(&principal, &before.state.record.host)?;
    let other = before.state.instance.as_ref().zip(instance.as_ref()).filter(|(own, other)| own != other);
    if other.is_some() {
        let error = EnforcerError::Rejected(AcknowledgeError::OtherInstance(before.state.ends));
        return Err(error.problem(&app.clock));
    }
    app.call(|_| Ok(RemoveEnforcer(name.clone()))).await?;
    Ok(Json(shown(&app, &before)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_host_is_that_of_its_kind_and_no_longer_host() {
        for (name, expected) in [
            ("net@h1", true),
            ("net@h1:second", true),
            ("net@h10", false),
            ("nfs@h1", false),
            ("net@h1.evil", false),
            ("h1", false),
            ("", false),
        ] {
            assert_eq!(is_name_of(name, EnforcerKind::Net, "h1"), expected, "{name}");
        }
        assert!(is_name_of("nfs@h1:ssd", EnforcerKind::Nfs, "h1"));
    }
}
