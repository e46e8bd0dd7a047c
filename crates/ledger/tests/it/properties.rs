//! Properties of the ledger's sums under any order of commits, starts, reports and releases.

use leeward_calculus::TokenBucket;
use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, EntryId, Fade, Ledger, LedgerSettings, Scratch, Sign, Transaction};
use leeward_testing::clusters::{cluster, ledger, ledger_with};
use proptest::prelude::*;

use crate::support::{MBPS, SECOND, TREE, block, downlink, ingress, readings, sample, stream};

fn commit(ledger: &mut Ledger, entry: Entry, now: u64) -> EntryId {
    let transaction = Transaction { add: vec![entry], ..Transaction::default() };
    ledger.commit(transaction, Nanos(now)).expect("hops of the fabric")[0]
}

/// Any entry whose rate does not depend on other entries. Elastic work has a cap far below any share.
fn any_entry() -> impl Strategy<Value = Entry> {
    let resources = prop::sample::subsequence(vec![0u32, 1, 3, 17, 18, 25], 1..5);
    let fade = prop_oneof![
        Just(Fade::AtNextWindow),
        Just(Fade::WithEstimator),
        Just(Fade::Held),
        (1u64..4).prop_map(|seconds| Fade::After(Nanos(seconds * SECOND)))
    ];
    let starts = prop::option::of(0u64..3000);
    (resources, 1u64..1000, 0u8..3, fade, any::<bool>(), starts).prop_map(
        |(at, rate, kind, fade, adds, starts)| {
            let resources: Vec<_> = at.into_iter().map(ResourceId).collect();
            let demand = match kind {
                0 => Demand::Stream { mean_bps: rate * 700, peak_bps: rate * 1001 },
                1 => block(&[], rate << 18, Some(rate * 10)).demand,
                _ => {
                    let buckets = [TokenBucket::new(1e6, 1e6).expect("positive")].into();
                    Demand::Envelope { mean_bps: rate * 501, rate_bps: rate * 1703, buckets, priority: 0 }
                }
            };
            let sign = if adds { Sign::Adds } else { Sign::Relieves };
            let starts = starts.map(|at| Nanos(SECOND + at * 1_000_000));
            Entry { demand, sign, fade, starts, ..stream(&resources, 0) }
        },
    )
}

/// A ledger with some history: reports of all hosts' links and devices over one second, and entries that fade in it.
/// The links of racks and pods are sums.
fn with_history(settings: &LedgerSettings, before: &[Entry]) -> Ledger {
    let cluster = cluster(TREE);
    let mut ledger = ledger_with(&cluster, settings);
    before.iter().for_each(|entry| {
        commit(&mut ledger, entry.clone(), 0);
    });
    let own = cluster.fabric.all_resources().filter(|&r| cluster.fabric.host_of(r).is_some());
    let samples: Vec<_> = own.map(|r| sample(r, (0, SECOND), 123_456_789 + i64::from(r.0))).collect();
    ledger.report(&samples, Nanos(SECOND));
    ledger
}

