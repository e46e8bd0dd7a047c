//! Rules of the ledger one by one: rejected and ignored inputs, and past defects.

use leeward_calculus::TokenBucket;
use leeward_fabric::input::Text;
use leeward_fabric::{Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Clock, CommitError, Demand, DiscardedSamples, Entry, EntryId, Epoch, Fade, FifoError, Ledger,
    LedgerSettings, Missing, Sample, Scratch, Sign, Transaction, read_loads,
};
use leeward_testing::clusters::{cluster, ledger, ledger_with};

use crate::support::{MBPS, SECOND, TREE, block, downlink, ingress, readings, sample, stream};

const MS: u64 = 1_000_000;

fn new() -> (Ledger, ResourceId) {
    let ledger = ledger(&cluster(TREE));
    let link = downlink(ledger.fabric());
    (ledger, link)
}

fn commit(ledger: &mut Ledger, entry: Entry, now: u64) -> EntryId {
    ledger.commit(Transaction { add: vec![entry], ..Transaction::default() }, Nanos(now)).expect("made")[0]
}

fn reservation(resources: &[ResourceId], mean: u64, rate: u64) -> Entry {
    let buckets = [TokenBucket::new(rate as f64, 1e6).expect("positive")].into();
    let demand = Demand::Envelope { mean_bps: mean, rate_bps: rate, buckets, priority: 2 };
    Entry { demand, ..stream(resources, 0) }
}

fn load(ledger: &Ledger, resource: ResourceId, now: u64) -> f64 {
    let mut scratch = Scratch::default();
    let view = ledger.view(Nanos(now), &mut scratch);
    view.utilization_with(resource, Load(0)).expect("seen") * view.capacity(resource).0 as f64
}

fn residual(ledger: &Ledger, resource: ResourceId, now: u64) -> i64 {
    ledger.view(Nanos(now), &mut Scratch::default()).residual(resource).0
}

#[test]
fn a_rejected_transaction_changes_nothing() {
    let (mut ledger, link) = new();
    let id = commit(&mut ledger, stream(&[link], MBPS), 0);
    let client = Some((7, 3));
    ledger
        .commit(Transaction { client, ..Transaction::default() }, Nanos(0))
        .expect("the first of its client");
    let good = stream(&[link], MBPS);
    let hop = |resource, work| Entry { hops: vec![Hop { resource, work }], ..stream(&[], MBPS) };
    let far = ResourceId(1000);
    let cases = [
        (
            Transaction { expect: vec![(link, 5)], ..Transaction::default() },
            CommitError::Conflict { resource: link, expected: 5, found: 0 },
        ),
        (Transaction { expect: vec![(far, 0)], ..Transaction::default() }, CommitError::NoResource(far)),
        (
            Transaction { release: vec![id, EntryId(99)], ..Transaction::default() },
            CommitError::NoEntry(EntryId(99)),
        ),
        (
            Transaction { add: vec![good.clone(), hop(far, 8.0)], ..Transaction::default() },
            CommitError::NoResource(far),
        ),
        (
            Transaction { add: vec![good.clone(), hop(link, -8.0)], ..Transaction::default() },
            CommitError::InvalidWork(link),
        ),
        (
            Transaction { add: vec![good, hop(link, f64::NAN)], ..Transaction::default() },
            CommitError::InvalidWork(link),
        ),
        // The request was already counted, so the client need not decide again, whatever it expected.
        (
            Transaction { client, expect: vec![(link, 5)], ..Transaction::default() },
            CommitError::Repeated { client: 7, sequence: 3 },
        ),
    ];
    for (transaction, error) in cases {
        let before = (ledger.sums_bytes(), ledger.epoch(), readings(&ledger, 0));
        assert_eq!(ledger.commit(transaction, Nanos(0)), Err(error));
        assert_eq!((ledger.sums_bytes(), ledger.epoch(), readings(&ledger, 0)), before);
    }
}

#[test]
fn errors_name_their_subject() {
    let conflict = CommitError::Conflict { resource: ResourceId(4), expected: 1, found: 2 };
    let messages = [conflict, CommitError::NoEntry(EntryId(9)), CommitError::InvalidWork(ResourceId(3))];
    assert_eq!(
        messages.map(|error| error.to_string()),
        [
            "conflict on resource 4: read version 1, now 2",
            "entry 9 is not in the ledger",
            "work on resource 3: must be finite and not negative",
        ]
    );
}

