//! Memory of the service over an hour: agents of 10,000 hosts in 500 racks report links, queues and disks, and blocks
//! are placed. The bench drives the clock, so an hour takes only as long as the service needs to read its reports.
//! Reports cover ten racks each, and come from one thread per core. The sender does not affect the service's memory.
//!
//! The service runs in this process. The bench first prints the process's initial memory. The bench fails if the peak
//! memory exceeds its limit.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_store::{Durability, Sqlite};
use serde_json::json;
use support::{Server, service_on};

const RACKS: u64 = 500;
const HOSTS_PER_RACK: u64 = 20;
/// Seconds between two reports of a host, and the number of reports.
const INTERVAL_S: u64 = 10;
const REPORTS: u64 = 360;
/// Blocks placed between two reports.
const BLOCKS: u64 = 30;

/// Racks per report, and sending threads.
const AT_ONCE: u64 = 10;
const THREADS: u64 = 2;
/// Limit on the process's memory, in megabytes.
const MEMORY_LIMIT: u64 = 300;

/// A memory value in MB, by the kernel's name for it.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is available on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let kib = line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().expect("a number");
    (kib << 10).div_ceil(1_000_000)
}

/// Report of the hosts and switches of some racks at the end of a window.
fn report(clock: &Clock, racks: std::ops::Range<u64>, step: u64, until: Nanos) -> String {
    let load = |number: u64, most: u64| (number * 7_919 + step * 104_729) % most;
    let (mut links, mut devices) = (Vec::new(), Vec::new());
    for rack in racks {
        for way in ["uplink", "downlink"] {
            links.push(format!(r#"{{"link":"r{rack}:{way}","load_bps":{}}}"#, load(rack, 2_000_000_000)));
        }
        for host in 0..HOSTS_PER_RACK {
            let (name, number) = (format!("r{rack}h{host}"), rack * HOSTS_PER_RACK + host);
            let speed = r#""speed_bps":1000000000"#;
            let (sent, queue) = (load(number, 1_000_000_000), load(number, 100_000));
            links.push(format!(
                r#"{{"link":"{name}:egress","load_bps":{sent},{speed},"queue_bytes":{queue}}}"#
            ));
            let received = load(number, 900_000_000);
            links.push(format!(r#"{{"link":"{name}:ingress","load_bps":{received},{speed}}}"#));
            let busy = load(number, 1_000);
            devices.push(format!(
                r#"{{"device":"{name}:disk0","busy":0.{busy:03},"read_bps":100000000,"write_bps":50000000,"queue":1.5,"in_flight":2}}"#
            ));
        }
    }
    let (from, until) = (clock.text(until.since(Nanos(INTERVAL_S * Nanos::SECOND.0))), clock.text(until));
    let (links, devices) = (links.join(","), devices.join(","));
    format!(r#"{{"from":"{from}","until":"{until}","links":[{links}],"devices":[{devices}]}}"#)
}

/// Reports one share of the racks, waits for the other threads, and places one share of the blocks. Returns the number
/// of placed blocks.
fn send(server: &Server, clock: &Clock, all: &Barrier, share: u64, step: u64, until: Nanos) -> u64 {
    for racks in (share * AT_ONCE..RACKS).step_by((THREADS * AT_ONCE) as usize) {
        let report = report(clock, racks..racks + AT_ONCE, step, until);
        let (status, _, summary) = server.post_text("/v1/reports", "application/json", &report);
        assert_eq!(status, 200, "{summary}");
    }
    all.wait();
    let place = |block: &u64| {
        let writer = format!("r{}h{}", (step * BLOCKS + block) % RACKS, block % HOSTS_PER_RACK);
        server.post("/v1/place/replicas", &json!({ "size": "256MiB", "writer": writer })).0 == 201
    };
    (share..BLOCKS).step_by(THREADS as usize).filter(place).count() as u64
}

fn main() -> ExitCode {
    let began = Instant::now();
    let now = Arc::new(AtomicU64::new(INTERVAL_S * Nanos::SECOND.0));
    let clock = {
        let now = now.clone();
        let begins = "2026-01-31T12:00:00Z".parse().expect("a time");
        Clock::new(begins, move || Nanos(now.load(Ordering::SeqCst)))
    };
    println!(
        "a service for {} hosts in {RACKS} racks, with an hour of reports every {INTERVAL_S} s",
        RACKS * HOSTS_PER_RACK
    );
    println!("before it starts: {} MB", memory("VmRSS:"));
    let cluster = format!(
        "racks: {RACKS}\nhosts_per_rack: {HOSTS_PER_RACK}\nnic: 1Gbps\noversubscription: 10\n\
         devices: [{{read: 50MB/s, write: 50MB/s}}]\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let store =
        Sqlite::open(&folder.path().join("store.db"), Durability::Process, 1_000_000).expect("a store");
    let server = Server::start(service_on(&cluster, "", clock.clone(), Box::new(store)));
    let (mut placed, all) = (0, Barrier::new(THREADS as usize));
    for step in 1..=REPORTS {
        let until = Nanos((step + 1) * INTERVAL_S * Nanos::SECOND.0);
        now.store(until.0, Ordering::SeqCst);
        placed += std::thread::scope(|scope| {
            let (server, clock, all) = (&server, &clock, &all);
            let threads: Vec<_> = (0..THREADS)
                .map(|share| scope.spawn(move || send(server, clock, all, share, step, until)))
                .collect();
            threads.into_iter().map(|one| one.join().expect("the thread does not panic")).sum::<u64>()
        });
        // A read publishes the snapshot that the history includes.
        assert_eq!(server.get("/v1/racks?limit=1").0, 200);
        if [1, 6, 60, 180, REPORTS].contains(&step) {
            println!(
                "after {:>4} s: {} MB, {} at most; {placed} blocks placed; it took {:.0} s",
                step * INTERVAL_S,
                memory("VmRSS:"),
                memory("VmHWM:"),
                began.elapsed().as_secs_f64()
            );
        }
    }
    let (_, _, past) = server.get("/v1/hosts/r499h19/history?step_s=10");
    let steps = past["devices"][0]["busy"].as_array().map_or(0, Vec::len);
    println!("the history has {steps} steps of every link and device");
    assert!(steps as u64 + 1 >= REPORTS, "the history has an hour of steps, except the current one");
    server.end().expect("the service stops without an error");
    let most = memory("VmHWM:");
    leeward_testing::bench::record("service, an hour of 10,000 hosts", "MB", most as f64);
    let verdict = if most <= MEMORY_LIMIT { "met" } else { "EXCEEDED" };
    println!(
        "{} hosts, an hour: {most} MB of memory at most; limit of {MEMORY_LIMIT} MB: {verdict}",
        RACKS * HOSTS_PER_RACK
    );
    ExitCode::from(u8::from(most > MEMORY_LIMIT))
}
