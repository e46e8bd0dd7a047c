//! Replays a vector against a [`Ledger`], as a client replays it against its own ledger.

use std::collections::BTreeMap;

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Demand, Entry, EntryId, Fade, Ledger, LedgerSettings, Owner, OwnerKind, Sample, Scratch, Sign,
    Transaction, View,
};
use leeward_testing::clusters::{self, ledger_with};

use super::format::{
    Cluster, DemandRecord, EntryRecord, FadeRecord, Ns, Numbers, Op, OwnerRecord, Settings, SignRecord, Step,
    Vector,
};

/// Result of a vector's steps: the numbers after each step, and the ledger at the end.
pub struct Replayed {
    pub expect: Vec<Vec<Numbers>>,
    pub ledger: Ledger,
}

/// Applies a vector's steps to a new ledger.
pub fn replay(vector: &Vector) -> Replayed {
    let mut ledger = ledger_with(&build(&vector.cluster), &settings(&vector.settings));
    let mut entries = BTreeMap::new();
    let expect =
        vector.steps.iter().map(|step| apply(&mut ledger, &mut entries, step, &vector.read)).collect();
    Replayed { expect, ledger }
}

fn apply(
    ledger: &mut Ledger,
    entries: &mut BTreeMap<String, EntryId>,
    step: &Step,
    read: &[u32],
) -> Vec<Numbers> {
    let now = Nanos(step.at_ns.0);
    let mut scratch = Scratch::default();
    match &step.op {
        Op::Report(samples) => {
            let samples: Vec<Sample> = samples
                .iter()
                .map(|sample| Sample {
                    resource: ResourceId(sample.resource),
                    window: (Nanos(sample.from_ns.0), Nanos(sample.until_ns.0)),
                    load: Load(sample.load_bps),
                    guaranteed: sample.guaranteed_bps.map(Load),
                })
                .collect();
            ledger.report(&samples, now);
        }
        Op::Commit(change) => {
            let transaction = Transaction {
                add: change.add.iter().map(entry).collect(),
                release: change.release.iter().map(|name| entries[name]).collect(),
                ..Transaction::default()
            };
            let added = ledger.commit(transaction, now).expect("a vector's commits are made");
            entries.extend(change.add.iter().map(|entry| entry.entry.clone()).zip(added));
        }
        Op::Started { entry, start_ns } => {
            ledger.advance(now);
            ledger.mark_started(entries[entry], Nanos(start_ns.0));
        }
        Op::Believe { resource, capacity_bps } => {
            ledger.set_capacity(ResourceId(*resource), Load(*capacity_bps), now);
        }
        Op::Health { host, up } => ledger.set_health(HostId(*host), *up, now),
        Op::Advance {} => ledger.advance(now),
        Op::View { add, without } => {
            ledger.advance(now);
            let mut view = ledger.view(now, &mut scratch);
            without.iter().for_each(|gone| view.without(&owner(gone)));
            add.iter().for_each(|added| view.add(&entry(added)));
            return read.iter().map(|&resource| numbers(&view, resource)).collect();
        }
    }
    let view = ledger.view(now, &mut scratch);
    read.iter().map(|&resource| numbers(&view, resource)).collect()
}

fn numbers(view: &View<'_>, resource: u32) -> Numbers {
    let id = ResourceId(resource);
    Numbers {
        resource,
        measured_bps: view.measured(id).map(|load| load.0),
        derived: view.is_derived(id),
        expected_capacity_bps: view.expected_capacity(id).map(|load| load.0),
        residual_bps: view.residual(id).0,
        share_bps: view.share(id, 1).0,
        utilization: view.utilization_with(id, Load(0)),
        unreserved_bps: view.unreserved(id).ok().map(|load| load.0),
        hot_since_ns: view.hot_since(id).map(|at| Ns(at.0)),
    }
}

/// The cluster of a vector: identical hosts in one rack; the rack's links come last.
fn build(cluster: &Cluster) -> leeward_fabric::Cluster {
    let (hosts, capacities) = (cluster.hosts.len(), &cluster.capacities_bps);
    let text = format!(
        "racks: 1\nhosts_per_rack: {hosts}\nnic: {}bps\nrack_link: {}bps\n{}",
        capacities[0],
        capacities[2 * hosts],
        if cluster.promises { "priorities: 8\n" } else { "" },
    );
    let built = clusters::cluster(&text);
    let fabric = &built.fabric;
    let links =
        |host| [fabric.egress(host), fabric.ingress(host)].map(|link| link.map(|r| r.0).unwrap_or_default());
    let links_of_hosts: Vec<_> = fabric.all_hosts().map(links).collect();
    let rates: Vec<_> = built.capacities.as_slice().iter().map(|capacity| capacity.0).collect();
    assert_eq!(
        (&links_of_hosts, &rates),
        (&cluster.hosts, capacities),
        "resources are numbered as in a fabric"
    );
    built
}

fn settings(settings: &Settings) -> LedgerSettings {
    let word = |word: &str| format!("\"{word}\"");
    LedgerSettings {
        interval: Nanos(settings.interval_ns.0),
        alpha: settings.alpha,
        missing: serde_json::from_str(&word(&settings.missing)).expect("strict or sinbad"),
        initial: serde_json::from_str(&word(&settings.initial)).expect("first or zero"),
        grace: Some(Nanos(settings.grace_ns.0)),
        unknown_after: settings.unknown_after,
        hold_peak: settings.hold_peak,
        ..LedgerSettings::default()
    }
}

fn owner(owner: &OwnerRecord) -> Owner {
    let kind = match owner.kind.as_str() {
        "file" => OwnerKind::File,
        "app" => OwnerKind::App,
        "job" => OwnerKind::Job,
        _ => OwnerKind::Volume,
    };
    Owner { kind, id: owner.id.parse().expect("ids are numbers") }
}

fn entry(entry: &EntryRecord) -> Entry {
    Entry {
        owner: owner(&entry.owner),
        hops: entry
            .hops
            .iter()
            .map(|hop| Hop { resource: ResourceId(hop.resource), work: hop.work })
            .collect(),
        demand: match entry.demand {
            DemandRecord::Elastic { bytes, flows, cap_bps } => {
                Demand::Elastic { bytes: Bytes(bytes), flows, cap_bps }
            }
            DemandRecord::Stream { mean_bps, peak_bps } => Demand::Stream { mean_bps, peak_bps },
            DemandRecord::Envelope { mean_bps, rate_bps, burst_bits, priority } => {
                let bucket =
                    TokenBucket::new(rate_bps as f64, burst_bits).expect("rates and bursts are positive");
                Demand::Envelope { mean_bps, rate_bps, buckets: [bucket].into(), priority }
            }
        },
        sign: match entry.sign {
            SignRecord::Adds => Sign::Adds,
            SignRecord::Relieves => Sign::Relieves,
        },
        fade: match entry.fade {
            FadeRecord::AtNextWindow => Fade::AtNextWindow,
            FadeRecord::WithEstimator => Fade::WithEstimator,
            FadeRecord::After { ttl_ns } => Fade::After(Nanos(ttl_ns.0)),
            FadeRecord::Held => Fade::Held,
        },
        starts: entry.starts_ns.map(|at| Nanos(at.0)),
    }
}
