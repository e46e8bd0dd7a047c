//! Conversion of a plan for the ledger: promises become envelopes, all in one transaction.
//!
//! ```text
//! Packing::plan --> transaction (add, release, expect) --Ledger::commit--> apply and store the ids
//!                                                          \--conflict--> nothing has changed
//! ```
//!
//! Each stage of a workload is an entry on the queues it crosses. Rates and bursts include the margin. The ledger
//! counts payload: bits on links, and work per byte at each hop. Work on links is already in bytes, so a hop's work is
//! 8 bits per byte. A device's seconds count as "bytes" of one ns each. Entries stay until their release: mean rates
//! fade into telemetry, but reservations do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::{BITS_PER_BYTE, Discipline, Fabric, Hop, ResourceId, ResourceKind};
use leeward_ledger::{Demand, Entry, EntryId, Fade, Owner, OwnerKind, Sign, Transaction, View};

use super::super::{Promise, Queue};
use super::packing::{Packing, PlacedWorkload};
use super::plan::Plan;
use super::site::units_per_work;

/// Nanoseconds per second of a device.
const NANOS: f64 = 1e9;

/// Ledger entries of placed workloads, by workload name.
pub type PromisedEntries = BTreeMap<String, Vec<EntryId>>;

/// Reason for which a plan cannot become a transaction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BridgeError {
    /// The packing changed after the plan.
    #[error("the packing has changed since the plan was made: plan again")]
    Stale,
    /// The site has no fabric.
    #[error("the site is not a cluster, so it has no ledger")]
    NoFabric,
    /// A queue has no priorities, so it supports no promises.
    #[error(
        "the queue of `{0}` is first in, first out: nothing can be promised on it; give the cluster `priorities`, the number of its classes"
    )]
    Fifo(String),
    /// The packing has no fixed priorities: priorities by SLO would need new numbers with each new SLO.
    #[error("priorities by SLO change with each new SLO: set `levels`, the longest SLO of each priority")]
    NoLevels,
    /// The priority exceeds the classes of the switches.
    #[error(
        "workload `{workload}` has priority {priority}, and there are {classes} classes, the last of them for best effort"
    )]
    Priority {
        /// Name of the workload.
        workload: String,
        /// Priority of the workload.
        priority: u64,
        /// Number of classes.
        classes: u8,
    },
    /// The ledger entries of a placed workload are unknown.
    #[error("workload `{0}` is placed, but its ledger entries are unknown")]
    Unknown(String),
}

/// Transaction of a plan: entries for the new workload, replacements for workloads with new limits, and the versions
/// (from `view`) of all queues that the plan depends on. `promised` has the entries of the placed workloads. The second
/// result has the name of the workload of each added entry, in order: one entry per stage, to match the ids of the
/// commit.
///
/// # Errors
/// [`BridgeError`]: the reason why the ledger cannot hold the promise.
pub fn transaction(
    packing: &Packing,
    plan: &Plan,
    promised: &PromisedEntries,
    view: &View<'_>,
    owner: impl Fn(&str) -> u64,
) -> Result<(Transaction, Vec<String>), BridgeError> {
    let fabric = packing.site.fabric().ok_or(BridgeError::NoFabric)?;
    if plan.version != packing.version {
        return Err(BridgeError::Stale);
    }
    if packing.settings.levels.is_empty() {
        return Err(BridgeError::NoLevels);
    }
    let resource = |&queue: &usize| packing.site.queues()[queue].resource.ok_or(BridgeError::NoFabric);
    let mut transaction = Transaction::default();
    let mut names = Vec::new();
    for queue in &plan.read {
        let resource = resource(queue)?;
        classes(fabric, resource)?;
        transaction.expect.push((resource, view.version(resource)));
    }
    for (id, limits) in &plan.limits {
        let placed = &packing.placed[id];
        if placed.limits == *limits {
            continue;
        }
        let name = &placed.workload.name;
        let held = promised.get(name).ok_or_else(|| BridgeError::Unknown(name.clone()))?;
        transaction.release.extend(held);
        promise(packing, fabric, placed, limits, owner(name), &mut transaction.add)?;
        names.resize(transaction.add.len(), name.clone());
    }
    let new = &plan.new;
    promise(packing, fabric, new, &new.limits, owner(&new.workload.name), &mut transaction.add)?;
    names.resize(transaction.add.len(), new.workload.name.clone());
    Ok((transaction, names))
}

