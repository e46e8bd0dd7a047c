//! Utilization in the last window alone.

use leeward_fabric::{DomainId, Load, Nanos, ResourceId};
use leeward_ledger::{Entry, Initial, Ledger, LedgerSettings, Missing, Scratch, Sign, Transaction};
use leeward_testing::clusters::{cluster, ledger_with};

use crate::support::{MBPS, SECOND, TREE, sample, stream};

/// A ledger and the uplink of its first rack, of 1.5 Gb/s.
fn uplink(missing: Missing) -> (Ledger, ResourceId) {
    let settings = LedgerSettings { missing, initial: Initial::First, ..LedgerSettings::default() };
    let ledger = ledger_with(&cluster(TREE), &settings);
    let link = ledger.fabric().out_of_domain(DomainId(0)).expect("a tree");
    (ledger, link)
}

/// Load of the link in the last window, with the changes that the window does not show, in Mb/s.
fn load(ledger: &Ledger, link: ResourceId, now: u64) -> f64 {
    let mut scratch = Scratch::default();
    let view = ledger.view(Nanos(now), &mut scratch);
    view.window_utilization(link).expect("the load is known") * 1_500.0
}

/// Commits work of 300 Mb/s that starts at a time.
fn start(ledger: &mut Ledger, link: ResourceId, at: u64) {
    let add = vec![Entry { starts: Some(Nanos(at)), ..stream(&[link], 300 * MBPS) }];
    ledger.commit(Transaction { add, ..Transaction::default() }, Nanos(at)).expect("a link of the fabric");
}

#[test]
fn a_start_after_the_last_report_counts_in_its_window_whatever_is_missing_since_then() {
    for missing in [Missing::Strict, Missing::Sinbad] {
        let (mut ledger, link) = uplink(missing);
        // The window shows half of this work.
        start(&mut ledger, link, SECOND / 2);
        ledger.report(&[sample(link, (0, SECOND), 150 * MBPS as i64)], Nanos(SECOND));
        // No report shows this work.
        start(&mut ledger, link, SECOND + SECOND / 5);
        for now in [SECOND + SECOND / 2, 2 * SECOND, 3 * SECOND + SECOND / 2, 4 * SECOND] {
            let found = load(&ledger, link, now);
            assert!((found - 600.0).abs() < 1.0, "{found} Mb/s at {now} ns under {missing:?}");
        }
    }
}

#[test]
fn without_any_report_all_started_work_counts() {
    let (mut ledger, link) = uplink(Missing::Sinbad);
    start(&mut ledger, link, SECOND / 2);
    assert!((load(&ledger, link, SECOND) - 300.0).abs() < 1.0);
}

#[test]
fn a_change_of_the_windows_alone_leaves_the_estimate_unchanged() {
    let (mut ledger, link) = uplink(Missing::Strict);
    ledger.report(&[sample(link, (0, SECOND), 900 * MBPS as i64)], Nanos(SECOND));
    let mut scratch = Scratch::default();
    let mut view = ledger.view(Nanos(SECOND), &mut scratch);
    let before = view.utilization_with(link, Load(0));
    let unchanged = view.checkpoint();
    let leaves = Entry { sign: Sign::Relieves, ..stream(&[link], 300 * MBPS) };
    view.add_to_windows(&leaves);
    let window = view.window_utilization(link).expect("the load is known");
    assert!((window - 0.4).abs() < 1e-6, "{window}");
    assert_eq!(view.utilization_with(link, Load(0)), before);
    view.rollback(unchanged);
    assert_eq!(view.window_utilization(link), before, "the first report is the estimate");
}
