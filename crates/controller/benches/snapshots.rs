//! Size of snapshots, and the time of their encoding, on a cluster of 10,000 hosts (`--large`: 100,000). Each second
//! every host reports, and a reader gets the difference from its last snapshot.
//!
//! A host sends and receives the traffic of twenty sources, each of which is on or off for times of a Pareto
//! distribution with shape 1.5. Many such sources make self-similar traffic, as measured in local networks (Willinger
//! et al. 1997). The load of a rack's link is a quarter of its hosts' load, which its oversubscription fits.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use leeward_engine::Engine;
use leeward_fabric::{Load, Nanos, ResourceKind};
use leeward_placement::{Explain, replicas};
use leeward_records::Clock;
use leeward_service::{Channels, Coordinator, Limits, Report};
use leeward_testing::bench;
use leeward_testing::clusters::{cluster, ledger};
use leeward_testing::numbers::Numbers;
use serde_json::{Value, json};
use support::{Server, agent, labels, samples, service};

const HOSTS_PER_RACK: usize = 20;
const NIC_BPS: f64 = 10e9;
/// Sources of traffic of each link of a host, the share of its capacity that each takes, and the means of the times in
/// which a source is on and off, in seconds.
const SOURCES: usize = 20;
const SHARE: f64 = 0.05;
const ON_S: f64 = 2.0;
const OFF_S: f64 = 6.0;
/// Shape of the Pareto distribution of these times.
const SHAPE: f64 = 1.5;
/// Seconds before the measurement, in which averages become steady, and measured seconds.
const WARM_UP: usize = 30;
const SECONDS: usize = 20;
/// Copies of the loads by the coordinator.
const COPIES: usize = 201;

/// Columns and resolution of a reader.
const READERS: [(&str, &str); 5] = [
    ("loads of links, steps of 1 %", "links=measured_steps,pending_steps"),
    ("loads of links, steps of 5 %", "links=measured_steps,pending_steps&resolution=0.05"),
    ("loads of links with names, steps of 1 %", "links=link,measured_steps,pending_steps"),
    ("loads of racks, steps of 1 %", "racks=rack,up_steps,down_steps"),
    ("the default columns, bit/s", ""),
];

/// A source: true while it is on, and the time of its next change, in seconds.
struct Source(bool, f64);

/// Traffic of one link of a host.
struct Traffic(Vec<Source>);

fn pareto(numbers: &mut Numbers, mean: f64) -> f64 {
    let share = ((numbers.draw() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    mean * (SHAPE - 1.0) / SHAPE * share.powf(-1.0 / SHAPE)
}

impl Traffic {
    fn new(numbers: &mut Numbers) -> Traffic {
        let source = |numbers: &mut Numbers| {
            Source(
                numbers.draw().is_multiple_of(4),
                pareto(numbers, ON_S) * (numbers.draw() % 1_000) as f64 / 1e3,
            )
        };
        Traffic((0..SOURCES).map(|_| source(numbers)).collect())
    }

    /// Load in the second from `from` on, in bit/s.
    fn second(&mut self, numbers: &mut Numbers, from: f64) -> f64 {
        let mut on = 0.0;
        for Source(is_on, until) in &mut self.0 {
            let mut at = from;
            while *until < from + 1.0 {
                on += if *is_on { (*until - at).max(0.0) } else { 0.0 };
                at = until.max(at);
                *is_on = !*is_on;
                *until += pareto(numbers, if *is_on { ON_S } else { OFF_S });
            }
            on += if *is_on { from + 1.0 - at } else { 0.0 };
        }
        on * SHARE * NIC_BPS
    }
}

fn main() {
    let hosts = if std::env::args().any(|one| one == "--large") { 100_000 } else { 10_000 };
    let racks = hosts / HOSTS_PER_RACK;
    let cluster =
        format!("racks: {racks}\nhosts_per_rack: {HOSTS_PER_RACK}\nnic: 10Gbps\noversubscription: 4\n");
    let time = Arc::new(AtomicU64::new(Nanos::SECOND.0));
    let clock = {
        let time = time.clone();
        Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), move || {
            Nanos(time.load(Ordering::Relaxed))
        })
    };
    let server = Server::start(service(&cluster, "", clock.clone()));
    let mut numbers = Numbers::new(1);
    let mut traffic: Vec<Traffic> = (0..2 * hosts).map(|_| Traffic::new(&mut numbers)).collect();
    let mut readers: Vec<Reader> =
        READERS.into_iter().map(|(name, query)| Reader::new(name, query)).collect();
    for second in 0..WARM_UP + SECONDS {
        let from = clock.text(clock.now());
        time.fetch_add(Nanos::SECOND.0, Ordering::Relaxed);
        let until = clock.text(clock.now());
        let loads: Vec<f64> =
            traffic.iter_mut().map(|link| link.second(&mut numbers, second as f64)).collect();
        for first in (0..racks).step_by(1_000) {
            let racks = first..(first + 1_000).min(racks);
            let links: Vec<Value> = racks.flat_map(|rack| links_of(rack, &loads)).collect();
            let body = json!({ "from": from, "until": until, "links": links });
            assert_eq!(server.post("/v1/reports", &body).0, 200);
        }
        if second >= WARM_UP {
            // The next reads are of this second.
            server.get("/v1/status");
            readers.iter_mut().for_each(|reader| reader.read(&server));
        }
    }
    println!(
        "{:<42} {:>10} {:>10} {:>10} {:>10} {:>10}",
        format!("{hosts} hosts"),
        "plain",
        "gzip",
        "zstd",
        "time",
        "rows"
    );
    readers.iter().for_each(Reader::print);
    let micros = core_time(&cluster) * 1e6;
    bench::record("snapshot, copy by the core", "us", micros);
    println!(
        "the core's thread takes {micros:.0} us for a snapshot; other threads compute differences and encode"
    );
}

