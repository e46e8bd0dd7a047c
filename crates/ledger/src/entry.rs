//! Entries: facts about placed or promised work, and the transactions that add and release them.
//!
//! An entry describes the work (bytes and flows, mean and peak, or an envelope), its resources, and the rule by which
//! it stops being pending. It never describes a load: each reader derives its own number.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, Hop, Nanos, ResourceId};

/// A fact about placed or promised work.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Owner of the work.
    pub owner: Owner,
    /// The resources that count the entry, and its work at each.
    pub hops: Vec<Hop>,
    /// Demand of the work.
    pub demand: Demand,
    /// Direction of the load: added or removed.
    pub sign: Sign,
    /// Rule by which the entry stops being pending.
    pub fade: Fade,
    /// Start of the work, if known at commit; otherwise the entry waits for [`crate::Ledger::mark_started`].
    pub starts: Option<Nanos>,
}

/// Demand of a piece of work.
#[derive(Clone, PartialEq, Debug)]
pub enum Demand {
    /// Transfers that use the rate they get: a block write, a shuffle.
    Elastic {
        /// Bytes to transfer.
        bytes: Bytes,
        /// Number of flows.
        flows: u32,
        /// Maximum usable rate, in bit/s (for example the rate of the disk at the end).
        cap_bps: Option<u64>,
    },
    /// A task or service that sends at some rate.
    Stream {
        /// Expected measured rate, in bit/s.
        mean_bps: u64,
        /// Rate that placement must find free, in bit/s.
        peak_bps: u64,
    },
    /// A guaranteed workload: its token buckets limit it, at a fixed priority.
    Envelope {
        /// Expected measured rate, in bit/s.
        mean_bps: u64,
        /// Reserved rate, in bit/s.
        rate_bps: u64,
        /// Token buckets in bits and bit/s; the work conforms to all of them.
        buckets: Arc<[TokenBucket]>,
        /// Strict priority, 0 first.
        priority: u8,
    },
}

/// Direction of an entry's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// New work.
    Adds,
    /// Leaving work: the source of a migration, an evicted task.
    Relieves,
}

/// Rule by which an entry stops being pending: telemetry then shows its load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fade {
    /// Dropped at the first report whose window ends after the commit (Sinbad section 6.2).
    AtNextWindow,
    /// Fades from its start at the same rate as the estimator adopts the load. The sum of measured and pending load is
    /// therefore right at every step. Released entries fade the same way.
    WithEstimator,
    /// As `WithEstimator`, but dropped if the work has not started within this time after the commit.
    After(Nanos),
    /// Stays at its full rate until released.
    Held,
}

/// Owner of an entry: a file, an app, a job, a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// Kind of the owner.
    pub kind: OwnerKind,
    /// Number of the owner among the owners of its kind.
    pub id: u64,
}

/// Kinds of owners.
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

/// Number of an entry. A ledger never uses a number twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u64);

/// Changes to the ledger, applied together or not at all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transaction {
    /// Entries to add.
    pub add: Vec<Entry>,
    /// Entries to release; a duplicate id counts once.
    pub release: Vec<EntryId>,
    /// [`crate::View::version`] of each queue that the decision read. Empty for best effort, which never conflicts.
    pub expect: Vec<(ResourceId, u32)>,
    /// Client and number of the request; the numbers of one client increase.
    pub client: Option<(u64, u64)>,
}

/// Reason for a rejected transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// The reservable rate changed since the read: decide again on a newer view.
    #[error("conflict on resource {}: read version {expected}, now {found}", resource.0)]
    Conflict {
        /// The resource.
        resource: ResourceId,
        /// Version at the read.
        expected: u32,
        /// Current version.
        found: u32,
    },
    /// An entry to release does not exist.
    #[error("entry {} is not in the ledger", .0.0)]
    NoEntry(EntryId),
    /// An entry names a resource that the fabric does not have.
    #[error("resource {} is not in the fabric", .0.0)]
    NoResource(ResourceId),
    /// The work per byte of a hop is negative or not finite.
    #[error("work on resource {}: must be finite and not negative", .0.0)]
    InvalidWork(ResourceId),
    /// The entry reserves a rate on a resource that cannot guarantee one.
    #[error("resource {} is first in, first out: no rate can be reserved on it", .0.0)]
    CannotReserve(ResourceId),
    /// A request of the client with this number or a later one has already been counted.
    #[error("request {sequence} of client {client} is already counted")]
    Repeated {
        /// The client.
        client: u64,
        /// Number of the request.
        sequence: u64,
    },
}
