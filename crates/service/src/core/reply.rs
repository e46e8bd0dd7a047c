//! Replies of the coordinator.

use std::sync::Arc;

use leeward_fabric::{Bytes, Fabric, HostId, Nanos};
use leeward_ledger::Epoch;
use leeward_moves::Stays;
use leeward_placement::Refusal;
use leeward_placement::tasks::HostRating;
use leeward_promises::PromiseStatus;
use leeward_records::{DecisionId, DecisionRecord, PromisesVersion};
use schemars::JsonSchema;
use serde::Serialize;

/// Result of a placement.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    /// The decision.
    pub record: Arc<DecisionRecord>,
    /// True if the decision was made for an earlier copy of the same request.
    pub repeated: bool,
}

/// Decision by id.
#[derive(Clone, PartialEq, Debug)]
pub enum DecisionLookup<T> {
    /// The decision is in memory.
    InMemory(T),
    /// The decision is evicted: only the store may have it.
    Evicted(DecisionId),
}

/// Result of a report.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reported")]
pub struct ReportSummary {
    /// Number of links whose load was accepted.
    pub links: u64,
    /// Number of devices whose load was accepted.
    pub devices: u64,
    /// Number of parts that were already known.
    pub skipped: Skipped,
    /// Number of loads of links above the capacity in the cluster, and of stored bytes above the storage of the host.
    /// The service counts each of them as the capacity or the storage.
    pub clamped: u64,
    /// The first eight links and hosts of these.
    pub clamped_names: Vec<String>,
    /// Devices that the cluster does not have, with their reported names; at most 64.
    pub unknown_devices: Vec<String>,
    /// Time that the service expects between two reports of a link, in seconds.
    pub interval_s: f64,
    /// Epoch of the ledger that includes the report.
    pub epoch: Epoch,
}

/// Scores of hosts for a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Scores {
    /// Rating of each host, in the order of the request.
    pub ratings: Rated,
    /// Label of the policy.
    pub policy: Arc<str>,
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// Age of the oldest telemetry used.
    pub age: Option<Nanos>,
}

/// Decision that another policy would make.
#[derive(Clone, PartialEq, Debug)]
pub struct WhatIfResult {
    /// The decision, with the id of the original one.
    pub record: Arc<DecisionRecord>,
    /// Reason why the policy would refuse the request.
    pub refusal: Option<Refusal>,
    /// True if the query changed the decision: a re-evaluation that is not a dry run.
    pub is_stored: bool,
}

/// Workload with an SLO, and its last reported latency in seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadState {
    /// Decision that admitted the workload.
    pub record: Arc<DecisionRecord>,
    /// Latency at the percentile of the SLO.
    pub latency_s: Option<f64>,
    /// State of its promise; `None` if the promise has ended, or if the default policy decided.
    pub status: Option<PromiseStatus>,
}

/// A page of workloads, with the version of the set of promises.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadList {
    /// Workloads, the latest first.
    pub workloads: Vec<WorkloadState>,
    /// Version of the set of promises.
    pub version: PromisesVersion,
}

/// Ratings of hosts, with the names of the links that limit them.
#[derive(Clone, PartialEq, Debug)]
pub struct Rated(pub Vec<(HostRating, Option<String>)>);

impl Rated {
    /// Ratings with names.
    pub(super) fn new(fabric: &Fabric, ratings: Vec<HostRating>) -> Rated {
        let named = |rating: HostRating| (rating, rating.limit.map(|link| fabric.resource_name(link)));
        Rated(ratings.into_iter().map(named).collect())
    }
}

/// Content of a rack.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RackContent {
    /// Tasks that run in the rack.
    pub tasks: Vec<TaskState>,
    /// Copies in the rack, from decisions in memory that have not ended: decision, host and size.
    pub replicas: Vec<(DecisionId, String, Bytes)>,
    /// Rates reserved on the links of the rack and of its hosts.
    pub reservations: Vec<ReservationState>,
}

/// A rate reserved on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationState {
    /// Name of the workload.
    pub workload: String,
    /// Name of the link.
    pub link: String,
    /// Reserved rate, in bit/s.
    pub rate_bps: u64,
    /// Priority, 0 first.
    pub priority: u8,
}

/// A running task.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskState {
    /// Id of the decision that placed it.
    pub decision: DecisionId,
    /// Name of the task.
    pub name: String,
    /// Name of its job, if any.
    pub job: Option<String>,
    /// Host of the task.
    pub host: HostId,
    /// True if the task may be moved.
    pub tolerant: bool,
    /// Reason for which it may not be moved now; `None` if it may.
    pub stays: Option<Stays>,
    /// Last measured rate that leaves the rack, or else the average demand, in bit/s.
    pub egress_bps: u64,
    /// Rate that enters the rack, in bit/s.
    pub ingress_bps: u64,
}

/// Limit on names of links and hosts with clamped values in a reply.
pub(super) const CLAMPED: usize = 8;

/// Limit on names of unknown devices in a reply.
pub const UNKNOWN: usize = 64;

/// Skipped parts of a valid report, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "SkippedBody")]
pub struct Skipped {
    /// Samples and host states whose window ends at or before the last accepted one, or, for a host that was down,
    /// before it came up.
    pub stale: u64,
    /// Loads of links and devices of hosts that are down.
    pub down: u64,
    /// Tasks that do not run, and workloads without a guaranteed SLO. They may have ended after the report was sent. Also
    /// pods beyond the largest number of a host, or of all hosts.
    pub unknown: u64,
}
