//! Helpers of the tests of cells.

use leeward_fabric::HostId;
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::TaskSummary;

use super::runs::folder;

/// The telemetry interval of these scenarios, in seconds.
pub const STEP: f64 = 30.0;

fn read(name: &str, cluster: &str, text: &str) -> Scenario {
    let folder = folder("cell", name);
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("the folder of the test can be written to");
    let text = format!("cluster: cluster.yaml\n{text}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

/// A scenario on ten racks of four hosts; the hosts of two racks have the tag `fast`.
pub fn scenario(name: &str, text: &str) -> Scenario {
    let cluster = "racks: [{count: 8}, {count: 2, tags: [fast]}]\nhosts_per_rack: 4\nnic: 10Gbps\n\
        oversubscription: 4\ncpus: 32\nmemory: 128GiB\n";
    read(name, cluster, text)
}

/// A scenario on sixteen racks of four hosts; every fourth rack has an uplink with a quarter of the others' capacity.
pub fn uneven(name: &str, text: &str) -> Scenario {
    let cluster = "racks: [{count: 12}, {count: 4, link: 2500Mbps}]\nhosts_per_rack: 4\nnic: 10Gbps\n\
        oversubscription: 4\ncpus: 32\nmemory: 128GiB\n";
    read(name, cluster, text)
}

/// A scenario on eight racks of four hosts with 10 Gb/s each way. Hosts of two racks have 10 TB of disks and no
/// processors, and hosts of two others have 5 TB.
pub fn with_disks(name: &str, text: &str) -> Scenario {
    let disks = |terabytes: u32| {
        format!(
            "{{count: 2, kind: disk, cpus: 0, devices: [{{read: 1GB/s, write: 1GB/s, capacity: {terabytes}TB}}]}}"
        )
    };
    let cluster = format!(
        "racks: [{{count: 4}}, {}, {}]\nhosts_per_rack: 4\nnic: 10Gbps\nrack_link: 10Gbps\ncpus: 32\n",
        disks(10),
        disks(5)
    );
    read(name, &cluster, text)
}

/// A line of a list of tasks.
#[derive(Clone, Debug)]
pub struct ListedTask {
    pub arrive: f64,
    pub duration: f64,
    pub cpus: u32,
    pub egress: f64,
    pub ingress: f64,
    pub peak: f64,
    pub tolerant: bool,
    pub job: String,
}

impl Default for ListedTask {
    fn default() -> Self {
        let job = String::new();
        let (arrive, duration, egress, ingress) = (0.0, 60.0, 0.0, 0.0);
        ListedTask { arrive, duration, cpus: 1, egress, ingress, peak: 1.0, tolerant: false, job }
    }
}

/// A scenario of these tasks on four racks of one host with 16 processors and a link of 1 Gb/s.
pub fn scenario_of_tasks(name: &str, rows: &[ListedTask], text: &str) -> Scenario {
    let mut csv = "arrive_s,duration_s,cpus,egress_bps,ingress_bps,peak_factor,tolerant,job\n".to_owned();
    for ListedTask { arrive, duration, cpus, egress, ingress, peak, tolerant, job } in rows {
        csv += &format!("{arrive},{duration},{cpus},{egress},{ingress},{peak},{tolerant},{job}\n");
    }
    std::fs::write(folder("cell", name).join("tasks.csv"), csv)
        .expect("the folder of the test can be written to");
    let cluster = "racks: 4\nhosts_per_rack: 1\nnic: 10Gbps\nrack_link: 1Gbps\ncpus: 16\n";
    let text = format!("workloads: [{{tasks: {{file: tasks.csv}}}}]\ntelemetry: {{interval: 30s}}\n{text}");
    read(name, cluster, &text)
}

/// Summarizes a run.
pub fn summary(record: &Record, warmup: f64) -> TaskSummary {
    TaskSummary::of(record, warmup).expect("a run of a cell")
}

/// A task that arrives at a host, leaves a host, or both.
pub struct Event {
    pub at: f64,
    pub task: u32,
    pub from: Option<HostId>,
    pub to: Option<HostId>,
}

/// Events of tasks in a run without failures, in the order of the driver's steps: ends, moves, placements.
pub fn events(record: &Record) -> Vec<Event> {
    let mut events: Vec<(u64, u8, Event)> = Vec::new();
    let order = |at: f64| at.to_bits();
    for (task, row) in (0..).zip(&record.tasks) {
        let (Some(placed), Some(last)) = (row.placed, row.host) else { continue };
        let first = record.moves.iter().find(|moved| moved.task == task).map_or(last, |moved| moved.from);
        events.push((order(placed), 2, Event { at: placed, task, from: None, to: Some(first) }));
        if let Some(at) = row.finished {
            events.push((order(at), 0, Event { at, task, from: Some(last), to: None }));
        }
    }
    for moved in &record.moves {
        let event = Event { at: moved.at, task: moved.task, from: Some(moved.from), to: Some(moved.to) };
        events.push((order(moved.at), 1, event));
    }
    events.sort_by_key(|(at, order, _)| (*at, *order));
    events.into_iter().map(|(.., event)| event).collect()
}
