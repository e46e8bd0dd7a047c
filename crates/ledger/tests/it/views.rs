//! Effects and limits of a view, and the passing of time, on random ledgers after random events.

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, Endpoint, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Demand, Entry, EntryId, Fade, Initial, Ledger, LedgerSettings, Missing, Numbers, Owner, OwnerKind,
    Scratch, Sign, Transaction,
};
use leeward_testing::clusters::{cluster, ledger, ledger_with};
use proptest::prelude::*;

use crate::support::{MBPS, SECOND, TREE, assert_close, reading, readings, sample, stream};

const MS: u64 = 1_000_000;

fn settings() -> impl Strategy<Value = LedgerSettings> {
    let missing = prop_oneof![Just(Missing::Strict), Just(Missing::Sinbad)];
    let initial = prop_oneof![Just(Initial::First), Just(Initial::Zero)];
    (missing, initial, 0.05f64..=1.0, any::<bool>()).prop_map(|(missing, initial, alpha, hold_peak)| {
        LedgerSettings { missing, initial, alpha, hold_peak, ..LedgerSettings::default() }
    })
}

fn owner(id: u64) -> Owner {
    Owner { kind: OwnerKind::App, id }
}

/// A write from one host to another's disk, or a stream or reservation on the same path.
fn entry() -> impl Strategy<Value = Entry> {
    let fade = prop_oneof![
        Just(Fade::AtNextWindow),
        Just(Fade::WithEstimator),
        Just(Fade::After(Nanos(700 * MS))),
        Just(Fade::Held)
    ];
    let ends = (0u32..8, 0u32..8);
    (ends, 1u64..400, 0u8..4, fade, 0u8..6, 0u64..3, prop::option::of(0u64..4000)).prop_map(
        |((from, to), rate, kind, fade, sign, id, starts)| {
            let mut hops = Vec::new();
            let through = [Endpoint::Host(HostId(from)), Endpoint::DeviceWrite(HostId(to), 0)];
            cluster(TREE).fabric.path(&through, &mut hops);
            let demand = match kind {
                0 | 1 => Demand::Elastic {
                    bytes: Bytes(rate << 18),
                    flows: kind.into(),
                    cap_bps: (rate % 2 == 0).then_some(rate * MBPS),
                },
                2 => Demand::Stream { mean_bps: rate * MBPS / 2, peak_bps: rate * MBPS },
                _ => {
                    let buckets = [TokenBucket::new(1e6, 1e6).expect("positive")].into();
                    let rate_bps = rate * MBPS;
                    Demand::Envelope { mean_bps: rate_bps / 4, rate_bps, buckets, priority: 1 }
                }
            };
            let sign = if sign == 0 { Sign::Relieves } else { Sign::Adds };
            Entry { owner: owner(id), hops, demand, sign, fade, starts: starts.map(|at| Nanos(at * MS)) }
        },
    )
}

/// A call that changes a ledger.
#[derive(Clone, Debug)]
enum Event {
    Report { hosts: u32, length: u64, load: i64, guaranteed: bool },
    Commit(Entry),
    Started(usize),
    Release(usize),
    Health(u32, bool),
    SetCapacity(u32, i64),
    CrossTraffic(u32, f64),
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let each = prop_oneof![
        4 => (any::<u32>(), 100u64..2000, 0i64..1000, any::<bool>())
            .prop_map(|(hosts, length, load, guaranteed)| Event::Report { hosts, length, load, guaranteed }),
        4 => entry().prop_map(Event::Commit),
        2 => (0usize..20).prop_map(Event::Started),
        1 => (0usize..20).prop_map(Event::Release),
        1 => (0u32..8, any::<bool>()).prop_map(|(host, up)| Event::Health(host, up)),
        1 => (0u32..36, 0i64..2000).prop_map(|(resource, capacity)| Event::SetCapacity(resource, capacity)),
        1 => (0u32..36, 0f64..3.0).prop_map(|(resource, flows)| Event::CrossTraffic(resource, flows)),
    ];
    prop::collection::vec((0u64..900, each), 1..25)
}

