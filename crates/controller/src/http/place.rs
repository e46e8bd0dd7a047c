//! Placements: bodies of requests, and the operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use leeward_agreements::Form;
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Nanos};
use leeward_placement::replicas::Coding;
use leeward_placement::tasks::App;
use leeward_placement::{Apart, LabelValues};
use leeward_records::schema::{AppForm, Name, Reference, WorkloadForm};
use leeward_records::{
    Caller, DecisionRecord, PlacementSpec, ReplicasSpec, TasksSpec, WorkloadSpec, distinct, labels,
};
use leeward_service::{DryRun, PlaceError, Placed, Placement, Reservation, WhatIfResult};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body::Body;
use super::decisions::Decision;
use super::dry_run::DryRunQuery;
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_problems::{IntoProblem, Problem};

/// Largest integer that every JSON parser reads exactly.
const EXACT: u64 = (1 << 53) - 1;
/// Largest number of tasks of a request. Placing them blocks all other requests.
const MOST_TASKS: usize = 1_000;
/// Largest number of transfers between the tasks of a request.
const MOST_TRANSFERS: usize = 100_000;
/// Largest number of other jobs from which tasks stay apart.
const MOST_JOBS: usize = 64;
/// Header with the idempotency key.
const KEY: &str = "idempotency-key";

/// Schema of a key: printable characters without leading and trailing spaces, because headers do not preserve such
/// spaces.
pub fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": Name::LONGEST, "pattern": "^[!-~]([ -~]*[!-~])?$" })
}

/// Body of a placement request.
pub trait PlacementBody: DeserializeOwned + Send {
    /// Kind of the decision.
    const KIND: &'static str;

    /// Duration for which the decision is held unless it is confirmed.
    fn reserve(&self) -> Option<Nanos>;

    /// The placement that the body describes.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    fn placement(self, headers: &HeaderMap) -> Result<Placement, Problem>;

    /// The placement with its reservation, if its durations are valid.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    fn reservation(self, headers: &HeaderMap) -> Result<Reservation, Problem> {
        let reserve = self.reserve();
        let placement = self.placement(headers)?;
        for (field, duration) in [("lasts", placement.lasts), ("reserve", reserve)] {
            if duration == Some(Nanos(0)) {
                return Err(Problem::field(field, "0s: expected more than nothing"));
            }
        }
        Ok(Reservation::of(placement, reserve))
    }
}

/// Idempotency key of a request, if it has one.
///
/// # Errors
/// [`Problem`] for an invalid key.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    match headers.get(KEY).map(|key| key.to_str()) {
        None => Ok(None),
        Some(Ok(key)) if Name::fits(key) => Ok(Some(key.to_owned())),
        Some(_) => Err(Problem::field(KEY, invalid_key())),
    }
}

/// Rejects a batch with a key of its own: its items have keys.
///
/// # Errors
/// [`Problem`] for the header `idempotency-key`.
pub(super) fn without_key(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.contains_key(KEY) {
        true => Err(Problem::field(KEY, "a batch has no key of its own; give each item a `key`")),
        false => Ok(()),
    }
}

/// The placement with the key of its item, which stands for the header `idempotency-key`.
///
/// # Errors
/// [`Problem`] for an invalid key, and for one beside another name of the request.
pub(super) fn with_key(placement: Placement, key: Option<String>) -> Result<Placement, Problem> {
    let Some(key) = key else { return Ok(placement) };
    if !is_key(&key) {
        return Err(Problem::field("key", invalid_key()));
    }
    if placement.caller.is_some() {
        let detail = format!("give `client` and `sequence`, or `key`, or the header `{KEY}`, and only one");
        return Err(Problem::field("key", detail));
    }
    Ok(Placement { caller: Some(Caller::Key(key.into())), ..placement }.with_digest())
}

/// True for a key that a header could carry.
fn is_key(key: &str) -> bool {
    Name::fits(key) && key.is_ascii() && key.trim_ascii() == key
}

/// Message about an invalid key.
fn invalid_key() -> String {
    format!("expected 1 to {} printable characters", Name::LONGEST)
}

