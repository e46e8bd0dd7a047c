//! `utp` with the balance of hosts beside that of links, on a cell: hosts are fuller by less than their neighbors, and
//! racks' links are about as loaded as without it.

use leeward_fabric::HostId;
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;

use crate::support::cell::{events, summary, uneven};
use crate::support::runs::runs;

const POLICIES: [&str; 3] = ["borg", "utp", "utp:host_balance=true"];
const HOUR: f64 = 3600.0;
const HORIZON: f64 = 12.0 * HOUR;

/// Mean over the hours and racks of the difference between the fullest and the emptiest host of a rack, by processors.
fn spread_in_racks(scenario: &Scenario, record: &Record) -> f64 {
    let arrivals = scenario.arrivals(scenario.seed).expect("the run generated them too");
    let (workload, fabric) = (&arrivals.workload, &scenario.cluster.fabric);
    let mut used = vec![0_i64; fabric.host_count()];
    let (mut next, mut spreads) = (HOUR, Vec::new());
    for event in events(record) {
        while event.at > next {
            for rack in fabric.all_racks() {
                let fill = |host: u32| {
                    let all = fabric.cpus(HostId(host)).expect("hosts have processors").0;
                    used[host as usize] as f64 / all as f64
                };
                let most = fabric.hosts(rack).map(fill).fold(0.0, f64::max);
                spreads.push(most - fabric.hosts(rack).map(fill).fold(1.0, f64::min));
            }
            next += HOUR;
        }
        let cpus =
            workload.cell_kinds[workload.tasks[event.task as usize].kind as usize].demand.cpus.0 as i64;
        event.from.into_iter().for_each(|host| used[host.index()] -= cpus);
        event.to.into_iter().for_each(|host| used[host.index()] += cpus);
    }
    spreads.iter().sum::<f64>() / spreads.len() as f64
}

#[test]
fn hosts_of_a_rack_are_evener_and_links_are_not_hotter() {
    let (mut spread, mut hot, mut p98, mut refused) = ([0.0; 3], [0; 3], [0.0; 3], [0; 3]);
    let seeds = 1..=6_u64;
    for seed in seeds.clone() {
        let text = format!(
            "workloads: [{{cell: {{network: 0.5, spread: 1.5, peak: 3, batch: 1h}}}}]\ntelemetry: {{interval: 30s}}\n\
             horizon: {HORIZON}s\nwarmup: 1h\nsample: 5min\nseed: {seed}\n"
        );
        let scenario = uneven("balance", &text);
        for (at, run) in runs(&scenario, &POLICIES, 2).iter().enumerate() {
            let tasks = summary(&run.record, HOUR);
            spread[at] += spread_in_racks(&scenario, &run.record) / *seeds.end() as f64;
            p98[at] += tasks.tor_p98 / *seeds.end() as f64;
            hot[at] += tasks.hot_tor_intervals;
            refused[at] += run.record.tasks.iter().map(|task| u64::from(task.refused)).sum::<u64>();
        }
    }
    let table = format!("{POLICIES:?}: spread {spread:.3?}, hot {hot:?}, p98 {p98:.3?}, refused {refused:?}");
    println!("{table}");
    assert!(spread[2] < spread[1], "{table}");
    assert!(hot[2] < hot[0], "{table}");
}
