//! Middleware of all requests: authorizes the client, and records metrics.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::operations;
use super::place::{Outcome, placement_kind};
use super::sites;
use super::state::{AppState, SharedState};
use super::table::Operation;
use leeward_access::{Client, Connection, Denied, Peer, Principal, Role, is_loopback};
use leeward_connections::BodyBytes;
use leeward_problems::{Problem, Word};

/// Operation of a request; `None` for an unknown path or method.
fn operation(request: &Request) -> Option<&'static Operation> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    operations::all().find(|operation| operation.path == path && operation.method == method)
}

/// Bearer token of a request.
fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Host of a request. Only HTTP/1.0 may omit it.
fn host(request: &Request) -> Option<&str> {
    let header = || request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    request.uri().host().or_else(header)
}

/// Authorizes a request.
///
/// # Errors
/// [`Problem`] if the client may not send it.
fn admit(app: &AppState, request: &Request, operation: Option<&Operation>) -> Result<Principal, Problem> {
    sites::check(request, operation)?;
    let needed = operation.and_then(|operation| operation.role);
    if let (false, Some(host)) = (app.access.is_closed(), host(request))
        && !is_loopback(host)
    {
        return Err(Problem::misdirected(host));
    }
    let peer = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |&Peer(peer)| peer);
    let now = app.clock.now().as_secs_f64();
    app.access.admit(needed, bearer(request), peer, now).map_err(|denied| {
        match &denied {
            Denied::Unknown => tracing::warn!(%peer, "request denied: unknown token"),
            Denied::Role { name, role } => {
                tracing::warn!(%peer, %name, role = role.name(), "request denied: insufficient role")
            }
            Denied::NoToken | Denied::TooMany(_) => tracing::debug!(%peer, ?denied, "request denied"),
        }
        Problem::denied(&denied, needed.unwrap_or(Role::Read))
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the duration of a request is a metric, and affects no decision"
)]
pub async fn auth(State(app): SharedState, mut request: Request, next: Next) -> Response {
    let began = std::time::Instant::now();
    let operation = operation(&request);
    let (method, path) =
        operation.map_or(("_OTHER", "other"), |operation| (operation.method.as_str(), operation.path));
    let active = app.metrics.active_request(method);
    let (client, response) = match admit(&app, &request, operation) {
        Ok(principal) => {
            let client = principal.client.clone();
            // Public operations do not authorize a connection.
            let is_known = matches!(client, Client::Token(_)) || !app.access.is_closed();
            if let (true, Some(connection)) = (is_known, request.extensions().get::<Arc<Connection>>()) {
                connection.authorize();
            }
            let body_bytes = Arc::new(BodyBytes::new(app.bodies.clone()));
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(body_bytes.clone());
            let response = next.run(request).await;
            drop(body_bytes);
            (Some(client), response)
        }
        Err(problem) => (None, problem.into_response()),
    };
    drop(active);
    let refusal = response.extensions().get().map(|&Word(word)| word);
    if let Some(word) = refusal {
        app.metrics.refusal(word);
    }
    if let Some(kind) = placement_kind(method, path) {
        let outcome = response.extensions().get().map(|&Outcome(outcome)| outcome);
        app.metrics.placement(kind, outcome.or(refusal).unwrap_or("failed"));
    }
    let (status, took) = (response.status().as_u16(), began.elapsed());
    app.metrics.request(method, path, status, took);
    tracing::debug!(method, path, status, seconds = took.as_secs_f64(), ?client, "request");
    response
}
