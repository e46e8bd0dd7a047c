//! Operations about the service itself, and streams to follow it.

use axum::http::Method;
use axum::routing::{get, patch, post, put};
use leeward_records::schema::Id;
use serde_json::Value;

use super::DRY_RUN;
use crate::http::pages::{Page, PageQuery};
use crate::http::table::Content::{Json, Nothing, Stream, Text};
use crate::http::table::{Operation, Subject, header, of, query};
use crate::http::{board, demo, events, labs, metrics, modes, reload, snapshot, status, summary};
use crate::reload::Reloaded;
use leeward_access::Role;

pub(super) const SUBJECT: Subject = Subject {
    name: "service",
    text: "Snapshots, events, metrics, and the state of the service.",
    operations: &[
        Operation {
            method: Method::GET,
            path: "/v1/snapshot",
            role: Some(Role::Read),
            summary: "Get links, racks, hosts or devices in columns, whole or as the difference from an earlier snapshot.",
            parameters: &[query::<snapshot::SnapshotQuery>()],
            body: None,
            answers: &[(200, "The network.", Json(of::<leeward_frames::Snapshot>))],
            handler: || get(snapshot::snapshot),
        },
        Operation {
            method: Method::GET,
            path: "/v1/events",
            role: Some(Role::Read),
            summary: "Stream server-sent events: `decision`, `racks`, `hotspot`, `cluster`, `leader`, `modes`, `promise`, \
                      `enforcer`, `missed`.",
            parameters: &[
                query::<events::EventsQuery>(),
                header(
                    "last-event-id",
                    "Resume after this event. If later events are no longer stored, the first event is `missed`.",
                    of::<Id>,
                ),
            ],
            body: None,
            answers: &[(
                200,
                "Events. The schema has a field for each event name, which describes the `data` of that event.",
                Stream(of::<events::Described>),
            )],
            handler: || get(events::events),
        },
        Operation {
            method: Method::GET,
            path: "/v1/status",
            role: Some(Role::Read),
            summary: "Get the state of the service and its counts.",
            parameters: &[],
            body: None,
            answers: &[(200, "The service.", Json(of::<status::Status>))],
            handler: || get(status::status),
        },
        Operation {
            method: Method::GET,
            path: "/v1/summary",
            role: Some(Role::Read),
            summary: "Get a summary of decisions, moves and hot links, with and without Leeward.",
            parameters: &[query::<summary::SummaryQuery>()],
            body: None,
            answers: &[(200, "The summary.", Json(of::<summary::Summary>))],
            handler: || get(summary::summary),
        },
        Operation {
            method: Method::GET,
            path: "/v1/modes",
            role: Some(Role::Read),
            summary: "Get the modes: who decides requests of each kind.",
            parameters: &[],
            body: None,
            answers: &[(200, "The modes.", Json(of::<modes::ModesBody>))],
            handler: || get(modes::get),
        },
        Operation {
            method: Method::PATCH,
            path: "/v1/modes",
            role: Some(Role::Admin),
            summary: "Change modes. They stay over restarts, until the modes of the settings file change.",
            parameters: &[DRY_RUN],
            body: Some(of::<modes::ModeChangeBody>),
            answers: &[(200, "The modes.", Json(of::<modes::ModesBody>))],
            handler: || patch(modes::patch),
        },
        Operation {
            method: Method::POST,
            path: "/v1/reload",
            role: Some(Role::Admin),
            summary: "Reload policies, modes, estimates of loads, tokens, certificate, rate limits, polling and log level.",
            parameters: &[DRY_RUN],
            body: None,
            answers: &[(
                200,
                "Settings in force, and changed settings that need a restart.",
                Json(of::<Reloaded>),
            )],
            handler: || post(reload::reload),
        },
        Operation {
            method: Method::GET,
            path: "/v1/demo",
            role: Some(Role::Read),
            summary: "Get the comparison of policies; only in demo mode.",
            parameters: &[],
            body: None,
            answers: &[(200, "The comparison.", Json(of::<board::Demo>))],
            handler: || get(demo::get),
        },
        Operation {
            method: Method::PUT,
            path: "/v1/demo",
            role: Some(Role::Admin),
            summary: "Replace the comparison; only in demo mode.",
            parameters: &[],
            body: Some(of::<board::Demo>),
            answers: &[(204, "Stored.", Nothing)],
            handler: || put(demo::put),
        },
        Operation {
            method: Method::GET,
            path: "/v1/labs",
            role: Some(Role::Read),
            summary: "List labs with circuits that stand on the machine of the service, with their latest views.",
            parameters: &[query::<PageQuery>()],
            body: None,
            answers: &[(200, "Labs.", Json(of::<Page<leeward_lab::StandingLab>>))],
            handler: || get(labs::list),
        },
        Operation {
            method: Method::GET,
            path: "/v1/openapi.json",
            role: Some(Role::Read),
            summary: "Get this API's description in OpenAPI 3.1.",
            parameters: &[],
            body: None,
            answers: &[(200, "The OpenAPI document.", Json(of::<Value>))],
            handler: || get(status::description),
        },
        Operation {
            method: Method::GET,
            path: "/metrics",
            role: Some(Role::Read),
            summary: "Get metrics as OpenMetrics, or in the text format of Prometheus if `accept` prefers it.",
            parameters: &[],
            body: None,
            answers: &[(200, "Metrics.", Text(metrics::MEDIA))],
            handler: || get(metrics::metrics),
        },
        Operation {
            method: Method::GET,
            path: "/healthz",
            role: None,
            summary: "Liveness probe.",
            parameters: &[],
            body: None,
            answers: &[(200, "The process is alive.", Text(&["text/plain"]))],
            handler: || get(status::alive),
        },
        Operation {
            method: Method::GET,
            path: "/readyz",
            role: None,
            summary: "Readiness probe: 200 if this service answers placements.",
            parameters: &[],
            body: None,
            answers: &[(200, "The service answers placements.", Text(&["text/plain"]))],
            handler: || get(status::ready),
        },
    ],
};