#[test]
fn promises_need_links_with_priorities() {
    let fifo = cluster("racks: 1\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\n");
    let mut ledger = ledger(&fifo);
    let link = downlink(ledger.fabric());
    let transaction = Transaction { add: vec![reservation(&[link], MBPS, MBPS)], ..Transaction::default() };
    assert_eq!(ledger.commit(transaction, Nanos(0)), Err(CommitError::CannotReserve(link)));
    let mut scratch = Scratch::default();
    let view = ledger.view(Nanos(0), &mut scratch);
    assert_eq!(view.unreserved(link), Err(FifoError(link)));
    assert_eq!(view.envelopes(link), Err(FifoError(link)));
}

#[test]
fn an_entry_released_twice_in_one_transaction_is_released_once() {
    let (mut ledger, link) = new();
    let before = ledger.sums_bytes();
    let id = commit(&mut ledger, reservation(&[link], MBPS, 3 * MBPS), 0);
    ledger
        .commit(Transaction { release: vec![id, id], ..Transaction::default() }, Nanos(0))
        .expect("the transaction commits");
    assert_eq!(ledger.sums_bytes(), before);
}

#[test]
fn ids_that_the_fabric_does_not_have_change_nothing() {
    let (mut ledger, _) = new();
    let before = (readings(&ledger, 0), ledger.sums_bytes());
    ledger.set_capacity(ResourceId(u32::MAX), Load(5), Nanos(0));
    ledger.set_health(HostId(8), false, Nanos(0));
    ledger.set_cross_traffic(ResourceId(36), 5.0, Nanos(0));
    ledger.mark_started(EntryId(3), Nanos(0));
    ledger.release(&[EntryId(3)], Nanos(0));
    assert_eq!((readings(&ledger, 0), ledger.sums_bytes()), before);
}

#[test]
fn rejected_samples_are_counted_by_reason() {
    let (mut ledger, link) = new();
    let down = ingress(ledger.fabric(), 3);
    ledger.set_health(HostId(3), false, Nanos(0));
    let (now, seconds) = (10 * SECOND, |from: u64, until: u64| (from * SECOND, until * SECOND));
    let bad_part = Sample { guaranteed: Some(Load(-1)), ..sample(link, seconds(9, 10), 5) };
    let samples = [
        sample(link, seconds(9, 10), 5),
        sample(link, seconds(8, 9), 5),
        sample(ResourceId(36), seconds(9, 10), 5),
        sample(link, seconds(10, 10), 5),
        sample(link, seconds(11, 10), 5),
        sample(link, seconds(10, 12), 5),
        sample(link, seconds(10, 11), -5),
        bad_part,
        sample(down, seconds(9, 10), 5),
    ];
    // Windows are sorted by their ends, so the older comes first and only the repeated one is stale.
    assert_eq!(
        ledger.report(&samples, Nanos(now)),
        DiscardedSamples { stale: 0, invalid: 5, unknown: 1, down: 1 }
    );
    assert_eq!(ledger.report(&samples[..2], Nanos(now)).stale, 2);
}

#[test]
fn promises_are_listed_by_entry_and_once_for_each_crossing() {
    let (mut ledger, link) = new();
    let twice = reservation(&[link, link], MBPS, 3 * MBPS);
    let first = commit(&mut ledger, twice, 0);
    let second = commit(&mut ledger, reservation(&[link], MBPS, 5 * MBPS), 0);
    let listed = |ledger: &Ledger| {
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(0), &mut scratch);
        let entries: Vec<_> = view.envelopes(link).expect("priorities").iter().map(|p| p.entry).collect();
        (entries, view.reserved(link).0 / MBPS as i64, view.version(link))
    };
    assert_eq!(listed(&ledger), (vec![first, first, second], 11, 3));
    ledger.release(&[first], Nanos(0));
    assert_eq!(listed(&ledger), (vec![second], 5, 5));
}

