//! Scores of hosts for a task, for schedulers that choose the host themselves. The operation commits nothing.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_fabric::{Bytes, Cpus, Fabric, HostId};
use leeward_ledger::Epoch;
use leeward_placement::Constraints;
use leeward_placement::tasks::{AppRequest, Class, HostRating, Peer, Task, Traffic};
use leeward_records::schema::Name;
use leeward_service::Score;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::state::{ApiResult, SharedState};
use leeward_problems::Problem;

/// Largest number of hosts of a request.
const MOST_HOSTS: usize = 10_000;
/// Largest number of peers of a task.
const MOST_PEERS: usize = 100;

/// The body of `POST /v1/score/hosts`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreBody {
    /// Hosts to score.
    #[schemars(length(min = 1, max = MOST_HOSTS))]
    hosts: Vec<String>,
    /// Peak traffic of the task out of its rack in bit/s, without the traffic to `peers`.
    #[serde(default)]
    egress_bps: u64,
    /// Peak traffic of the task into its rack in bit/s, without the traffic from `peers`.
    #[serde(default)]
    ingress_bps: u64,
    /// Peers that the task communicates with.
    #[serde(default)]
    #[schemars(length(max = MOST_PEERS))]
    peers: Vec<PeerBody>,
    /// Processors that the task needs.
    cpus: Option<Cpus>,
    /// Memory that the task needs.
    memory: Option<Bytes>,
    /// Job of the task.
    #[schemars(with = "Option<Name>")]
    job: Option<String>,
    /// Tags that the host must have.
    #[serde(default)]
    tags: Vec<String>,
}

/// A peer that a task communicates with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerBody {
    /// Host of the peer.
    host: String,
    /// Traffic from the task to the peer, in bit/s.
    #[serde(default)]
    egress_bps: u64,
    /// Traffic from the peer to the task, in bit/s.
    #[serde(default)]
    ingress_bps: u64,
}

impl ScoreBody {
    /// Returns the operation, with names resolved.
    ///
    /// # Errors
    /// A field is invalid.
    pub fn operation(&self, fabric: &Fabric) -> Result<Score, Problem> {
        if self.hosts.is_empty() || self.hosts.len() > MOST_HOSTS {
            return Err(Problem::field("hosts", format!("expected 1 to {MOST_HOSTS} hosts")));
        }
        if self.peers.len() > MOST_PEERS {
            return Err(Problem::field("peers", format!("expected at most {MOST_PEERS}")));
        }
        if self.job.as_deref().is_some_and(|job| !Name::fits(job)) {
            return Err(Problem::name("job"));
        }
        let host = |field: String, name: &str| -> Result<HostId, Problem> {
            fabric.host(name).ok_or_else(|| Problem::field(field, fabric.no_host(name)))
        };
        let hosts = self.hosts.iter().enumerate().map(|(at, name)| host(format!("hosts[{at}]"), name));
        let peer = |(at, peer): (usize, &PeerBody)| {
            let host = host(format!("peers[{at}].host"), &peer.host)?;
            Ok(Peer { host, egress_bps: peer.egress_bps, ingress_bps: peer.ingress_bps })
        };
        let mut task = Task {
            cpus: self.cpus.unwrap_or_default(),
            memory: self.memory.unwrap_or_default(),
            ..Task::default()
        };
        task.egress[Class::BestEffort as usize] = Traffic::steady(self.egress_bps);
        task.ingress[Class::BestEffort as usize] = Traffic::steady(self.ingress_bps);
        let constraints = Constraints::named(fabric, &[], &self.tags)?;
        Ok(Score {
            request: AppRequest { tasks: vec![task], constraints, ..AppRequest::default() },
            job: self.job.clone(),
            peers: self.peers.iter().enumerate().map(peer).collect::<Result<_, Problem>>()?,
            hosts: hosts.collect::<Result<_, Problem>>()?,
        })
    }
}

/// Scores of hosts.
#[derive(Serialize, JsonSchema)]
pub struct Scores {
    /// Score of each host, in the order of the request.
    scores: Vec<HostScore>,
    /// Policy with its settings.
    policy: String,
    /// Epoch of the ledger.
    epoch: Epoch,
    /// Age of the oldest telemetry used, in seconds; null if none was used.
    telemetry_age_s: Option<f64>,
}

/// Score of a host.
#[derive(Serialize, JsonSchema)]
pub struct HostScore {
    /// Name of the host.
    host: String,
    /// Free capacity of its fullest link with the task added, in percent.
    #[schemars(range(max = 100))]
    score: u8,
    /// Free capacity of that link in bit/s; negative for an overload, null if the policy uses no links.
    value_bps: Option<i64>,
    /// Name of that link.
    limit: Option<String>,
    /// Reason for which the host cannot take the task; null if it can.
    refused: Option<&'static str>,
}

impl HostScore {
    fn of(host: &str, rating: &HostRating, limit: Option<String>) -> HostScore {
        let free = (1.0 - rating.loaded).clamp(0.0, 1.0);
        HostScore {
            host: host.to_owned(),
            score: (100.0 * free).floor() as u8,
            value_bps: rating.left.map(|left| left.0),
            limit,
            refused: rating.refused.map(|because| because.text()),
        }
    }
}

pub async fn hosts(State(app): SharedState, Body(body): Body<ScoreBody>) -> ApiResult {
    let scores = app.call(|fabric| body.operation(fabric)).await?;
    let leeward_service::Scores { ratings, policy, epoch, age } = scores;
    let rated = body.hosts.iter().zip(ratings.0);
    let scores = rated.map(|(host, (rating, limit))| HostScore::of(host, &rating, limit)).collect();
    let telemetry_age_s = age.map(|age| age.as_secs_f64());
    Ok(Json(Scores { scores, policy: policy.to_string(), epoch, telemetry_age_s }).into_response())
}
