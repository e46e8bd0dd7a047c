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
use leeward_probe::{Limits, ProbeError, Train, Transfer, told};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::network::{Part, page};
use super::place::key_of;
use super::problem::Problem;
use super::{Answer, Asked, Edge, Named, Shared, cluster};
use crate::access::{Client, Guest};
use crate::clock::Clock;
use crate::probes::{self, Begun, Course, Found, Kind, Survey, Wish};

/// Hosts of a survey at most: a mesh has 9,900 paths then.
const MOST_HOSTS: usize = 100;
/// Trains along a path at most, and pairs of paths that are compared.
const MOST_TIMES: usize = 1_000;
/// Trains that are on their way at a time at most.
const AT_ONCE: usize = 64;
/// So often a mesh is put into a cluster that others change meanwhile.
const TRIES: usize = 5;

/// The body of `POST /v1/probes`.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ProbeBody {
    /// What a path gives one TCP connection.
    Path {
        /// Where it begins, and where it ends.
        #[schemars(length(min = 2, max = 2), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// The train.
        #[serde(default)]
        train: TrainBody,
        /// How many, one after the other; 1 if it is not given.
        #[schemars(range(min = 1, max = MOST_TIMES))]
        times: Option<usize>,
    },
    /// Every path between hosts.
    Mesh {
        /// At least two.
        #[schemars(length(min = 2, max = MOST_HOSTS), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// The trains.
        #[serde(default)]
        train: TrainBody,
        /// How many at a time; 64 if it is not given. No host is in two; with 1 they cannot meet elsewhere either.
        #[schemars(range(min = 1, max = AT_ONCE))]
        at_once: Option<usize>,
        /// Whether hops are counted too, so that its cluster has racks.
        #[serde(default)]
        hops: bool,
        /// What its cluster is written as.
        #[serde(default)]
        shape: ShapeBody,
        /// What its cluster is called; `measured` if it is not given.
        #[schemars(regex(pattern = "^[A-Za-z0-9._-]{1,128}$"))]
        name: Option<String>,
        /// Whether the rates become those of the cluster, as a new version.
        #[serde(default)]
        keep: bool,
    },
    /// Which paths take from each other.
    Bottlenecks {
        /// At least three.
        #[schemars(length(min = 3, max = MOST_HOSTS), extend("uniqueItems" = true))]
        hosts: Vec<String>,
        /// How long each transfer is; `3s` if it is not given.
        duration: Option<Nanos>,
        /// Pairs of paths between four hosts, and as many from one source; 20 if it is not given.
        #[schemars(range(min = 1, max = MOST_TIMES))]
        pairs: Option<usize>,
        /// Draws the pairs; 1 if it is not given.
        seed: Option<u64>,
        /// Whether hops are counted too, so that the links out of racks are tried.
        #[serde(default)]
        hops: bool,
    },
}

/// A packet train.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainBody {
    /// Bursts.
    #[schemars(range(min = 1, max = Train::MOST_BURSTS))]
    bursts: u32,
    /// Packets of a burst.
    #[schemars(range(min = 2, max = Train::MOST_PACKETS))]
    packets: u32,
    /// Bytes of payload of a packet.
    #[schemars(range(min = Train::LEAST_BYTES, max = Train::MOST_BYTES))]
    payload: u32,
    /// The pause between bursts, a second at most.
    gap: Nanos,
}

impl Default for TrainBody {
    fn default() -> TrainBody {
        let Train { bursts, packets, bytes, gap_ns } = Train::default();
        TrainBody { bursts, packets, payload: bytes, gap: Nanos(gap_ns) }
    }
}

/// What a measured mesh is written as.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShapeBody {
    /// A rate for each ordered pair.
    #[default]
    Pipe,
    /// A rate for each source.
    Hose,
}

impl TrainBody {
    fn read(&self) -> Result<Train, Problem> {
        let &TrainBody { bursts, packets, payload, gap } = self;
        let train = Train { bursts, packets, bytes: payload, gap_ns: gap.0 };
        train.check(&Limits::default()).map_err(wrong)?;
        Ok(train)
    }
}

/// What is wrong with a setting of a survey, by the name of its field.
fn wrong(error: ProbeError) -> Problem {
    match error {
        ProbeError::Setting { field, message } => {
            let field = match field.as_str() {
                "bursts" | "packets" => format!("train.{field}"),
                "bytes" => "train.payload".to_owned(),
                "gap_ns" => "train.gap".to_owned(),
                "duration_ns" => "duration".to_owned(),
                _ => field,
            };
            Problem::field(field, message)
        }
        other => Problem::invalid(other.to_string()),
    }
}