#[test]
fn admission_on_an_outdated_capacity_conflicts() {
    let (mut ledger, link) = new();
    let transaction = Transaction {
        add: vec![reservation(&[link], MBPS, 1400 * MBPS)],
        expect: vec![(link, 0)],
        ..Transaction::default()
    };
    ledger.set_capacity(link, Load(700 * MBPS as i64), Nanos(0));
    assert!(matches!(ledger.commit(transaction, Nanos(0)), Err(CommitError::Conflict { found: 1, .. })));
    // Setting the same capacity again changes nothing.
    ledger.set_capacity(link, Load(700 * MBPS as i64), Nanos(0));
    let mut scratch = Scratch::default();
    assert_eq!(ledger.view(Nanos(0), &mut scratch).version(link), 1);
}

#[test]
fn a_reservation_that_leaves_with_the_next_window_leaves_nothing_behind() {
    let (mut ledger, link) = new();
    ledger.report(&[sample(link, (0, SECOND), 0)], Nanos(SECOND));
    let before = ledger.sums_bytes();
    let entry = Entry { fade: Fade::AtNextWindow, ..reservation(&[link], 10 * MBPS, 30 * MBPS) };
    let id = commit(&mut ledger, entry, SECOND);
    ledger.report(&[sample(link, (SECOND, 2 * SECOND), 0)], Nanos(2 * SECOND));
    assert_eq!(load(&ledger, link, 2 * SECOND), 0.0);
    ledger.release(&[id], Nanos(2 * SECOND));
    assert_eq!(ledger.sums_bytes(), before);
}

#[test]
fn work_that_ends_before_its_start_never_counts() {
    let (mut ledger, link) = new();
    ledger.report(&[sample(link, (0, SECOND), 0)], Nanos(SECOND));
    let entry = Entry { starts: Some(Nanos(100 * SECOND)), ..stream(&[link], 500 * MBPS) };
    let id = commit(&mut ledger, entry, SECOND);
    ledger.release(&[id], Nanos(3 * SECOND / 2));
    for second in 1..5 {
        ledger.report(
            &[sample(link, (second * SECOND, (second + 1) * SECOND), 0)],
            Nanos((second + 1) * SECOND),
        );
        assert_eq!(load(&ledger, link, (second + 1) * SECOND), 0.0);
    }
}

#[test]
fn after_all_releases_the_load_is_exactly_the_measured_load() {
    let (mut ledger, link) = new();
    let report = |ledger: &mut Ledger, second: u64, mbps: u64| {
        let window = (second * SECOND, (second + 1) * SECOND);
        ledger.report(&[sample(link, window, (mbps * MBPS) as i64)], Nanos(window.1));
    };
    report(&mut ledger, 0, 700);
    let id =
        commit(&mut ledger, Entry { starts: Some(Nanos(SECOND)), ..stream(&[link], 333 * MBPS) }, SECOND);
    (1..20).for_each(|second| report(&mut ledger, second, 1033));
    ledger.release(&[id], Nanos(20 * SECOND));
    (20..250).for_each(|second| report(&mut ledger, second, 700));
    let mut scratch = Scratch::default();
    let view = ledger.view(Nanos(250 * SECOND), &mut scratch);
    let measured = view.measured(link).expect("seen").0 as f64 / view.capacity(link).0 as f64;
    assert!((view.utilization_with(link, Load(0)).expect("seen") - measured).abs() < 1e-9);
    assert_eq!(ledger.sums_bytes(), new().0.sums_bytes());
}

#[test]
fn many_blocks_before_a_report_saturate_a_link_without_overflow() {
    let (mut ledger, link) = new();
    let now = 2 * SECOND - 1;
    ledger.report(&[sample(link, (0, SECOND), 0)], Nanos(SECOND));
    let ids: Vec<_> = (0..5000).map(|_| commit(&mut ledger, block(&[link], 256 << 20, None), now)).collect();
    let mut scratch = Scratch::default();
    assert_eq!(ledger.view(Nanos(now), &mut scratch).expected_capacity(link), Some(Load(0)));
    ledger.release(&ids, Nanos(now));
    assert_eq!(ledger.sums_bytes(), new().0.sums_bytes());
}

#[test]
fn relief_removes_its_rate_but_no_flows_and_no_reservations() {
    let (mut ledger, link) = new();
    let before = &readings(&ledger, 0)[link.index()];
    for entry in [reservation(&[link], MBPS, MBPS), block(&[link], MBPS, Some(MBPS)), stream(&[link], MBPS)] {
        commit(&mut ledger, Entry { sign: Sign::Relieves, ..entry }, 0);
    }
    let after = &readings(&ledger, 0)[link.index()];
    assert_eq!(
        (after.flows, after.unreserved, after.version),
        (before.flows, before.unreserved, before.version)
    );
    assert_eq!((after.share, after.promises), (before.share, 0));
}

