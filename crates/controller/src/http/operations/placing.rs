//! Operations about telemetry, placements and decisions.

use axum::http::Method;
use axum::routing::{delete, get, post};

use super::{DRY_RUN, ID, KEY};
use crate::http::pages::Page;
use crate::http::table::Content::{self, Json};
use crate::http::table::{Operation, Subject, of, path, query};
use crate::http::{decisions, pages, place, policies, reports, score, search, workloads};
use leeward_access::Role;

/// Answers to a request that places.
const DECIDED: &[(u16, &str, Content)] = &[
    (200, "The decision of an earlier identical request, or of a dry run.", Json(of::<decisions::Decision>)),
    (201, "The decision.", Json(of::<decisions::Decision>)),
];

pub(super) const SUBJECT: Subject = Subject {
    name: "placing",
    text: "Telemetry reports, and placement of replicas, tasks and volumes, with explanations.",
    operations: &[
        Operation {
            method: Method::POST,
            path: "/v1/reports",
            role: Some(Role::Report),
            summary: "Report telemetry.",
            parameters: &[],
            body: Some(of::<reports::ReportBody>),
            answers: &[(
                200,
                "Counts of accepted and skipped samples.",
                Json(of::<leeward_service::ReportSummary>),
            )],
            handler: || post(reports::report),
        },
        Operation {
            method: Method::POST,
            path: "/v1/place/replicas",
            role: Some(Role::Place),
            summary: "Place the replicas of a block.",
            parameters: &[KEY, DRY_RUN],
            body: Some(of::<place::ReplicasBody>),
            answers: DECIDED,
            handler: || post(place::place::<place::ReplicasBody>),
        },
        Operation {
            method: Method::POST,
            path: "/v1/place/tasks",
            role: Some(Role::Place),
            summary: "Place tasks.",
            parameters: &[KEY, DRY_RUN],
            body: Some(of::<place::TasksBody>),
            answers: DECIDED,
            handler: || post(place::place::<place::TasksBody>),
        },
        Operation {
            method: Method::POST,
            path: "/v1/place/volumes",
            role: Some(Role::Place),
            summary: "Place the volume of a workload on a server, and guarantee the workload's SLO.",
            parameters: &[KEY, DRY_RUN],
            body: Some(of::<place::WorkloadBody>),
            answers: DECIDED,
            handler: || post(place::place::<place::VolumesBody>),
        },
        Operation {
            method: Method::POST,
            path: "/v1/score/hosts",
            role: Some(Role::Read),
            summary: "Score hosts for a task, without a commitment.",
            parameters: &[],
            body: Some(of::<score::ScoreBody>),
            answers: &[(200, "Scores.", Json(of::<score::Scores>))],
            handler: || post(score::hosts),
        },
        Operation {
            method: Method::POST,
            path: "/v1/workloads",
            role: Some(Role::Place),
            summary: "Admit a workload whose volume exists, and guarantee its SLO, or reject it.",
            parameters: &[KEY, DRY_RUN],
            body: Some(of::<place::WorkloadBody>),
            answers: DECIDED,
            handler: || post(place::place::<place::WorkloadBody>),
        },
        Operation {
            method: Method::GET,
            path: "/v1/workloads",
            role: Some(Role::Read),
            summary: "List admitted workloads, newest first.",
            parameters: &[query::<pages::PageQuery>()],
            body: None,
            answers: &[(200, "Workloads.", Json(of::<Page<workloads::Workload>>))],
            handler: || get(workloads::list),
        },
        Operation {
            method: Method::GET,
            path: "/v1/workloads/{name}",
            role: Some(Role::Read),
            summary: "Get the workload of this name: the admitted one, or the last one that ended.",
            parameters: &[path("name", "Name of the workload.", of::<String>)],
            body: None,
            answers: &[(200, "The workload.", Json(of::<workloads::Workload>))],
            handler: || get(workloads::one),
        },
        Operation {
            method: Method::GET,
            path: "/v1/policies",
            role: Some(Role::Read),
            summary: "List policies by kind of decision.",
            parameters: &[],
            body: None,
            answers: &[(200, "Policies.", Json(of::<policies::Policies>))],
            handler: || get(policies::list),
        },
        Operation {
            method: Method::GET,
            path: "/v1/decisions",
            role: Some(Role::Read),
            summary: "List decisions, newest first, or search all stored ones.",
            parameters: &[query::<search::SearchQuery>()],
            body: None,
            answers: &[(200, "Decisions.", Json(of::<Page<decisions::Decision>>))],
            handler: || get(search::decisions),
        },
        Operation {
            method: Method::GET,
            path: "/v1/decisions/{id}",
            role: Some(Role::Read),
            summary: "Get a decision.",
            parameters: &[ID],
            body: None,
            answers: &[(200, "The decision.", Json(of::<decisions::Decision>))],
            handler: || get(decisions::decision),
        },
        Operation {
            method: Method::POST,
            path: "/v1/decisions/{id}/what-if",
            role: Some(Role::Read),
            summary: "Evaluate a decision's request with another policy now, without a commitment.",
            parameters: &[ID],
            body: Some(of::<decisions::WhatIfBody>),
            answers: &[(200, "The hypothetical decision.", Json(of::<decisions::Decision>))],
            handler: || post(decisions::what_if),
        },
        Operation {
            method: Method::GET,
            path: "/v1/commitments",
            role: Some(Role::Read),
            summary: "List decisions in memory that hold resources, newest first.",
            parameters: &[query::<decisions::ListQuery>()],
            body: None,
            answers: &[(200, "Decisions.", Json(of::<Page<decisions::Decision>>))],
            handler: || get(decisions::commitments),
        },
        Operation {
            method: Method::DELETE,
            path: "/v1/commitments/{id}",
            role: Some(Role::Place),
            summary: "Release the resources of a decision whose work has ended.",
            parameters: &[ID, DRY_RUN],
            body: None,
            answers: &[(200, "The decision.", Json(of::<decisions::Decision>))],
            handler: || delete(decisions::release),
        },
    ],
};
