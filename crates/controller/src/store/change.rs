//! What changes for good, and what there is of it when a service begins: by names, so that it outlives the fabric that
//! it was decided on.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_engine::Availability;
use leeward_fabric::{Bytes, Fabric, Hop, Nanos};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Sign};
use serde::{Deserialize, Serialize};

use crate::desk::{Caller, Migration, Record};

/// Something that is not to be lost once it was acknowledged.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A decision was made, and holds this much of the network.
    Decided(Arc<Record>, Vec<Held>),
    /// A decision's tasks are elsewhere now, or its workload has other priorities or limits, and it holds something else.
    Moved(Arc<Record>, Vec<Held>),
    /// A move was advised, or answered.
    Migration(Migration),
    /// What a job can bear.
    Job(String, Availability),
    /// A job can bear everything, or is over: nothing need be known of it.
    JobOver(String),
    /// The cluster is another one from now on.
    Cluster(Version),
    /// What a decision holds ends: its work ended, or telemetry shows all of it.
    Ended {
        /// Which.
        id: u64,
        /// When its work ended; `None` if nobody said so.
        released: Option<Nanos>,
    },
}

/// A version of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its number, from 1.
    pub number: u64,
    /// Since when.
    pub at: Nanos,
    /// Where it comes from.
    pub origin: Origin,
    /// The cluster file, as JSON.
    pub text: Arc<str>,
}

/// Where a version of the cluster comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The file that the service was started with.
    File,
    /// Somebody who changed it over HTTP.
    Request,
}

/// What there is when a service begins.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// The version of the cluster that counts; `None` before the first.
    pub cluster: Option<Version>,
    /// The last version that came from a file.
    pub file: Option<Version>,
    /// The number of the next decision.
    pub next: u64,
    /// Decisions that are kept or hold something, in the order in which they were made.
    pub decisions: Vec<(Record, Vec<Held>)>,
    /// Moves that wait for an answer, and the last that were answered, in order.
    pub migrations: Vec<Migration>,
    /// What jobs can bear.
    pub jobs: Vec<(String, Availability)>,
    /// Who asked, and the decision that was made for their last request, or for this key; the last decided last. Where there
    /// were very many clients, some are left out who asked before the decisions that are here.
    pub callers: Vec<(Caller, u64)>,
}

/// An entry of the ledger.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    owner: (Kind, u64),
    /// Resources, with the work of a payload byte at each.
    hops: Vec<(String, f64)>,
    demand: Work,
    relieves: bool,
    fade: Fading,
    /// Nanoseconds of the engine's time.
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

impl Held {
    /// An entry, with the names of its resources.
    pub fn of(fabric: &Fabric, entry: &Entry) -> Held {
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
        Held {
            owner: (kind, entry.owner.id),
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

    /// The entry on a fabric. It counts on those of its resources that the fabric has; token buckets that are none are
    /// passed over.
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
