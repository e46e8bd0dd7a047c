//! Inputs of the engine, and its outputs.

use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{CommitError, DiscardedSamples, EntryId, Sample, Transaction};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment, TaskId, Worth};
use leeward_placement::{Decision, Refusal};

/// An input of the engine.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// A telemetry report.
    Report(&'a [Sample]),
    /// A request; the number identifies its answer.
    Ask(u64, Ask),
    /// Work of these entries started.
    Started(&'a [EntryId]),
    /// Work of these entries ended.
    Release(&'a [EntryId]),
    /// Believed capacity of a resource from now on.
    Believe(ResourceId, Load),
    /// State of a host: true if it is up.
    Health(HostId, bool),
    /// Drain of a host: true if it takes no new work.
    Drain(HostId, bool),
    /// Bytes stored on a host.
    Stored(HostId, Bytes),
    /// Reduction of the bytes stored on a host: planned data were not written, or data were deleted.
    Unstored(HostId, Bytes),
    /// Cross traffic on resources, as an equivalent number of flows that always have data to send (Choreo
    /// section 3.2).
    CrossTraffic(&'a [(ResourceId, f64)]),
    /// End of an app, with all its tasks.
    Ended(u64),
    /// Availability of a job, from now on.
    Job(u64, Availability),
    /// Current rates of tasks; without them, the mean of the stated demand counts.
    Rates(&'a [(TaskId, Rates)]),
    /// A moved task runs again.
    Up(TaskId),
    /// The move of a task was cancelled: it still runs on this host.
    Stays(TaskId, HostId),
    /// The requested wake-up time has come.
    Wake,
}

/// Limits on the moves of a job; `None`: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Availability {
    /// Most tasks that may be down at once.
    pub down: Option<u32>,
    /// Most evictions per hour.
    pub evictions_per_hour: Option<u32>,
}

/// Rates of a task across the links of its rack, in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Out of the rack.
    pub egress_bps: u64,
    /// From outside the rack.
    pub ingress_bps: u64,
}

/// A request, by kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// Place the copies of a block.
    Replicas(ReplicaRequest),
    /// Place the tasks of an app.
    Tasks(AppRequest),
    /// Commit the placement of tasks decided elsewhere ([`crate::Published::place`]), if it still fits. That
    /// decision used the stated demands, without the history of the job.
    Found(Box<(AppRequest, Decision<Assignment>)>),
    /// Consider a move of a running app, given with all its tasks and their remaining transfers.
    Again(AppRequest, Worth),
    /// Commit a promise decided elsewhere, if the promises of its expected queues have not changed since.
    Promise(Transaction),
}

/// An output of the engine.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "most outputs are answers")]
pub enum Output {
    /// Answer to a request.
    Answer(u64, Answer),
    /// Tasks to move, in this order; the ledger has recorded the moves already.
    Advise(Vec<Advice>),
    /// Samples of a report that were rejected.
    Discarded(DiscardedSamples),
    /// Time at which to call again, if nothing happens before.
    WakeAt(Nanos),
}

/// An answer, by kind of request.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Placement of a block's copies, or the reason for a refusal.
    Replicas(Result<Placed<Chain>, Refusal>),
    /// Placement of tasks, or the reason for a refusal.
    Tasks(Result<Placed<Assignment>, Refusal>),
    /// Committed placement; `None` if a host cannot take its task any more, and nothing was done.
    Found(Option<Placed<Assignment>>),
    /// New placement of an app, if it is worth the cost; or the reason for a refusal, in which case the app
    /// stays.
    Again(Result<Replaced, Refusal>),
    /// Entries of the whole promise in the ledger; or the conflicting change, and no entry is in the ledger.
    Promise(Result<Vec<EntryId>, CommitError>),
}

/// Advice to move a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// The task.
    pub task: TaskId,
    /// Current host.
    pub from: HostId,
    /// New host.
    pub to: HostId,
    /// The hot link that it leaves.
    pub link: ResourceId,
}

/// A decision committed to the ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<C> {
    /// The decision.
    pub decision: Decision<C>,
    /// Entries committed for it; release them when its work ends.
    pub entries: Vec<EntryId>,
}

/// Outcome of the re-placement of an app. Times are predictions in seconds, infinite if a link has no
/// capacity; see [`leeward_placement::tasks::Again`].
#[derive(Clone, PartialEq, Debug)]
pub struct Replaced {
    /// New placement; `None` if the app stays. The ledger has the new entries already, and the former ones
    /// are released.
    pub placed: Option<Placed<Assignment>>,
    /// Remaining time without the move.
    pub stays: f64,
    /// Remaining time after the move, without the cost.
    pub moves: f64,
    /// Time of the move.
    pub cost: f64,
}
