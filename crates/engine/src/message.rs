//! Inputs of the engine, and its outputs.

use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::EntryId;
use leeward_placement::replicas::Chain;
use leeward_placement::tasks::{Assignment, TaskId};
use leeward_placement::{Decision, JobId, PathLoad, Refusal};
use leeward_registry::splitmix;

/// An input of the engine.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Work of these entries started.
    Started(&'a [EntryId]),
    /// Work of these entries ended.
    Release(&'a [EntryId]),
    /// New assumed capacity of a resource.
    SetCapacity(ResourceId, Load),
    /// State of a host: true if it is up.
    Health(HostId, bool),
    /// Drain of a host: true if it takes no new work.
    Drain(HostId, bool),
    /// Bytes stored on a host.
    Stored(HostId, Bytes),
    /// Storage of a host, as it reports it.
    Storage(HostId, Bytes),
    /// Reduction of the bytes stored on a host: planned data were not written, or data were deleted.
    Unstored(HostId, Bytes),
    /// Cross traffic on resources, as an equivalent number of flows that always have data to send (Choreo
    /// section 3.2).
    CrossTraffic(&'a [(ResourceId, f64)]),
    /// End of an app, with all its tasks.
    Ended(u64),
    /// Availability of a job, from now on.
    Job(JobId, Availability),
    /// Current rates of tasks; without them, the mean of the stated demand counts.
    Rates(&'a [(TaskId, Rates)]),
    /// A moved task runs again.
    TaskRestarted(TaskId),
    /// The move of a task was cancelled: it still runs on this host.
    MoveCancelled(TaskId, HostId),
    /// New rule for moves.
    MoveRule(MoveRule),
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

/// Policy that decides a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Decider {
    /// The engine's policy for the kind of request.
    #[default]
    Own,
    /// The default policy: the one of the system that asks, such as HDFS's.
    Default,
}

impl Decider {
    /// The other policy of the kind.
    pub fn other(self) -> Decider {
        match self {
            Decider::Own => Decider::Default,
            Decider::Default => Decider::Own,
        }
    }
}

/// Way to decide a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ruling {
    /// Policy whose choice is committed.
    pub by: Decider,
    /// True if the other policy chooses too, for a comparison.
    pub compare: bool,
}

/// Rule for moves of tasks out of hot racks, if there is a policy for moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MoveRule {
    /// No moves.
    Off,
    /// Moves are chosen and not made ([`Output::MovesConsidered`]).
    Shadow,
    /// Moves out of a share of the racks, drawn by the hash of their names ([`is_in_share`]).
    Canary(u16),
    /// Moves out of all hot racks.
    #[default]
    On,
}

/// Reason for which no task moves off a hot link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoMove {
    /// There is no policy for moves, or moves are off.
    Off,
    /// Moves are chosen and not made.
    Shadow,
    /// The rack is outside the share whose tasks move.
    Canary,
    /// The link is not that of a rack: tasks move only off links of racks.
    OtherLink,
    /// The mean load is no longer hot, although the last window was.
    Cooling,
    /// The link is hot for fewer windows than moves require.
    Recent,
    /// No known task sends traffic over the link.
    Others,
    /// Each task with traffic over the link must stay: by its request, after a recent move, or by the budget of its job.
    Fixed,
    /// A task may move, but no rack that stays cool has room for it.
    NoTarget,
}

/// True if a value is in a share that is drawn by hash, in hundredths of a percent. A value is also in every larger
/// share.
pub fn is_in_share(value: &[u8], share: u16) -> bool {
    let hash = value.iter().fold(0, |hash, &byte| splitmix(hash ^ u64::from(byte)));
    splitmix(hash) % 10_000 < u64::from(share)
}

/// Choices of both policies for a request, on one view of the network.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison<C> {
    /// Load on the links of the committed choice.
    pub committed: PathLoad,
    /// Choice of the other policy with the load on its links, or its refusal.
    pub other: Result<(C, PathLoad), Refusal>,
}

/// Placement of a block's copies, or the reason for a refusal.
pub type ReplicasAnswer = Result<CommittedDecision<Chain>, Refusal>;

/// An output of the engine.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "most outputs are placements")]
pub enum Output {
    /// Answer to the request with this number that waited for a joint decision
    /// ([`Engine::place_replicas`](crate::Engine::place_replicas)).
    ReplicasPlaced(u64, ReplicasAnswer),
    /// Tasks to move, in this order. The ledger already contains the moves.
    MovesAdvised(Vec<Advice>),
    /// Moves that the policy chose under [`MoveRule::Shadow`]. Nothing moved.
    MovesConsidered(Vec<Advice>),
    /// Time at which to call again, if nothing happens before.
    WakeAt(Nanos),
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
    /// The hot link that the task leaves.
    pub link: ResourceId,
}

/// A decision committed to the ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct CommittedDecision<C> {
    /// The decision.
    pub decision: Decision<C>,
    /// Entries committed for it; release them when its work ends.
    pub entries: Vec<EntryId>,
    /// Comparison with the other policy, if it was requested and there is one.
    pub comparison: Option<Comparison<C>>,
}

/// Outcome of the re-placement of an app. Times are predictions in seconds, infinite if a link has no
/// capacity; see [`leeward_placement::tasks::Alternative`].
#[derive(Clone, PartialEq, Debug)]
pub struct Reevaluation {
    /// New placement; `None` if the app stays. The ledger already has the new entries, and has released the former
    /// ones.
    pub placed: Option<CommittedDecision<Assignment>>,
    /// Remaining time without the move.
    pub stays: f64,
    /// Remaining time after the move, without the cost.
    pub moves: f64,
    /// Time of the move.
    pub cost: f64,
}