/// Applies an event; the entries committed so far are in `ids`.
fn apply(ledger: &mut Ledger, ids: &mut Vec<EntryId>, now: u64, event: &Event) {
    let at = Nanos(now);
    match event {
        Event::Report { hosts, length, load, guaranteed } => {
            let fabric = ledger.fabric().clone();
            let links =
                fabric.all_resources().filter(|r| fabric.host_of(*r).is_some_and(|h| hosts >> h.0 & 1 == 0));
            let links = links.chain((hosts >> 9 & 7 == 0).then_some(ResourceId(17)));
            let window = (now.saturating_sub(length * MS), now.max(1));
            let samples = links.map(|r| {
                let load = (load * MBPS as i64 + i64::from(r.0) * 77_777) % 1_000_000_000;
                let guaranteed = guaranteed.then_some(Load(load / 3));
                leeward_ledger::Sample { guaranteed, ..sample(r, window, load) }
            });
            ledger.report(&samples.collect::<Vec<_>>(), at);
        }
        Event::Commit(entry) => {
            let transaction = Transaction { add: vec![entry.clone()], ..Transaction::default() };
            ids.extend(ledger.commit(transaction, at).expect("hops of the fabric"));
        }
        Event::Started(index) => ids.get(*index).into_iter().for_each(|&id| ledger.mark_started(id, at)),
        Event::Release(index) => ids.get(*index).into_iter().for_each(|&id| ledger.release(&[id], at)),
        Event::Health(host, up) => ledger.set_health(HostId(*host), *up, at),
        Event::SetCapacity(resource, capacity) => {
            ledger.set_capacity(ResourceId(*resource), Load(capacity * MBPS as i64), at);
        }
        Event::CrossTraffic(resource, flows) => ledger.set_cross_traffic(ResourceId(*resource), *flows, at),
    }
}

/// Applies all events, and calls `between` at the time of each event before it is applied, and 1.5 s after the last
/// event. Returns the ledger, the time, and the ids of the entries.
fn replay_with(
    settings: &LedgerSettings,
    events: &[(u64, Event)],
    mut between: impl FnMut(&mut Ledger, u64),
) -> (Ledger, u64, Vec<EntryId>) {
    let mut ledger = ledger_with(&cluster(TREE), settings);
    let (mut ids, mut now) = (Vec::new(), 0);
    for (wait, event) in events {
        now += wait * MS;
        between(&mut ledger, now);
        apply(&mut ledger, &mut ids, now, event);
    }
    now += 3 * SECOND / 2;
    between(&mut ledger, now);
    (ledger, now, ids)
}

fn replay(settings: &LedgerSettings, events: &[(u64, Event)]) -> (Ledger, u64, Vec<EntryId>) {
    replay_with(settings, events, |ledger, now| ledger.advance(Nanos(now)))
}

