//! Estimates that a ledger hands to another one.

use leeward_fabric::{DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Estimate, EstimateValues, Fade, Ledger, LedgerSettings, Missing, Sample, Transaction};
use leeward_testing::clusters::{cluster, ledger_with};
use proptest::prelude::*;

use crate::support::{SECOND, TREE, assert_close, block, downlink, ingress, readings, sample, stream};

fn settings(sinbad: bool, alpha: u32, hot: u32) -> LedgerSettings {
    LedgerSettings {
        missing: if sinbad { Missing::Sinbad } else { Missing::Strict },
        alpha: f64::from(alpha) / 10.0,
        hot: f64::from(hot) / 10.0,
        ..LedgerSettings::default()
    }
}

fn estimates(ledger: &Ledger) -> Vec<Estimate> {
    ledger.fabric().all_resources().filter_map(|resource| ledger.estimate(resource)).collect()
}

/// Reports of the interval that ends at `second`: loads of the links of `hosts`, with their guaranteed part.
fn report(ledger: &mut Ledger, second: u64, loads: &[i64]) {
    let fabric = ledger.fabric().clone();
    let window = ((second - 1) * SECOND, second * SECOND);
    let samples: Vec<Sample> = loads
        .iter()
        .zip(fabric.all_hosts())
        .flat_map(|(&load, host)| {
            let links = [fabric.ingress(host), fabric.egress(host)].into_iter().flatten();
            links.map(move |link| Sample { guaranteed: Some(Load(load / 4)), ..sample(link, window, load) })
        })
        .collect();
    ledger.report(&samples, Nanos(second * SECOND));
}

proptest! {
    /// Reports of some hosts, one of which is down, and work of several kinds that starts at any time. The links of racks
    /// and pods are sums.
    #[test]
    fn a_ledger_that_continues_with_estimates_equals_the_one_that_never_stopped(
        (sinbad, alpha, hot) in (any::<bool>(), 1_u32..10, 1_u32..10),
        history in (1_usize..9).prop_flat_map(|hosts| {
            prop::collection::vec(prop::collection::vec(0_i64..1_000_000_000, hosts), 1..8)
        }),
        work in prop::collection::vec((0_u32..7, SECOND..8 * SECOND, 1_u64..400), 0..6),
        (later, silent) in (0_u64..3, 0_u64..3 * SECOND),
    ) {
        let cluster = cluster(TREE);
        let settings = settings(sinbad, alpha, hot);
        let last = history.len() as u64;
        let mut work: Vec<_> = work;
        work.sort_by_key(|&(_, at, _)| at);
        let hosts = history[0].len() as u32;
        let commit = |ledger: &mut Ledger, &(host, at, rate): &(u32, u64, u64)| {
            let links = [ingress(&cluster.fabric, host % hosts), downlink(&cluster.fabric)];
            let mut entry = stream(&links, rate * 1_000_000);
            entry.starts = Some(Nanos(at));
            let mut pressure = block(&links[..1], rate << 18, None);
            (pressure.fade, pressure.starts) = (Fade::AtNextWindow, Some(Nanos(at)));
            let change = Transaction { add: vec![entry, pressure], ..Transaction::default() };
            ledger.commit(change, Nanos(at)).expect("hops of the fabric");
        };
        let mut steady = ledger_with(&cluster, &settings);
        steady.set_health(HostId(7), false, Nanos(0));
        let mut queue = work.iter().peekable();
        for (second, loads) in (1..).zip(&history) {
            while let Some(item) = queue.next_if(|item| item.1 < second * SECOND) {
                commit(&mut steady, item);
            }
            report(&mut steady, second, loads);
        }
        let stopped = last * SECOND + SECOND / 2;
        steady.advance(Nanos(stopped));
        // Work on hosts that report, since their first report: the weight of the first report is not that of a window.
        let done: Vec<_> = work.iter().filter(|item| item.1 < last * SECOND).collect();
        let mut resumed = ledger_with(&cluster, &settings);
        for item in &done {
            commit(&mut resumed, item);
        }
        resumed.set_health(HostId(7), false, Nanos(stopped));
        let all = estimates(&steady);
        let restored = resumed.restore(&all, Nanos(stopped));
        prop_assert_eq!(restored.len(), all.len());
        prop_assert_eq!(estimates(&resumed), all, "nothing of an estimate is lost");
        for ledger in [&mut steady, &mut resumed] {
            for second in last + 1..=last + later {
                report(ledger, second, &history[0]);
            }
            ledger.advance(Nanos(stopped + later * SECOND + silent));
        }
        let now = stopped + later * SECOND + silent;
        for (a, b) in readings(&steady, now).iter().zip(&readings(&resumed, now)) {
            assert_close(a, b);
        }
    }

    /// Values of any kind, as a broken file may have them.
    #[test]
    fn impossible_estimates_are_ignored(
        (measured, guaranteed) in (prop::num::f64::ANY, prop::option::of(prop::num::f64::ANY)),
        (from, until, latest) in (0..10 * SECOND, 0..10 * SECOND, any::<i64>()),
        (hot_since, derived, resource) in (prop::option::of((0..10 * SECOND).prop_map(Nanos)), any::<bool>(), 0_u32..80),
    ) {
        let cluster = cluster(TREE);
        let mut ledger = ledger_with(&cluster, &LedgerSettings::default());
        let window = (Nanos(from), Nanos(until));
        let values = EstimateValues { measured, guaranteed, window, latest, hot_since, derived };
        let now = 5 * SECOND;
        let before = estimates(&ledger);
        let restored = ledger.restore(&[Estimate { resource: ResourceId(resource), values }], Nanos(now));
        let is_possible = measured.is_finite() && measured >= 0.0 && latest >= 0 && until <= now + SECOND;
        prop_assert!(restored.is_empty() || is_possible);
        if restored.is_empty() {
            prop_assert_eq!(estimates(&ledger), before);
        }
        report(&mut ledger, 6, &[100; 8]);
        prop_assert_eq!(readings(&ledger, 6 * SECOND).len(), cluster.fabric.resource_count());
    }
}

#[test]
fn estimates_older_than_those_of_the_ledger_change_nothing() {
    let cluster = cluster(TREE);
    let mut ledger = ledger_with(&cluster, &LedgerSettings::default());
    report(&mut ledger, 1, &[100; 8]);
    let old = estimates(&ledger);
    report(&mut ledger, 2, &[900; 8]);
    let before = readings(&ledger, 2 * SECOND);
    let restored = ledger.restore(&old, Nanos(2 * SECOND));
    assert!(restored.is_empty(), "{restored:?}");
    assert_eq!(readings(&ledger, 2 * SECOND), before);
    assert!(ledger.estimate(downlink(&cluster.fabric)).is_some_and(|estimate| estimate.values.derived));
    assert_eq!(cluster.fabric.into_domain(DomainId(0)), Some(downlink(&cluster.fabric)));
}