#[test]
fn measured_cross_traffic_counts_among_the_flows() {
    let (mut ledger, link) = new();
    ledger.report(&[sample(link, (0, SECOND), 1400 * MBPS as i64)], Nanos(SECOND));
    ledger.set_cross_traffic(link, 2.0, Nanos(SECOND));
    let shares = |ledger: &Ledger| {
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(SECOND), &mut scratch);
        (view.share(link, 1).0 / MBPS as i64, view.flows(link))
    };
    assert_eq!(shares(&ledger), (500, 2.0));
    commit(&mut ledger, block(&[link], MBPS, None), SECOND);
    assert_eq!(shares(&ledger), (375, 3.0));
    ledger.set_cross_traffic(link, f64::NAN, Nanos(SECOND));
    assert_eq!(shares(&ledger), (750, 1.0));
}

#[test]
fn a_host_that_comes_back_starts_from_zero() {
    let (mut ledger, _) = new();
    let link = ingress(ledger.fabric(), 0);
    let report = |ledger: &mut Ledger, second: u64, mbps: u64| {
        let window = (second * SECOND, (second + 1) * SECOND);
        ledger.report(&[sample(link, window, (mbps * MBPS) as i64)], Nanos(window.1))
    };
    report(&mut ledger, 0, 800);
    let entry = Entry { starts: Some(Nanos(SECOND)), ..stream(&[link], 100 * MBPS) };
    commit(&mut ledger, entry, SECOND);
    ledger.set_health(HostId(0), false, Nanos(SECOND + MS));
    assert_eq!(load(&ledger, link, SECOND + MS), 0.0);
    assert_eq!(report(&mut ledger, 1, 900).down, 1);
    ledger.set_health(HostId(0), true, Nanos(3 * SECOND));
    // Unknown: samples from before the host came up are stale.
    assert_eq!(report(&mut ledger, 1, 900).stale, 1);
    assert_eq!(readings(&ledger, 3 * SECOND)[link.index()].measured, None);
    let until = |ledger: &Ledger| {
        let mut scratch = Scratch::default();
        ledger.view(Nanos(4 * SECOND), &mut scratch).measured_until(link)
    };
    assert_eq!(until(&ledger), Nanos(0), "a return time is not the end of a window");
    report(&mut ledger, 3, 200);
    assert_eq!(until(&ledger), Nanos(4 * SECOND));
    assert_eq!(load(&ledger, link, 4 * SECOND), 200e6);
}

#[test]
fn a_disk_is_reported_like_a_link_in_service_time() {
    let text = "{racks: 1, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1, devices: [{read: 1GB/s, write: 1GB/s}]}";
    let mut ledger = ledger(&cluster(text));
    let fabric = ledger.fabric().clone();
    let disk = |host| fabric.device(HostId(host), 0).expect("each has one");
    assert_eq!(residual(&ledger, disk(0), SECOND), 0, "the disk has no measurement");
    let window = |from: u64, until: u64| (from * SECOND, until * SECOND);
    assert_eq!(
        ledger.report(&[sample(disk(0), window(0, 1), 250_000_000)], Nanos(SECOND)),
        DiscardedSamples::default()
    );
    assert_eq!(load(&ledger, disk(0), SECOND), 0.25e9, "a quarter of a second in a second");
    // Writes that telemetry does not show yet count as pending, and fade as their traffic shows. The other disk is not
    // affected.
    let id = commit(&mut ledger, stream(&[disk(0)], 100_000_000), SECOND);
    ledger.mark_started(id, Nanos(SECOND));
    assert_eq!(load(&ledger, disk(0), SECOND), 0.35e9);
    for second in 1..7 {
        let samples = [sample(disk(0), window(second, second + 1), 350_000_000)];
        ledger.report(&samples, Nanos((second + 1) * SECOND));
        assert!((load(&ledger, disk(0), (second + 1) * SECOND) - 0.35e9).abs() < 1.0, "at {second} s");
    }
    assert_eq!(residual(&ledger, disk(1), 7 * SECOND), 0);
    assert!(residual(&ledger, disk(0), 11 * SECOND) == 0, "the disk is silent");
    ledger.set_health(HostId(0), false, Nanos(12 * SECOND));
    let samples = [sample(disk(0), window(11, 12), 1)];
    assert_eq!(ledger.report(&samples, Nanos(12 * SECOND)).down, 1);
}