/// A number within bounds.
fn bounded(field: &str, value: usize, most: usize) -> Result<usize, Problem> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Problem::field(field, format!("{value}: expected a number from 1 to {most}")))
}

impl ProbeBody {
    /// What is to be measured, between which hosts, and whether it is to be kept.
    pub fn read(self) -> Result<(Wish, Vec<String>, bool), Problem> {
        let (wish, hosts, (least, most), keep) = match self {
            ProbeBody::Path { hosts, train, times } => {
                let times = bounded("times", times.unwrap_or(1), MOST_TIMES)?;
                (Wish::Path(train.read()?, times), hosts, (2, 2), false)
            }
            ProbeBody::Mesh { hosts, train, at_once, hops, shape, name, keep } => {
                let name = name.unwrap_or_else(|| "measured".to_owned());
                let right = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
                if name.is_empty() || name.len() > 128 || !name.bytes().all(right) {
                    let expected = "expected letters, digits, `.`, `_` and `-`";
                    return Err(Problem::field("name", format!("`{}`: {expected}", excerpt(&name))));
                }
                let at_once = bounded("at_once", at_once.unwrap_or(AT_ONCE), AT_ONCE)?;
                let shape = match shape {
                    ShapeBody::Pipe => Shape::Pipe,
                    ShapeBody::Hose => Shape::Hose,
                };
                let meshing = told::Meshing { train: train.read()?, at_once, hops, shape, name };
                (Wish::Mesh(meshing), hosts, (2, MOST_HOSTS), keep)
            }
            ProbeBody::Bottlenecks { hosts, duration, pairs, seed, hops } => {
                let duration = duration.unwrap_or(Nanos(3 * Nanos::SECOND.0));
                let each = Transfer { duration_ns: duration.0, connections: 1 };
                check_bottlenecks(&each).map_err(wrong)?;
                let pairs = bounded("pairs", pairs.unwrap_or(20), MOST_TIMES)?;
                let looking = told::Looking { each, pairs, seed: seed.unwrap_or(1), hops };
                (Wish::Bottlenecks(looking), hosts, (3, MOST_HOSTS), false)
            }
        };
        if !(least..=most).contains(&hosts.len()) {
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(Problem::field("hosts", format!("{} given: expected {expected}", hosts.len())));
        }
        if let Some(at) = (1..hosts.len()).find(|&at| hosts[..at].contains(&hosts[at])) {
            return Err(Problem::field(format!("hosts[{at}]"), "it is there twice"));
        }
        Ok((wish, hosts, keep))
    }
}

/// A survey, and what it came to.
#[derive(Serialize, JsonSchema)]
pub struct Probe {
    /// What it is called.
    id: String,
    /// What was asked for.
    kind: Kind,
    /// Between which hosts.
    hosts: Vec<String>,
    /// When it began.
    time: String,
    /// Whether it is `running`, `done`, `failed` or `cancelled`.
    state: probes::State,
    /// Steps that are done.
    done: usize,
    /// How many there are; null until that is known.
    steps: Option<usize>,
    /// When it was over; null while it runs.
    ended: Option<String>,
    /// What kept it from being done, or its mesh from being kept; null if nothing did.
    error: Option<String>,
    /// The version of the cluster that its mesh made; null if it was not to be kept, or was not.
    cluster_version: Option<String>,
    /// What was measured, by its kind; null while it runs, if there is nothing, and in lists.
    result: Option<Arc<Found>>,
}

impl Probe {
    fn of(survey: &Survey, clock: &Clock) -> Probe {
        let Course { state, done, steps, ended, error, version, found } = survey.course();
        Probe {
            id: survey.id.to_string(),
            kind: survey.kind,
            hosts: survey.hosts.clone(),
            time: clock.text(survey.began),
            state,
            done,
            steps: (steps > 0).then_some(steps),
            ended: ended.map(|at| clock.text(at)),
            error,
            cluster_version: version.map(|version| version.to_string()),
            result: found,
        }
    }
}

/// Only the service that leads orders measurements: two would measure each other.
fn leading(edge: &Edge) -> Result<(), Problem> {
    match edge.office.position().borrow().refusal() {
        Some(refused) => Err(Problem::refused(refused, &edge.clock)),
        None => Ok(()),
    }
}

