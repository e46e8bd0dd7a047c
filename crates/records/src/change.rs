//! Changes that are persisted, and the state loaded at the start. Both use names, so they stay valid when the fabric
//! changes.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_engine::Availability;
use leeward_fabric::{Bytes, Fabric, Hop, Nanos};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::decision::DecisionRecord;
use crate::ids::{ClusterVersion, DecisionId};
use crate::migration::Migration;
use crate::modes::ModesState;
use crate::period::Period;
use crate::promises::{Enforcer, PromisesVersion};

/// A change that must survive once it is acknowledged.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A new decision with the resources it holds.
    Decided(Arc<DecisionRecord>, Vec<StoredEntry>),
    /// Tasks of a decision moved, or its workload has new priorities or limits. The decision now holds other resources.
    Moved(Arc<DecisionRecord>, Vec<StoredEntry>),
    /// A move was advised or answered.
    Migration(Migration),
    /// A job has a new budget.
    Job(String, Availability),
    /// A job no longer has a budget: it is unlimited, or has ended.
    JobOver(String),
    /// The cluster has a new version.
    Cluster(Version),
    /// The modes changed.
    Modes(ModesState),
    /// A period ended, or a running one has new sums.
    Period(Arc<Period>),
    /// Names of the links of a version of the cluster, in order of ids.
    LinkNames(ClusterVersion, Arc<[String]>),
    /// A comparison or a re-evaluation of a decision is known.
    Compared(Arc<DecisionRecord>),
    /// A reserved decision was confirmed.
    Confirmed(Arc<DecisionRecord>),
    /// The set of promises has a new version.
    Promises(PromisesVersion),
    /// An enforcer registered, acknowledged something new, or its lease ran out.
    Enforcer(Arc<Enforcer>),
    /// The enforcer of this name was removed.
    EnforcerGone(String),
    /// A decision releases its resources: its work ended, or telemetry shows all of its load.
    Ended {
        /// Id of the decision.
        id: DecisionId,
        /// Reported end of its work; `None` without a report.
        released: Option<Nanos>,
    },
}

/// A version of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Number of the version, from 1.
    pub number: ClusterVersion,
    /// Start of the version.
    pub at: Nanos,
    /// Origin of the version.
    pub origin: Origin,
    /// Cluster file in JSON.
    pub text: Arc<str>,
}

/// Origin of a cluster version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The file that the service was started with.
    File,
    /// A change over HTTP.
    Request,
}

/// State that a service loads at its start.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Current version of the cluster; `None` before the first.
    pub cluster: Option<Version>,
    /// Last version that came from a file.
    pub file: Option<Version>,
    /// Id of the next decision.
    pub next: DecisionId,
    /// Recent decisions, and all older ones that hold resources, in the order of the decisions.
    pub decisions: Vec<(DecisionRecord, Vec<StoredEntry>)>,
    /// Modes that were set last; `None` if they were never stored.
    pub modes: Option<ModesState>,
    /// Version of the set of promises; `None` before the first promise.
    pub promises: Option<PromisesVersion>,
    /// Enforcers, by name.
    pub enforcers: Vec<Enforcer>,
    /// Unanswered moves, and recent answered ones, in order.
    pub migrations: Vec<Migration>,
    /// Budgets of jobs.
    pub jobs: Vec<(String, Availability)>,
    /// Idempotency entries (client or key, and decision), oldest first. Beyond 20,000 clients, the least recent ones
    /// may be missing.
    pub callers: Vec<(Caller, DecisionId)>,
}

