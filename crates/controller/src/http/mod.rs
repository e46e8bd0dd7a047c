//! HTTP: texts in, a message to the desk, texts out. Nothing is decided here, and nothing is kept.

mod body;
mod cluster;
mod decisions;
mod demo;
mod events;
mod gate;
mod metrics;
mod migrations;
mod network;
mod openapi;
mod page;
mod place;
mod policies;
mod problem;
mod reload;
mod reports;
mod score;
mod shapes;
mod status;
mod table;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{delete, get, patch, post, put};
use leeward_fabric::Fabric;
use leeward_fabric::cluster::ClusterFile;
use serde_json::Value;
use tokio::sync::Mutex;

pub use self::demo::Board;
pub use self::gate::Peer;
use self::problem::Problem;
use self::shapes::Page;
pub use self::status::About;
use self::table::Content::{Json, Nothing, Stream, Text};
use self::table::{Operation, Parameter, of, path, query};
use crate::access::{Access, Role};
use crate::clock::Clock;
use crate::desk::{Message, Refused, Reply};
use crate::office::Office;
use crate::reload::{Reload, Reloaded};
use crate::watch::{Events, Metrics};

/// What every request needs.
pub struct Edge {
    /// Where messages are handed in.
    pub office: Office,
    /// What times mean.
    pub clock: Clock,
    /// What is told of the service itself.
    pub about: About,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What happens.
    pub events: Arc<Events>,
    /// Who may ask, and how often.
    pub access: Arc<Access>,
    /// What reads settings again; `None` where there are none.
    pub reload: Option<Arc<Reload>>,
    /// What a demo shows; `None` where the service is none.
    pub demo: Option<Board>,
    /// Bytes of the largest body that is read.
    pub largest: usize,
    /// How long a body may take to come.
    pub patience: Duration,
    /// Held by who reads a cluster.
    pub reading: Mutex<()>,
    /// The OpenAPI document.
    pub description: Arc<str>,
}

/// The OpenAPI document of everything there is.
pub fn description() -> String {
    openapi::document(OPERATIONS).to_string()
}

type Shared = State<Arc<Edge>>;
type Answer = Result<Response, Problem>;

impl Edge {
    /// Asks for what a message made of names means. If the cluster changes meanwhile, it is made anew.
    async fn reply(&self, message: impl Fn(&Fabric) -> Result<Message, Problem>) -> Result<Reply, Problem> {
        let mut world = self.office.last_world();
        loop {
            let answer = self.office.ask(message(&world.fabric)?, world.fabric.clone()).await;
            match answer.map_err(|_| Problem::broken())? {
                Err(Refused::Moved) => world = self.world().await?,
                answer => return answer.map_err(|refused| Problem::refused(refused, &self.clock)),
            }
        }
    }
}

/// What a path or a query says, or what is wrong with it as a problem.
struct Asked<T>(T);

/// The one name in a path.
type Named = Asked<Path<String>>;

