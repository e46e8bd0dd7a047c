//! How good hosts are for a task, for schedulers that choose themselves. Nothing is committed.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_fabric::input::excerpt;
use leeward_fabric::{Bytes, Cpus, Fabric, HostId};
use leeward_placement::tasks::{AppRequest, Class, Task, Traffic};
use leeward_placement::{Constraints, Peer, Rating};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::problem::Problem;
use super::{Answer, Shared};
use crate::desk::{Message, Reply, Score};

/// Hosts that may be asked about at once.
const MOST_HOSTS: usize = 10_000;
/// Peers of a task at most.
const MOST_PEERS: usize = 100;

/// The body of `POST /v1/score/hosts`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreBody {
    /// The hosts.
    #[schemars(length(min = 1, max = MOST_HOSTS))]
    hosts: Vec<String>,
    /// What the task sends out of its rack at its peak, peers aside.
    #[serde(default)]
    egress_bps: u64,
    /// What it receives from outside its rack at its peak, peers aside.
    #[serde(default)]
    ingress_bps: u64,
    /// What it talks to.
    #[serde(default)]
    #[schemars(length(max = MOST_PEERS))]
    peers: Vec<PeerBody>,
    /// Processors that it needs.
    cpus: Option<Cpus>,
    /// Memory that it needs.
    memory: Option<Bytes>,
    /// Its job.
    job: Option<String>,
    /// Tags that its host must have.
    #[serde(default)]
    tags: Vec<String>,
}

/// Something that a task talks to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerBody {
    /// Where it runs.
    host: String,
    /// What the task sends it.
    #[serde(default)]
    egress_bps: u64,
    /// What it sends the task.
    #[serde(default)]
    ingress_bps: u64,
}

impl ScoreBody {
    /// What it asks of the desk.
    pub fn message(&self, fabric: &Fabric) -> Result<Message, Problem> {
        if self.hosts.is_empty() || self.hosts.len() > MOST_HOSTS {
            return Err(Problem::field("hosts", format!("expected 1 to {MOST_HOSTS} hosts")));
        }
        if self.peers.len() > MOST_PEERS {
            return Err(Problem::field("peers", format!("expected at most {MOST_PEERS}")));
        }
        let host = |field: String, name: &str| -> Result<HostId, Problem> {
            let unknown =
                || Problem::field(field, format!("`{}`: the cluster has no such host", excerpt(name)));
            fabric.host(name).ok_or_else(unknown)
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
        Ok(Message::Score(Score {
            request: AppRequest { tasks: vec![task], constraints, ..AppRequest::default() },
            job: self.job.clone(),
            peers: self.peers.iter().enumerate().map(peer).collect::<Result<_, Problem>>()?,
            hosts: hosts.collect::<Result<_, Problem>>()?,
        }))
    }
}

/// How good hosts are.
#[derive(Serialize, JsonSchema)]
pub struct Scores {
    /// Of each host, in the order of the request.
    scores: Vec<HostScore>,
    /// The policy with its settings.
    policy: String,
    /// The state of the ledger.
    epoch: u64,
    /// How old the oldest telemetry is that played a part; null if none did.
    telemetry_age_s: Option<f64>,
}

/// How good a host is.
#[derive(Serialize, JsonSchema)]
pub struct HostScore {
    /// Its name.
    host: String,
    /// What would be left of its fullest link with the task on it, in percent.
    #[schemars(range(max = 100))]
    score: u8,
    /// What that link would have left; below 0 if it would carry too much, null where links play no part.
    value_bps: Option<i64>,
    /// That link.
    limit: Option<String>,
    /// Why it cannot take the task; null if it can.
    refused: Option<&'static str>,
}

impl HostScore {
    fn of(host: &str, rating: &Rating, limit: Option<String>) -> HostScore {
        let left = (1.0 - rating.loaded).clamp(0.0, 1.0);
        HostScore {
            host: host.to_owned(),
            score: (100.0 * left).floor() as u8,
            value_bps: rating.left.map(|left| left.0),
            limit,
            refused: rating.refused.map(|because| because.text()),
        }
    }
}

pub async fn hosts(State(edge): Shared, Body(body): Body<ScoreBody>) -> Answer {
    let reply = edge.reply(|fabric| body.message(fabric)).await?;
    let Reply::Scores { ratings, policy, epoch, age } = reply else { return Err(Problem::broken()) };
    let rated = body.hosts.iter().zip(ratings.0);
    let scores = rated.map(|(host, (rating, limit))| HostScore::of(host, &rating, limit)).collect();
    let telemetry_age_s = age.map(|age| age.as_secs_f64());
    Ok(Json(Scores { scores, policy: policy.to_string(), epoch, telemetry_age_s }).into_response())
}
