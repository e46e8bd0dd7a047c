//! Changes of a ledger's settings.

use leeward_fabric::{Load, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, Missing, Sample, Scratch};
use leeward_testing::clusters::{cluster, ledger_with};
use proptest::prelude::*;

use crate::support::{SECOND, TREE, block, downlink, ingress, readings, sample};

fn report(ledger: &mut Ledger, second: u64, load: i64) {
    let fabric = ledger.fabric().clone();
    let own = fabric.all_resources().filter(|&resource| fabric.host_of(resource).is_some());
    let window = ((second - 1) * SECOND, second * SECOND);
    let samples: Vec<Sample> = own.map(|r| sample(r, window, load + i64::from(r.0))).collect();
    ledger.report(&samples, Nanos(second * SECOND));
}

fn any_settings() -> impl Strategy<Value = LedgerSettings> {
    let share = || 1_u32..=10;
    (any::<bool>(), share(), share(), share(), share(), 1_u32..6).prop_map(
        |(sinbad, alpha, limit, reservable, hot, unknown_after)| LedgerSettings {
            missing: if sinbad { Missing::Sinbad } else { Missing::Strict },
            alpha: f64::from(alpha) / 10.0,
            limit: f64::from(limit) / 10.0,
            reservable: f64::from(reservable) / 10.0,
            hot: f64::from(hot) / 10.0,
            unknown_after: f64::from(unknown_after),
            ..LedgerSettings::default()
        },
    )
}

proptest! {
    /// A change of settings before the reports gives the ledger that had these settings from the start, also where
    /// reports go missing and where work waits for a report.
    #[test]
    fn a_ledger_with_new_settings_equals_one_that_had_them_from_the_start(
        before in any_settings(), settings in any_settings(), rate in 1_u64..1_000, silent in 0_u64..5,
    ) {
        let cluster = cluster(TREE);
        let (mut changed, mut fresh) = (ledger_with(&cluster, &before), ledger_with(&cluster, &settings));
        changed.set_settings(settings.clone(), Nanos(0)).expect("valid settings");
        for ledger in [&mut changed, &mut fresh] {
            for second in 1..4 {
                report(ledger, second, 700_000_000);
            }
            let mut entry = block(&[ingress(&cluster.fabric, 0)], rate << 18, Some(rate * 10));
            (entry.fade, entry.starts) = (leeward_ledger::Fade::AtNextWindow, Some(Nanos(3 * SECOND)));
            let change = leeward_ledger::Transaction { add: vec![entry], ..Default::default() };
            ledger.commit(change, Nanos(3 * SECOND)).expect("hops of the fabric");
            ledger.advance(Nanos((3 + silent) * SECOND));
        }
        let now = (3 + silent) * SECOND;
        prop_assert_eq!(readings(&changed, now), readings(&fresh, now));
    }

    /// Two changes that end at the first settings change nothing, whatever waits.
    #[test]
    fn a_change_and_its_reversal_leave_every_number_as_it_was(
        first in any_settings(), other in any_settings(), silent in 0_u64..5,
    ) {
        let cluster = cluster(TREE);
        let mut ledger = ledger_with(&cluster, &first);
        report(&mut ledger, 1, 700_000_000);
        let mut entry = block(&[downlink(&cluster.fabric)], 1 << 28, Some(1_000_000));
        (entry.fade, entry.starts) = (leeward_ledger::Fade::AtNextWindow, Some(Nanos(SECOND)));
        ledger.commit(leeward_ledger::Transaction { add: vec![entry], ..Default::default() }, Nanos(SECOND)).expect("fits");
        let mut changed = ledger.clone();
        changed.set_settings(other, Nanos(SECOND)).expect("valid settings");
        changed.set_settings(first, Nanos(SECOND)).expect("valid settings");
        for ledger in [&mut ledger, &mut changed] {
            ledger.advance(Nanos((1 + silent) * SECOND));
        }
        prop_assert_eq!(readings(&ledger, (1 + silent) * SECOND), readings(&changed, (1 + silent) * SECOND));
    }
}

#[test]
fn telemetry_survives_a_change_and_a_wrong_setting_changes_nothing() {
    let cluster = cluster(TREE);
    let mut ledger = ledger_with(&cluster, &LedgerSettings::default());
    report(&mut ledger, 1, 700_000_000);
    let link = ingress(&cluster.fabric, 0);
    let mut scratch = Scratch::default();
    let before = ledger.view(Nanos(SECOND), &mut scratch).measured(link);
    assert!(before > Some(Load(0)));
    let hot = LedgerSettings { hot: 0.5, ..LedgerSettings::default() };
    ledger.set_settings(hot.clone(), Nanos(SECOND)).expect("valid settings");
    assert_eq!(ledger.view(Nanos(SECOND), &mut scratch).measured(link), before);
    for (wrong, field) in [
        (LedgerSettings { alpha: 0.0, ..hot.clone() }, "alpha"),
        (LedgerSettings { interval: Nanos(2 * SECOND), ..hot.clone() }, "interval"),
    ] {
        let epoch = ledger.epoch();
        let error = ledger.set_settings(wrong, Nanos(SECOND)).expect_err("a wrong setting");
        assert_eq!((error.field, ledger.settings(), ledger.epoch()), (field, &hot, epoch));
    }
    report(&mut ledger, 2, 700_000_000);
    let view = ledger.view(Nanos(2 * SECOND), &mut scratch);
    assert!(view.hot_since(link).is_some(), "70 % of the link is hot from the next report on");
}