proptest! {
    #[test]
    fn any_order_of_commits_starts_and_releases_ends_in_identical_bytes(
        before in prop::collection::vec(any_entry(), 0..4),
        entries in prop::collection::vec((any_entry(), 0u8..4), 1..12),
        orders in prop::array::uniform2(prop::collection::vec(any::<u32>(), 36)),
        hold_peak in any::<bool>(),
    ) {
        let settings = LedgerSettings { hold_peak, ..LedgerSettings::default() };
        let now = SECOND + 400_000_000;
        let bytes = orders.map(|order| {
            let mut ledger = with_history(&settings, &before);
            // Each entry is committed, perhaps started, perhaps released. Its own steps are in order, mixed with the
            // steps of others.
            let mut steps: Vec<(u32, usize)> = Vec::new();
            for (which, (_, until)) in entries.iter().enumerate() {
                let mut keys: Vec<u32> = (0..=usize::from((*until).min(2))).map(|step| order[3 * which + step]).collect();
                keys.sort_unstable();
                steps.extend(keys.into_iter().map(|key| (key, which)));
            }
            steps.sort();
            let mut ids = vec![None; entries.len()];
            let mut started = vec![false; entries.len()];
            for (_, which) in steps {
                let (entry, until) = &entries[which];
                match ids[which] {
                    None => ids[which] = Some(commit(&mut ledger, entry.clone(), now)),
                    Some(id) if !started[which] && *until != 1 => {
                        started[which] = true;
                        ledger.mark_started(id, Nanos(now - 100_000_000));
                    }
                    Some(id) => ledger.release(&[id], Nanos(now)),
                }
            }
            // The result stays the same after the next window.
            let mut bytes = ledger.sums_bytes();
            let all = ledger.fabric().all_resources().map(|r| sample(r, (SECOND, 2 * SECOND), 1_000_000));
            ledger.report(&all.collect::<Vec<_>>(), Nanos(2 * SECOND));
            bytes.extend(ledger.sums_bytes());
            bytes
        });
        prop_assert!(bytes[0] == bytes[1]);
    }

    #[test]
    fn a_commit_and_its_release_cancel_exactly(
        before in prop::collection::vec(any_entry(), 0..6),
        entries in prop::collection::vec(any_entry(), 1..6),
        later in 0u64..SECOND,
    ) {
        let mut ledger = with_history(&LedgerSettings::default(), &before);
        ledger.advance(Nanos(SECOND + later));
        let bytes = ledger.sums_bytes();
        let now = Nanos(SECOND + later);
        // The part that telemetry shows by the time of the release is not zero.
        let entries: Vec<_> = entries.into_iter().map(|e| Entry { starts: e.starts.filter(|&at| at > now), ..e }).collect();
        let ids = ledger.commit(Transaction { add: entries, ..Transaction::default() }, now).expect("as above");
        ledger.release(&ids, now);
        prop_assert!(ledger.sums_bytes() == bytes);
    }

    /// Loads of the order of 1e11, so that samples in whole bits per second are exact to 1e-11.
    #[test]
    fn measured_and_pending_together_are_the_load_at_every_step(
        alpha in 0.01f64..=1.0,
        own_counter in any::<bool>(),
        old in 0u64..100,
        works in prop::collection::vec((1u64..100, 0u64..6000, prop::option::of(0u64..6000)), 1..5),
        windows in prop::collection::vec((0u64..1500, 100u64..2500, 0u64..800), 1..12),
    ) {
        const RATE: u64 = 1_000_000_000;
        const MS: u64 = 1_000_000;
        let text = "racks: 2\nhosts_per_rack: 2\nnic: 100Tbps\nrack_link: 200Tbps\npods: 1\npod_link: 300Tbps\n";
        let cluster = cluster(text);
        let settings = LedgerSettings { alpha, unknown_after: 1000.0, ..LedgerSettings::default() };
        let mut ledger = ledger_with(&cluster, &settings);
        let fabric = &cluster.fabric;
        let pod = fabric.into_domain(leeward_fabric::DomainId(2)).expect("a tree");
        let path = [pod, downlink(fabric), ingress(fabric, 0)];
        let report = |ledger: &mut Ledger, window: (u64, u64), load: f64| {
            let own = path.iter().copied().filter(|_| own_counter).chain([path[2]]);
            let mut samples: Vec<_> = own.map(|r| sample(r, window, load.round() as i64)).collect();
            samples.extend((1..4).map(|host| sample(ingress(fabric, host), window, 0)));
            ledger.report(&samples, Nanos(window.1))
        };
        let start = 1000 * MS;
        report(&mut ledger, (0, start), (old * RATE) as f64);
        // Work starts and ends at planned times, and the entries contain the plan from the beginning.
        let mut ends = Vec::new();
        for &(rate, at, length) in &works {
            let at = start + at * MS;
            let id = commit(&mut ledger, Entry { starts: Some(Nanos(at)), ..stream(&path, rate * RATE) }, start);
            ends.extend(length.map(|length| (at + length * MS, id, rate, at)));
        }
        ends.sort();
        let (mut covered, mut last) = (start, 0);
        for &(back, length, gap) in &windows {
            // Windows may leave gaps or reach back into the last one, but not before its beginning.
            let until = covered + (length + gap) * MS;
            let from = (until - length * MS).saturating_sub(back.min(length) * MS / 2).max(last);
            last = from;
            let mut now = until;
            ends.retain(|&(end, id, ..)| {
                if end <= until {
                    ledger.release(&[id], Nanos(end));
                }
                now = now.max(end);
                end > until
            });
            let load = |works: &[(u64, u64, Option<u64>)]| works.iter().map(|&(rate, at, length)| {
                let (at, end) = (start + at * MS, length.map_or(u64::MAX, |length| start + (at + length) * MS));
                let seen = until.min(end).saturating_sub(from.max(at));
                (rate * RATE) as f64 * seen as f64 / (until - from) as f64
            }).sum::<f64>();
            report(&mut ledger, (from, until), (old * RATE) as f64 + load(&works));
            covered = until;
            // All committed work that has not ended: the ledger's estimate of the current or imminent load of the link.
            let expected = old + works.iter().filter(|(_, at, length)| {
                length.is_none_or(|length| start + (at + length) * MS > until)
            }).map(|work| work.0).sum::<u64>();
            let mut scratch = Scratch::default();
            let view = ledger.view(Nanos(until), &mut scratch);
            for link in path {
                let found = view.utilization_with(link, Load(0)).expect("seen") * view.capacity(link).0 as f64;
                let total = (old + works.iter().map(|work| work.0).sum::<u64>()) as f64 * RATE as f64;
                prop_assert!(
                    (found - (expected * RATE) as f64).abs() <= 1e-9 * total,
                    "{link:?} at {until}: expected {expected}e9, found {found}",
                );
            }
        }
    }

    #[test]
    fn expected_capacity_follows_sinbads_increments(
        measured in 0i64..2500,
        blocks in prop::collection::vec((0u64..512 << 20, 0u64..1_000_000_000), 0..12),
        released in prop::collection::vec(any::<bool>(), 12),
    ) {
        let cluster = cluster(TREE);
        let mut ledger = ledger(&cluster);
        let link = downlink(ledger.fabric());
        let capacity = cluster.capacities.get(link).0;
        let measured = measured * MBPS as i64;
        ledger.report(&[sample(link, (0, SECOND), measured)], Nanos(SECOND));
        let mut blocks = blocks;
        blocks.sort_by_key(|block| block.1);
        // v <- v + min(C - v, bytes / d), as in Sinbad section 6.2.
        let mut estimate = measured.min(capacity);
        let mut ids = Vec::new();
        for (&(bytes, at), &gone) in blocks.iter().zip(&released) {
            let id = commit(&mut ledger, Entry { fade: Fade::AtNextWindow, ..block(&[link], bytes, None) }, SECOND + at);
            if gone {
                ids.push(id);
                continue;
            }
            let d = (SECOND - at) as f64 / 1e9;
            let increment = (bytes as f64 * 8.0 / d).round() as i64;
            estimate += increment.min(capacity - estimate);
        }
        ledger.release(&ids, Nanos(2 * SECOND - 1));
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(2 * SECOND - 1), &mut scratch);
        prop_assert_eq!(view.expected_capacity(link), Some(Load(capacity - estimate)));
    }

    #[test]
    fn a_report_sent_before_a_commit_clears_no_pending_load(
        entries in prop::collection::vec(any_entry(), 1..6),
        ends in 1u64..2_000_000_000,
    ) {
        let mut ledger = with_history(&LedgerSettings::default(), &[]);
        let now = 3 * SECOND;
        let entries = entries.into_iter().map(|e| Entry { starts: None, fade: Fade::AtNextWindow, ..e }).collect();
        ledger.commit(Transaction { add: entries, ..Transaction::default() }, Nanos(now)).expect("as above");
        let bytes = ledger.sums_bytes();
        let window = (SECOND, SECOND + ends);
        let late: Vec<_> = ledger.fabric().all_resources().map(|r| sample(r, window, 1000)).collect();
        ledger.report(&late, Nanos(now));
        prop_assert!(ledger.sums_bytes() == bytes);
        let next: Vec<_> = ledger.fabric().all_resources().map(|r| sample(r, (window.1, now + 1), 1000)).collect();
        ledger.report(&next, Nanos(now + 1));
        prop_assert!(readings(&ledger, now + 1).iter().all(|r| r.expected_capacity.is_some_and(|c| c.0 > 0)));
    }

    #[test]
    fn one_report_of_many_windows_equals_one_report_per_window(
        before in prop::collection::vec(any_entry(), 0..6),
        windows in prop::collection::vec((1u64..2000, prop::collection::vec(0i64..1000, 8)), 1..6),
        own_counter in any::<bool>(),
        shuffle in prop::collection::vec(any::<u32>(), 100),
    ) {
        let settings = LedgerSettings { unknown_after: 100.0, ..LedgerSettings::default() };
        let (mut one, mut many) = (with_history(&settings, &before), with_history(&settings, &before));
        let mut until = SECOND;
        let mut all = Vec::new();
        let now = SECOND + windows.iter().map(|window| window.0 * 1_000_000).sum::<u64>();
        for (length, loads) in &windows {
            let window = (until, until + length * 1_000_000);
            until = window.1;
            let hosts = one.fabric().all_hosts().filter_map(|host| one.fabric().ingress(host));
            let mut samples: Vec<_> = hosts.zip(loads).map(|(r, load)| sample(r, window, load * MBPS as i64)).collect();
            samples.extend(own_counter.then(|| sample(downlink(one.fabric()), window, loads[0] * MBPS as i64)));
            many.report(&samples, Nanos(now));
            all.extend(samples);
        }
        let mut keyed: Vec<_> = all.into_iter().zip(shuffle).collect();
        keyed.sort_by_key(|(_, key)| *key);
        let all: Vec<_> = keyed.into_iter().map(|(sample, _)| sample).collect();
        prop_assert_eq!(one.report(&all, Nanos(now)), Default::default());
        prop_assert_eq!(readings(&one, now), readings(&many, now));
        prop_assert!(one.sums_bytes() == many.sums_bytes());
    }
}
