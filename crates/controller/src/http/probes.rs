//! Measurements through agents.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use leeward_probe::mesh::Shape;
use leeward_probe::survey::check_bottlenecks;
use leeward_probe::{Limits, ProbeError, Train, Transfer, report};
use leeward_records::{Clock, ClusterVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::cluster;
use super::pages::{PageQuery, page};
use super::place::key_of;
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_access::{Client, Principal};
use leeward_problems::{IntoProblem, Problem};
use leeward_surveys::{self as surveys, Kind, Progress, StartResult, Survey, SurveyResult, SurveySpec};

/// Largest number of hosts of a survey; a mesh then has 9,900 paths.
const MOST_HOSTS: usize = 100;
/// Largest number of trains along a path, and of compared pairs of paths.
const MOST_TIMES: usize = 1_000;
/// Largest number of simultaneous trains.
const AT_ONCE: usize = 64;
/// Number of attempts to store a mesh while other clients change the cluster.
const TRIES: usize = 5;

/// The body of `POST /v1/probes`.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ProbeBody {
    /// Rate of one TCP connection along a path.
    Path {
        /// Source and destination.
        #[schemars(length(min = 2, max = 2), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// Packet train.
        #[serde(default)]
        train: TrainBody,
        /// Number of trains, sent one after another; default 1.
        #[schemars(range(min = 1, max = MOST_TIMES))]
        times: Option<usize>,
    },
    /// Every path between the hosts.
    Mesh {
        /// At least two hosts.
        #[schemars(length(min = 2, max = MOST_HOSTS), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// Packet trains.
        #[serde(default)]
        train: TrainBody,
        /// Largest number of simultaneous trains; default 64. A host takes part in at most one train at a time. If the
        /// number is 1, trains do not share links inside the network either.
        #[schemars(range(min = 1, max = AT_ONCE))]
        at_once: Option<usize>,
        /// Also counts hops, so that the resulting cluster has racks.
        #[serde(default)]
        hops: bool,
        /// Also searches for paths that share a bottleneck, so that the resulting cluster has shared links. Needs at least
        /// three hosts.
        bottlenecks: Option<SearchBody>,
        /// Form of the resulting cluster. By default, the form that the search for bottlenecks finds, or `pipe` without
        /// a search.
        shape: Option<ShapeBody>,
        /// Name of the resulting cluster; default `measured`.
        #[schemars(regex(pattern = "^[A-Za-z0-9._-]{1,128}$"))]
        name: Option<String>,
        /// Stores the rates in the cluster, as a new version.
        #[serde(default)]
        keep: bool,
    },
    /// Paths that reduce each other's rate.
    Bottlenecks {
        /// At least three hosts.
        #[schemars(length(min = 3, max = MOST_HOSTS), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// Duration of each transfer; default `3s`.
        duration: Option<Nanos>,
        /// Number of pairs of paths between four hosts, and of pairs from one source; default 20.
        #[schemars(range(min = 1, max = MOST_TIMES))]
        pairs: Option<usize>,
        /// Seed of the drawn pairs; default 1.
        seed: Option<u64>,
        /// Also counts hops, so that the links out of racks and subtrees are tested.
        #[serde(default)]
        hops: bool,
    },
}

/// Search for bottlenecks beside a mesh.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchBody {
    /// Duration of each transfer; default `3s`.
    duration: Option<Nanos>,
    /// Number of pairs of paths between four hosts, and of pairs from one source; default 20.
    #[schemars(range(min = 1, max = MOST_TIMES))]
    pairs: Option<usize>,
    /// Seed of the drawn pairs; default 1.
    seed: Option<u64>,
}

impl SearchBody {
    /// Reads the search; `hops` says if it tests the links out of racks and subtrees. `under` precedes the fields of an error.
    fn read(&self, hops: bool, under: &str) -> Result<report::BottleneckOptions, Problem> {
        let duration = self.duration.unwrap_or(Nanos(3 * Nanos::SECOND.0));
        let each = Transfer { duration_ns: duration.0, connections: 1, congestion: None };
        check_bottlenecks(&each).map_err(|error| wrong(error, under))?;
        let pairs = bounded(&format!("{under}pairs"), self.pairs.unwrap_or(20), MOST_TIMES)?;
        Ok(report::BottleneckOptions { each, pairs, seed: self.seed.unwrap_or(1), hops })
    }
}

/// A packet train.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainBody {
    /// Number of bursts.
    #[schemars(range(min = 1, max = Train::MOST_BURSTS))]
    bursts: u32,
    /// Number of packets per burst.
    #[schemars(range(min = 2, max = Train::MOST_PACKETS))]
    packets: u32,
    /// Payload of a packet, in bytes.
    #[schemars(range(min = Train::LEAST_BYTES, max = Train::MOST_BYTES))]
    payload: u32,
    /// Pause between bursts, at most one second.
    gap: Nanos,
}

impl Default for TrainBody {
    fn default() -> TrainBody {
        let Train { bursts, packets, bytes, gap_ns } = Train::default();
        TrainBody { bursts, packets, payload: bytes, gap: Nanos(gap_ns) }
    }
}

