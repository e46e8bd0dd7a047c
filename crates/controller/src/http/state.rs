//! State that all request handlers share, and the extractors of their parameters.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use leeward_connections::Bodies;
use leeward_fabric::{Fabric, Nanos};
use leeward_frames::Snapshots;
use leeward_prometheus::Telemetry;
use leeward_records::Clock;
use leeward_service::{Answer, CallError, Handle, LeaderState, Operation, Unavailable};
use tokio::sync::Mutex;

use super::board::Board;
use crate::configured::Configured;
use crate::off_switch::OffSwitch;
use crate::reload::Reload;
use leeward_access::Access;
use leeward_observability::{Events, Metrics, Reporters};
use leeward_problems::{IntoProblem, Problem};
use leeward_surveys::Probes;
use leeward_telemetry::TelemetryKeeper;

/// Static information about the service.
#[derive(Clone, Debug)]
pub struct About {
    /// Start of the service.
    pub since: String,
    /// Time between two reports of a link.
    pub interval: Nanos,
    /// Address at which other services and clients reach this service.
    pub address: Arc<str>,
}

impl About {
    /// Role of this service, and address of the leader.
    pub fn leader(&self, leader_state: &LeaderState) -> (&'static str, Option<String>) {
        match leader_state {
            LeaderState::Leader => ("leader", Some(self.address.to_string())),
            LeaderState::Follower { leader } => {
                ("follower", leader.as_ref().map(|leader| leader.to_string()))
            }
            LeaderState::Unavailable { .. } => ("follower", None),
        }
    }
}

/// Shared state of all request handlers.
pub struct AppState {
    /// Handle of the coordinator.
    pub handle: Handle,
    /// Encoded snapshots.
    pub snapshots: Snapshots,
    /// Time conversion.
    pub clock: Clock,
    /// Static information about the service.
    pub about: About,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Events.
    pub events: Arc<Events>,
    /// Tokens and rate limits.
    pub access: Arc<Access>,
    /// Settings in force that a reload may change.
    pub configured: Arc<ArcSwap<Configured>>,
    /// The off switch.
    pub switch: Arc<OffSwitch>,
    /// Reload of settings; `None` without settings.
    pub reload: Option<Arc<Reload>>,
    /// State of Prometheus polling.
    pub telemetry: Arc<Telemetry>,
    /// Telemetry kept over a restart.
    pub keeper: TelemetryKeeper,
    /// Comparison of a demo; `None` outside demo mode.
    pub demo: Option<Board>,
    /// Surveys and participating hosts.
    pub probes: Probes,
    /// Reporters that need attention.
    pub reporters: Reporters,
    /// Files with secrets, whose modes the status checks.
    pub secrets: Vec<PathBuf>,
    /// Largest body, in bytes.
    pub largest: usize,
    /// Memory limit of all bodies.
    pub bodies: Arc<Bodies>,
    /// Time limit for the arrival of a body.
    pub patience: Duration,
    /// Lock that serializes the parsing of clusters.
    pub reading: Mutex<()>,
    /// OpenAPI document.
    pub description: Arc<str>,
}

pub(super) type SharedState = State<Arc<AppState>>;
pub(super) type ApiResult = Result<Response, Problem>;

impl AppState {
    /// Seconds by which the machine's clock was set back since the start of the service; negative if it was set forward.
    pub(super) fn clock_behind_s(&self) -> f64 {
        // Two steps that cancel each other may differ by microseconds. Integers have no negative zero.
        (-self.clock.lead() / 1_000_000) as f64 / 1e3
    }

    /// Runs operations one after another in one turn of the service, and returns the result of each.
    ///
    /// # Errors
    /// [`Problem`] if the service can run none of them now, because it is a follower, or its store is unavailable.
    pub(super) async fn call_all<O: Operation + Clone>(
        &self,
        operations: Vec<O>,
    ) -> Result<Vec<Result<O::Reply, Problem>>, Problem>
    where
        O::Error: IntoProblem,
    {
        let mut fabric = self.handle.last_snapshot().fabric.clone();
        let mut answers: Vec<Option<Answer<O::Reply, O::Error>>> = operations.iter().map(|_| None).collect();
        loop {
            let open = || (0..answers.len()).filter(|&at| answers[at].is_none()).collect::<Vec<_>>();
            let open = open();
            if open.is_empty() {
                break;
            }
            let sent = open.iter().map(|&at| operations[at].clone()).collect();
            let mut cluster_changed = false;
            for (at, answer) in open.into_iter().zip(self.handle.call_all(sent, fabric.clone()).await) {
                match answer {
                    Err(CallError::Unavailable(Unavailable::ClusterChanged)) => cluster_changed = true,
                    answer => answers[at] = Some(answer),
                }
            }
            if cluster_changed {
                fabric = self.snapshot().await?.fabric.clone();
            }
        }
        let is_unavailable = |answer: &_| matches!(answer, Err(CallError::Unavailable(_)));
        let all_unavailable = answers.iter().flatten().all(is_unavailable);
        let problem = |answer: Answer<_, O::Error>| answer.map_err(|error| error.problem(&self.clock));
        let mut results = answers.into_iter().flatten().map(problem);
        match all_unavailable.then(|| results.next()).flatten() {
            Some(Err(problem)) => Err(problem),
            _ => Ok(results.collect()),
        }
    }

    /// Runs an operation, as [`AppState::call`] does. Also returns the fabric of the ids in the reply.
    pub(super) async fn call_with_fabric<O: Operation>(
        &self,
        resolve: impl Fn(&Fabric) -> Result<O, Problem>,
    ) -> Result<(Arc<Fabric>, O::Reply), Problem>
    where
        O::Error: IntoProblem,
    {
        // Drops the snapshot itself, so that the next one can reuse its memory.
        let mut fabric = self.handle.last_snapshot().fabric.clone();
        loop {
            match self.handle.call(resolve(&fabric)?, fabric.clone()).await {
                Err(CallError::Unavailable(Unavailable::ClusterChanged)) => {
                    fabric = self.snapshot().await?.fabric.clone();
                }
                answer => {
                    let reply = answer.map_err(|error| error.problem(&self.clock))?;
                    return Ok((fabric, reply));
                }
            }
        }
    }

    /// Runs an operation on the service. `resolve` creates it for a cluster, and again if the cluster changes
    /// meanwhile.
    pub(super) async fn call<O: Operation>(
        &self,
        resolve: impl Fn(&Fabric) -> Result<O, Problem>,
    ) -> Result<O::Reply, Problem>
    where
        O::Error: IntoProblem,
    {
        self.call_with_fabric(resolve).await.map(|(_, reply)| reply)
    }
}

/// Extractor whose rejections are problem documents.
pub(super) struct Params<T>(pub T);

/// The single parameter of a path.
pub(super) type NamePath = Params<Path<String>>;

impl<T> FromRequestParts<Arc<AppState>> for Params<T>
where
    T: FromRequestParts<Arc<AppState>>,
    T::Rejection: Into<Problem>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, Problem> {
        T::from_request_parts(parts, app).await.map(Params).map_err(Into::into)
    }
}
