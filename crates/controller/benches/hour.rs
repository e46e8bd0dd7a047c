//! What the service keeps in memory of an hour: 10,000 hosts in 500 racks tell of their links, what waits there and their
//! disks, and blocks are placed. The clock is the bench's own, so an hour takes as long as its reports take to be read.
//!
//! The service is a part of this process; what the process keeps otherwise is printed first.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use leeward_controller::{Clock, Durability, Sqlite};
use leeward_fabric::Nanos;
use serde_json::{Value, json};
use support::{Server, service_on};

const RACKS: u64 = 500;
const HOSTS_PER_RACK: u64 = 20;
/// Seconds between two reports of a host, and how many there are.
const EVERY: u64 = 10;
const REPORTS: u64 = 360;
/// Blocks that are placed between two reports.
const BLOCKS: u64 = 30;

/// Memory in MiB, by the name that the kernel has for it.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it runs on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().expect("a number") >> 10
}

/// What the hosts of a rack, and its switch, tell at the end of a window.
fn report(clock: &Clock, rack: u64, step: u64, until: Nanos) -> Value {
    let load = |of: u64, most: u64| (of * 7_919 + step * 104_729) % most;
    let (mut links, mut devices) = (Vec::new(), Vec::new());
    for way in ["uplink", "downlink"] {
        links.push(json!({ "link": format!("r{rack}:{way}"), "load_bps": load(rack, 2_000_000_000) }));
    }
    for host in 0..HOSTS_PER_RACK {
        let (name, number) = (format!("r{rack}h{host}"), rack * HOSTS_PER_RACK + host);
        links.push(json!({
            "link": format!("{name}:egress"), "load_bps": load(number, 1_000_000_000), "speed_bps": 1_000_000_000,
            "queue_bytes": load(number, 100_000),
        }));
        links.push(json!({
            "link": format!("{name}:ingress"), "load_bps": load(number, 900_000_000), "speed_bps": 1_000_000_000,
        }));
        devices.push(json!({
            "device": format!("{name}:disk0"), "busy": load(number, 1_000) as f64 / 1_000.0, "read_bps": 100_000_000,
            "write_bps": 50_000_000, "queue": 1.5, "in_flight": 2,
        }));
    }
    let from = until.since(Nanos(EVERY * Nanos::SECOND.0));
    json!({ "from": clock.text(from), "until": clock.text(until), "links": links, "devices": devices })
}

fn main() {
    let began = Instant::now();
    let now = Arc::new(AtomicU64::new(EVERY * Nanos::SECOND.0));
    let clock = {
        let now = now.clone();
        let begins = "2026-01-31T12:00:00Z".parse().expect("a time");
        Clock::new(begins, move || Nanos(now.load(Ordering::SeqCst)))
    };
    println!(
        "a service of {} hosts in {RACKS} racks, and an hour of reports each {EVERY} s",
        RACKS * HOSTS_PER_RACK
    );
    println!("before it starts: {} MiB", memory("VmRSS:"));
    let cluster = format!(
        "racks: {RACKS}\nhosts_per_rack: {HOSTS_PER_RACK}\nnic: 1Gbps\noversubscription: 10\n\
         devices: [{{read: 50MB/s, write: 50MB/s}}]\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let store =
        Sqlite::open(&folder.path().join("store.db"), Durability::Process, 1_000_000).expect("a store");
    let server = Server::start(service_on(&cluster, "", clock.clone(), Box::new(store)));
    let mut placed = 0;
    for step in 1..=REPORTS {
        let until = Nanos((step + 1) * EVERY * Nanos::SECOND.0);
        now.store(until.0, Ordering::SeqCst);
        for rack in 0..RACKS {
            let (status, _, told) = server.post("/v1/reports", &report(&clock, rack, step, until));
            assert_eq!(status, 200, "{told}");
        }
        // What is shown to whoever asks is what history takes in.
        assert_eq!(server.get("/v1/racks?limit=1").0, 200);
        for block in 0..BLOCKS {
            let writer = format!("r{}h{}", (step * BLOCKS + block) % RACKS, block % HOSTS_PER_RACK);
            let (status, _, _) =
                server.post("/v1/place/replicas", &json!({ "size": "256MiB", "writer": writer }));
            placed += u64::from(status == 201);
        }
        if [1, 6, 60, 180, REPORTS].contains(&step) {
            println!(
                "after {:>4} s: {} MiB, {} at most; {placed} blocks placed; it took {:.0} s",
                step * EVERY,
                memory("VmRSS:"),
                memory("VmHWM:"),
                began.elapsed().as_secs_f64()
            );
        }
    }
    let (_, _, past) = server.get("/v1/hosts/r499h19/history?step_s=10");
    let steps = past["devices"][0]["busy"].as_array().map_or(0, Vec::len);
    println!("of every link and device {steps} steps are kept");
    server.end().expect("it ends well");
}
