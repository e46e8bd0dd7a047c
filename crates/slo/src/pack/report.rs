//! Report of a packing: placements with limits and bounds, and refusals with reasons.

use std::fmt;

use leeward_models::BucketRecord;
use leeward_traces::Stage;
use serde::{Deserialize, Serialize};

use super::super::format::time;

/// A workload without a place.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("workload `{workload}` is refused: {why}")]
pub struct Rejection {
    /// Name of the workload.
    pub workload: String,
    /// Reason.
    pub why: RejectReason,
}

/// Reason for which a workload has no place.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RejectReason {
    /// The workload has no SLO.
    #[error("it has no SLO, so the packing reserves nothing for it; it can run as best effort")]
    BestEffort,
    /// A workload with this name is placed already.
    #[error("a workload with this name is placed already")]
    AlreadyPlaced,
    /// The workload is invalid.
    #[error("{0}")]
    Invalid(String),
    /// No client has room for the workload.
    #[error("no client has room for it")]
    NoClient,
    /// The unloaded latency of its requests takes all of its SLO.
    #[error("its requests take {} up to {stage} without load: the SLO must be longer", time(*.seconds))]
    Unloaded {
        /// First stage up to which unloaded latency reaches the SLO.
        stage: Stage,
        /// Sum of the unloaded tails up to and including the stage, in seconds.
        seconds: f64,
    },
    /// Some SLO is missed even with the workload on an empty server; it may share links with other workloads.
    #[error("it does not fit on an empty server: {0}")]
    Alone(String),
    /// No server has room for the workload.
    #[error("{0}")]
    NoRoom(Box<NoRoom>),
}

/// Obstacles on servers without room for a workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NoRoom {
    /// Number of servers tried.
    pub servers: usize,
    /// Servers that have a queue with a sum of lowest rates above its capacity.
    pub rates: Obstacle,
    /// Servers where the smallest bursts alone take longer than an SLO.
    pub bursts: Obstacle,
    /// Servers where the configured rates leave no room for the workload's lowest rate.
    pub full: Obstacle,
    /// Servers where no limits keep every SLO.
    pub limits: Obstacle,
    /// Servers without a result, because the solver failed.
    pub unknown: Obstacle,
}

/// Servers with one kind of obstacle.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Obstacle {
    /// Number of servers.
    pub servers: usize,
    /// Obstacle on the first of these servers, if known: a queue, a workload, a stage.
    pub first: Option<String>,
}

impl Obstacle {
    /// Counts one more server. `first` describes the obstacle if it is the first.
    pub(super) fn add(&mut self, first: impl FnOnce() -> String) {
        self.servers += 1;
        if self.servers == 1 {
            self.first = Some(first());
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none of {} servers has room for it", self.servers)?;
        let why = [
            (&self.rates, "the lowest rates exceed the capacity of a queue"),
            (&self.bursts, "the smallest bursts take too long"),
            (&self.full, "the configured rates leave too little (fast first fit)"),
            (&self.limits, "no limits keep every SLO"),
            (&self.unknown, "the solver failed"),
        ];
        let obstacles = why.iter().filter(|(obstacle, _)| obstacle.servers > 0);
        for (at, (Obstacle { servers, first }, why)) in obstacles.enumerate() {
            write!(f, "{} on {servers} {why}", if at == 0 { ":" } else { "," })?;
            if let Some(first) = first {
                write!(f, " (the first: {first})")?;
            }
        }
        Ok(())
    }
}

/// Result of a packing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Name of the limit algorithm.
    pub limits: String,
    /// True for fast first fit.
    pub fast: bool,
    /// Safety margin that the rates, bursts and bounds below include.
    pub margin: f64,
    /// Largest relative increase of an arrival curve by pruning; 0 for none.
    pub pruned_by: f64,
    /// Number of servers with a workload.
    pub servers_used: usize,
    /// Placed workloads, in order of arrival.
    pub placed: Vec<PlacedReport>,
    /// Refused workloads, in order of arrival.
    pub refused: Vec<RefusedReport>,
}

/// A placed workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlacedReport {
    /// Name of the workload.
    pub workload: String,
    /// Name of its client.
    pub client: String,
    /// Name of the server with its volume.
    pub server: String,
    /// Index of the device on that server.
    pub device: usize,
    /// Priority at every stage; 0 is served first.
    pub priority: u32,
    /// The SLO, in seconds.
    pub slo_s: f64,
    /// Percentile of the SLO, in percent.
    pub percentile: f64,
    /// Upper bound on the latency of a request in seconds, including the margin; null if a queue has become overloaded
    /// after the placement.
    pub bound_s: Option<f64>,
    /// Stages of the workload.
    pub stages: Vec<StageReport>,
}

/// A stage of a placed workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Name of the stage.
    pub stage: String,
    /// Names of the queues it crosses, in order.
    pub queues: Vec<String>,
    /// Enforced token buckets, all at once.
    pub limits: Vec<BucketRecord>,
    /// Upper bound on the latency at this stage in seconds: delay by limits, queueing, service, and the profiled tail.
    /// Null as for the workload.
    pub bound_s: Option<f64>,
}

/// A refused workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RefusedReport {
    /// Name of the workload.
    pub workload: String,
    /// Reason as text.
    pub why: String,
}