impl<T> FromRequestParts<Arc<Edge>> for Asked<T>
where
    T: FromRequestParts<Arc<Edge>>,
    T::Rejection: Into<Problem>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, edge: &Arc<Edge>) -> Result<Self, Problem> {
        T::from_request_parts(parts, edge).await.map(Asked).map_err(Into::into)
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Problem {
        Problem::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Problem {
        Problem::invalid(rejection.body_text())
    }
}

const LIMIT: Parameter = query("limit", "integer", "So many items at most; 100 by default, 1,000 at most.");
const AFTER: Parameter = query("after", "string", "What `next` of the part before said.");
const SINCE: Parameter = query("since", "string", "Steps that end after this time; an hour is kept.");
const STEP: Parameter =
    query("step_s", "integer", "Seconds of a step, a multiple of 10 up to 3,600; 10 by default.");
const KIND: Parameter = query("kind", "string", "Of this kind only.");
const IF_MATCH: Parameter = Parameter {
    place: "header",
    name: "if-match",
    text: "The version that is to be changed; if it is of another one by then, nothing is done.",
    kind: "string",
};
const KEY: Parameter = Parameter {
    place: "header",
    name: "idempotency-key",
    text: "A key that nobody else uses: what is sent again with it is not done again.",
    kind: "string",
};

/// Everything there is.
const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::POST,
        path: "/v1/reports",
        role: Some(Role::Place),
        summary: "Take telemetry in.",
        parameters: &[],
        body: Some(of::<reports::ReportBody>),
        answers: &[(200, "What was taken in.", Json(of::<reports::Reported>))],
        handler: || post(reports::report),
    },
    Operation {
        method: Method::POST,
        path: "/v1/place/replicas",
        role: Some(Role::Place),
        summary: "Decide where the copies of a block go.",
        parameters: &[KEY],
        body: Some(of::<place::ReplicasBody>),
        answers: &[
            (200, "The decision that was made for it before.", Json(of::<decisions::Decision>)),
            (201, "The decision.", Json(of::<decisions::Decision>)),
        ],
        handler: || post(decisions::place_replicas),
    },
    Operation {
        method: Method::POST,
        path: "/v1/place/tasks",
        role: Some(Role::Place),
        summary: "Decide where tasks go.",
        parameters: &[KEY],
        body: Some(of::<place::TasksBody>),
        answers: &[
            (200, "The decision that was made for them before.", Json(of::<decisions::Decision>)),
            (201, "The decision.", Json(of::<decisions::Decision>)),
        ],
        handler: || post(decisions::place_tasks),
    },
    Operation {
        method: Method::POST,
        path: "/v1/place/volumes",
        role: Some(Role::Place),
        summary: "Decide which server takes the volume of a workload, and promise the workload its SLO.",
        parameters: &[KEY],
        body: Some(of::<place::WorkloadBody>),
        answers: &[
            (200, "The decision that was made for it before.", Json(of::<decisions::Decision>)),
            (201, "The decision.", Json(of::<decisions::Decision>)),
        ],
        handler: || post(decisions::place_volume),
    },
    Operation {
        method: Method::POST,
        path: "/v1/score/hosts",
        role: Some(Role::Read),
        summary: "Say how good hosts are for a task; nothing is committed.",
        parameters: &[],
        body: Some(of::<score::ScoreBody>),
        answers: &[(200, "Scores.", Json(of::<score::Scores>))],
        handler: || post(score::hosts),
    },
    Operation {
        method: Method::POST,
        path: "/v1/workloads",
        role: Some(Role::Place),
        summary: "Promise a workload its SLO where its volume is, if that can be kept.",
        parameters: &[KEY],
        body: Some(of::<place::WorkloadBody>),
        answers: &[
            (200, "The decision that was made for it before.", Json(of::<decisions::Decision>)),
            (201, "The decision.", Json(of::<decisions::Decision>)),
        ],
        handler: || post(decisions::admit),
    },
    Operation {
        method: Method::GET,
        path: "/v1/workloads",
        role: Some(Role::Read),
        summary: "List the workloads that are promised their SLOs, those promised last first.",
        parameters: &[LIMIT, AFTER],
        body: None,
        answers: &[(200, "Workloads.", Json(of::<Page<workloads::Workload>>))],
        handler: || get(workloads::list),
    },
    Operation {
        method: Method::GET,
        path: "/v1/workloads/{name}",
        role: Some(Role::Read),
        summary: "Show a workload that is promised its SLO, or the last of its name that was.",
        parameters: &[path("name", "Its name.")],
        body: None,
        answers: &[(200, "The workload.", Json(of::<workloads::Workload>))],
        handler: || get(workloads::one),
    },
    Operation {
        method: Method::GET,
        path: "/v1/policies",
        role: Some(Role::Read),
        summary: "List the policies there are, by kind of decision.",
        parameters: &[],
        body: None,
        answers: &[(200, "Policies.", Json(of::<policies::Policies>))],
        handler: || get(policies::list),
    },
    Operation {
        method: Method::GET,
        path: "/v1/decisions",
        role: Some(Role::Read),
        summary: "List the decisions that are kept, the last ones first.",
        parameters: &[KIND, LIMIT, AFTER],
        body: None,
        answers: &[(200, "Decisions.", Json(of::<Page<decisions::Decision>>))],
        handler: || get(decisions::decisions),
    },
    Operation {
        method: Method::GET,
        path: "/v1/decisions/{id}",
        role: Some(Role::Read),
        summary: "Show a decision as it is kept.",
        parameters: &[path("id", "What it is called.")],
        body: None,
        answers: &[(200, "The decision.", Json(of::<decisions::Decision>))],
        handler: || get(decisions::decision),
    },
    Operation {
        method: Method::POST,
        path: "/v1/decisions/{id}/what-if",
        role: Some(Role::Read),
        summary: "Say what another policy would do now with what a decision was asked; nothing is committed.",
        parameters: &[path("id", "What the decision is called.")],
        body: Some(of::<decisions::WhatIfBody>),
        answers: &[(200, "As if it were the decision.", Json(of::<decisions::Decision>))],
        handler: || post(decisions::what_if),
    },
    Operation {
        method: Method::GET,
        path: "/v1/commitments",
        role: Some(Role::Read),
        summary: "List the decisions that hold something of the network, the last ones first.",
        parameters: &[KIND, LIMIT, AFTER],
        body: None,
        answers: &[(200, "Decisions.", Json(of::<Page<decisions::Decision>>))],
        handler: || get(decisions::commitments),
    },
    Operation {
        method: Method::DELETE,
        path: "/v1/commitments/{id}",
        role: Some(Role::Place),
        summary: "Say that the work of a decision ended; it stops counting.",
        parameters: &[path("id", "What the decision is called.")],
        body: None,
        answers: &[(200, "The decision.", Json(of::<decisions::Decision>))],
        handler: || delete(decisions::release),
    },
    Operation {
        method: Method::GET,
        path: "/v1/cluster",
        role: Some(Role::Read),
        summary: "Show the cluster, as its file; the header `etag` is its version.",
        parameters: &[],
        body: None,
        answers: &[(200, "The cluster.", Json(of::<ClusterFile>))],
        handler: || get(cluster::get),
    },
    Operation {
        method: Method::PUT,
        path: "/v1/cluster",
        role: Some(Role::Admin),
        summary: "Make another cluster the one that counts.",
        parameters: &[IF_MATCH],
        body: Some(of::<ClusterFile>),
        answers: &[(200, "The cluster.", Json(of::<ClusterFile>))],
        handler: || put(cluster::put),
    },
    Operation {
        method: Method::PATCH,
        path: "/v1/cluster",
        role: Some(Role::Admin),
        summary: "Change fields of the cluster, by a merge patch (RFC 7396).",
        parameters: &[IF_MATCH],
        body: Some(of::<Value>),
        answers: &[(200, "The cluster.", Json(of::<ClusterFile>))],
        handler: || patch(cluster::patch),
    },
    Operation {
        method: Method::GET,
        path: "/v1/racks",
        role: Some(Role::Read),
        summary: "List the racks, with their links.",
        parameters: &[LIMIT, AFTER],
        body: None,
        answers: &[(200, "Racks.", Json(of::<Page<shapes::Rack>>))],
        handler: || get(network::racks),
    },
    Operation {
        method: Method::GET,
        path: "/v1/racks/{rack}",
        role: Some(Role::Read),
        summary: "Show a rack, and all that is in it.",
        parameters: &[path("rack", "Its name.")],
        body: None,
        answers: &[(200, "The rack.", Json(of::<shapes::RackPage>))],
        handler: || get(network::rack),
    },
    Operation {
        method: Method::GET,
        path: "/v1/links",
        role: Some(Role::Read),
        summary: "List the links.",
        parameters: &[
            query("hot", "boolean", "Only those that are hot, or that are not."),
            query("sort", "string", "`name` or `utilization`, the hottest first."),
            LIMIT,
            AFTER,
        ],
        body: None,
        answers: &[(200, "Links.", Json(of::<Page<shapes::Link>>))],
        handler: || get(network::links),
    },
    Operation {
        method: Method::GET,
        path: "/v1/links/{link}",
        role: Some(Role::Read),
        summary: "Show a link, and which decisions hold something of it.",
        parameters: &[path("link", "Its name.")],
        body: None,
        answers: &[(200, "The link.", Json(of::<shapes::LinkPage>))],
        handler: || get(network::link),
    },
    Operation {
        method: Method::GET,
        path: "/v1/links/{link}/history",
        role: Some(Role::Read),
        summary: "Show what a link carried in the last hour.",
        parameters: &[path("link", "Its name."), SINCE, STEP],
        body: None,
        answers: &[(200, "The link over time.", Json(of::<network::History>))],
        handler: || get(network::link_history),
    },
    Operation {
        method: Method::GET,
        path: "/v1/history",
        role: Some(Role::Read),
        summary: "Show what the links of racks or hosts carried in the last hour.",
        parameters: &[query("kind", "string", "`rack` or `host`."), SINCE, STEP],
        body: None,
        answers: &[(200, "The links over time.", Json(of::<network::History>))],
        handler: || get(network::history),
    },
    Operation {
        method: Method::GET,
        path: "/v1/hosts",
        role: Some(Role::Read),
        summary: "List the hosts.",
        parameters: &[LIMIT, AFTER],
        body: None,
        answers: &[(200, "Hosts.", Json(of::<Page<shapes::Host>>))],
        handler: || get(network::hosts),
    },
    Operation {
        method: Method::GET,
        path: "/v1/hosts/{host}",
        role: Some(Role::Read),
        summary: "Show a host.",
        parameters: &[path("host", "Its name.")],
        body: None,
        answers: &[(200, "The host.", Json(of::<shapes::Host>))],
        handler: || get(network::host),
    },
    Operation {
        method: Method::GET,
        path: "/v1/hotspots",
        role: Some(Role::Read),
        summary: "List the links that are hot, the longest first.",
        parameters: &[LIMIT, AFTER],
        body: None,
        answers: &[(200, "Hot links.", Json(of::<Page<network::Hotspot>>))],
        handler: || get(network::hotspots),
    },
    Operation {
        method: Method::GET,
        path: "/v1/migrations",
        role: Some(Role::Read),
        summary: "List the moves that were advised, the last ones first.",
        parameters: &[
            query("state", "string", "`advised`, `done`, `refused` or `expired` only."),
            LIMIT,
            AFTER,
        ],
        body: None,
        answers: &[(200, "Moves.", Json(of::<Page<migrations::Migration>>))],
        handler: || get(migrations::list),
    },
    Operation {
        method: Method::POST,
        path: "/v1/migrations/{id}",
        role: Some(Role::Place),
        summary: "Say that a task was moved, or that it stays where it is.",
        parameters: &[path("id", "What the move is called.")],
        body: Some(of::<migrations::AnswerBody>),
        answers: &[(200, "The move.", Json(of::<migrations::Migration>))],
        handler: || post(migrations::answer),
    },
    Operation {
        method: Method::PUT,
        path: "/v1/jobs/{job}",
        role: Some(Role::Place),
        summary: "Say how many moves a job can bear.",
        parameters: &[path("job", "Its name.")],
        body: Some(of::<migrations::JobBody>),
        answers: &[(204, "It was noted.", Nothing)],
        handler: || put(migrations::job),
    },
    Operation {
        method: Method::GET,
        path: "/v1/snapshot",
        role: Some(Role::Read),
        summary: "Show every link, small, and which placements are counted in.",
        parameters: &[
            query("after", "integer", "Wait for a state of the ledger after this one."),
            query("wait", "string", "How long, `30s`; a minute at most. What there is then is shown."),
        ],
        body: None,
        answers: &[(200, "The network.", Json(of::<shapes::Snapshot>))],
        handler: || get(network::snapshot),
    },
    Operation {
        method: Method::GET,
        path: "/v1/events",
        role: Some(Role::Read),
        summary: "Listen to what happens: `decision`, `racks`, `hotspot`, `cluster`, `leader`, as server-sent events.",
        parameters: &[Parameter {
            place: "header",
            name: "last-event-id",
            text: "Go on after this event. If what came since is not kept any more, an event `missed` says so.",
            kind: "string",
        }],
        body: None,
        answers: &[(
            200,
            "Events; `data` of each is the field of its name.",
            Stream(of::<events::Described>),
        )],
        handler: || get(events::events),
    },
    Operation {
        method: Method::GET,
        path: "/metrics",
        role: Some(Role::Read),
        summary: "Show numbers for Prometheus.",
        parameters: &[],
        body: None,
        answers: &[(200, "Numbers.", Text(metrics::MEDIA))],
        handler: || get(metrics::metrics),
    },
    Operation {
        method: Method::GET,
        path: "/v1/status",
        role: Some(Role::Read),
        summary: "Show what the service is, and how much it has.",
        parameters: &[],
        body: None,
        answers: &[(200, "The service.", Json(of::<status::Status>))],
        handler: || get(status::status),
    },
    Operation {
        method: Method::POST,
        path: "/v1/reload",
        role: Some(Role::Admin),
        summary: "Read tokens, certificate, limits of rates and the level of the log again.",
        parameters: &[],
        body: None,
        answers: &[(200, "What counts now, and what takes a restart.", Json(of::<Reloaded>))],
        handler: || post(reload::reload),
    },
    Operation {
        method: Method::GET,
        path: "/v1/demo",
        role: Some(Role::Read),
        summary: "Show the same work placed in several ways; only of a service that was started as a demo.",
        parameters: &[],
        body: None,
        answers: &[(200, "The comparison.", Json(of::<demo::Demo>))],
        handler: || get(demo::get),
    },
    Operation {
        method: Method::PUT,
        path: "/v1/demo",
        role: Some(Role::Admin),
        summary: "Say how the comparison of a demo stands.",
        parameters: &[],
        body: Some(of::<demo::Demo>),
        answers: &[(204, "It is shown.", Nothing)],
        handler: || put(demo::put),
    },
    Operation {
        method: Method::GET,
        path: "/healthz",
        role: None,
        summary: "Say whether the process answers.",
        parameters: &[],
        body: None,
        answers: &[(200, "It does.", Text("text/plain"))],
        handler: || get(status::alive),
    },
    Operation {
        method: Method::GET,
        path: "/readyz",
        role: None,
        summary: "Say whether placements are answered here.",
        parameters: &[],
        body: None,
        answers: &[(200, "They are.", Text("text/plain"))],
        handler: || get(status::ready),
    },
    Operation {
        method: Method::GET,
        path: "/v1/openapi.json",
        role: Some(Role::Read),
        summary: "Describe all of this, as OpenAPI 3.1.",
        parameters: &[],
        body: None,
        answers: &[(200, "The description.", Json(of::<Value>))],
        handler: || get(status::description),
    },
];