/// Caller of a request, by its idempotency key or by its client and sequence number.
fn caller(
    headers: &HeaderMap,
    client: Option<String>,
    sequence: Option<u64>,
) -> Result<Option<Caller>, Problem> {
    let key = key_of(headers)?.map(|key| Caller::Key(key.into()));
    match (client, sequence) {
        (None, None) => Ok(key),
        (Some(_), None) => Err(Problem::field("sequence", "missing; `client` needs one: 1, 2, 3 and so on")),
        (None, Some(_)) => {
            Err(Problem::field("client", "missing; `sequence` needs one: the name of the client"))
        }
        (Some(_), Some(_)) if key.is_some() => Err(Problem::field(
            "client",
            "give `client` and `sequence`, or the header `idempotency-key`, not both",
        )),
        (Some(client), Some(_)) if !Name::fits(&client) => Err(Problem::name("client")),
        (Some(_), Some(sequence)) if sequence > EXACT => {
            Err(Problem::field("sequence", format!("{sequence}: expected at most {EXACT}")))
        }
        (Some(client), Some(sequence)) => Ok(Some(Caller::Client { client: Arc::from(client), sequence })),
    }
}

/// Name of the placed thing in the client's words.
fn reference(name: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    match name {
        Some(name) if !Reference::fits(&name) => Err(Problem::reference("ref")),
        name => Ok(name.map(Arc::from)),
    }
}

/// The body of `POST /v1/place/replicas`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("dependentRequired" = { "client": ["sequence"], "sequence": ["client"] }))]
pub struct ReplicasBody {
    /// Size of the block.
    size: Bytes,
    /// Host that writes the block. Without it, the writer is outside the cluster.
    writer: Option<String>,
    /// Number of copies, including the writer's and without existing ones; default 3. Not with `coding`.
    #[schemars(range(min = 1))]
    replicas: Option<u8>,
    /// Erasure code, such as `6+3`: instead of copies, each host stores a chunk. The request places all chunks of the stripe
    /// that no host in `existing` has.
    coding: Option<Coding>,
    /// Number of fault domains that must hold a copy, besides the fault domain of the first copy. With `coding`, number of
    /// fault domains that may be lost.
    fault_domains: Option<u8>,
    /// Blocks of the file still to write, including this one.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    blocks_left: u64,
    /// Hosts, racks and pods to avoid.
    #[serde(default)]
    exclude: Vec<String>,
    /// Tags that the hosts must have.
    #[serde(default)]
    tags: Vec<String>,
    /// Hosts of related files: no other host is eligible.
    #[serde(default)]
    collocate: Vec<String>,
    /// Hosts that have a copy already, such as when a host is lost or leaves: `replicas` counts the new copies only. Without
    /// a writer, one of these hosts sends the copies. With `coding`, hosts that have a chunk: the host of the first missing
    /// chunk reads from these hosts and rebuilds the missing ones.
    #[serde(default)]
    #[schemars(length(max = 255), extend("uniqueItems" = true))]
    existing: Vec<String>,
    /// Hosts to try first, in this order.
    #[serde(default)]
    #[schemars(length(max = 255), extend("uniqueItems" = true))]
    prefer: Vec<String>,
    /// Labels that the hosts must have, each with one of the values.
    #[serde(default, deserialize_with = "labels::read")]
    #[schemars(schema_with = "labels::schema")]
    labels: LabelValues,
    /// Type of storage that holds the copies, as `type` of devices in the cluster file.
    #[schemars(with = "Option<Name>")]
    storage: Option<String>,
    /// Largest excess of a host's used share of storage over the average of all hosts.
    #[schemars(range(min = 0, max = 1))]
    max_imbalance: Option<f64>,
    /// Name of the client.
    #[schemars(with = "Option<Name>")]
    client: Option<String>,
    /// Sequence number of the client's request; it must increase.
    #[schemars(range(max = EXACT))]
    sequence: Option<u64>,
    /// Name of the placed thing in the client's words, such as the id of a block, a Kubernetes pod or a volume.
    /// Decisions can be searched by it.
    #[serde(rename = "ref")]
    #[schemars(with = "Option<Reference>")]
    reference: Option<String>,
    /// Duration after which the decision expires.
    lasts: Option<Nanos>,
    /// Duration for which the decision is held: it ends then, unless `POST /v1/decisions/{id}/confirm` confirms it.
    reserve: Option<Nanos>,
}