/// A stored ledger entry.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredEntry {
    owner: (Kind, u64),
    /// Index of the task whose own traffic it is; `None` for other work, and in rows of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    /// Names of resources, with the work per payload byte at each.
    hops: Vec<(String, f64)>,
    demand: Work,
    relieves: bool,
    fade: Fading,
    /// Start, in nanoseconds of engine time.
    starts: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    File,
    App,
    Job,
    Volume,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Elastic { bytes: u64, flows: u32, cap_bps: Option<u64> },
    Stream { mean_bps: u64, peak_bps: u64 },
    Envelope { mean_bps: u64, rate_bps: u64, buckets: Vec<(f64, f64)>, priority: u8 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fading {
    AtNextWindow,
    WithEstimator,
    After(u64),
    Held,
}

impl StoredEntry {
    /// Converts a ledger entry to names. `task` is the index of the task whose own traffic it is, if any.
    pub fn of(fabric: &Fabric, entry: &Entry, task: Option<u32>) -> StoredEntry {
        let kind = match entry.owner.kind {
            OwnerKind::File => Kind::File,
            OwnerKind::App => Kind::App,
            OwnerKind::Job => Kind::Job,
            OwnerKind::Volume => Kind::Volume,
        };
        let demand = match &entry.demand {
            &Demand::Elastic { bytes, flows, cap_bps } => Work::Elastic { bytes: bytes.0, flows, cap_bps },
            &Demand::Stream { mean_bps, peak_bps } => Work::Stream { mean_bps, peak_bps },
            Demand::Envelope { mean_bps, rate_bps, buckets, priority } => Work::Envelope {
                mean_bps: *mean_bps,
                rate_bps: *rate_bps,
                buckets: buckets.iter().map(|bucket| (bucket.rate(), bucket.burst())).collect(),
                priority: *priority,
            },
        };
        StoredEntry {
            owner: (kind, entry.owner.id),
            task,
            hops: entry.hops.iter().map(|hop| (fabric.resource_name(hop.resource), hop.work)).collect(),
            demand,
            relieves: entry.sign == Sign::Relieves,
            fade: match entry.fade {
                Fade::AtNextWindow => Fading::AtNextWindow,
                Fade::WithEstimator => Fading::WithEstimator,
                Fade::After(time) => Fading::After(time.0),
                Fade::Held => Fading::Held,
            },
            starts: entry.starts.map(|at| at.0),
        }
    }

    /// Index of the task whose own traffic it is; `None` for other work.
    pub fn task(&self) -> Option<u32> {
        self.task
    }

    /// Converts to a ledger entry. The conversion omits resources that the fabric does not have, and invalid token
    /// buckets.
    pub fn entry(self, fabric: &Fabric) -> Entry {
        let kind = match self.owner.0 {
            Kind::File => OwnerKind::File,
            Kind::App => OwnerKind::App,
            Kind::Job => OwnerKind::Job,
            Kind::Volume => OwnerKind::Volume,
        };
        let hop = |(name, work): (String, f64)| {
            fabric
                .resource(&name)
                .filter(|_| work.is_finite() && work >= 0.0)
                .map(|resource| Hop { resource, work })
        };
        Entry {
            owner: Owner { kind, id: self.owner.1 },
            hops: self.hops.into_iter().filter_map(hop).collect(),
            demand: match self.demand {
                Work::Elastic { bytes, flows, cap_bps } => {
                    Demand::Elastic { bytes: Bytes(bytes), flows, cap_bps }
                }
                Work::Stream { mean_bps, peak_bps } => Demand::Stream { mean_bps, peak_bps },
                Work::Envelope { mean_bps, rate_bps, buckets, priority } => {
                    let buckets =
                        buckets.into_iter().filter_map(|(rate, burst)| TokenBucket::new(rate, burst).ok());
                    Demand::Envelope { mean_bps, rate_bps, buckets: buckets.collect(), priority }
                }
            },
            sign: if self.relieves { Sign::Relieves } else { Sign::Adds },
            fade: match self.fade {
                Fading::AtNextWindow => Fade::AtNextWindow,
                Fading::WithEstimator => Fade::WithEstimator,
                Fading::After(time) => Fade::After(Nanos(time)),
                Fading::Held => Fade::Held,
            },
            starts: self.starts.map(Nanos),
        }
    }
}
