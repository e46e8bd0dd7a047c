//! Speed of a cell: one decision, a stream of placements, and a simulated week, on one core.
//!
//! Run by `cargo bench -p leeward-scenarios --bench cell`. Arguments select a part by name: `-- score`, `-- stream`,
//! `-- week`. A second argument selects the policy of the week: `-- week utp`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use leeward_engine::{Engine, Policies, Ruling};
use leeward_fabric::{Bytes, Cpus, DomainId, Load, Nanos, ResourceId};
use leeward_ledger::{LedgerSettings, Sample};
use leeward_placement::tasks::{self, AppRequest, Task, TaskPolicy, Traffic};
use leeward_placement::{Explain, JobId};
use leeward_registry::Registration;
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_scenarios::summary::Summary;
use leeward_scenarios::{Task as RunTask, run_all};
use leeward_testing::clusters::{cluster, ledger_with};

/// The same allocator as in the extension for Python.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let selected = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    if selected("score") {
        score();
    }
    if selected("stream") {
        stream();
    }
    if selected("week") {
        week();
    }
}

/// Returns the policies with the setting `sample`, which have a number of candidates. `utp-reactive` and
/// `utp-proactive` are left out: they place as `borg` and as `utp`.
fn sampling_policies() -> impl Iterator<Item = &'static str> {
    let same = ["utp-reactive", "utp-proactive"];
    let has_sample =
        |one: &&Registration<dyn TaskPolicy>| (one.schema)()["properties"].get("sample").is_some();
    tasks::REGISTRY.iter().filter(has_sample).map(|one| one.name).filter(move |name| !same.contains(name))
}

/// Policies that the week leaves out. The first three ignore the network. `choreo` and `choreo-exact` read transfers,
/// and the tasks of a cell have none. `leeward` places single tasks as `utp`.
const NOT_IN_WEEK: [&str; 6] =
    ["random", "round-robin", "minimum-machines", "choreo", "choreo-exact", "leeward"];

/// Returns an engine for `racks` racks of 20 hosts, with reported load on each link.
fn engine(racks: u32, policy: &str, settings: &str) -> Engine {
    let text = format!(
        "racks: {racks}\nhosts_per_rack: 20\nnic: 25Gbps\noversubscription: 5\ncpus: 64\nmemory: 256GiB\n"
    );
    let cluster = cluster(&text);
    let ledger_settings = LedgerSettings { interval: INTERVAL, ..LedgerSettings::default() };
    let ledger = ledger_with(&cluster, &ledger_settings);
    let policies = Policies {
        tasks: Some(tasks::REGISTRY.make(policy, settings).expect("a policy of the registry")),
        ..Policies::default()
    };
    let mut engine = Engine::new(ledger, policies, 7, Explain::Off);
    let load = |link: ResourceId| {
        let capacity = cluster.capacities.get(link).0;
        Load((i64::from(link.0.wrapping_mul(2_654_435_761) >> 8) * capacity) >> 24)
    };
    let links = (0..racks).map(DomainId).flat_map(|rack| {
        [cluster.fabric.out_of_domain(rack), cluster.fabric.into_domain(rack)].into_iter().flatten()
    });
    let window = (Nanos(0), INTERVAL);
    let sample = |resource| Sample { resource, window, load: load(resource), guaranteed: None };
    let samples: Vec<Sample> = links.map(sample).collect();
    engine.report(INTERVAL, &samples, &mut Vec::new());
    engine
}

/// Targets: microseconds per decision, tasks per second, seconds per week.
const SCORE_US: u32 = 50;
const STREAM: u32 = 5_000;
const WEEK_S: u32 = 120;

const INTERVAL: Nanos = Nanos(30 * Nanos::SECOND.0);

/// Returns the request of a task: one processor, in a job of 50 tasks.
fn request(id: u64) -> AppRequest {
    let mut task = Task { cpus: Cpus(1000), memory: Bytes(2 << 30), tolerant: true, ..Task::default() };
    let mbps = 1_000_000 * (1 + id % 97);
    task.egress[0] = Traffic { mean_bps: mbps, peak_bps: 2 * mbps };
    task.ingress[0] = Traffic { mean_bps: mbps, peak_bps: 3 * mbps };
    AppRequest { id, job: JobId(id / 50), tasks: vec![task], ..AppRequest::default() }
}