#[test]
fn a_slow_host_that_falls_silent_counts_at_the_rate_of_the_cluster_file() {
    for missing in [Missing::Strict, Missing::Sinbad] {
        let cluster = cluster(TREE);
        let mut ledger = ledger_with(&cluster, &LedgerSettings { missing, ..LedgerSettings::default() });
        let link = downlink(&cluster.fabric);
        let hosts = [0, 1].map(|host| ingress(&cluster.fabric, host));
        ledger.report(&hosts.map(|host| sample(host, (0, SECOND), 0)), Nanos(SECOND));
        // The host's cable is out, and then the host falls silent.
        ledger.set_capacity(hosts[0], Load(0), Nanos(SECOND));
        assert_eq!(readings(&ledger, SECOND)[link.index()].measured, Some(Load(0)));
        for second in 1..60 {
            let samples = [sample(hosts[1], (second * SECOND, (second + 1) * SECOND), 100 * MBPS as i64)];
            ledger.report(&samples, Nanos((second + 1) * SECOND));
        }
        let silent = readings(&ledger, 60 * SECOND)[link.index()].measured.expect("a sum").0;
        assert!((silent - 1_100 * MBPS as i64).abs() < 100_000, "{missing:?}: {silent}");
        // A set capacity above the file's capacity is valid.
        ledger.set_capacity(hosts[0], Load(1_200 * MBPS as i64), Nanos(60 * SECOND));
        let silent = readings(&ledger, 60 * SECOND)[link.index()].measured.expect("a sum").0;
        assert!((silent - 1_300 * MBPS as i64).abs() < 100_000, "{missing:?}: {silent}");
    }
}

#[test]
fn racks_with_all_hosts_down_have_no_load() {
    let (mut ledger, link) = new();
    assert_eq!(readings(&ledger, 0)[link.index()].measured, None);
    ledger.set_health(HostId(0), false, Nanos(0));
    // The other host is silent.
    assert_eq!(readings(&ledger, 0)[link.index()].measured, Some(Load(1000 * MBPS as i64)));
    ledger.set_health(HostId(1), false, Nanos(0));
    assert_eq!(readings(&ledger, 0)[link.index()].measured, Some(Load(0)));
}

#[test]
fn a_snapshot_never_changes_and_names_the_requests_it_counts() {
    let (mut ledger, link) = new();
    ledger.report(&[sample(link, (0, SECOND), 0)], Nanos(SECOND));
    let add = vec![stream(&[link], 100 * MBPS)];
    let transaction = Transaction { add, client: Some((4, 17)), ..Transaction::default() };
    ledger.commit(transaction, Nanos(SECOND)).expect("made");
    let snapshot = ledger.snapshot(Nanos(SECOND), None);
    commit(&mut ledger, stream(&[link], 100 * MBPS), SECOND);
    let mut scratch = Scratch::default();
    assert_eq!(snapshot.view(&mut scratch).residual(link), Load(1400 * MBPS as i64));
    assert_eq!(snapshot.clients().collect::<Vec<_>>(), [(4, 17)]);
    assert_eq!((snapshot.at(), Epoch(snapshot.epoch().0 + 1)), (Nanos(SECOND), ledger.epoch()));
}

#[test]
fn settings_out_of_range_are_rejected_by_name() {
    let default = LedgerSettings::default;
    let invalid = [
        LedgerSettings { alpha: 0.0, ..default() },
        LedgerSettings { alpha: f64::NAN, ..default() },
        LedgerSettings { limit: 1.5, ..default() },
        LedgerSettings { interval: Nanos(0), ..default() },
        LedgerSettings { unknown_after: f64::INFINITY, ..default() },
    ];
    let messages = invalid.map(|settings| settings.check().expect_err("out of range").to_string());
    assert_eq!(
        messages,
        [
            "alpha: 0: expected a share in (0, 1]",
            "alpha: NaN: expected a share in (0, 1]",
            "limit: 1.5: expected a share in (0, 1]",
            "interval: 0s: expected a positive time",
            "unknown_after: inf: expected at least 1 interval",
        ]
    );
}

