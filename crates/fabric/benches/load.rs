//! Time and memory to load a cluster of 100,000 hosts, from a file of four lines and from files that list each host.
//! Each case runs in a process of its own, so that memory peaks do not mix.

use std::fmt::Write;
use std::process::Command;
use std::time::Instant;

use leeward_fabric::Cluster;

const RACKS: usize = 5_000;
const HOSTS_PER_RACK: usize = 20;

/// Name of a case, and the function that writes its file.
type Case = (&'static str, fn() -> String);

const CASES: [Case; 4] = [
    ("four lines", four_lines),
    ("line per host", lines),
    ("every field", every_field),
    ("aliases", aliases),
];

fn main() {
    match std::env::args().nth(1).and_then(|name| CASES.iter().find(|case| case.0 == name)) {
        Some((name, text)) => load(name, &text()),
        None => {
            let program = std::env::current_exe().expect("a running program has a path");
            for (name, _) in CASES {
                let status = Command::new(&program).arg(name).status();
                assert!(status.is_ok_and(|status| status.success()), "{name} failed");
            }
        }
    }
}

#[allow(clippy::disallowed_methods)] // A benchmark may read a clock.
fn load(name: &str, text: &str) {
    let started = Instant::now();
    let cluster = Cluster::from_text(name, text).unwrap_or_else(|error| panic!("{error}"));
    let seconds = started.elapsed().as_secs_f64();
    let hosts = cluster.fabric.host_count();
    println!(
        "{name:>14}: {:5.1} MB of text, {hosts} hosts, {} resources in {seconds:.3} s ({:.2} M hosts/s), peak {}",
        text.len() as f64 / 1e6,
        cluster.fabric.resource_count(),
        hosts as f64 / seconds / 1e6,
        peak_memory(),
    );
}

/// Peak memory of this process, as Linux reports it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.map_or("unknown".into(), |kb| format!("{:.0} MB", kb * 1024.0 / 1e6))
}

fn four_lines() -> String {
    format!("racks: {RACKS}\nhosts_per_rack: {HOSTS_PER_RACK}\nnic: 10Gbps\noversubscription: 10\n")
}

fn each_host(header: &str, rack: &str, host: &str) -> String {
    let mut text = format!("{header}racks:\n");
    for r in 0..RACKS {
        let _ = writeln!(text, "  - name: rack{r:04}\n{rack}    hosts:");
        for h in 0..HOSTS_PER_RACK {
            let _ = writeln!(text, "      - {{name: rack{r:04}-host{h:02}{host}}}");
        }
    }
    text
}

fn lines() -> String {
    each_host("nic: 10Gbps\noversubscription: 10\n", "", "")
}

fn every_field() -> String {
    each_host(
        "",
        "    oversubscription: 4\n    tags: [hot]\n",
        ", nic: {up: 10Gbps, down: 25Gbps}, tags: [ssd, batch], devices: [{read: 50MB/s, write: 40MB/s, capacity: 4TB}]",
    )
}

fn aliases() -> String {
    let header = "nic: 10Gbps\noversubscription: 10\ndevices: &disks\n  - {read: 50MB/s, write: 50MB/s}\n";
    each_host(header, "", ", devices: *disks")
}