/// Places tasks, and returns the time of each placement in microseconds, sorted.
fn place(engine: &mut Engine, first: u64, count: u64) -> Vec<f64> {
    let mut outputs = Vec::new();
    let mut times: Vec<f64> = (first..first + count)
        .map(|id| {
            let request = request(id);
            let start = Instant::now();
            let placed = engine.place_app(INTERVAL, request, Ruling::default(), &mut outputs);
            let micros = start.elapsed().as_secs_f64() * 1e6;
            assert!(placed.is_ok(), "there is room for every task");
            outputs.clear();
            micros
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

/// One decision with 1,000 candidates, and its commit.
fn score() {
    println!("one task, 1,000 candidate hosts, decided and committed; target: p50 below {SCORE_US} us");
    println!("{:<14} {:>8} {:>10} {:>10} {:>10}", "policy", "hosts", "p50", "p99", "mean");
    for racks in [50, 5_000] {
        for policy in sampling_policies() {
            let mut engine = engine(racks, policy, "{sample: 1000}");
            place(&mut engine, 0, 500);
            let times = place(&mut engine, 500, 5_000);
            row(policy, racks * 20, &times);
        }
    }
    println!();
}

/// A stream of tasks onto 100,000 hosts, with a sample of 100.
fn stream() {
    println!(
        "a stream of tasks, 100 candidate hosts, decided and committed; target: at least {STREAM} tasks/s"
    );
    println!("{:<14} {:>8} {:>10} {:>10} {:>10} {:>12}", "policy", "hosts", "p50", "p99", "mean", "tasks/s");
    for policy in sampling_policies() {
        let mut engine = engine(5_000, policy, "{sample: 100}");
        let count = 1_000_000;
        let start = Instant::now();
        let times = place(&mut engine, 0, count);
        let rate = count as f64 / start.elapsed().as_secs_f64();
        print_row(policy, 100_000, &times);
        println!(" {rate:>12.0}");
    }
    println!();
}

fn row(policy: &str, hosts: u32, times: &[f64]) {
    print_row(policy, hosts, times);
    println!();
}

fn print_row(policy: &str, hosts: u32, times: &[f64]) {
    let quantile = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    print!("{policy:<14} {hosts:>8} {:>7.2} us {:>7.2} us {mean:>7.2} us", quantile(0.5), quantile(0.99));
}

/// A week of a cell of 5,000 hosts with telemetry every 30 s.
fn week() {
    let folder = std::env::temp_dir().join(format!("leeward-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
    let cluster =
        "racks: 250\nhosts_per_rack: 20\nnic: 25Gbps\noversubscription: 5\ncpus: 64\nmemory: 256GiB\n";
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("the folder was created above");
    let policies: Vec<&str> = tasks::REGISTRY.names().filter(|name| !NOT_IN_WEEK.contains(name)).collect();
    let text = format!(
        "cluster: cluster.yaml\nworkloads: [{{cell: {{network: 0.5, spread: 1.5, peak: 3}}}}]\n\
         policies: [{}]\ntelemetry: {{interval: 30s}}\nsample: 5min\nhorizon: 7d\nwarmup: 1d\n",
        policies.join(", ")
    );
    let scenario = Scenario::from_text("week.yaml", &text, &folder, None).expect("a valid scenario");
    std::fs::remove_dir_all(&folder).expect("the folder was created above");
    println!(
        "a week of 5,000 hosts in 250 racks, telemetry every 30 s; target: less than {WEEK_S} s per policy"
    );
    println!(
        "{:<14} {:>9} {:>9} {:>10} {:>8} {:>9} {:>9}",
        "policy", "tasks", "running", "processors", "moves", "hot ToRs", "seconds"
    );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let selects = scenario.policies.iter().any(|policy| arguments.contains(&policy.name));
    for policy in scenario.policies.iter().filter(|policy| !selects || arguments.contains(&policy.name)) {
        simulate(&scenario, policy);
    }
}

fn simulate(scenario: &Scenario, policy: &PolicySpec) {
    let start = Instant::now();
    let task = RunTask { policy: policy.clone(), seed: scenario.seed };
    let run = run_all(scenario, &[task], 1, &|_, _| true).expect("a valid scenario runs").remove(0);
    let seconds = start.elapsed().as_secs_f64();
    let (fabric, hot) = (&scenario.cluster.fabric, scenario.ledger.hot);
    let summary = Summary::of(&run.record, fabric, hot, scenario.warmup.as_secs_f64());
    let cell = summary.tasks.expect("a cell ran");
    println!(
        "{:<14} {:>9} {:>9} {:>9.1}% {:>8} {:>9} {seconds:>9.1}",
        policy.label,
        run.record.tasks.len(),
        run.record.cell.last().map_or(0, |interval| interval.tasks.running),
        cell.processors * 100.0,
        cell.moves,
        cell.hot_tor_intervals
    );
}
