//! Entries: facts about work that was placed or promised, and the transactions that add and release them.
//!
//! An entry says what the work is (bytes and flows, mean and peak, or an envelope), which resources it crosses and
//! how it stops being pending. It never says how loaded anything is: each reader derives its own number.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, Hop, Nanos, ResourceId};

/// A fact about work that was placed or promised.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// What it belongs to.
    pub owner: Owner,
    /// The resources that count it, and its work at each.
    pub hops: Vec<Hop>,
    /// What the work is.
    pub demand: Demand,
    /// Whether it adds load or takes it away.
    pub sign: Sign,
    /// How it stops being pending.
    pub fade: Fade,
    /// When it starts, where that is known at commit; otherwise it waits for [`crate::Ledger::started`].
    pub starts: Option<Nanos>,
}

/// What work is.
#[derive(Clone, PartialEq, Debug)]
pub enum Demand {
    /// Transfers that take what they get: a block write, a shuffle.
    Elastic {
        /// What is to be carried.
        bytes: Bytes,
        /// In how many flows.
        flows: u32,
        /// The most it can use, in bit/s (a disk at its end, say).
        cap_bps: Option<u64>,
    },
    /// A task or service that sends at some rate.
    Stream {
        /// What telemetry will show, in bit/s.
        mean_bps: u64,
        /// What placement should make room for, in bit/s.
        peak_bps: u64,
    },
    /// A workload with a promise: never more than its token buckets allow, at a priority.
    Envelope {
        /// What telemetry will show, in bit/s.
        mean_bps: u64,
        /// The rate set aside for it, in bit/s.
        rate_bps: u64,
        /// All of them hold at once; bits and bit/s.
        buckets: Arc<[TokenBucket]>,
        /// Strict priority, 0 first.
        priority: u8,
    },
}

/// Whether an entry adds load or takes it away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// New work.
    Adds,
    /// Work that leaves: the source of a migration, an evicted task.
    Relieves,
}

/// How an entry stops being pending, that is, how telemetry takes over from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fade {
    /// Dropped when a report comes whose window ends after the commit (Sinbad section 6.2).
    AtNextWindow,
    /// Once started, fades at the rate at which the estimator takes in new load, so that measured and pending
    /// together stay right at every step. What is released fades the same way.
    WithEstimator,
    /// As `WithEstimator`, but dropped when it has not started this long after the commit.
    After(Nanos),
    /// Stays at face value until released.
    Held,
}

/// What an entry belongs to: a file, an app, a job, a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// Which kind of thing.
    pub kind: OwnerKind,
    /// Which one.
    pub id: u64,
}

/// The kinds of things that own entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OwnerKind {
    /// A file of a file system.
    File,
    /// An application of several tasks.
    App,
    /// A task or job of a scheduler.
    Job,
    /// A storage volume.
    Volume,
}

/// The number of an entry; never used twice in a ledger's life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u64);

/// Changes to the ledger that are made together or not at all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transaction {
    /// Entries to add.
    pub add: Vec<Entry>,
    /// Entries to release; an id that is there twice counts once.
    pub release: Vec<EntryId>,
    /// For each queue that was read, [`crate::View::version`]. Empty for best effort, which never conflicts.
    pub expect: Vec<(ResourceId, u32)>,
    /// Who asks, and the number of the request; numbers of one client rise.
    pub client: Option<(u64, u64)>,
}

/// Why a transaction was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// What may be promised changed since it was read: decide again on a newer view.
    #[error("what may be promised on resource {} changed: read version {expected}, now {found}", resource.0)]
    Conflict {
        /// Where.
        resource: ResourceId,
        /// The version that was read.
        expected: u32,
        /// The version now.
        found: u32,
    },
    /// An entry to release is not there.
    #[error("entry {} is not in the ledger", .0.0)]
    NoEntry(EntryId),
    /// An entry names a resource that the fabric does not have.
    #[error("resource {} is not in the fabric", .0.0)]
    NoResource(ResourceId),
    /// A hop's work for each byte is not a number, not finite or negative.
    #[error("work on resource {}: must be finite and not negative", .0.0)]
    InvalidWork(ResourceId),
    /// A rate is to be reserved where nothing could keep it.
    #[error("resource {} is first come, first served: no rate can be reserved on it", .0.0)]
    CannotReserve(ResourceId),
    /// The client's request was counted before.
    #[error("request {sequence} of client {client} is counted already")]
    Repeated {
        /// Who asked.
        client: u64,
        /// The number it gave.
        sequence: u64,
    },
}