/// Everything that is answered.
pub fn routes(edge: Edge) -> Router {
    let edge = Arc::new(edge);
    table::router(OPERATIONS)
        .fallback(page::page)
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(DefaultBodyLimit::max(edge.largest))
        .layer(from_fn_with_state(edge.clone(), gate::gate))
        .with_state(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_in_the_reference_with_its_role() {
        let page = include_str!("../../../../docs/reference/http-api.md");
        for one in OPERATIONS {
            let role = one.role.map_or("none", Role::name);
            let row = format!("| `{} {}` | {role} |", one.method, one.path);
            assert!(page.contains(&row), "{row}");
        }
        let is_row = |line: &&str| {
            let method = line.strip_prefix("| `").and_then(|line| line.split_once(" /"));
            method.is_some_and(|(method, _)| method.bytes().all(|byte| byte.is_ascii_uppercase()))
        };
        let rows = page.lines().filter(is_row).count();
        assert_eq!(rows, OPERATIONS.len(), "the page has an operation that there is not");
    }

    #[test]
    fn every_problem_is_in_the_reference() {
        let page = include_str!("../../../../docs/reference/http-api.md");
        for (word, status) in problem::words() {
            assert!(page.contains(&format!("| `{word}` | {status} |")), "{word} {status}");
        }
    }
}