/// Form of a measured mesh.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShapeBody {
    /// A rate for each ordered pair.
    Pipe,
    /// A rate for each ordered pair, and a limit of each source.
    Hose,
}

impl TrainBody {
    fn read(&self) -> Result<Train, Problem> {
        let &TrainBody { bursts, packets, payload, gap } = self;
        let train = Train { bursts, packets, bytes: payload, gap_ns: gap.0 };
        train.check(&Limits::default()).map_err(|error| wrong(error, ""))?;
        Ok(train)
    }
}

/// Problem for an invalid setting of a survey, with its field; `under` precedes a duration.
fn wrong(error: ProbeError, under: &str) -> Problem {
    match error {
        ProbeError::Setting { field, message } => {
            let field = match field.as_str() {
                "bursts" | "packets" => format!("train.{field}"),
                "bytes" => "train.payload".to_owned(),
                "gap_ns" => "train.gap".to_owned(),
                "duration_ns" => format!("{under}duration"),
                _ => field,
            };
            Problem::field(field, message)
        }
        other => Problem::invalid(other.to_string()),
    }
}

/// Checks that a number is from 1 to `most`.
fn bounded(field: &str, value: usize, most: usize) -> Result<usize, Problem> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Problem::field(field, format!("{value}: expected a number from 1 to {most}")))
}

impl ProbeBody {
    /// Returns the measurement, the hosts, and true if the result is to be stored in the cluster.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub fn read(self) -> Result<(SurveySpec, Vec<String>, bool), Problem> {
        let (spec, hosts, (least, most), keep) = match self {
            ProbeBody::Path { hosts, train, times } => {
                let times = bounded("times", times.unwrap_or(1), MOST_TIMES)?;
                (SurveySpec::Path(train.read()?, times), hosts, (2, 2), false)
            }
            ProbeBody::Mesh { hosts, train, at_once, hops, bottlenecks, shape, name, keep } => {
                let name = name.unwrap_or_else(|| "measured".to_owned());
                let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
                if name.is_empty() || name.len() > 128 || !name.bytes().all(is_valid) {
                    let expected = "expected letters, digits, `.`, `_` and `-`";
                    return Err(Problem::field("name", format!("`{}`: {expected}", excerpt(&name))));
                }
                let at_once = bounded("at_once", at_once.unwrap_or(AT_ONCE), AT_ONCE)?;
                let shape = shape.map(|shape| match shape {
                    ShapeBody::Pipe => Shape::Pipe,
                    ShapeBody::Hose => Shape::Hose,
                });
                let search = bottlenecks.map(|search| search.read(hops, "bottlenecks."));
                let (train, bottlenecks) = (train.read()?, search.transpose()?);
                let least = if bottlenecks.is_some() { 3 } else { 2 };
                let options = report::MeshOptions { train, at_once, hops, bottlenecks, shape, name };
                (SurveySpec::Mesh(options), hosts, (least, MOST_HOSTS), keep)
            }
            ProbeBody::Bottlenecks { hosts, duration, pairs, seed, hops } => {
                let options = SearchBody { duration, pairs, seed }.read(hops, "")?;
                (SurveySpec::Bottlenecks(options), hosts, (3, MOST_HOSTS), false)
            }
        };
        if !(least..=most).contains(&hosts.len()) {
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(Problem::field("hosts", format!("{} given: expected {expected}", hosts.len())));
        }
        if let Some(at) = (1..hosts.len()).find(|&at| hosts[..at].contains(&hosts[at])) {
            return Err(Problem::field(format!("hosts[{at}]"), "given twice"));
        }
        Ok((spec, hosts, keep))
    }
}

/// A survey with its result.
#[derive(Serialize, JsonSchema)]
pub struct Probe {
    /// Id of the survey.
    id: String,
    /// Kind of measurement.
    kind: Kind,
    /// Names of the hosts.
    hosts: Vec<String>,
    /// Start of the survey.
    time: String,
    /// State: `running`, `done`, `failed` or `cancelled`.
    state: surveys::State,
    /// Number of completed steps.
    done: usize,
    /// Number of all steps; null while unknown.
    steps: Option<usize>,
    /// End of the survey; null while it runs.
    ended: Option<String>,
    /// Error of the survey, or of storing its mesh; null if there is none.
    error: Option<String>,
    /// Cluster version created by its mesh; null if the mesh was not stored.
    cluster_version: Option<String>,
    /// Measured result; null in lists, while the survey runs, and if the survey has no result.
    result: Option<Arc<SurveyResult>>,
}

impl Probe {
    fn of(survey: &Survey, clock: &Clock) -> Probe {
        let Progress { state, done, steps, ended, error, version, result } = survey.progress();
        Probe {
            id: survey.id.to_string(),
            kind: survey.kind(),
            hosts: survey.hosts.clone(),
            time: clock.text(survey.began),
            state,
            done,
            steps: (steps > 0).then_some(steps),
            ended: ended.map(|at| clock.text(at)),
            error,
            cluster_version: version.map(|version| version.to_string()),
            result,
        }
    }
}

