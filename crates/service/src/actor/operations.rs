//! Operations: each command to the coordinator, with its own reply and its own error.

use std::convert::Infallible;
use std::sync::Arc;

use leeward_engine::Availability;
use leeward_fabric::{DomainId, Fabric, Nanos, ResourceId};
use leeward_records::{DecisionId, DecisionRecord, Migration};
use tokio::sync::oneshot;

use super::replies::{EvictedLookup, Pending, Persisted};
use crate::core::{
    Addresses, Answer, AnswerError, CallError, Completion, Coordinator, DecisionError, DecisionLookup,
    DecisionQuery, InvalidReport, MigrationAnswer, MigrationQuery, NoWorkload, PlaceError, Placed, Placement,
    RackContent, ReleaseError, Report, ReportSummary, Score, ScoreError, Scores, TooManyJobs, Unavailable,
    WhatIfError, WhatIfResult, WorkloadState,
};

/// Channels as reply addresses.
pub enum Channels {}

impl Addresses for Channels {
    type To<T> = oneshot::Sender<T>;

    fn is_open<T>(to: &oneshot::Sender<T>) -> bool {
        !to.is_closed()
    }
}

/// Channel for the reply to an operation.
pub type ReplyTo<O> = oneshot::Sender<Answer<<O as Operation>::Reply, <O as Operation>::Error>>;

/// Relation of an operation to decisions and their durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Takes in telemetry: always possible.
    Telemetry,
    /// Computes from the ledger: needs current decisions.
    Compute,
    /// Shows decisions: needs current decisions. The leader's reply waits until they are durable.
    Read,
    /// Changes decisions: only on the leader. The reply waits until the changes are durable.
    Write,
}

/// Operation on the coordinator.
pub trait Operation: Sized + Send + 'static {
    /// Reply if it succeeds.
    type Reply: Send + 'static;
    /// Error if it fails.
    type Error: Send + 'static;

    /// Relation to decisions and their durability.
    const ACCESS: Access;

    /// Runs the operation, and replies now or later.
    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>);
}

/// One iteration of the actor's loop: the coordinator at the time of the iteration, and the replies that wait for
/// durability.
pub struct Turn<'a> {
    pub(super) now: Nanos,
    pub(super) coordinator: &'a mut Coordinator<Channels>,
    pub(super) pending: &'a mut Vec<Box<dyn Pending>>,
    pub(super) is_leader: bool,
}

impl Turn<'_> {
    /// Replies to an operation, or queues the reply until the changes are durable.
    fn reply<O: Operation>(&mut self, to: ReplyTo<O>, result: Result<O::Reply, O::Error>) {
        match result {
            Ok(reply) if self.is_leader && matches!(O::ACCESS, Access::Read | Access::Write) => {
                self.pending.push(Box::new(Persisted { to, reply }));
            }
            // The client may have disconnected.
            result => drop(to.send(result.map_err(CallError::Failed))),
        }
    }

    /// Sends the late replies of the coordinator, or queues them until the changes are durable.
    pub(super) fn complete(&mut self) {
        for completion in self.coordinator.completions() {
            match completion {
                Completion::Place(to, Ok(DecisionLookup::InMemory(reply))) if self.is_leader => {
                    self.pending.push(Box::new(Persisted { to, reply }));
                }
                Completion::Place(to, Ok(DecisionLookup::InMemory(reply))) => drop(to.send(Ok(reply))),
                Completion::Place(to, Ok(DecisionLookup::Evicted(id))) => {
                    self.pending.push(Box::new(EvictedLookup {
                        to,
                        id,
                        commits: false,
                        found: |record| Placed { record, repeated: true },
                        missing: PlaceError::Forgotten,
                        unread: PlaceError::StoreReadFailed,
                    }));
                }
                Completion::Place(to, Err(error)) => drop(to.send(Err(error))),
                Completion::WhatIf(to, answer) => drop(to.send(answer)),
                Completion::Score(to, answer) => drop(to.send(answer)),
            }
        }
    }
}

/// Operation in the channel to the actor, without its type.
pub(super) struct Call {
    pub access: Access,
    /// Fabric that the ids in the operation refer to; `None` for an operation without ids.
    pub fabric: Option<Arc<Fabric>>,
    /// Runs the operation in a turn, or rejects it. Its reply is sent, queued, or becomes a completion of the
    /// coordinator.
    pub run: RunCall,
}

type RunCall = Box<dyn FnOnce(Result<&mut Turn<'_>, Unavailable>) + Send>;

impl Call {
    pub fn new<O: Operation>(operation: O, fabric: Option<Arc<Fabric>>, to: ReplyTo<O>) -> Call {
        let run: RunCall = Box::new(move |turn| match turn {
            Ok(turn) => operation.run(turn, to),
            // The client may have disconnected.
            Err(reason) => drop(to.send(Err(CallError::Unavailable(reason)))),
        });
        Call { access: O::ACCESS, fabric, run }
    }
}

impl Operation for Report {
    type Reply = ReportSummary;
    type Error = InvalidReport;

    const ACCESS: Access = Access::Telemetry;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let result = turn.coordinator.report(turn.now, self);
        turn.reply::<Self>(to, result);
    }
}

