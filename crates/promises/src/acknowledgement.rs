//! Acknowledgements of enforcers, and the reasons to reject them.

use std::net::IpAddr;
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_records::{AppliedState, Enforcer, EnforcerKind, PromisesVersion};

use crate::seen::{Latency, RequestCounters};

/// What an enforcer has applied. It renews the enforcer's lease.
#[derive(Clone, PartialEq, Debug)]
pub struct Acknowledgement {
    /// Name of the enforcer.
    pub name: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves; `None` for all volumes of the host.
    pub device: Option<String>,
    /// Tells the enforcer from others of its name; `None` if it states none.
    pub instance: Option<String>,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// Length of the lease.
    pub ttl: Nanos,
    /// Version that it has applied; `None` if it has applied none since it began.
    pub applied: Option<PromisesVersion>,
    /// Workloads that it applies, each once.
    pub workloads: Vec<AcknowledgedWorkload>,
}

/// A workload of an acknowledgement.
#[derive(Clone, PartialEq, Debug)]
pub struct AcknowledgedWorkload {
    /// Name of the workload.
    pub name: String,
    /// State of its promise.
    pub state: AppliedState,
    /// Counters since the enforcer began.
    pub counters: RequestCounters,
    /// Latencies that its requests have had recently.
    pub latencies: Vec<Latency>,
}

/// Result of an acknowledgement.
#[derive(Clone, PartialEq, Debug)]
pub struct Acknowledged {
    /// The enforcer.
    pub enforcer: Arc<Enforcer>,
    /// True if the enforcer differs from before, besides the end of its lease.
    pub changed: bool,
    /// Hosts whose addresses differ from before: its host, and the one of an enforcer whose name it took.
    pub moved: Vec<String>,
    /// Enforcer whose place it took, because there are too many; its lease had run out.
    pub replaced: Option<String>,
    /// Workloads without a promise at this enforcer, in the order of the acknowledgement. They may have ended.
    pub unknown: Vec<String>,
}

/// Reason to reject an acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AcknowledgeError {
    /// The enforcer of this name is of another kind or host, named here.
    NameTaken(EnforcerKind, String),
    /// Another enforcer of this name has a lease; it ends at this time, unless it is renewed.
    OtherInstance(Nanos),
    /// The version is of another set of promises: of another service, or of a store that was lost.
    OtherSet(PromisesVersion),
    /// The version is later than the present one.
    FutureVersion {
        /// Acknowledged number.
        acknowledged: u64,
        /// Present number.
        present: u64,
    },
    /// The enforcer has acknowledged a later version before.
    OlderVersion {
        /// Acknowledged number.
        acknowledged: u64,
        /// Number of the earlier acknowledgement.
        before: u64,
    },
    /// There are too many enforcers: this number, all with a lease.
    TooMany(usize),
}