fn one() -> u64 {
    1
}

impl PlacementBody for ReplicasBody {
    const KIND: &'static str = "replicas";

    fn reserve(&self) -> Option<Nanos> {
        self.reserve
    }

    fn placement(self, headers: &HeaderMap) -> Result<Placement, Problem> {
        if self.blocks_left == 0 {
            return Err(Problem::field("blocks_left", "0: expected at least 1, this block included"));
        }
        let missing = self.coding.map(|coding| coding.missing(self.existing.len()));
        if missing.is_some() && self.replicas.is_some() {
            return Err(Problem::field("replicas", "give `replicas` or `coding`, not both"));
        }
        let spec = ReplicasSpec {
            size: self.size,
            writer: self.writer,
            replicas: missing.or(self.replicas).unwrap_or(3),
            coding: self.coding,
            fault_domains: self.fault_domains,
            exclude: self.exclude,
            tags: self.tags,
            collocate: self.collocate,
            existing: self.existing,
            prefer: self.prefer,
            labels: self.labels,
            storage: self.storage,
            max_imbalance: self.max_imbalance,
            truncated: false,
            blocks_left: Some(self.blocks_left),
        };
        let caller = caller(headers, self.client, self.sequence)?;
        Ok(Placement {
            spec: PlacementSpec::Replicas(spec),
            caller,
            lasts: self.lasts,
            reference: reference(self.reference)?,
            digest: None,
        }
        .with_digest())
    }
}

/// The body of `POST /v1/place/tasks`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("dependentRequired" = { "client": ["sequence"], "sequence": ["client"] }))]
pub struct TasksBody {
    /// Tasks and their traffic, as in an app file.
    #[schemars(with = "AppForm")]
    #[serde(deserialize_with = "distinct::value")]
    app: Value,
    /// Job of the tasks. The policy spreads the tasks of a job over racks.
    #[schemars(with = "Option<Name>")]
    job: Option<String>,
    /// Hosts, racks and pods to avoid.
    #[serde(default)]
    exclude: Vec<String>,
    /// Tags that the hosts must have.
    #[serde(default)]
    tags: Vec<String>,
    /// Labels that the hosts must have, each with one of the values.
    #[serde(default, deserialize_with = "labels::read")]
    #[schemars(schema_with = "labels::schema")]
    labels: LabelValues,
    /// Level at which the tasks of the job are apart, those that run already included: no two of them share a host, or a
    /// rack.
    apart: Option<Apart>,
    /// Level at which the tasks are apart from those of other jobs that run, by the name of the job.
    #[serde(default, deserialize_with = "labels::levels")]
    #[schemars(extend("maxProperties" = MOST_JOBS))]
    apart_from: BTreeMap<String, Apart>,
    /// Name of the client.
    #[schemars(with = "Option<Name>")]
    client: Option<String>,
    /// Sequence number of the client's request; it must increase.
    #[schemars(range(max = EXACT))]
    sequence: Option<u64>,
    /// Name of the placed thing in the client's words, such as the id of a block, a Kubernetes pod or a volume.
    /// Decisions can be searched by it.
    #[serde(rename = "ref")]
    #[schemars(with = "Option<Reference>")]
    reference: Option<String>,
    /// Duration after which the decision expires.
    lasts: Option<Nanos>,
    /// Duration for which the decision is held: it ends then, unless `POST /v1/decisions/{id}/confirm` confirms it.
    reserve: Option<Nanos>,
}

impl PlacementBody for TasksBody {
    const KIND: &'static str = "tasks";

    fn reserve(&self) -> Option<Nanos> {
        self.reserve
    }

