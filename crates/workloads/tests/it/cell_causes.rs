//! Causes of hotspots that last for days: they change nothing else, repeat, and last as long as stated.

use std::collections::BTreeMap;

use leeward_fabric::{Cluster, Load, ResourceId};
use leeward_testing::clusters::cluster;
use leeward_workloads::{CapacityChange, Cell, CellKind, Workload};
use proptest::prelude::*;

use crate::support::{check, read, source};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

const ALL: &str = "growth: {share: 0.1, factor: 2}, losses: {racks: 0.2}, storage: 0.75";

/// 40 racks of 20 hosts; all uplinks together carry 1,600 Gb/s. Hosts of five racks have 10 TB of disks, and hosts of
/// five others 5 TB.
fn cell() -> Cluster {
    let disk = |terabytes: u32| format!("devices: [{{read: 1GB/s, write: 1GB/s, capacity: {terabytes}TB}}]");
    cluster(&format!(
        "{{racks: [{{count: 30}}, {{count: 5, kind: disk, {}}}, {{count: 5, kind: mixed, {}}}], hosts_per_rack: 20, \
         nic: 10Gbps, oversubscription: 5, cpus: 32}}",
        disk(10),
        disk(5)
    ))
}

fn generate(settings: &str, seed: u64, horizon: f64) -> Workload {
    let settings: Cell = leeward_fabric::input::read_yaml("cell", settings).expect("valid settings");
    settings.generate(&cell(), seed, horizon).expect("settings valid for this cluster").workload
}

/// Changes of each link, by time.
fn by_link(workload: &Workload) -> BTreeMap<ResourceId, Vec<CapacityChange>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for change in &workload.capacities {
        all.entry(change.resource).or_default().push(*change);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn causes_change_no_task_and_no_demand_that_the_scheduler_knows(seed in any::<u64>()) {
        let plain = generate("{batch: 2h}", seed, 6.0 * HOUR);
        let with_causes = generate(&format!("{{batch: 2h, {ALL}}}"), seed, 6.0 * HOUR);
        prop_assert!(plain.cell_kinds.iter().all(|kind| kind.growth.is_none()));
        prop_assert!(plain.disk_servers.is_empty() && plain.capacities.is_empty());
        prop_assert_eq!(&with_causes, &generate(&format!("{{batch: 2h, {ALL}}}"), seed, 6.0 * HOUR));
        let without = |kind: CellKind| CellKind { growth: None, ..kind };
        let rest = Workload {
            cell_kinds: with_causes.cell_kinds.into_iter().map(without).collect(),
            disk_servers: Vec::new(),
            capacities: Vec::new(),
            ..with_causes
        };
        prop_assert_eq!(rest, plain);
    }

    #[test]
    fn any_causes_are_valid_or_rejected(
        seed in any::<u64>(), share in 0.0_f64..=1.0, factor in 0.0_f64..120.0, racks in 0.0_f64..=1.0,
        left in 0.0_f64..=1.0, shortest in 0_u64..100_000, longest in 0_u64..1_000_000, storage in 0.0_f64..=1.0,
    ) {
        let bounds = format!("shortest: {shortest}s, longest: {longest}s");
        let text = format!(
            "{{batch: 1d, growth: {{share: {share}, factor: {factor}, {bounds}}}, storage: {storage}, \
             losses: {{racks: {racks}, left: {left}, {bounds}}}}}"
        );
        if let Ok(loaded) = read(&source(&format!("{{cell: {text}}}")), b"", &cell(), seed, DAY) {
            check(&loaded.workload, &cell(), DAY);
            for growth in loaded.workload.cell_kinds.iter().filter_map(|kind| kind.growth) {
                prop_assert!(growth.from.is_finite() && growth.until > growth.from);
                prop_assert!((1.0..=factor).contains(&growth.factor));
            }
        }
    }
}

#[test]
fn a_longer_run_begins_with_the_same_causes() {
    let [short, long] = [1.0, 4.0].map(|days| generate(&format!("{{{ALL}}}"), 3, days * DAY));
    let before = |change: &&CapacityChange| change.at < DAY;
    assert!(!short.capacities.is_empty() && long.capacities.len() > short.capacities.len());
    assert!(short.capacities.iter().eq(long.capacities.iter().filter(before)));
    assert_eq!(short.disk_servers, long.disk_servers);
    for (ours, theirs) in short.tasks.iter().zip(&long.tasks) {
        assert_eq!(short.cell_kinds[ours.kind as usize].growth, long.cell_kinds[theirs.kind as usize].growth);
    }
    assert_ne!(short.capacities, generate(&format!("{{{ALL}}}"), 4, DAY).capacities);
}

