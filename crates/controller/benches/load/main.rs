//! Capacity of the service on a cluster of 10,000 hosts in 500 racks. 10,000 agents report once per second over 1,000
//! persistent connections, beside 1,000 placements per second. The load runs on one core and `leewardd` on another.
//! Arrivals are random and do not wait for responses (an open loop). A latency starts at the request's due time, so it
//! includes stalls of the service.
//!
//! There are two baselines. A service that only parses JSON and answers with the same number of bytes gives the cost of
//! HTTP. The rate of synced disk writes gives the cost of durability across power loss. `--seconds N` sets the length
//! of each run.
//!
//! `--variants` compares two further loads with the plain one. In the first, each agent has a token. The token is bound
//! to the agent's host if the agent reports only on that host. In the second, a quarter of the placements are single
//! tasks, which expire on their own.
//!
//! `--readers` compares the plain load with the same load beside four readers of snapshots.
//!
//! `--curve` raises the rates of both kinds of requests together, up to the limit of the core.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod curve;
mod generator;
mod process;
mod readers;
mod requests;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use generator::{Outcome, Results, Schedule};
use process::Process;
use readers::{Kind, Readers};
use requests::Tokens;

/// Number of agents. Each reports the links and the disk of its host once per second on average.
const AGENTS: u64 = 10_000;
const RACKS: u64 = 500;
/// Placements per second.
const PLACEMENTS: u64 = 1_000;
/// Percentage of tasks among the placements in the mixed run.
const TASKS: u64 = 25;
/// Connections for reports and for placements.
const CONNECTIONS: (usize, usize) = (1_000, 64);
/// Readers of snapshots.
const READERS: usize = 4;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value_of = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    if arguments.iter().any(|one| one == "--echo") {
        return process::echo();
    }
    let seconds =
        value_of("--seconds").map_or(10, |text| text.parse().expect("--seconds takes a whole number"));
    process::pin(std::process::id(), 0);
    println!(
        "{AGENTS} reports/s over {} connections, {PLACEMENTS} placements/s over {}, {seconds} s each; {AGENTS} hosts in \
         {RACKS} racks",
        CONNECTIONS.0, CONNECTIONS.1
    );
    if arguments.iter().any(|one| one == "--curve") {
        return curve::measure(&schedule(seconds));
    }
    println!(
        "{:<34} {:>10} {:>11} {:>9} {:>9} {:>9} {:>9}",
        "", "requests/s", "responses/s", "p50", "p99", "p99.9", "most"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let echo = Process::echo();
    let plain = schedule(seconds);
    let mut outcome = generator::run(echo.address, &plain, echo.id());
    print("JSON echo of equal size", &mut outcome, &echo, seconds);
    drop(echo);
    if arguments.iter().any(|one| one == "--variants") {
        let (tokens, file) = Tokens::make(AGENTS, RACKS);
        let guarded = Schedule { tokens: Some(&tokens), ..schedule(seconds) };
        let mixed = Schedule { tasks: TASKS, ..schedule(seconds) };
        measure(folder.path(), "leewardd", "process", &plain, "");
        measure(folder.path(), "leewardd, with tokens", "process", &guarded, &file);
        measure(folder.path(), "leewardd, with tasks", "process", &mixed, "");
        return;
    }
    if arguments.iter().any(|one| one == "--readers") {
        measure(folder.path(), "leewardd", "process", &plain, "");
        for (name, kind) in [("whole snapshots", Kind::Whole), ("differences", Kind::Differences)] {
            let service = Process::leewardd(folder.path(), name, "process", None);
            let readers = Readers::start(service.address, kind, READERS);
            let mut outcome = generator::run(service.address, &plain, service.id());
            let (responses, bytes) = readers.end();
            print(&format!("{READERS} readers of {name}"), &mut outcome, &service, seconds);
            println!("{:<34} {responses} responses, {} bytes each", "", bytes / responses.max(1));
            check(&outcome, &service);
        }
        return;
    }
    for durability in ["process", "power"] {
        measure(folder.path(), &format!("leewardd, {durability} durability"), durability, &plain, "");
    }
    disk(folder.path());
}

