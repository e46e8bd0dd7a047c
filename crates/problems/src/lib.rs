//! Error responses: RFC 9457 problem documents, with the remedy in their text.

mod errors;
mod rejections;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leeward_access::{Client, Denied, Hosts, Role};
use leeward_fabric::input::{InputError, excerpt};
use leeward_records::schema::{Name, Reference};
use leeward_records::{Caller, ClusterVersion};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::errors::{IntoProblem, refusal_text};

/// A problem document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// Seconds after which to retry, if known.
    #[serde(skip)]
    retry: Option<u32>,
    /// Kind of problem: `urn:leeward:problem:` and a word.
    #[serde(rename = "type", serialize_with = "urn")]
    #[schemars(with = "String", extend("enum" = ALL.map(|(word, ..)| format!("urn:leeward:problem:{word}"))))]
    word: &'static str,
    /// Title of the kind of problem.
    title: &'static str,
    /// HTTP status.
    #[serde(serialize_with = "number")]
    #[schemars(with = "u16")]
    status: StatusCode,
    /// Description, with the remedy.
    detail: String,
    /// Invalid field of the request, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Address of the leader, if another service leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
}

fn urn<S: serde::Serializer>(word: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("urn:leeward:problem:{word}"))
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// Word of a problem's type, as an extension of the response.
#[derive(Clone, Copy)]
pub struct Word(pub &'static str);

/// Kind of problem: word of its type, status, title.
type Kind = (&'static str, StatusCode, &'static str);

const NOT_JSON: Kind = ("not-json", StatusCode::BAD_REQUEST, "The body is not JSON");
const INVALID: Kind = ("invalid", StatusCode::UNPROCESSABLE_ENTITY, "Invalid field");
const MEDIA_TYPE: Kind = ("media-type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported media type");
const TOO_LARGE: Kind = ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The body is too large");
const SLOW: Kind = ("slow", StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time");
const UNAUTHORIZED: Kind = ("unauthorized", StatusCode::UNAUTHORIZED, "Token required");
const FORBIDDEN: Kind = ("forbidden", StatusCode::FORBIDDEN, "The token does not allow this");
const MISDIRECTED: Kind =
    ("misdirected", StatusCode::MISDIRECTED_REQUEST, "The host name of the request is not this service's");
const HOST: Kind = ("host", StatusCode::BAD_REQUEST, "One header `host` is required");
const OTHER_SITE: Kind = ("other-site", StatusCode::FORBIDDEN, "The request is from a page of another site");
const TOO_MANY: Kind = ("too-many", StatusCode::TOO_MANY_REQUESTS, "Too many requests");
const NOT_FOUND: Kind = ("not-found", StatusCode::NOT_FOUND, "Not found");
const METHOD: Kind = ("method", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
const REFUSED: Kind = ("refused", StatusCode::CONFLICT, "Placement rejected");
const VERSION: Kind = ("version", StatusCode::PRECONDITION_FAILED, "The version has changed");
const ANSWERED: Kind = ("answered", StatusCode::CONFLICT, "The migration has another answer");
const ENFORCER: Kind = ("enforcer", StatusCode::CONFLICT, "The name or version of the enforcer does not fit");
const SEQUENCE: Kind = ("sequence", StatusCode::CONFLICT, "The sequence number is stale");
const REUSED: Kind =
    ("reused", StatusCode::UNPROCESSABLE_ENTITY, "The key or sequence belongs to another request");
const BUSY: Kind = ("busy", StatusCode::SERVICE_UNAVAILABLE, "Too many requests wait");
const STORE: Kind = ("store", StatusCode::SERVICE_UNAVAILABLE, "Store unavailable");
const FOLLOWER: Kind = ("follower", StatusCode::SERVICE_UNAVAILABLE, "Another service leads");
const BROKEN: Kind = ("broken", StatusCode::INTERNAL_SERVER_ERROR, "Internal error");

const ALL: [Kind; 23] = [
    UNAUTHORIZED,
    FORBIDDEN,
    MISDIRECTED,
    HOST,
    OTHER_SITE,
    TOO_MANY,
    NOT_JSON,
    INVALID,
    MEDIA_TYPE,
    TOO_LARGE,
    SLOW,
    NOT_FOUND,
    METHOD,
    REFUSED,
    VERSION,
    ANSWERED,
    ENFORCER,
    SEQUENCE,
    REUSED,
    BUSY,
    STORE,
    FOLLOWER,
    BROKEN,
];

/// Statuses of problems, each with the titles of its problems.
pub fn statuses() -> BTreeMap<u16, String> {
    let mut statuses = BTreeMap::<u16, String>::new();
    for (word, status, title) in ALL {
        let text = statuses.entry(status.as_u16()).or_default();
        let separator = if text.is_empty() { "" } else { "; " };
        *text += &format!("{separator}{title} (`{word}`)");
    }
    statuses
}

impl Problem {
    fn new((word, status, title): Kind, detail: impl Into<String>) -> Problem {
        Problem { retry: None, word, title, status, detail: detail.into(), field: None, leader: None }
    }

    /// Invalid field of the body.
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..Problem::new(INVALID, detail) }
    }

    /// The store did not take the modes of the settings file.
    pub fn modes_not_stored() -> Problem {
        let detail = "the store did not take the modes of the settings file; all other settings are in force: reload again";
        Problem::new(STORE, detail)
    }

    /// Query parameter of an operation without parameters.
    pub fn no_parameters(name: &str) -> Problem {
        let name = excerpt(name);
        let detail = format!("unknown parameter `{name}`; this request has no query parameters");
        Problem { field: Some(name), ..Problem::new(INVALID, detail) }
    }

    /// Empty or too long name, or one with control characters.
    pub fn name(field: impl Into<String>) -> Problem {
        let detail =
            format!("expected a name of 1 to {} characters, none of them a control character", Name::LONGEST);
        Problem::field(field, detail)
    }

    /// Empty or too long name of a placed thing, or one with control characters.
    pub fn reference(field: impl Into<String>) -> Problem {
        let longest = Reference::LONGEST;
        Problem::field(
            field,
            format!("expected a text of 1 to {longest} characters, none of them a control character"),
        )
    }

    /// Invalid body without a single wrong field.
    pub fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(INVALID, detail)
    }

    /// The body is not JSON.
    pub fn not_json(detail: impl Into<String>) -> Problem {
        Problem::new(NOT_JSON, detail)
    }

    /// The body has another media type.
    pub fn media_type() -> Problem {
        Problem::new(MEDIA_TYPE, "send JSON, with the header `content-type: application/json`")
    }

    /// The body exceeds the size limit.
    pub fn too_large(most: usize) -> Problem {
        Problem::new(TOO_LARGE, format!("more than {most} bytes; send several smaller ones"))
    }

    /// The body did not arrive completely in time.
    pub fn slow(patience: Duration) -> Problem {
        let seconds = patience.as_secs_f64();
        Problem::new(SLOW, format!("the body did not arrive completely within {seconds} s; send it again"))
    }

    /// The memory for request bodies is exhausted.
    pub fn full() -> Problem {
        Problem::new(
            BUSY,
            "the memory for request bodies is full; send it again in a moment, or in smaller parts",
        )
    }

    /// Unknown path.
    pub fn no_path(path: &str) -> Problem {
        let detail = format!("nothing is at {path}; the reference of the HTTP interface lists the paths");
        Problem::new(NOT_FOUND, detail)
    }

    /// Unknown method at this path.
    pub fn method(method: &str, path: &str) -> Problem {
        Problem::new(
            METHOD,
            format!(
                "{path} does not support {method}; the header `allow` lists the methods that it supports"
            ),
        )
    }

    /// Version conflict of the cluster.
    pub fn version(current: ClusterVersion) -> Problem {
        let detail = format!("the cluster has version {current}; read it again and repeat the change");
        Problem::new(VERSION, detail)
    }

    /// Unknown name in the cluster.
    pub fn none_such(what: &str, name: &str) -> Problem {
        Problem::new(NOT_FOUND, format!("`{}`: the cluster has no such {what}", excerpt(name)))
    }

    /// Unknown id of a stored object.
    pub fn not_stored(what: &str, id: &str) -> Problem {
        Problem::new(NOT_FOUND, format!("no {what} `{}` is stored", excerpt(id)))
    }

    /// Unknown id of a decision.
    pub fn no_decision(id: &str) -> Problem {
        let detail = format!("no decision {id}: the id is unknown, or the decision is no longer stored");
        Problem::new(NOT_FOUND, detail)
    }

    /// The key or sequence number belongs to another request, `first`.
    pub fn reused(caller: Option<&Caller>, first: &str) -> Problem {
        let (field, used) = match caller {
            Some(Caller::Client { .. }) => ("sequence", "the client has used this sequence"),
            _ => ("idempotency-key", "this key was used"),
        };
        let detail = format!("{used} for {first}; each request needs its own");
        Problem { field: Some(field.to_owned()), ..Problem::new(REUSED, detail) }
    }

    /// Denied request to an operation of this role.
    pub fn denied(denied: &Denied, needed: Role) -> Problem {
        let needed = needed.name();
        match denied {
            Denied::NoToken => Problem::new(
                UNAUTHORIZED,
                format!("send a token of role {needed}, with the header `authorization: Bearer TOKEN`"),
            ),
            Denied::Unknown => Problem::new(UNAUTHORIZED, "unknown token; ask the operator for one"),
            Denied::Role { name, role } => {
                let role = role.name();
                let detail = format!("the token `{name}` has role {role}, and this request needs {needed}");
                Problem::new(FORBIDDEN, detail)
            }
            Denied::TooMany(seconds) => {
                let detail = format!("rate limit exceeded; retry in {seconds} s");
                Problem { retry: Some(seconds.get()), ..Problem::new(TOO_MANY, detail) }
            }
        }
    }

    /// A report covers hosts outside its token.
    pub fn foreign(field: impl Into<String>, name: &str, token: &Client, hosts: &Hosts) -> Problem {
        let (name, hosts) = (excerpt(name), excerpt(&hosts.to_string()));
        let detail = format!("`{name}`: the token `{token}` may report only these hosts: {hosts}");
        Problem { field: Some(field.into()), ..Problem::new(FORBIDDEN, detail) }
    }

    /// An enforcer has a name that a token may not use.
    pub fn foreign_enforcer(name: &str, token: &Client, own: &str) -> Problem {
        let (name, own) = (excerpt(name), excerpt(own));
        let detail = format!(
            "`{name}`: the token `{token}` may use only the name `{own}`, or one that begins with `{own}:`"
        );
        Problem { field: Some("enforcer".to_owned()), ..Problem::new(FORBIDDEN, detail) }
    }

    /// The host header names another host, and the service has no tokens.
    pub fn misdirected(host: &str) -> Problem {
        let host = excerpt(host);
        let detail = format!(
            "`{host}`: without tokens this service accepts only the host names localhost and 127.0.0.1, to block requests \
             from web pages; use one of these, or start it with tokens"
        );
        Problem::new(MISDIRECTED, detail)
    }

    /// Missing, repeated or invalid host header.
    pub fn host(why: &str) -> Problem {
        let detail = format!("{why}; HTTP/1.1 requires one header `host` with the name of the service");
        Problem { field: Some("host".to_owned()), ..Problem::new(HOST, detail) }
    }

    /// Request of a browser for a page of another site.
    pub fn other_site(site: &str) -> Problem {
        let site = excerpt(site);
        let detail = format!(
            "`{site}`: a browser may send requests only for pages of this service; open the dashboard under the \
             address of the service, and let a proxy pass the header `host` on unchanged"
        );
        Problem::new(OTHER_SITE, detail)
    }

    /// Reload of a service without settings.
    pub fn no_settings() -> Problem {
        Problem::new(NOT_FOUND, "the service has no settings to reload")
    }

    /// Demo operation on a service outside demo mode.
    pub fn no_demo() -> Problem {
        Problem::new(NOT_FOUND, "this service has no demo; start one with `leeward serve --demo`")
    }

    /// No copy or host can be chosen.
    pub fn refused(detail: impl Into<String>) -> Problem {
        Problem::new(REFUSED, detail)
    }

    /// Word of its kind.
    pub fn word(&self) -> &'static str {
        self.word
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Description, including the remedy.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// All connections are in use.
    pub fn no_connection() -> Problem {
        let detail = "all connections are in use by other clients; retry when one is closed, or raise \
                      limits.connections";
        Problem { retry: Some(1), ..Problem::new(BUSY, detail) }
    }

    /// The limit of event streams is reached.
    pub fn too_many_streams() -> Problem {
        Problem::new(BUSY, "the number of event streams is at its limit; retry when one is closed")
    }

    /// Another survey runs.
    pub fn surveying(id: u64) -> Problem {
        let detail = format!(
            "survey {id} is running, and two surveys would measure each other's traffic; retry when it has \
             ended, or cancel it"
        );
        Problem::new(BUSY, detail)
    }

    /// The machine's clock was set, for this reason the service is not ready.
    pub fn clock(why: String) -> Problem {
        Problem {
            retry: Some(1),
            ..Problem::new(BUSY, format!("{why}; retry when reports by the new clock arrive"))
        }
    }

    /// The shared secret for measurements cannot be read.
    pub fn no_secret(error: &InputError) -> Problem {
        Problem::new(BROKEN, format!("`probes.secret` of the settings: {error}"))
    }

    /// The coordinator has published no snapshot for this time.
    pub fn stuck(age: Duration) -> Problem {
        let detail = format!(
            "the engine has not responded for {:.0} s; restart the service if this persists",
            age.as_secs_f64()
        );
        Problem::new(BUSY, detail)
    }

    /// The task of the coordinator has ended.
    pub fn broken() -> Problem {
        Problem::new(BROKEN, "the engine has stopped; restart the service and report its log")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(&self)).into_response();
        let media_type = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        response.extensions_mut().insert(Word(self.word));
        let busy = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        if let Some(seconds) = self.retry.or(busy) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer realm=\"leeward\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_in_the_reference() {
        let page = include_str!("../../../docs/reference/http-api.md");
        for (word, status, _) in ALL {
            let row = format!("| `{word}` | {} |", status.as_u16());
            assert!(page.contains(&row), "{row}");
        }
    }
}
