//! What a plant says to the engine, and what the engine answers.

use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{CommitError, Discarded, EntryId, Sample, Transaction};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment, TaskId, Worth};
use leeward_placement::{Decision, Refusal};

/// What happened.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Telemetry came.
    Report(&'a [Sample]),
    /// Somebody asks; the number tells asks apart.
    Ask(u64, Ask),
    /// Work of these entries started.
    Started(&'a [EntryId]),
    /// Work of these entries ended.
    Release(&'a [EntryId]),
    /// A resource's capacity is believed to be this from now on.
    Believe(ResourceId, Load),
    /// A host is known to be up, or down.
    Health(HostId, bool),
    /// A host is being emptied and takes no new work, or takes work again.
    Drain(HostId, bool),
    /// A host stores this much now.
    Stored(HostId, Bytes),
    /// A host stores this much less: what was to be written there never was, or is gone.
    Unstored(HostId, Bytes),
    /// How much traffic of others there is on resources, as so many flows that always have something to send (Choreo
    /// section 3.2).
    CrossTraffic(&'a [(ResourceId, f64)]),
    /// An app ended, with all its tasks.
    Ended(u64),
    /// What a job can bear, from now on.
    Job(u64, Availability),
    /// What tasks send and receive now; until it is told, what they demand in the mean.
    Rates(&'a [(TaskId, Rates)]),
    /// A task that was moved runs again.
    Up(TaskId),
    /// A task that was to be moved was not: it runs on this host, where it was.
    Stays(TaskId, HostId),
    /// The time that was asked for has come.
    Wake,
}

/// How much moving a job can bear; `None` is without limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Availability {
    /// Tasks that may be down at once.
    pub down: Option<u32>,
    /// Evictions in an hour.
    pub evictions_per_hour: Option<u32>,
}

/// What a task carries across the links of its rack, in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Out of the rack.
    pub egress_bps: u64,
    /// From outside the rack.
    pub ingress_bps: u64,
}

/// A question, by kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// Where do the copies of a block go?
    Replicas(ReplicaRequest),
    /// Where do these tasks go?
    Tasks(AppRequest),
    /// Can these tasks still go where it was decided elsewhere ([`crate::Published::place`])? It was, by what they state: what was seen of
    /// their job plays no part.
    Found(Box<(AppRequest, Decision<Assignment>)>),
    /// Should an app that runs go on elsewhere? It is asked for with all its tasks and what they have still to send.
    Again(AppRequest, Worth),
    /// Can this still be promised? It was decided elsewhere, on what the queues that it expects were promised then.
    Promise(Transaction),
}

/// What the plant is to do.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "most outputs are answers")]
pub enum Output {
    /// The answer to an ask.
    Answer(u64, Answer),
    /// Tasks are to be moved, in this order; the ledger has them there already.
    Advise(Vec<Advice>),
    /// Samples of a report that were not taken in.
    Discarded(Discarded),
    /// Call again at this time, if nothing happens before.
    WakeAt(Nanos),
}

/// An answer, by kind of question.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// The copies of a block go there, or nowhere.
    Replicas(Result<Placed<Chain>, Refusal>),
    /// The tasks go there, or nowhere.
    Tasks(Result<Placed<Assignment>, Refusal>),
    /// The tasks go where it was decided; `None` if a host cannot take its task any more, and nothing was done.
    Found(Option<Placed<Assignment>>),
    /// The app goes there, if that is worth it, or stays because the policy would put it nowhere.
    Again(Result<Replaced, Refusal>),
    /// It is in the ledger, whole; or what has changed since, and nothing of it is.
    Promise(Result<Vec<EntryId>, CommitError>),
}

/// A task is to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// Which.
    pub task: TaskId,
    /// Where it is.
    pub from: HostId,
    /// Where it is to go.
    pub to: HostId,
    /// The hot link that it leaves.
    pub link: ResourceId,
}

/// A decision that is in the ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<C> {
    /// What was decided.
    pub decision: Decision<C>,
    /// The entries committed for it, to be released when its work ends.
    pub entries: Vec<EntryId>,
}

/// An app that was placed once more. Times are predictions in seconds, infinite where a link carries nothing; see
/// [`leeward_placement::tasks::Again`].
#[derive(Clone, PartialEq, Debug)]
pub struct Replaced {
    /// Where it goes; `None` if it stays. It is in the ledger there already, and its former entries are released.
    pub placed: Option<Placed<Assignment>>,
    /// When the rest is over where it was.
    pub stays: f64,
    /// When the rest is over where it would go, without the cost.
    pub moves: f64,
    /// How long going there takes.
    pub cost: f64,
}