#[test]
fn services_with_the_most_bandwidth_grow_for_days_to_months() {
    let (mut services, mut durations, mut active) = (0, Vec::new(), 0);
    for seed in 0..4 {
        let settings =
            "{network: 0.002, tasks_per_job: 4, batch: 1d, growth: {share: 0.2, factor: 3, longest: 64d}}";
        let workload = generate(settings, seed, DAY);
        let (mut least_grown, mut most_other) = (f64::INFINITY, 0.0_f64);
        for kind in &workload.cell_kinds {
            if kind.demand.tolerant {
                assert_eq!(kind.growth, None, "a batch job");
                continue;
            }
            services += 1;
            let traffic = kind.demand.total_egress().mean_bps + kind.demand.total_ingress().mean_bps;
            let intensity = traffic as f64 / kind.demand.cpus.0 as f64;
            let Some(growth) = kind.growth else {
                most_other = most_other.max(intensity);
                continue;
            };
            least_grown = least_grown.min(intensity);
            durations.push((growth.until - growth.from) / DAY);
            active += u32::from(growth.factor_at(0.0) > 1.0);
            assert_eq!((growth.factor, growth.factor_at(growth.from)), (3.0, 3.0));
            assert_eq!((growth.factor_at(growth.from - 1.0), growth.factor_at(growth.until)), (1.0, 1.0));
        }
        assert!(least_grown >= 0.999 * most_other, "{least_grown} and {most_other} bit/s");
        for task in &workload.tasks {
            let Some(growth) = workload.cell_kinds[task.kind as usize].growth else { continue };
            let begins_by = task.arrive + task.duration;
            // A service in progress may have grown before the run.
            assert!(growth.from <= begins_by && (task.arrive == 0.0 || growth.from >= task.arrive));
        }
    }
    let grown = durations.len() as f64;
    assert!((0.15..0.25).contains(&(grown / f64::from(services))), "{grown} of {services} services grow");
    assert!(durations.iter().all(|days| (0.999..64.001).contains(days)));
    // Log-uniform: a third of the durations is in each fourfold range.
    for (low, high) in [(1.0, 4.0), (4.0, 16.0), (16.0, 64.0)] {
        let share = durations.iter().filter(|days| (low..high).contains(*days)).count() as f64 / grown;
        assert!((share - 1.0 / 3.0).abs() < 0.1, "{share} of {low} to {high} days");
    }
    assert!(active > 0, "some services grew before the run");
}

#[test]
fn no_growth_exceeds_an_interface() {
    let workload = generate("{network: 2, spread: 2, growth: {share: 1, factor: 100}}", 1, HOUR);
    let mut limited = 0;
    for task in &workload.tasks {
        let kind = &workload.cell_kinds[task.kind as usize];
        let factor = kind.growth.map_or(1.0, |growth| growth.factor);
        limited += u32::from(kind.growth.is_some() && factor < 100.0);
        for rate in [task.egress_bps, task.ingress_bps] {
            assert!(rate as f64 * factor * kind.peak <= 1e10 + 1e4, "{rate} bit/s, {factor} times");
        }
    }
    assert!(limited > 0);
}

