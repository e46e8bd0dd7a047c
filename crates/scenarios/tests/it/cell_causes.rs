//! Causes of hotspots that last for days, in runs of a cell: grown demand is sent, lost uplinks carry no more than is
//! left, and disk servers load the links of their racks.

use leeward_fabric::{DomainId, ResourceId};
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;

use crate::support::cell::{STEP, scenario, with_disks};
use crate::support::runs::{run, runs};

const HOUR: f64 = 3600.0;
/// Length of the intervals of records, and longest time after which a new rate takes effect, in seconds.
const SAMPLE: f64 = 300.0;

fn uplinks(scenario: &Scenario) -> Vec<ResourceId> {
    let fabric = &scenario.cluster.fabric;
    fabric.all_racks().filter_map(|rack| fabric.out_of_domain(rack)).collect()
}

/// Bits that all racks' uplinks carried.
fn carried(record: &Record, scenario: &Scenario) -> f64 {
    let uplinks = uplinks(scenario);
    let of_racks = record.links.iter().filter(|link| uplinks.contains(&link.resource));
    of_racks.map(|link| link.load * SAMPLE).sum()
}

#[test]
fn services_send_more_while_their_demand_is_grown() {
    let run_with = |growth: &str| {
        let text = format!(
            "workloads: [{{cell: {{network: 0.05, spread: 0.5, peak: 1, day: 0, tasks_per_job: 4, service: 6h, \
             batch: 1h{growth}}}}}]\ntelemetry: {{interval: 30s}}\nhorizon: 6h\nsample: 5min\n"
        );
        let scenario = scenario("growth", &text);
        let record = run(&scenario, "borg");
        (carried(&record, &scenario), record, scenario)
    };
    let (plain, ..) = run_with("");
    let growth = ", growth: {share: 0.5, factor: 3, shortest: 20min, longest: 2h}";
    let (with_growth, record, scenario) = run_with(growth);
    let workload = scenario.arrivals(scenario.seed).expect("the run generated them too").workload;
    let (mut expected, mut most_late) = (0.0, 0.0);
    for (task, row) in workload.tasks.iter().zip(&record.tasks) {
        let Some(growth) = workload.cell_kinds[task.kind as usize].growth else { continue };
        let Some(placed) = row.placed else { continue };
        let ends = row.finished.unwrap_or(6.0 * HOUR);
        let seconds = ends.min(growth.until) - placed.max(growth.from);
        if seconds > 0.0 {
            let more = task.egress_bps as f64 * (growth.factor - 1.0);
            expected += more * seconds;
            most_late += more * SAMPLE;
        }
    }
    let more = with_growth - plain;
    assert!(expected > 10.0 * most_late / 3.0, "growth lasts for much longer than a rate");
    assert!((more - expected).abs() <= most_late, "{more} bits more, {expected} expected");
}

#[test]
fn a_rack_that_lost_uplinks_carries_no_more_than_is_left() {
    let text = "workloads: [{cell: {network: 2, spread: 0.5, batch: 1h, \
        losses: {racks: 0.4, left: 0.5, shortest: 30min, longest: 2h}}}]\n\
        telemetry: {interval: 30s}\nhorizon: 8h\nsample: 5min\n";
    let scenario = scenario("losses", text);
    let changes = scenario.arrivals(scenario.seed).expect("a valid workload").workload.capacities.clone();
    let all = runs(&scenario, &["borg", "utp"], 2);
    for run in &all {
        let (mut during, mut outside) = (0, 0);
        for row in &run.record.links {
            let of_link = || changes.iter().filter(|change| change.resource == row.resource);
            let whole = scenario.cluster.capacities.get(row.resource).0 as f64;
            // The capacity in effect when the interval begins; a change takes effect with the next step.
            let before = of_link().filter(|change| change.at <= row.start - STEP).next_back();
            let capacity = before.map_or(whole, |change| change.capacity.0 as f64);
            if of_link().any(|change| (row.start - STEP..row.start + SAMPLE).contains(&change.at)) {
                continue;
            }
            assert!(row.load <= capacity * (1.0 + 1e-9), "{} bit/s of {capacity}", row.load);
            during += u32::from(capacity < whole && row.load > 0.9 * capacity);
            outside += u32::from(capacity == whole && row.load > 0.6 * whole);
        }
        assert!(
            during > 50 && outside > 50,
            "{during} full intervals in losses, {outside} busy ones outside"
        );
    }
}