/// Checks that this service leads. Only the leader orders measurements, because two services would measure each
/// other's trains.
fn check_leader(app: &AppState) -> Result<(), Problem> {
    match app.handle.leader_state().borrow().unavailable() {
        Some(reason) => Err(reason.problem(&app.clock)),
        None => Ok(()),
    }
}

pub async fn begin(
    State(app): SharedState,
    Extension(Principal { client, .. }): Extension<Principal>,
    headers: HeaderMap,
    Body(body): Body<ProbeBody>,
) -> ApiResult {
    check_leader(&app)?;
    let key = key_of(&headers)?;
    let (spec, hosts, keep) = body.read()?;
    let snapshot = app.handle.last_snapshot();
    if let Some((at, host)) = hosts.iter().enumerate().find(|(_, host)| snapshot.fabric.host(host).is_none())
    {
        return Err(Problem::field(format!("hosts[{at}]"), snapshot.fabric.no_host(host)));
    }
    if keep {
        let file = serde_json::from_str(&app.handle.cluster().text).map_err(|_| Problem::broken())?;
        surveys::mesh_shape(&file).map_err(|why| Problem::field("keep", why))?;
    }
    let addresses = app.probes.offers.find(&hosts, app.clock.now());
    let hosts = addresses.map_err(|(at, why)| {
        Problem::field(format!("hosts[{at}]"), format!("`{}`: {why}", excerpt(&hosts[at])))
    })?;
    let secret = app.probes.secret().map_err(|error| Problem::no_secret(&error))?;
    let started = app.probes.surveys.start(spec, keep, hosts, secret, key, app.clock.now());
    let (survey, result, status) = match started.map_err(|_| Problem::broken())? {
        StartResult::New(survey, result) => (survey, Some(result), StatusCode::CREATED),
        StartResult::Known(survey) => (survey, None, StatusCode::OK),
        StartResult::Other(other) => {
            let first = format!("survey {}, whose request had another body", other.id);
            return Err(Problem::reused(None, &first));
        }
        StartResult::Busy(other) => return Err(Problem::surveying(other.id)),
    };
    let probe = Probe::of(&survey, &app.clock);
    if let Some(result) = result {
        tokio::spawn(async move {
            let progress = finish(&app, &client, result.await, keep).await;
            survey.end(Progress { ended: Some(app.clock.now()), ..progress });
        });
    }
    Ok((status, Json(probe)).into_response())
}

/// Final state of a survey. Stores its mesh if the request asks for it.
async fn finish<E>(
    app: &AppState,
    by: &Client,
    result: Result<Result<SurveyResult, ProbeError>, E>,
    keep: bool,
) -> Progress {
    let ended = |state, error| Progress { state, error, ..Progress::default() };
    let result = match result {
        Ok(Ok(result)) => Arc::new(result),
        Ok(Err(ProbeError::Stopped)) => return ended(surveys::State::Cancelled, None),
        Ok(Err(error)) => return ended(surveys::State::Failed, Some(error.to_string())),
        Err(_) => return ended(surveys::State::Failed, Some("the thread of the survey panicked".to_owned())),
    };
    let stored = match &*result {
        SurveyResult::Mesh(mesh) if keep => store_mesh(app, by, mesh).await.map(Some),
        _ => Ok(None),
    };
    let (version, error) = match stored {
        Ok(version) => (version, None),
        Err(why) => (None, Some(format!("mesh not stored: {why}"))),
    };
    Progress { version, result: Some(result), ..ended(surveys::State::Done, error) }
}

/// Stores a mesh in a new version of the cluster. On a version conflict, it applies the mesh to the new
/// version.
async fn store_mesh(app: &AppState, by: &Client, mesh: &report::Mesh) -> Result<ClusterVersion, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let version = app.handle.cluster();
        let mut file = serde_json::from_str(&version.text).map_err(|error| error.to_string())?;
        surveys::apply_mesh(&mut file, mesh)?;
        match cluster::change(app, by, file, Some(version.number)).await {
            Ok(version) => return Ok(version.number),
            Err(problem) => last = problem.detail().to_owned(),
        }
    }
    Err(last)
}

pub async fn list(State(app): SharedState, Params(Query(query)): Params<Query<PageQuery>>) -> ApiResult {
    let all = app.probes.surveys.all();
    let convert = |survey: &Arc<Survey>| Probe { result: None, ..Probe::of(survey, &app.clock) };
    Ok(Json(page(&all, &query, convert)?).into_response())
}

fn find(app: &AppState, id: &str) -> Result<Arc<Survey>, Problem> {
    let survey = id.parse().ok().and_then(|id| app.probes.surveys.get(id));
    survey.ok_or_else(|| Problem::not_stored("probe", id))
}

pub async fn one(State(app): SharedState, Params(Path(id)): NamePath) -> ApiResult {
    let survey = find(&app, &id)?;
    Ok(Json(Probe::of(&survey, &app.clock)).into_response())
}

pub async fn cancel(State(app): SharedState, Params(Path(id)): NamePath) -> ApiResult {
    let survey = find(&app, &id)?;
    survey.cancel();
    Ok(Json(Probe::of(&survey, &app.clock)).into_response())
}