    fn placement(self, headers: &HeaderMap) -> Result<Placement, Problem> {
        let app = App::from_json(&self.app).map_err(|error| inside("app", error))?;
        let (tasks, transfers) = (app.request.tasks.len(), app.request.transfers.len());
        if tasks > MOST_TASKS {
            let detail =
                format!("{tasks} tasks: expected at most {MOST_TASKS}; place them in several requests");
            return Err(Problem::field("app.tasks", detail));
        }
        if transfers > MOST_TRANSFERS {
            let detail = format!("{transfers} between tasks: expected at most {MOST_TRANSFERS}");
            return Err(Problem::field("app.transfers", detail));
        }
        if let Some(job) = &self.job
            && !Name::fits(job)
        {
            return Err(Problem::name("job"));
        }
        if self.apart_from.len() > MOST_JOBS {
            let detail = format!("{} jobs: expected at most {MOST_JOBS}", self.apart_from.len());
            return Err(Problem::field("apart_from", detail));
        }
        if self.job.as_ref().is_some_and(|job| self.apart_from.contains_key(job)) {
            let detail = "the job of the tasks is no other job; use `apart` for it, not both";
            return Err(Problem::field("apart_from", detail));
        }
        let (exclude, labels) = (self.exclude, self.labels);
        let (apart, apart_from) = (self.apart, self.apart_from);
        let spec = TasksSpec::of(&app, self.job, self.tags);
        let spec = TasksSpec { exclude, labels, apart, apart_from, ..spec };
        let caller = caller(headers, self.client, self.sequence)?;
        Ok(Placement {
            spec: PlacementSpec::Tasks(spec),
            caller,
            lasts: self.lasts,
            reference: reference(self.reference)?,
            digest: None,
        }
        .with_digest())
    }
}

/// The body of `POST /v1/workloads` and of `POST /v1/place/volumes`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("dependentRequired" = { "client": ["sequence"], "sequence": ["client"] }))]
pub struct WorkloadBody {
    /// The workload, as in a workload file, but with contents instead of file names. `POST /v1/workloads` requires
    /// `server`, the host of the volume. `POST /v1/place/volumes` chooses the host and rejects the field.
    #[schemars(with = "WorkloadForm")]
    #[serde(deserialize_with = "distinct::object")]
    workload: Form,
    /// Name of the client.
    #[schemars(with = "Option<Name>")]
    client: Option<String>,
    /// Sequence number of the client's request; it must increase.
    #[schemars(range(max = EXACT))]
    sequence: Option<u64>,
    /// Name of the placed thing in the client's words, such as the id of a block, a Kubernetes pod or a volume.
    /// Decisions can be searched by it.
    #[serde(rename = "ref")]
    #[schemars(with = "Option<Reference>")]
    reference: Option<String>,
    /// Duration after which the decision expires.
    lasts: Option<Nanos>,
    /// Duration for which the decision is held: it ends then, unless `POST /v1/decisions/{id}/confirm` confirms it.
    reserve: Option<Nanos>,
}

impl PlacementBody for WorkloadBody {
    const KIND: &'static str = "workload";

    fn reserve(&self) -> Option<Nanos> {
        self.reserve
    }

    fn placement(self, headers: &HeaderMap) -> Result<Placement, Problem> {
        leeward_agreements::check(&self.workload, true).map_err(|error| inside("workload", error))?;
        let spec = PlacementSpec::Workload(WorkloadSpec { workload: self.workload });
        Ok(Placement {
            spec,
            caller: caller(headers, self.client, self.sequence)?,
            lasts: self.lasts,
            reference: reference(self.reference)?,
            digest: None,
        }
        .with_digest())
    }
}

/// The body of `POST /v1/place/volumes`: a workload without a `server`.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct VolumesBody(WorkloadBody);

impl PlacementBody for VolumesBody {
    const KIND: &'static str = "volumes";

    fn reserve(&self) -> Option<Nanos> {
        self.0.reserve
    }