pub async fn begin(
    State(edge): Shared,
    Extension(Guest { client, .. }): Extension<Guest>,
    headers: HeaderMap,
    Body(body): Body<ProbeBody>,
) -> Answer {
    leading(&edge)?;
    let key = key_of(&headers)?;
    let (wish, hosts, keep) = body.read()?;
    let world = edge.office.last_world();
    if let Some((at, host)) = hosts.iter().enumerate().find(|(_, host)| world.fabric.host(host).is_none()) {
        let detail = format!("`{}`: the cluster has no such host", excerpt(host));
        return Err(Problem::field(format!("hosts[{at}]"), detail));
    }
    if keep {
        let file = serde_json::from_str(&edge.office.cluster().text).map_err(|_| Problem::broken())?;
        probes::can_keep(&file).map_err(|why| Problem::field("keep", why))?;
    }
    let found = edge.probes.offers.find(&hosts, edge.clock.now());
    let hosts = found.map_err(|(at, why)| {
        Problem::field(format!("hosts[{at}]"), format!("`{}`: {why}", excerpt(&hosts[at])))
    })?;
    let shared = edge.probes.secret().map_err(|error| Problem::no_secret(&error))?;
    let begun = edge.probes.surveys.begin(wish, hosts, shared, key, edge.clock.now());
    let (survey, made, status) = match begun.map_err(|_| Problem::broken())? {
        Begun::New(survey, made) => (survey, Some(made), StatusCode::CREATED),
        Begun::Known(survey) => (survey, None, StatusCode::OK),
        Begun::Busy(other) => return Err(Problem::surveying(other.id)),
    };
    let shown = Probe::of(&survey, &edge.clock);
    if let Some(made) = made {
        tokio::spawn(async move {
            let course = over(&edge, &client, made.await, keep).await;
            survey.end(Course { ended: Some(edge.clock.now()), ..course });
        });
    }
    Ok((status, Json(shown)).into_response())
}

/// How a survey ends.
async fn over<E>(edge: &Edge, by: &Client, made: Result<Result<Found, ProbeError>, E>, keep: bool) -> Course {
    let ended = |state, error| Course { state, error, ..Course::default() };
    let found = match made {
        Ok(Ok(found)) => Arc::new(found),
        Ok(Err(ProbeError::Stopped)) => return ended(probes::State::Cancelled, None),
        Ok(Err(error)) => return ended(probes::State::Failed, Some(error.to_string())),
        Err(_) => return ended(probes::State::Failed, Some("its thread has failed".to_owned())),
    };
    let kept = match &*found {
        Found::Mesh(mesh) if keep => kept(edge, by, mesh).await.map(Some),
        _ => Ok(None),
    };
    let (version, error) = match kept {
        Ok(version) => (version, None),
        Err(why) => (None, Some(format!("not kept: {why}"))),
    };
    Course { version, found: Some(found), ..ended(probes::State::Done, error) }
}

/// Makes a version of the cluster with a mesh in it. If somebody changes the cluster meanwhile, it goes into theirs.
async fn kept(edge: &Edge, by: &Client, mesh: &told::Mesh) -> Result<u64, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let version = edge.office.cluster();
        let mut file = serde_json::from_str(&version.text).map_err(|error| error.to_string())?;
        probes::with_mesh(&mut file, mesh)?;
        match cluster::change(edge, by, file, Some(version.number)).await {
            Ok(version) => return Ok(version.number),
            Err(problem) => last = problem.detail().to_owned(),
        }
    }
    Err(last)
}

pub async fn list(State(edge): Shared, Asked(Query(part)): Asked<Query<Part>>) -> Answer {
    let all = edge.probes.surveys.all();
    let shown = |survey: &Arc<Survey>| Probe { result: None, ..Probe::of(survey, &edge.clock) };
    Ok(Json(page(&all, &part, shown)?).into_response())
}

fn found(edge: &Edge, id: &str) -> Result<Arc<Survey>, Problem> {
    let survey = id.parse().ok().and_then(|id| edge.probes.surveys.one(id));
    survey.ok_or_else(|| Problem::none_kept("probe", id))
}

pub async fn one(State(edge): Shared, Asked(Path(id)): Named) -> Answer {
    let survey = found(&edge, &id)?;
    Ok(Json(Probe::of(&survey, &edge.clock)).into_response())
}

pub async fn cancel(State(edge): Shared, Asked(Path(id)): Named) -> Answer {
    let survey = found(&edge, &id)?;
    survey.cancel();
    Ok(Json(Probe::of(&survey, &edge.clock)).into_response())
}
