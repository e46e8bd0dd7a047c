//! No input makes a ledger panic, return an invalid number, or leave a negative rate to use.

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Demand, Entry, EntryId, Fade, Initial, Ledger, LedgerSettings, Missing, Owner, OwnerKind, Sample,
    Scratch, Sign, Transaction,
};
use leeward_testing::clusters::{cluster, ledger_with};
use proptest::prelude::*;

use crate::support::TREE;

/// A number of any size, often one at a limit.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(i64::MAX as u64),
        Just(i64::MIN as u64),
        0u64..40,
        0u64..10_000_000_000,
        any::<u64>()
    ]
}

fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![Just(8.0), Just(0.0), Just(1e-300), Just(1e300), any::<f64>()]
}

fn settings() -> impl Strategy<Value = LedgerSettings> {
    let missing = prop_oneof![Just(Missing::Strict), Just(Missing::Sinbad)];
    let initial = prop_oneof![Just(Initial::First), Just(Initial::Zero)];
    let share = || prop_oneof![Just(1.0), Just(1e-12), 0.01f64..1.0];
    let numbers = (number(), prop::option::of(number()), 1.0f64..1e6);
    (missing, initial, share(), share(), numbers, any::<bool>()).prop_map(
        |(missing, initial, alpha, limit, (interval, grace, unknown_after), hold_peak)| LedgerSettings {
            interval: Nanos(interval.max(1)),
            alpha,
            missing,
            initial,
            grace: grace.map(Nanos),
            unknown_after,
            limit,
            hold_peak,
            ..LedgerSettings::default()
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    // Few values are out of range, so that most transactions succeed.
    let resource = prop_oneof![30 => 0u32..36, 1 => any::<u32>()];
    let work = prop_oneof![30 => Just(8.0), 2 => 0.0..1e300, 1 => fraction()];
    let hops = prop::collection::vec((resource, work), 0..4);
    let fade = prop_oneof![
        Just(Fade::AtNextWindow),
        Just(Fade::WithEstimator),
        number().prop_map(|ttl| Fade::After(Nanos(ttl))),
        Just(Fade::Held)
    ];
    let numbers = [number(), number(), number()];
    (hops, 0u8..3, fade, any::<bool>(), numbers, prop::option::of(number())).prop_map(
        |(hops, kind, fade, adds, [a, b, c], starts)| {
            let bucket = TokenBucket::new(a as f64, b as f64).expect("finite");
            let demand = match kind {
                0 => Demand::Elastic { bytes: Bytes(a), flows: b as u32, cap_bps: (c % 2 == 0).then_some(c) },
                1 => Demand::Stream { mean_bps: a, peak_bps: b },
                _ => {
                    Demand::Envelope { mean_bps: a, rate_bps: b, buckets: [bucket].into(), priority: c as u8 }
                }
            };
            let hops = hops.into_iter().map(|(at, work)| Hop { resource: ResourceId(at), work }).collect();
            let sign = if adds { Sign::Adds } else { Sign::Relieves };
            let owner = Owner { kind: OwnerKind::File, id: a % 3 };
            Entry { owner, hops, demand, sign, fade, starts: starts.map(Nanos) }
        },
    )
}

#[derive(Clone, Debug)]
enum Call {
    Report(Vec<Sample>),
    Commit(Transaction),
    Started(u64, u64),
    Release(Vec<u64>),
    SetCapacity(u64, i64),
    Health(u64, bool),
    CrossTraffic(u64, f64),
    Advance,
    Deadline,
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let resource = || prop_oneof![9 => 0u64..36, 1 => number()];
    let sample = (resource(), number(), number(), number(), prop::option::of(number()));
    let sample = sample.prop_map(|(resource, from, until, load, guaranteed)| Sample {
        resource: ResourceId(resource as u32),
        window: (Nanos(from), Nanos(until)),
        load: Load(load as i64),
        guaranteed: guaranteed.map(|load| Load(load as i64)),
    });
    let ids = || prop::collection::vec(prop_oneof![0u64..12, number()], 0..3);
    let add = prop::collection::vec(entry(), 0..4);
    let expect = prop::option::of((resource(), 0u32..3));
    let transaction = (add, ids(), expect, prop::option::of((0u64..2, number())));
    let transaction = transaction.prop_map(|(add, release, expect, client)| Transaction {
        add,
        release: release.into_iter().map(EntryId).collect(),
        expect: expect.into_iter().map(|(at, version)| (ResourceId(at as u32), version)).collect(),
        client,
    });
    let each = prop_oneof![
        4 => prop::collection::vec(sample, 0..8).prop_map(Call::Report),
        4 => transaction.prop_map(Call::Commit),
        2 => (0u64..12, number()).prop_map(|(id, at)| Call::Started(id, at)),
        1 => ids().prop_map(Call::Release),
        1 => (resource(), number()).prop_map(|(at, capacity)| Call::SetCapacity(at, capacity as i64)),
        1 => (prop_oneof![0u64..8, number()], any::<bool>()).prop_map(|(host, up)| Call::Health(host, up)),
        1 => (resource(), fraction()).prop_map(|(at, flows)| Call::CrossTraffic(at, flows)),
        1 => Just(Call::Advance),
        2 => Just(Call::Deadline),
    ];
    prop::collection::vec((number(), each), 1..30)
}

fn apply(ledger: &mut Ledger, now: Nanos, call: Call) {
    match call {
        Call::Report(samples) => {
            let count = samples.len() as u64;
            let discarded = ledger.report(&samples, now);
            assert!(discarded.stale + discarded.invalid + discarded.unknown + discarded.down <= count);
        }
        Call::Commit(transaction) => {
            let _ = ledger.commit(transaction, now);
        }
        Call::Started(id, at) => ledger.mark_started(EntryId(id), Nanos(at)),
        Call::Release(ids) => ledger.release(&ids.into_iter().map(EntryId).collect::<Vec<_>>(), now),
        Call::SetCapacity(at, capacity) => ledger.set_capacity(ResourceId(at as u32), Load(capacity), now),
        Call::Health(host, up) => ledger.set_health(HostId(host as u32), up, now),
        Call::CrossTraffic(at, flows) => ledger.set_cross_traffic(ResourceId(at as u32), flows, now),
        Call::Advance => ledger.advance(now),
        Call::Deadline => ledger.next_deadline().into_iter().for_each(|at| ledger.advance(at)),
    }
}

fn check(ledger: &Ledger, now: Nanos, what_if: &Entry) {
    let mut scratch = Scratch::default();
    let mut view = ledger.view(now, &mut scratch);
    let count = ledger.fabric().resource_count();
    if what_if.hops.iter().all(|hop| hop.resource.index() < count && hop.work >= 0.0 && hop.work.is_finite())
    {
        view.add(what_if);
    }
    view.without(&what_if.owner);
    for resource in ledger.fabric().all_resources() {
        // Beyond 2^53 bit/s a double is not exact.
        let capacity = Load((view.capacity(resource).0 as f64 * (1.0 + 1e-12)) as i64);
        let within = |rate: Load| assert!(rate.0 >= 0 && rate <= capacity, "{rate:?} of {capacity:?}");
        within(view.residual(resource));
        within(view.share(resource, 0));
        within(view.share(resource, u32::MAX));
        view.expected_capacity(resource).into_iter().for_each(within);
        let used = view.utilization_with(resource, Load(i64::MIN)).into_iter();
        let used = used.chain(view.utilization_with(resource, Load(i64::MAX)));
        used.for_each(|used| assert!(used >= 0.0, "{used}"));
        assert!(view.flows(resource) >= 0.0 && view.measured(resource).is_none_or(|load| load.0 >= 0));
        let _ = (view.unreserved(resource), view.envelopes(resource), view.time_to_report(resource));
    }
}

proptest! {
    #[test]
    fn no_sequence_of_calls_panics_or_leaves_invalid_numbers(
        settings in settings(),
        calls in calls(),
        what_if in entry(),
        in_order in any::<bool>(),
    ) {
        let mut ledger = ledger_with(&cluster(TREE), &settings);
        let mut latest = 0;
        for (at, call) in calls {
            latest = if in_order { latest + (at % 5_000_000_000) } else { at };
            apply(&mut ledger, Nanos(latest), call);
            check(&ledger, Nanos(latest), &what_if);
        }
        let snapshot = ledger.snapshot(Nanos(latest), None);
        prop_assert_eq!(snapshot.epoch(), ledger.epoch());
    }
}