#[test]
fn an_event_of_the_scenario_decides_over_a_loss_at_the_same_time() {
    let text = "workloads: [{cell: {network: 4, spread: 0.5, losses: {racks: 0.999, shortest: 7d}}}]\n\
        telemetry: {interval: 30s}\nhorizon: 30min\nsample: 5min\n\
        events: [{at: 0s, link: 'r0:uplink', capacity: 1Gbps}]\n";
    let scenario = scenario("decides", text);
    let changes = scenario.arrivals(scenario.seed).expect("a valid workload").workload.capacities.clone();
    let record = run(&scenario, "borg");
    let uplink = scenario.cluster.fabric.out_of_domain(DomainId(0)).expect("a tree");
    let later = changes.iter().filter(|change| change.resource == uplink && change.at > 0.0);
    let until = later.map(|change| change.at).fold(1800.0, f64::min);
    let first = record.links.iter().filter(|row| row.resource == uplink && row.start + SAMPLE <= until);
    assert!(
        changes.iter().any(|change| change.resource == uplink && change.at == 0.0),
        "a loss at the start"
    );
    first.for_each(|row| assert!((row.load - 1e9).abs() < 1.0, "{} bit/s", row.load));
}

#[test]
fn disk_servers_load_the_links_of_their_racks_while_their_hosts_are_up() {
    let text = "workloads: [{cell: {processors: 0.3, network: 0.2, peak: 1, day: 0, storage: 0.75}}]\n\
        telemetry: {interval: 30s}\nhorizon: 3h\nsample: 5min\n\
        events: [{at: 1h, host: r4h0, state: down}, {at: 2h, host: r4h0, state: up}]\n";
    let scenario = with_disks("disks", text);
    let fabric = &scenario.cluster.fabric;
    for run in runs(&scenario, &["borg", "utp"], 2) {
        for (rack, gigabits) in [(4, 4.0), (5, 4.0), (6, 2.0), (7, 2.0)] {
            let rack = DomainId(rack);
            let links = [fabric.out_of_domain(rack), fabric.into_domain(rack)];
            for row in run.record.links.iter().filter(|row| links.contains(&Some(row.resource))) {
                // A server that is up again sends within five minutes.
                let recovers = (2.0 * HOUR..2.0 * HOUR + SAMPLE).contains(&row.start);
                if rack == DomainId(4) && recovers {
                    continue;
                }
                let is_down = rack == DomainId(4) && (HOUR..2.0 * HOUR).contains(&row.start);
                let expected = if is_down { 3e9 } else { gigabits * 1e9 };
                assert!((row.load - expected).abs() < 10.0, "{} bit/s at {} s", row.load, row.start);
            }
        }
        let on_disks = run.record.tasks.iter().filter_map(|task| task.host);
        assert!(on_disks.map(|host| fabric.rack_of(host)).all(|rack| rack.0 < 4), "tasks need processors");
    }
}

#[test]
fn rates_of_disk_servers_vary_up_to_their_peak_and_repeat() {
    let text = "workloads: [{cell: {processors: 0.3, network: 0.2, peak: 2, day: 0, storage: 0.75, \
        growth: {share: 0.1, factor: 2}, losses: {racks: 0.1}}}]\n\
        telemetry: {interval: 30s}\nhorizon: 12h\nsample: 5min\n";
    let scenario = with_disks("vary", text);
    let (alone, together) = (runs(&scenario, &["borg"], 1), runs(&scenario, &["borg", "utp"], 2));
    assert_eq!(alone[0].record, together[0].record);
    let changes = scenario.arrivals(scenario.seed).expect("a valid workload").workload.capacities.clone();
    let changed = |link: ResourceId| changes.iter().any(|change| change.resource == link);
    let fabric = &scenario.cluster.fabric;
    let links = (6..8).filter_map(|rack| fabric.out_of_domain(DomainId(rack))).filter(|link| !changed(*link));
    let mut count = 0;
    for link in links {
        let loads: Vec<f64> =
            alone[0].record.links.iter().filter(|row| row.resource == link).map(|row| row.load).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        assert!((mean / 2e9 - 1.0).abs() < 0.15, "{mean} bit/s");
        assert!(loads.iter().all(|load| (0.0..=4e9 + 10.0).contains(load)));
        assert!(loads.iter().any(|load| (load / mean - 1.0).abs() > 0.2));
        count += 1;
    }
    assert!(count > 0, "a rack has all its uplinks");
}