#[test]
fn losses_last_as_stated_and_affect_the_stated_share_of_racks() {
    let (fabric, whole) = (cell().fabric, Load(40_000_000_000));
    let horizon = 60.0 * DAY;
    let (mut lost, mut at_start, mut durations) = (0.0, 0, Vec::new());
    let seeds = 8;
    for seed in 0..seeds {
        let settings = "{processors: 0.01, batch: 10d, losses: {racks: 0.2, left: 0.25}}";
        let workload = generate(settings, seed, horizon);
        check(&workload, &cell(), horizon);
        let links = by_link(&workload);
        for rack in fabric.all_racks() {
            let [up, down] = [fabric.out_of_domain(rack), fabric.into_domain(rack)].map(|link| {
                let changes = link.and_then(|link| links.get(&link)).into_iter().flatten();
                changes.map(|change| (change.at, change.capacity)).collect::<Vec<_>>()
            });
            assert_eq!(up, down, "both directions lose their capacity together");
            at_start += u32::from(up.first().is_some_and(|(at, _)| *at == 0.0));
            for pair in up.chunks(2) {
                let end = pair.get(1).map_or(horizon, |(at, _)| *at);
                assert_eq!(pair[0].1, Load(whole.0 / 4));
                assert!(pair.get(1).is_none_or(|(_, capacity)| *capacity == whole));
                lost += end - pair[0].0;
                assert!(end - pair[0].0 <= 7.0 * DAY + 1e-6);
                if pair[0].0 > 0.0 && pair.len() == 2 {
                    durations.push(end - pair[0].0);
                }
            }
        }
        assert!(workload.capacities.iter().all(|change| !change.announced));
    }
    let racks = f64::from(seeds as u32) * fabric.rack_count() as f64;
    assert!(durations.len() > 500 && durations.iter().all(|seconds| *seconds >= HOUR - 1e-6));
    assert!((lost / horizon / racks - 0.2).abs() < 0.04, "{} of the time", lost / horizon / racks);
    assert!((f64::from(at_start) / racks - 0.2).abs() < 0.08, "{at_start} of {racks} racks at the start");
    let told = generate("{losses: {racks: 0.2, told: true}}", 1, DAY);
    assert!(told.capacities.iter().all(|change| change.announced));
}

#[test]
fn losses_of_two_cells_are_in_order_of_time() {
    let [mut first, second] = [1, 2].map(|seed| generate("{losses: {racks: 0.2}}", seed, 3.0 * DAY));
    let count = first.capacities.len() + second.capacities.len();
    first.merge(second);
    assert_eq!(first.capacities.len(), count);
    check(&first, &cell(), 3.0 * DAY);
}

#[test]
fn disk_servers_send_in_proportion_to_their_disks() {
    let cluster = cell();
    let workload = generate("{network: 0.3, storage: 0.75, peak: 3, day: 0.2}", 1, HOUR);
    assert_eq!(workload.disk_servers.len(), 200);
    for server in &workload.disk_servers {
        // 75 % of 480 Gb/s, for 1,500 TB.
        let bytes = cluster.fabric.storage(server.host).expect("all disks state a capacity").0;
        assert!((server.bps as f64 - 0.24 * bytes as f64 / 1e3).abs() <= 1.0, "{server:?}");
        assert_eq!((server.peak, server.day), (3.0, 0.2));
    }
    let capped = generate("{network: 10, storage: 1, peak: 4}", 1, HOUR);
    assert!(capped.disk_servers.iter().all(|server| server.bps == 2_500_000_000));
}

#[test]
fn invalid_causes_are_rejected_by_name() {
    let plain = cluster("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 8}");
    let unlimited = cluster(
        "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 8, \
         devices: [{read: 1GB/s, write: 1GB/s}]}",
    );
    let no_disks = "cell: storage: a host has disks without a `capacity`, or none has disks";
    for (settings, cluster, message) in [
        ("growth: {share: 0.1, factor: 0.5}", cell(), "cell: growth.factor: 0.5: expected 1 to 100"),
        (
            "growth: {share: 0.1, factor: 2, shortest: 1min}",
            cell(),
            "cell: growth.shortest: 1min: expected 5min to 366d",
        ),
        (
            "growth: {share: 0.1, factor: 2, longest: 1h}",
            cell(),
            "cell: growth.longest: 1h: expected 1d (`shortest`) to 366d",
        ),
        ("losses: {racks: 1}", cell(), "cell: losses.racks: 1: expected a share below 1"),
        (
            "losses: {racks: 0.1, longest: 367d}",
            cell(),
            "cell: losses.longest: 367d: expected 1h (`shortest`) to 366d",
        ),
        (
            "losses: {racks: 0.999, shortest: 5min, longest: 5min}",
            cell(),
            "cell: losses.shortest: 5.3e8 changes of links: more than 30000000; set longer losses",
        ),
        ("storage: 0.5", plain, no_disks),
        ("storage: 0.5", unlimited, no_disks),
    ] {
        let source = source(&format!("{{cell: {{batch: 366d, service: 366d, {settings}}}}}"));
        let error = read(&source, b"", &cluster, 1, 1e9).expect_err(settings);
        assert_eq!(error.to_string(), message, "{settings}");
    }
}