/// Median time of a copy of all loads by the coordinator, into the memory of an earlier snapshot, in seconds. Its thread
/// also adds the loads to the sums of the history, which this time does not include.
fn core_time(text: &str) -> f64 {
    let cluster = cluster(text);
    let fabric = &cluster.fabric;
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let engine = Engine::new(ledger(&cluster), policy, 1, Explain::Off);
    let mut coordinator = Coordinator::<Channels>::new(engine, labels(), Limits::default());
    let window = (Nanos(9 * Nanos::SECOND.0), Nanos(10 * Nanos::SECOND.0));
    let load = |link| (link, Load(cluster.capacities.get(link).0 / 2));
    let links = fabric.all_resources().filter(|&link| fabric.kind(link) != ResourceKind::Device);
    let loads = samples(window, links.map(load));
    coordinator.report(window.1, Report { window, loads, ..Report::default() }).expect("a valid report");
    let mut snapshot = Some(coordinator.snapshot());
    let mut times: Vec<f64> = (0..COPIES)
        .map(|_| {
            let began = Instant::now();
            snapshot = Some(coordinator.snapshot_in(snapshot.take()));
            began.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[COPIES / 2]
}

/// Loads of the links of a rack and of its hosts.
fn links_of(rack: usize, loads: &[f64]) -> Vec<Value> {
    let hosts = rack * HOSTS_PER_RACK..(rack + 1) * HOSTS_PER_RACK;
    let load = |name: String, load_bps: f64| json!({ "link": name, "load_bps": load_bps.round() });
    let total = |way: usize| hosts.clone().map(|host| loads[2 * host + way]).sum::<f64>() / 4.0;
    let mut links =
        vec![load(format!("r{rack}:uplink"), total(0)), load(format!("r{rack}:downlink"), total(1))];
    for host in hosts.clone() {
        let name = format!("r{rack}h{}", host % HOSTS_PER_RACK);
        links.push(load(format!("{name}:egress"), loads[2 * host]));
        links.push(load(format!("{name}:ingress"), loads[2 * host + 1]));
    }
    links
}

/// A reader, with the sizes of its responses in bytes: plain, by gzip and by zstd.
struct Reader {
    name: &'static str,
    query: &'static str,
    id: Option<String>,
    whole: [usize; 3],
    differences: Vec<[usize; 3]>,
    /// Seconds until the first response of each difference.
    times: Vec<f64>,
    whole_s: f64,
    rows: Vec<usize>,
}

impl Reader {
    fn new(name: &'static str, query: &'static str) -> Reader {
        let (id, whole, differences, times, rows) = (None, [0; 3], Vec::new(), Vec::new(), Vec::new());
        Reader { name, query, id, whole, differences, times, whole_s: 0.0, rows }
    }

    fn read(&mut self, server: &Server) {
        let since = self.id.iter().map(|id| format!("&since={id}")).collect::<String>();
        let path = format!("/v1/snapshot?{}{since}", self.query);
        let (mut sizes, began) = ([0; 3], Instant::now());
        let mut took = 0.0;
        // The compressed one is first: its time includes everything.
        for (at, encoding) in [(2, "zstd"), (1, "gzip"), (0, "identity")] {
            let request = agent().get(server.url(&path)).header("accept-encoding", encoding);
            let mut response = request.call().expect("the service answers");
            let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().expect("a body");
            sizes[at] = body.len();
            if at == 2 {
                took = began.elapsed().as_secs_f64();
            }
            if at == 0 {
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                let changed = body["links"]["rows"].as_array().or(body["racks"]["rows"].as_array());
                self.rows.extend(changed.map(Vec::len));
                assert_eq!(body["since"].is_null(), self.id.is_none(), "{path}: the base is stored");
                self.id = body["id"].as_str().map(str::to_owned);
            }
        }
        if since.is_empty() {
            (self.whole, self.whole_s) = (sizes, took);
        } else {
            self.differences.push(sizes);
            self.times.push(took);
        }
    }

    fn print(&self) {
        let mean = |at: usize| {
            self.differences.iter().map(|sizes| sizes[at]).sum::<usize>() / self.differences.len()
        };
        let mut times = self.times.clone();
        times.sort_unstable_by(f64::total_cmp);
        let rows = self.rows.iter().sum::<usize>() / self.rows.len();
        let differences = [mean(0), mean(1), mean(2)];
        for (what, [plain, gzip, zstd], seconds, rows) in [
            ("whole", self.whole, self.whole_s, String::new()),
            ("difference", differences, times[times.len() / 2], rows.to_string()),
        ] {
            bench::record(&format!("snapshot, {}: {what}, zstd", self.name), "bytes", zstd as f64);
            println!(
                "{:<42} {plain:>10} {gzip:>10} {zstd:>10} {:>7.2} ms {rows:>10}",
                format!("{}: {what}", self.name),
                seconds * 1e3,
            );
        }
    }
}
