//! Operations about the service itself, and streams to follow it.

use axum::http::Method;
use axum::routing::{get, post, put};
use leeward_records::schema::Id;
use serde_json::Value;

use crate::access::Role;
use crate::http::table::Content::{Json, Nothing, Stream, Text};
use crate::http::table::{Operation, Subject, header, of, query};
use crate::http::{demo, events, metrics, network, reload, shapes, status};
use crate::reload::Reloaded;

pub(super) const SUBJECT: Subject = Subject {
    name: "service",
    text: "What others follow and watch, and how the service is.",
    operations: &[
        Operation {
            method: Method::GET,
            path: "/v1/snapshot",
            role: Some(Role::Read),
            summary: "Show every link, small, and which placements are counted in.",
            parameters: &[query::<network::Newer>()],
            body: None,
            answers: &[(200, "The network.", Json(of::<shapes::Snapshot>))],
            handler: || get(network::snapshot),
        },
        Operation {
            method: Method::GET,
            path: "/v1/events",
            role: Some(Role::Read),
            summary: "Listen to what happens: `decision`, `racks`, `hotspot`, `cluster`, `leader`, `missed`, as server-sent events.",
            parameters: &[header(
                "last-event-id",
                "Go on after this event. If what came since is not kept any more, an event `missed` says so.",
                of::<Id>,
            )],
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
            path: "/v1/openapi.json",
            role: Some(Role::Read),
            summary: "Describe all of this, as OpenAPI 3.1.",
            parameters: &[],
            body: None,
            answers: &[(200, "The description.", Json(of::<Value>))],
            handler: || get(status::description),
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
    ],
};
