//! What a plant says to the engine, and what the engine answers.

use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Discarded, EntryId, Sample};
use leeward_placement::replicas::{Chain, ReplicaRequest};
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
    /// The time that was asked for has come.
    Wake,
}

/// A question, by kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// Where do the copies of a block go?
    Replicas(ReplicaRequest),
}

/// What the plant is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// The answer to an ask.
    Answer(u64, Answer),
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
}

/// A decision that is in the ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<C> {
    /// What was decided.
    pub decision: Decision<C>,
    /// The entries committed for it, to be released when its work ends.
    pub entries: Vec<EntryId>,
}