fn schedule(seconds: u64) -> Schedule<'static> {
    Schedule {
        agents: AGENTS,
        racks: RACKS,
        reports: AGENTS,
        placements: PLACEMENTS,
        tasks: 0,
        tokens: None,
        connections: CONNECTIONS,
        length: Duration::from_secs(seconds),
    }
}

/// Starts a service, with its token file if given, and measures it under a load.
fn measure(folder: &Path, name: &str, durability: &str, schedule: &Schedule<'_>, file: &str) {
    let tokens = schedule.tokens.map(|tokens| (tokens, file));
    let service = Process::leewardd(folder, name, durability, tokens);
    let mut outcome = generator::run(service.address, schedule, service.id());
    print(name, &mut outcome, &service, schedule.length.as_secs());
    check(&outcome, &service);
}

fn print(name: &str, outcome: &mut Outcome, process: &Process, seconds: u64) {
    let Outcome { reports, placements, tasks, .. } = outcome;
    for (what, results) in [("reports", reports), ("placements", placements), ("tasks", tasks)] {
        if results.sent == 0 {
            continue;
        }
        results.waits.sort_unstable();
        let quantile = |share: f64| format!("{:.2} ms", results.quantile_us(share) / 1e3);
        for (share, percentile) in [(0.5, "p50"), (0.99, "p99")] {
            let wait = results.quantile_us(share);
            leeward_testing::bench::record(&format!("load, {name}: {what}, {percentile}"), "us", wait);
        }
        println!(
            "{:<34} {:>10} {:>11} {:>9} {:>9} {:>9} {:>9}",
            format!("{name}: {what}"),
            (results.sent - results.filled) / seconds,
            results.waits.len() as u64 / seconds,
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0)
        );
    }
    let Outcome { reports, placements, tasks, .. } = outcome;
    let answered: usize = [reports, placements, tasks].map(|results| results.waits.len()).iter().sum();
    println!(
        "{:<34} {:.0} us of its core per request, {} MiB of memory; the load generator took {:.0} % of the other core",
        "",
        outcome.service_cpu.as_secs_f64() * 1e6 / answered as f64,
        process.memory() >> 20,
        outcome.generator_cpu.as_secs_f64() / seconds as f64 * 100.0
    );
}

/// Asserts that every request was answered, and that the service's own metrics agree.
fn check(outcome: &Outcome, service: &Process) {
    let Outcome { reports, placements, tasks, .. } = outcome;
    for Results { sent, waits, filled, .. } in [reports, placements, tasks] {
        assert_eq!(waits.len() as u64 + filled, *sent, "every request got a response");
    }
    assert_eq!(
        reports.accepted + reports.skipped,
        reports.parts,
        "every link and device was accepted, or counted as skipped"
    );
    assert_eq!(reports.rejected, 0, "no report was rejected");
    // Metrics are as old as the last network snapshot; this request publishes one.
    service.get("/v1/status");
    let metrics = service.get("/metrics");
    let metric = |name: &str| -> u64 {
        let lines = metrics.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        lines.map(|(_, value)| value.parse::<f64>().expect("a number") as u64).sum()
    };
    assert_eq!(metric("leeward_reports_total"), reports.sent);
    assert_eq!(metric("leeward_samples_total"), reports.accepted);
    assert_eq!(metric("leeward_placements_total"), placements.sent + tasks.sent);
    for (kind, results) in [("replicas", placements), ("tasks", tasks)] {
        let placed = format!("leeward_placements_total{{kind=\"{kind}\",outcome=\"placed\"}}");
        assert_eq!(metric(&placed), results.accepted);
    }
    println!(
        "{:<34} {} links and disks in {} reports: {} accepted, {} stale; {} placed, {} rejected; /metrics agrees",
        "",
        reports.parts,
        reports.sent,
        reports.accepted,
        reports.skipped,
        placements.accepted + tasks.accepted,
        placements.rejected + tasks.rejected
    );
}

/// Prints the rate of synced 4 KiB writes to the disk.
fn disk(folder: &Path) {
    let mut file = File::create(folder.join("synced")).expect("a file");
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_secs(1) {
        let start = Instant::now();
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk has space");
        times.push(start.elapsed().as_micros());
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100] as f64 / 1e3;
    println!(
        "the disk: {} synced writes of 4 KiB/s, p50 {:.2} ms, p99 {:.2} ms",
        times.len(),
        at(50),
        at(99)
    );
}