/// Number of classes of a resource with priorities.
fn classes(fabric: &Fabric, resource: ResourceId) -> Result<u8, BridgeError> {
    match fabric.discipline(resource) {
        Discipline::StrictPriority { classes } => Ok(classes),
        Discipline::Fifo => Err(BridgeError::Fifo(fabric.resource_name(resource))),
    }
}

/// Adds an entry for each stage of a workload with at least one hop.
fn promise(
    packing: &Packing,
    fabric: &Fabric,
    placed: &PlacedWorkload,
    limits: &[ArrivalCurve],
    owner: u64,
    add: &mut Vec<Entry>,
) -> Result<(), BridgeError> {
    let promise = Promise {
        workload: placed.workload.clone(),
        route: placed.route.clone(),
        priorities: vec![u32::try_from(placed.level).unwrap_or(u32::MAX); placed.route.len()],
        limits: limits.to_vec(),
    };
    let entries = entries(fabric, packing.site.queues(), &promise, owner)?;
    add.extend(entries.into_iter().map(|entry| Entry { fade: Fade::Held, starts: None, ..entry }));
    Ok(())
}

/// Ledger entries of a promise: one for each stage with at least one hop. The mean rate of an entry counts from the
/// entry's start and fades into telemetry.
///
/// # Errors
/// [`BridgeError`]: the reason why the ledger cannot hold the promise.
pub fn entries(
    fabric: &Fabric,
    queues: &[Queue],
    promise: &Promise,
    owner: u64,
) -> Result<Vec<Entry>, BridgeError> {
    let Promise { workload, route, priorities, limits } = promise;
    let mut add = Vec::with_capacity(route.len());
    for (((path, demand), limits), &priority) in
        route.iter().zip(&workload.demands).zip(limits).zip(priorities)
    {
        let mut hops = Vec::with_capacity(path.len());
        let mut bits = BITS_PER_BYTE;
        for &queue in path {
            let resource = queues[queue].resource.ok_or(BridgeError::NoFabric)?;
            let classes = classes(fabric, resource)?;
            let device = fabric.kind(resource) == ResourceKind::Device;
            // Software at a device supports any number of priorities; a switch has a fixed number of classes.
            if !device && priority >= u32::from(classes.saturating_sub(1)) {
                let (workload, priority) = (workload.name.clone(), u64::from(priority));
                return Err(BridgeError::Priority { workload, priority, classes });
            }
            // Native units per byte; each of a device's "bytes" is one ns.
            hops.push(Hop { resource, work: if device { 1.0 } else { units_per_work(fabric, resource) } });
            bits = if device { BITS_PER_BYTE * NANOS } else { BITS_PER_BYTE };
        }
        if hops.is_empty() {
            continue;
        }
        let buckets: Vec<TokenBucket> = (limits.buckets().iter())
            .filter_map(|bucket| TokenBucket::new(bucket.rate() * bits, bucket.burst() * bits).ok())
            .collect();
        add.push(Entry {
            owner: Owner { kind: OwnerKind::Volume, id: owner },
            hops,
            demand: Demand::Envelope {
                mean_bps: (demand.arrivals.rate() * bits).round() as u64,
                // Round up: the reservation covers the enforced rate.
                rate_bps: (limits.rate() * bits).ceil() as u64,
                buckets: Arc::from(buckets),
                priority: u8::try_from(priority).unwrap_or(u8::MAX),
            },
            sign: Sign::Adds,
            fade: Fade::WithEstimator,
            starts: None,
        });
    }
    Ok(add)
}
