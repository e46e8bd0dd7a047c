//! Errors of the operations, one small type each. An operation that fails changes nothing.

use std::sync::Arc;

use leeward_placement::Refusal;
use leeward_records::{Caller, DecisionId, MigrationState};

/// Failure of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError<E> {
    /// The service cannot take the call now.
    Unavailable(Unavailable),
    /// The operation itself failed.
    Failed(E),
}

/// Reason why the service cannot take a call now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// The cluster has changed, so names may have new meanings. The caller resolves them and calls again.
    ClusterChanged,
    /// Another service is the leader.
    Follower {
        /// Address of the leader; `None` if unknown.
        leader: Option<Arc<str>>,
    },
    /// The changes were not persisted; nothing was done.
    StoreFailed(String),
    /// The store became unavailable during the write: the changes may or may not be persisted.
    OutcomeUnknown(String),
    /// The actor has stopped.
    Stopped,
}

/// Failure of a placement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceError {
    /// The policy rejected the request.
    Rejected(Refusal),
    /// The workload's SLO cannot be guaranteed, or no server has room.
    SloRejected(String),
    /// The decision with this id already guarantees the SLO of a workload with this name.
    NameTaken(String, DecisionId),
    /// The client has sent a newer request.
    Superseded {
        /// Last sequence number of the client.
        last: u64,
    },
    /// Another request, of the kind named here, already has the caller's key or sequence number.
    KeyReused(Caller, &'static str),
    /// The request was decided under this id, and the decision is no longer stored.
    Forgotten(DecisionId),
    /// The limit on waiting requests, or on callers of this request, is reached.
    Busy,
    /// Hosts of the decision were taken or closed before its commit, this number of times.
    HostsTaken(u32),
    /// A field of the request is invalid: its name, and the reason.
    Invalid(Option<String>, String),
    /// The decision was made before, is evicted, and could not be read from the store.
    StoreReadFailed(String),
    /// The job panicked.
    Panicked,
}

/// Failure of a lookup of a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecisionError {
    /// No decision has this id.
    NotFound(DecisionId),
    /// The decision is evicted and could not be read from the store.
    StoreReadFailed(String),
}

/// Failure of a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReleaseError {
    /// No decision has this id.
    NotFound(DecisionId),
    /// The end is persisted, but the decision could not be read from the store.
    StoreReadFailed(String),
}

/// Failure of a confirmation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfirmError {
    /// No decision has this id.
    NotFound(DecisionId),
    /// The decision has ended.
    Ended(DecisionId),
    /// The decision is evicted, so it has no reservation.
    NotReserved(DecisionId),
}

/// Failure of a what-if query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhatIfError {
    /// No decision has this id.
    NotFound(DecisionId),
    /// The decision is evicted.
    NotInMemory(DecisionId),
    /// A field of the request is invalid: its name, and the reason.
    Invalid(Option<String>, String),
    /// The decision has ended; a re-evaluation needs a running app.
    Ended(DecisionId),
    /// In a dry run: a workload of this name already has a guarantee, by this decision.
    NameTaken(String, DecisionId),
    /// No workload of this name has a promise.
    NoWorkload(String),
    /// The limit on waiting queries is reached.
    Busy,
    /// The job panicked.
    Panicked,
}

/// Failure of a score query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScoreError {
    /// The policy for tasks, named here, does not score single hosts.
    Unsupported(Arc<str>),
    /// The limit on waiting queries is reached.
    Busy,
    /// The job panicked.
    Panicked,
}

/// Failure of the answer to a task move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnswerError {
    /// No move has this id.
    NotFound(u64),
    /// The move already has another answer.
    Answered(MigrationState),
    /// The executor of this name took the move.
    OtherExecutor(String),
}

/// Too many jobs have a limit: at most this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyJobs(pub usize);

/// No workload has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoWorkload(pub String);

/// Invalid part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidReport {
    /// The part.
    pub part: ReportPart,
    /// The reason.
    pub reason: InvalidReportReason,
}

/// Part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportPart {
    /// The window.
    Window,
    /// One of its loads, by position.
    Load(usize),
    /// One of its hosts, by position.
    Host(usize),
    /// One of its workloads, by position.
    Workload(usize),
}

/// Reason why a part of a report is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidReportReason {
    /// The end of the window is not after its start.
    EmptyWindow,
    /// The window ends later than one interval from now.
    FutureWindow,
    /// The load is negative.
    NegativeLoad,
    /// The report has the same link, host or workload twice.
    Duplicate,
    /// The report has both the health of a host and loads. The effect of loads depends on the hosts that are up.
    HealthWithLoads,
}