#[test]
fn an_owner_that_crosses_a_link_twice_is_removed_once() {
    for fade in [Fade::AtNextWindow, Fade::WithEstimator] {
        let (mut ledger, link) = new();
        ledger.report(&[sample(link, (0, SECOND), 0)], Nanos(SECOND));
        let twice = Entry { fade, ..block(&[link, link], 1 << 20, Some(100 * MBPS)) };
        commit(&mut ledger, block(&[link], 1 << 20, Some(100 * MBPS)), SECOND);
        let owner = leeward_ledger::Owner { id: 2, ..twice.owner };
        let before = readings(&ledger, SECOND);
        commit(&mut ledger, Entry { owner, ..twice }, SECOND);
        let mut scratch = Scratch::default();
        let mut view = ledger.view(Nanos(SECOND), &mut scratch);
        view.without(&owner);
        assert_eq!(crate::support::reading(&view, link), before[link.index()]);
    }
}

#[test]
fn late_class_counters_start_at_their_first_value() {
    let (mut ledger, link) = new();
    let report = |ledger: &mut Ledger, second: u64, guaranteed: Option<u64>| {
        let window = (second * SECOND, (second + 1) * SECOND);
        let guaranteed = guaranteed.map(|mbps| Load((mbps * MBPS) as i64));
        ledger.report(&[Sample { guaranteed, ..sample(link, window, 500 * MBPS as i64) }], Nanos(window.1));
        readings(ledger, window.1)[link.index()].guaranteed.map(|load| load.0 / MBPS as i64)
    };
    assert_eq!(report(&mut ledger, 0, None), None);
    assert_eq!(report(&mut ledger, 1, Some(200)), Some(200));
    assert_eq!(report(&mut ledger, 2, Some(300)), Some(220));
    // The guaranteed part is at most the whole.
    assert_eq!(report(&mut ledger, 3, Some(900)), Some(276));
    assert_eq!(report(&mut ledger, 4, None), None);
}

#[test]
fn the_latest_window_alone_is_beside_the_estimate_also_of_a_sum() {
    let (mut ledger, link) = new();
    let hosts = [ingress(ledger.fabric(), 0), ingress(ledger.fabric(), 1)];
    let latest = |ledger: &Ledger, resource, now| {
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(now), &mut scratch);
        (view.latest(resource), view.measured(resource))
    };
    assert_eq!(latest(&ledger, hosts[0], SECOND), (None, None));
    for (second, load) in [(1, 100), (2, 400)] {
        let window = ((second - 1) * SECOND, second * SECOND);
        ledger.report(&hosts.map(|host| sample(host, window, load)), Nanos(second * SECOND));
    }
    let from = Nanos(SECOND);
    assert_eq!(latest(&ledger, hosts[0], 2 * SECOND), (Some((from, Load(400))), Some(Load(160))));
    assert_eq!(latest(&ledger, link, 2 * SECOND), (Some((from, Load(800))), Some(Load(320))));
    // A silent link has no load, and its latest window is still the last one.
    assert_eq!(latest(&ledger, hosts[0], 60 * SECOND), (Some((from, Load(400))), None));
}

#[test]
fn the_last_line_of_a_link_determines_its_age() {
    let fabric = cluster(TREE).fabric;
    let name = fabric.resource_name(downlink(&fabric));
    let check = |times: &[&str]| {
        let lines: String = times.iter().map(|at| format!("{name},1,{at}\n")).collect();
        let text = Text::from_bytes("loads.csv", format!("link, load_bps ,t_s\n{lines}")).expect("text");
        let clock = Clock { now: 100_000.0, max_age: 300.0 };
        read_loads(text, &fabric, Nanos(SECOND), Some(clock)).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(check(&["100", "99700"]), Ok(()));
    assert_eq!(check(&["100060"]), Ok(()));
    let stale = format!("loads.csv: t_s: 1 of 1 links is stale: {name} was measured 27 h ago; at most 5 min");
    assert_eq!(check(&["99900", "2800"]), Err(stale));
    let ahead =
        format!("loads.csv: t_s: {name} was measured 2 min in the future; expected seconds since 1970");
    assert_eq!(check(&["100120"]), Err(ahead));
    assert_eq!(
        check(&["1", "-1"]),
        Err("loads.csv:3: t_s: `-1`: must not be negative; expected seconds since 1970".into())
    );
}