impl Operation for Placement {
    type Reply = Placed;
    type Error = PlaceError;

    const ACCESS: Access = Access::Write;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        turn.coordinator.place(turn.now, self, to);
    }
}

/// Ends a decision and releases its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release(pub DecisionId);

impl Operation for Release {
    type Reply = Arc<DecisionRecord>;
    type Error = ReleaseError;

    const ACCESS: Access = Access::Write;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        match turn.coordinator.release(turn.now, self.0) {
            Ok(DecisionLookup::InMemory(record)) => turn.reply::<Self>(to, Ok(record)),
            Ok(DecisionLookup::Evicted(id)) => turn.pending.push(Box::new(EvictedLookup {
                to,
                id,
                commits: true,
                found: |record| record,
                missing: ReleaseError::NotFound,
                unread: ReleaseError::StoreReadFailed,
            })),
            Err(error) => turn.reply::<Self>(to, Err(error)),
        }
    }
}

/// Shows the decision of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetDecision(pub DecisionId);

impl Operation for GetDecision {
    type Reply = Arc<DecisionRecord>;
    type Error = DecisionError;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        match turn.coordinator.decision(turn.now, self.0) {
            Ok(DecisionLookup::InMemory(record)) => turn.reply::<Self>(to, Ok(record)),
            Ok(DecisionLookup::Evicted(id)) => turn.pending.push(Box::new(EvictedLookup {
                to,
                id,
                commits: false,
                found: |record| record,
                missing: DecisionError::NotFound,
                unread: DecisionError::StoreReadFailed,
            })),
            Err(error) => turn.reply::<Self>(to, Err(error)),
        }
    }
}

impl Operation for DecisionQuery {
    type Reply = Vec<Arc<DecisionRecord>>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let decisions = turn.coordinator.decisions(turn.now, &self);
        turn.reply::<Self>(to, Ok(decisions));
    }
}

/// Lists decisions with entries on a link, the latest first, at most `limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetHolding {
    /// The link.
    pub link: ResourceId,
    /// Largest number of decisions.
    pub limit: usize,
}

impl Operation for GetHolding {
    type Reply = Vec<Arc<DecisionRecord>>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let decisions = turn.coordinator.holding(turn.now, self.link, self.limit);
        turn.reply::<Self>(to, Ok(decisions));
    }
}

/// Shows tasks, copies and reservations in a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetRack(pub DomainId);

impl Operation for GetRack {
    type Reply = RackContent;
    type Error = Infallible;

    const ACCESS: Access = Access::Compute;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let content = turn.coordinator.rack(turn.now, self.0);
        turn.reply::<Self>(to, Ok(content));
    }
}

impl Operation for MigrationQuery {
    type Reply = Vec<Migration>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let migrations = turn.coordinator.migrations(turn.now, self);
        turn.reply::<Self>(to, Ok(migrations));
    }
}

/// Answers an advised move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerMigration(pub u64, pub MigrationAnswer);

impl Operation for AnswerMigration {
    type Reply = Migration;
    type Error = AnswerError;

    const ACCESS: Access = Access::Write;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let result = turn.coordinator.answer(turn.now, self.0, self.1);
        turn.reply::<Self>(to, result);
    }
}

/// Sets the number of evictions that a job tolerates.
#[derive(Clone, PartialEq, Debug)]
pub struct SetJob(pub String, pub Availability);

impl Operation for SetJob {
    type Reply = ();
    type Error = TooManyJobs;

    const ACCESS: Access = Access::Write;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let result = turn.coordinator.set_job(turn.now, self.0, self.1);
        turn.reply::<Self>(to, result);
    }
}

impl Operation for Score {
    type Reply = Scores;
    type Error = ScoreError;

    const ACCESS: Access = Access::Compute;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        turn.coordinator.score(turn.now, self, to);
    }
}

/// Decides the request of decision `id` again under another policy, without a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhatIf {
    /// The decision.
    pub id: DecisionId,
    /// Name of the policy, with settings after colons: `sinbad:remote_racks=2`.
    pub policy: String,
}

impl Operation for WhatIf {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Compute;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        turn.coordinator.what_if(turn.now, self.id, &self.policy, to);
    }
}

/// Lists workloads with a guaranteed SLO, the latest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListWorkloads {
    /// Only decisions with ids below this one.
    pub before: Option<DecisionId>,
    /// Largest number of workloads.
    pub limit: usize,
}

impl Operation for ListWorkloads {
    type Reply = Vec<WorkloadState>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let workloads = turn.coordinator.workloads(turn.now, self.before, self.limit);
        turn.reply::<Self>(to, Ok(workloads));
    }
}

/// Shows the workload of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetWorkload(pub String);

impl Operation for GetWorkload {
    type Reply = WorkloadState;
    type Error = NoWorkload;

    const ACCESS: Access = Access::Read;

    fn run(self, turn: &mut Turn<'_>, to: ReplyTo<Self>) {
        let result = turn.coordinator.workload(turn.now, &self.0);
        turn.reply::<Self>(to, result);
    }
}