proptest! {
    #[test]
    fn the_number_of_time_steps_makes_no_difference(
        settings in settings(),
        events in events(),
        steps in prop::collection::vec(1u64..400, 1..20),
    ) {
        let (at_once, now, _) = replay(&settings, &events);
        let (by_deadlines, ..) = replay_with(&settings, &events, |ledger, now| {
            while let Some(at) = ledger.next_deadline().filter(|at| at.0 <= now) {
                ledger.advance(at);
                assert!(ledger.next_deadline().is_none_or(|next| next > at), "deadline {at:?} is over");
            }
        });
        let (mut at, mut step) = (0, steps.iter().cycle());
        let (in_small_steps, ..) = replay_with(&settings, &events, |ledger, now| {
            while at < now {
                at = now.min(at + step.next().expect("endless") * MS);
                ledger.advance(Nanos(at));
            }
        });
        for other in [by_deadlines, in_small_steps] {
            prop_assert_eq!(readings(&at_once, now), readings(&other, now));
            prop_assert!(at_once.sums_bytes() == other.sums_bytes());
            prop_assert_eq!(at_once.next_deadline(), other.next_deadline());
        }
    }

    #[test]
    fn a_what_if_shows_the_effect_of_a_commit_and_changes_nothing(
        settings in settings(),
        events in events(),
        entries in prop::collection::vec(entry(), 1..5),
        previous in prop::collection::vec(entry(), 0..5),
    ) {
        let (mut ledger, now, _) = replay(&settings, &events);
        let (before, bytes) = (readings(&ledger, now), ledger.sums_bytes());
        let mut scratch = Scratch::default();
        let mut view = ledger.view(Nanos(now), &mut scratch);
        previous.iter().for_each(|entry| view.add(entry));
        view.without(&owner(0));
        // The next view uses the same scratch, and has no trace of the previous view.
        let mut view = ledger.view(Nanos(now), &mut scratch);
        let resources: Vec<_> = ledger.fabric().all_resources().collect();
        let initial: Vec<_> = resources.iter().map(|&resource| reading(&view, resource)).collect();
        prop_assert_eq!(&initial, &before);
        entries.iter().for_each(|entry| view.add(entry));
        let shown: Vec<_> = resources.iter().map(|&resource| reading(&view, resource)).collect();
        for (&resource, shown) in resources.iter().zip(&shown) {
            let Numbers { measured, load, reserved, residual, expected } = view.numbers(resource);
            prop_assert_eq!((measured, residual, expected), (shown.measured, shown.residual, shown.expected_capacity));
            prop_assert_eq!(reserved, view.reserved(resource));
            let capacity = view.capacity(resource).0 as f64;
            let loaded = shown.utilization.filter(|loaded| loaded.is_finite()).map(|loaded| loaded * capacity);
            prop_assert_eq!(load.is_some(), measured.is_some());
            let near = |load: Load| loaded.is_none_or(|loaded| (load.0 as f64 - loaded).abs() <= 1.0);
            prop_assert!(load.is_none_or(near), "{load:?} is not {loaded:?}");
        }
        prop_assert_eq!(readings(&ledger, now), before);
        prop_assert!(ledger.sums_bytes() == bytes);
        ledger.commit(Transaction { add: entries, ..Transaction::default() }, Nanos(now)).expect("hops of the fabric");
        shown.iter().zip(&readings(&ledger, now)).for_each(|(shown, done)| assert_close(shown, done));
    }

    #[test]
    fn a_view_without_an_owner_has_no_trace_of_its_unstarted_entries(
        settings in settings(),
        events in events(),
    ) {
        // No work of the owner starts. No entry is elastic, because an elastic rate depends on the other entries.
        let all = events.iter().map(|(wait, event)| (*wait, match event {
            Event::Commit(entry) => {
                let demand = match &entry.demand {
                    Demand::Elastic { .. } => stream(&[], 50 * MBPS).demand,
                    other => other.clone(),
                };
                let starts = entry.starts.filter(|_| entry.owner != owner(0));
                Event::Commit(Entry { demand, starts, ..entry.clone() })
            }
            Event::Started(_) => Event::SetCapacity(0, 500),
            other => other.clone(),
        }));
        let all: Vec<_> = all.collect();
        // An entry without hops adds nothing. It takes the place of an entry of the owner, so that the other entries
        // keep their indices.
        let others = all.iter().map(|(wait, event)| (*wait, match event {
            Event::Commit(entry) if entry.owner == owner(0) => Event::Commit(Entry { hops: Vec::new(), ..entry.clone() }),
            other => other.clone(),
        }));
        let (ledger, now, _) = replay(&settings, &all);
        let (expected, ..) = replay(&settings, &others.collect::<Vec<_>>());
        let mut scratch = Scratch::default();
        let mut view = ledger.view(Nanos(now), &mut scratch);
        view.without(&owner(0));
        for (resource, expected) in ledger.fabric().all_resources().zip(readings(&expected, now)) {
            assert_close(&reading(&view, resource), &expected);
        }
    }

    #[test]
    fn a_view_without_an_owner_equals_a_release_of_all_its_entries(
        settings in settings(),
        events in events(),
        id in 0u64..3,
    ) {
        let (mut ledger, now, ids) = replay(&settings, &events);
        let mut scratch = Scratch::default();
        let mut view = ledger.view(Nanos(now), &mut scratch);
        view.without(&owner(id));
        let resources: Vec<_> = ledger.fabric().all_resources().collect();
        let shown: Vec<_> = resources.iter().map(|&resource| reading(&view, resource)).collect();
        let (snapshot, mut scratch) = (ledger.snapshot(Nanos(now), Some(&owner(id))), Scratch::default());
        let mut copy = snapshot.view(&mut scratch);
        copy.without(&owner(id));
        let copied = resources.iter().map(|&resource| reading(&copy, resource));
        shown.iter().zip(copied).for_each(|(shown, copied)| assert_close(shown, &copied));
        let owners = events.iter().filter_map(|(_, event)| match event {
            Event::Commit(entry) => Some(entry.owner),
            _ => None,
        });
        let owned: Vec<_> = owners.zip(ids).filter(|(entry_owner, _)| *entry_owner == owner(id)).map(|(_, id)| id).collect();
        ledger.release(&owned, Nanos(now));
        shown.iter().zip(&readings(&ledger, now)).for_each(|(shown, done)| assert_close(shown, done));
    }
}

#[test]
fn a_scratch_serves_ledgers_of_different_sizes() {
    let (large, small) =
        (cluster(TREE), cluster("racks: 1\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1\n"));
    let mut scratch = Scratch::default();
    let last = ResourceId(large.fabric.resource_count() as u32 - 1);
    ledger(&large).view(Nanos(0), &mut scratch).add(&stream(&[last, ResourceId(0)], MBPS));
    let small_ledger = ledger(&small);
    assert_eq!(small_ledger.view(Nanos(0), &mut scratch).flows(ResourceId(0)), 0.0);
    let large_ledger = ledger(&large);
    let view = large_ledger.view(Nanos(0), &mut scratch);
    assert_eq!(view.share(last, 1), large.capacities.get(last));
}
