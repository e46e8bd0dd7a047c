//! Faulty reporters: values that no link and no host can have, and reports that are too old.

use crate::support::{Numbers, decision_of, labels, place_now, samples};
use leeward_engine::Engine;
use leeward_fabric::{Bytes, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_placement::{Explain, replicas};
use leeward_records::{PlacementSpec, ReplicasSpec};
use leeward_service::{
    Coordinator, HostReport, Limits, LinkState, Placement, Reading, Report, ReportSummary,
};
use leeward_testing::clusters::{self, cluster, racks_of_four};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::SECOND;
const LOAD: Load = Load(100_000_000);
const CAPACITY: Load = Load(1_000_000_000);

/// A coordinator of five racks with four hosts, of 1 Gb/s and 1 GiB each.
fn coordinator() -> Coordinator<Numbers> {
    coordinator_with("")
}

fn coordinator_with(settings: &str) -> Coordinator<Numbers> {
    let cluster = cluster(&racks_of_four(5, "[{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]"));
    let policy = replicas::REGISTRY.make("sinbad", settings).expect("a policy of the registry");
    let engine = Engine::new(clusters::ledger(&cluster), policy, 7, Explain::Top(8));
    Coordinator::new(engine, labels(), Limits::default())
}

fn link(fabric: &Fabric, name: &str) -> ResourceId {
    fabric.resource(name).expect("a link of the cluster")
}

fn state(coordinator: &mut Coordinator<Numbers>, now: Nanos, name: &str) -> LinkState {
    coordinator.wake(now);
    let snapshot = coordinator.snapshot();
    *snapshot.link(link(&snapshot.fabric, name)).expect("a link")
}

/// Window of one second that ends at this second.
fn window(second: u64) -> (Nanos, Nanos) {
    (Nanos((second - 1) * SECOND.0), Nanos(second * SECOND.0))
}

/// Reports the loads of links over the second before `second`.
fn report(
    coordinator: &mut Coordinator<Numbers>,
    second: u64,
    loads: &[(&str, Load)],
    readings: Vec<(ResourceId, Reading)>,
) -> ReportSummary {
    let fabric = coordinator.fabric().clone();
    let loads = samples(window(second), loads.iter().map(|&(name, load)| (link(&fabric, name), load)));
    let report = Report { window: window(second), loads, readings, ..Report::default() };
    coordinator.report(Nanos(second * SECOND.0), report).expect("a valid report")
}

/// Reports every host of rack `r3`, with one of its loads.
fn report_rack(coordinator: &mut Coordinator<Numbers>, second: u64, load: Load) -> ReportSummary {
    let loads =
        [("r3h0:ingress", LOAD), ("r3h1:ingress", load), ("r3h2:ingress", LOAD), ("r3h3:ingress", LOAD)];
    report(coordinator, second, &loads, Vec::new())
}

#[test]
fn one_absurd_load_counts_as_a_full_link_and_the_link_recovers_at_once() {
    let mut coordinator = coordinator();
    for second in 10..20 {
        assert_eq!(report_rack(&mut coordinator, second, LOAD).clamped, 0);
    }
    let summary = report_rack(&mut coordinator, 20, Load(1_000_000_000_000_000_000));
    assert_eq!(
        (summary.links, summary.clamped, summary.clamped_names),
        (4, 1, vec!["r3h1:ingress".to_owned()])
    );
    // The estimate and the sum of the rack move as far as by one window of a full link.
    let moved = LOAD.0 + (CAPACITY.0 - LOAD.0) / 5;
    let now = Nanos(20 * SECOND.0);
    assert_eq!(state(&mut coordinator, now, "r3h1:ingress").measured, Some(Load(moved)));
    let rack = state(&mut coordinator, now, "r3:downlink");
    assert!(rack.derived && rack.hot_since.is_none(), "{rack:?}");
    assert_eq!(rack.measured, Some(Load(3 * LOAD.0 + moved)));
    for second in 21..24 {
        report_rack(&mut coordinator, second, LOAD);
    }
    let now = Nanos(23 * SECOND.0);
    for (name, load) in [("r3h1:ingress", LOAD.0), ("r3:downlink", 4 * LOAD.0)] {
        let LinkState { measured, hot_since, .. } = state(&mut coordinator, now, name);
        let measured = measured.expect("a reported link").0;
        assert!(hot_since.is_none() && measured < load + LOAD.0, "{name}: {measured}");
    }
}

#[test]
fn a_small_excess_is_an_inaccuracy_and_not_reported() {
    let mut coordinator = coordinator();
    let summary = report_rack(&mut coordinator, 10, Load(1_040_000_000));
    assert_eq!(summary.clamped, 0);
    assert_eq!(state(&mut coordinator, Nanos(10 * SECOND.0), "r3h1:ingress").measured, Some(CAPACITY));
}

#[test]
fn at_most_eight_clamped_names_are_returned() {
    let mut coordinator = coordinator();
    let names: Vec<String> =
        (0..5).flat_map(|rack| (0..4).map(move |host| format!("r{rack}h{host}:egress"))).collect();
    let loads: Vec<(&str, Load)> = names.iter().map(|name| (name.as_str(), Load(3_000_000_000))).collect();
    let summary = report(&mut coordinator, 10, &loads, Vec::new());
    assert_eq!((summary.clamped, &summary.clamped_names[..]), (20, &names[..8]));
}

#[test]
fn a_reported_speed_does_not_raise_the_bound_of_the_load() {
    let mut coordinator = coordinator();
    let ingress = link(coordinator.fabric(), "r3h1:ingress");
    let fast = Reading { speed: Some(Load(100_000_000_000)), ..Reading::default() };
    let loads = [("r3h1:ingress", Load(50_000_000_000))];
    let summary = report(&mut coordinator, 10, &loads, vec![(ingress, fast)]);
    assert_eq!(summary.clamped, 1);
    let now = Nanos(10 * SECOND.0);
    let LinkState { measured, capacity, .. } = state(&mut coordinator, now, "r3h1:ingress");
    assert_eq!((measured, capacity), (Some(CAPACITY), CAPACITY));
    // A lower speed lowers the capacity but not the bound, because the link may have been faster in the window.
    let slow = Reading { speed: Some(Load(100_000_000)), ..Reading::default() };
    let loads = [("r3h1:ingress", Load(1_000_000_000))];
    assert_eq!(report(&mut coordinator, 11, &loads, vec![(ingress, slow)]).clamped, 0);
    let now = Nanos(11 * SECOND.0);
    assert_eq!(state(&mut coordinator, now, "r3h1:ingress").measured, Some(CAPACITY));
}

#[test]
fn a_stale_report_changes_no_speed() {
    let mut coordinator = coordinator();
    let ingress = link(coordinator.fabric(), "r3h1:ingress");
    let loads = [("r3h1:ingress", LOAD)];
    let now = Nanos(100 * SECOND.0);
    // The first report has no speed, so no reading exists.
    report(&mut coordinator, 100, &loads, Vec::new());
    let before = state(&mut coordinator, now, "r3h1:ingress");
    for speed in [0, 50_000_000] {
        let reading = Reading { speed: Some(Load(speed)), queue: Some(7.0), requests: None };
        let fabric = coordinator.fabric().clone();
        let loads = samples(window(40), [(link(&fabric, "r3h1:ingress"), Load(5_000_000_000))]);
        let readings = vec![(ingress, reading)];
        let old = Report { window: window(40), loads, readings, ..Report::default() };
        let summary = coordinator.report(now, old).expect("a valid report");
        assert_eq!((summary.links, summary.skipped.stale, summary.clamped), (0, 1, 0));
        assert_eq!(state(&mut coordinator, now, "r3h1:ingress"), before);
    }
}

#[test]
fn stored_bytes_are_at_most_the_storage_of_the_host() {
    let mut coordinator = coordinator();
    let stores = |until: u64, stored: u64| Report {
        window: window(until),
        hosts: vec![HostReport {
            host: HostId(2),
            up: None,
            draining: None,
            stored: Some(Bytes(stored)),
            storage: None,
        }],
        ..Report::default()
    };
    let now = Nanos(12 * SECOND.0);
    let summary = coordinator.report(now, stores(10, u64::MAX)).expect("a valid report");
    assert_eq!((summary.clamped, summary.clamped_names), (1, vec!["r0h2".to_owned()]));
    assert_eq!(coordinator.snapshot().hosts[2].stored, Bytes(1 << 30));
    let stale = coordinator.report(now, stores(9, u64::MAX)).expect("a valid report");
    assert_eq!((stale.clamped, stale.skipped.stale), (0, 1));
    let summary = coordinator.report(now, stores(11, 1 << 20)).expect("a valid report");
    assert_eq!((summary.clamped, coordinator.snapshot().hosts[2].stored), (0, Bytes(1 << 20)));
}

#[test]
fn reported_storage_replaces_more_in_the_cluster_and_never_less() {
    let mut coordinator = coordinator();
    let mut storage = |until: u64, stored: u64, storage: Option<u64>| {
        let stored = Some(Bytes(stored));
        let host =
            HostReport { host: HostId(2), up: None, draining: None, stored, storage: storage.map(Bytes) };
        let report = Report { window: window(until), hosts: vec![host], ..Report::default() };
        let summary = coordinator.report(Nanos(20 * SECOND.0), report).expect("a valid report");
        let state = &coordinator.snapshot().hosts[2];
        (state.stored.0, state.storage.map(|storage| storage.0), summary.clamped)
    };
    // The cluster file has a device of 1 GiB.
    assert_eq!(storage(10, 1 << 20, None), (1 << 20, Some(1 << 30), 0));
    assert_eq!(storage(11, 1 << 20, Some(1 << 29)), (1 << 20, Some(1 << 29), 0));
    assert_eq!(storage(10, 1 << 20, Some(1 << 20)), (1 << 20, Some(1 << 29), 0), "the report is stale");
    assert_eq!(storage(12, 1 << 30, None), (1 << 29, Some(1 << 29), 1));
    assert_eq!(storage(13, u64::MAX, Some(u64::MAX)), (1 << 30, Some(1 << 30), 1));
    assert_eq!(storage(14, 5, Some(0)), (0, Some(0), 1), "a host without storage is full");
}

#[test]
fn a_state_of_a_host_is_no_telemetry_of_its_links() {
    let mut coordinator = coordinator_with("{without_telemetry: default}");
    let down = HostReport { host: HostId(0), up: Some(false), draining: None, stored: None, storage: None };
    let report = Report { window: window(10), hosts: vec![down], ..Report::default() };
    coordinator.report(Nanos(10 * SECOND.0), report).expect("a valid report");
    let spec = ReplicasSpec { size: Bytes(1 << 20), replicas: 1, ..ReplicasSpec::default() };
    let placement = Placement {
        spec: PlacementSpec::Replicas(spec),
        caller: None,
        lasts: None,
        reference: None,
        digest: None,
    };
    let (decision, _) = decision_of(place_now(&mut coordinator, Nanos(11 * SECOND.0), placement));
    assert_eq!(decision.details.oldest, None, "no window was used");
}

proptest! {
    /// A host that reports arbitrary loads and speeds of its own links, while the others report truly.
    #[test]
    fn a_faulty_host_moves_the_sum_of_its_rack_by_at_most_its_own_capacity(
        reports in prop::collection::vec((0_i64..=i64::MAX, prop::option::of(0_i64..=i64::MAX)), 1..30),
    ) {
        let mut coordinator = coordinator();
        for (second, (load, speed)) in (10..).zip(reports) {
            let ingress = link(coordinator.fabric(), "r3h1:ingress");
            let reading = Reading { speed: speed.map(Load), ..Reading::default() };
            let loads = [
                ("r3h0:ingress", LOAD),
                ("r3h1:ingress", Load(load)),
                ("r3h2:ingress", LOAD),
                ("r3h3:ingress", LOAD),
            ];
            report(&mut coordinator, second, &loads, vec![(ingress, reading)]);
            let now = Nanos(second * SECOND.0);
            let measured = state(&mut coordinator, now, "r3:downlink").measured.expect("all hosts reported").0;
            prop_assert!((3 * LOAD.0..=3 * LOAD.0 + CAPACITY.0).contains(&measured), "{}", measured);
            for other in ["r3h0:ingress", "r3h2:ingress", "r3h3:ingress"] {
                let LinkState { measured, capacity, .. } = state(&mut coordinator, now, other);
                prop_assert_eq!((measured, capacity), (Some(LOAD), CAPACITY));
            }
        }
    }
}