    fn placement(self, headers: &HeaderMap) -> Result<Placement, Problem> {
        let VolumesBody(WorkloadBody { workload, client, sequence, reference: named, lasts, .. }) = self;
        leeward_agreements::check(&workload, false).map_err(|error| inside("workload", error))?;
        let spec = PlacementSpec::Volumes(WorkloadSpec { workload });
        let (caller, reference) = (caller(headers, client, sequence)?, reference(named)?);
        Ok(Placement { spec, caller, lasts, reference, digest: None }.with_digest())
    }
}

/// Problem for an error inside a field of the body.
fn inside(field: &str, error: InputError) -> Problem {
    error.under(field).into()
}

/// Decides a request without a commit. Returns the record that a commit would store.
///
/// # Errors
/// [`Problem`] for an invalid or rejected request.
pub(super) async fn dry_run(app: &AppState, placement: &Placement) -> Result<Arc<DecisionRecord>, Problem> {
    let WhatIfResult { record, refusal, .. } = app.call(|_| Ok(DryRun(placement.clone()))).await?;
    let rejected = match refusal {
        Some(refusal) => PlaceError::Rejected(refusal),
        None if record.details.hosts.is_empty() => {
            PlaceError::SloRejected(record.details.note.clone().unwrap_or_default())
        }
        None => return Ok(record),
    };
    Err(rejected.problem(&app.clock))
}

/// Checks that a repeated request is the request of the decision. Decisions of earlier versions of the program have no
/// digest, and only their kind is checked.
fn check_repeated(placement: &Placement, record: &DecisionRecord) -> Result<(), Problem> {
    let kind = record.details.spec.kind();
    let first = if kind != placement.spec.kind() {
        format!("decision {}, of kind {kind}", record.id)
    } else if record.details.digest.is_some() && record.details.digest != placement.digest {
        format!("decision {}, whose request had another body", record.id)
    } else {
        return Ok(());
    };
    Err(Problem::reused(record.caller.as_ref(), &first))
}

/// Places a request and returns the decision. Rejects a repeated request if the first request was another one.
pub async fn place<B: PlacementBody>(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(body): Body<B>,
) -> ApiResult {
    let reservation = body.reservation(&headers)?;
    if query.dry_run {
        let record = dry_run(&app, &reservation.placement).await?;
        let body = Json(Decision::of(&record, &app.clock).in_dry_run());
        return Ok((Extension(Outcome("dry_run")), body).into_response());
    }
    let placed = app.call(|_| Ok(reservation.clone())).await?;
    Ok(answer(&app, &checked(&reservation.placement, placed)?))
}

/// The result of a placement. Rejects a repeated request if the first request was another one.
///
/// # Errors
/// [`Problem`] that names the first request.
pub(super) fn checked(placement: &Placement, placed: Placed) -> Result<Placed, Problem> {
    if placed.repeated {
        check_repeated(placement, &placed.record)?;
    }
    Ok(placed)
}

/// Answer with a new decision, or with the decision of an earlier identical request.
pub(super) fn answer(app: &AppState, Placed { record, repeated }: &Placed) -> Response {
    let (outcome, status) =
        if *repeated { ("repeated", StatusCode::OK) } else { ("placed", StatusCode::CREATED) };
    let location = format!("/v1/decisions/{}", record.id);
    let body = Json(Decision::of(record, &app.clock));
    (status, [(header::LOCATION, location)], Extension(Outcome(outcome)), body).into_response()
}

/// Outcome of a placement without a problem, as an extension of the response. The middleware counts each request of a
/// placement once, by its outcome or its problem, so that the counts add up to the requests.
#[derive(Clone, Copy)]
pub struct Outcome(pub &'static str);

/// Kind of placement that an operation requests; `None` for other operations.
pub fn placement_kind(method: &str, path: &str) -> Option<&'static str> {
    match (method, path) {
        ("POST", "/v1/place/replicas") => Some(ReplicasBody::KIND),
        ("POST", "/v1/place/tasks") => Some(TasksBody::KIND),
        ("POST", "/v1/place/volumes") => Some(VolumesBody::KIND),
        ("POST", "/v1/workloads") => Some(WorkloadBody::KIND),
        _ => None,
    }
}
