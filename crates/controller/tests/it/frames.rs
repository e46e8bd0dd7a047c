//! Snapshots in columns: choice of columns, differences, compression, and readers that wait.

#![allow(clippy::disallowed_methods, reason = "a test measures time")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Server, agent, frozen_clock, service};
use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_3X2;
use leeward_testing::numbers::Numbers;
use serde_json::{Map, Value, json};

/// Every column of every table, at a resolution of half a per cent.
const EVERYTHING: &str = "links=link,capacity_bps,measured_bps,until,from,latest_bps,derived,pending_bps,reserved_bps,\
    residual_bps,expected_capacity_bps,hot_since,full_bps,speed_bps,queue_bytes,measured_steps,pending_steps,reserved_steps,\
    residual_steps,expected_capacity_steps&racks=rack,pod,uplink,downlink,hosts,tasks,replicas,\
    up_steps,down_steps,up_hot_since,down_hot_since&hosts=host,rack,up,\
    draining,stored_bytes,tasks,replicas,egress_steps,ingress_steps&devices=device,until,hot_since,busy_steps,\
    reserved_steps,residual_steps,read_bps,write_bps,in_flight&resolution=0.005";

/// A response with an accepted encoding: the encoding, the bytes that came, and the decoded body.
fn get(server: &Server, path: &str, accept: &str) -> (String, usize, Vec<u8>) {
    let request = agent().get(server.url(path)).header("accept-encoding", accept);
    let mut response = request.call().expect("the service answers");
    assert_eq!(response.status().as_u16(), 200, "{path}");
    assert!(response.headers().get_all("vary").iter().any(|name| name == "accept-encoding"));
    let encoding = response.headers().get("content-encoding").map(|value| value.to_str().expect("text"));
    let encoding = encoding.unwrap_or_default().to_owned();
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().expect("a body");
    let size = body.len();
    (encoding.clone(), size, decoded(&encoding, &body))
}

fn decoded(encoding: &str, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match encoding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("gzip"),
        "zstd" => {
            zstd::stream::read::Decoder::new(body).expect("zstd").read_to_end(&mut plain).expect("zstd")
        }
        _ => body.to_vec().as_slice().read_to_end(&mut plain).expect("bytes"),
    };
    plain
}

/// A clock, and its time in nanoseconds.
fn manual_clock() -> (Arc<AtomicU64>, Clock) {
    let time = Arc::new(AtomicU64::new(Nanos::SECOND.0));
    let now = time.clone();
    let now = move || Nanos(now.load(Ordering::Relaxed));
    (time, Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), now))
}

/// Reports random loads and devices of some hosts, and places a block.
fn change(server: &Server, clock: &Clock, numbers: &mut Numbers, round: u64) {
    let (mut links, mut devices) = (Vec::new(), Vec::new());
    for host in (0..6).map(|host| format!("r{}h{}", host / 2, host % 2)) {
        if numbers.draw().is_multiple_of(3) {
            continue;
        }
        let load = (numbers.draw() % 1_000_000_000) as f64;
        links.push(json!({ "link": format!("{host}:ingress"), "load_bps": load, "queue_bytes": (load / 7.0) as u64 }));
        links.push(json!({ "link": format!("{host}:egress"), "load_bps": 0, "speed_bps": 500_000_000 }));
        let busy = (numbers.draw() % 100) as f64 / 100.0;
        devices.push(
            json!({ "device": format!("{host}:disk0"), "busy": busy, "in_flight": numbers.draw() % 9 }),
        );
    }
    let (from, until) = (clock.text(Nanos(clock.now().0 - Nanos::SECOND.0)), clock.text(clock.now()));
    let hosts = json!([{ "host": "r2h1", "draining": round.is_multiple_of(2), "stored": "1GiB" }]);
    let body = json!({ "from": from, "until": until, "links": links, "devices": devices, "hosts": hosts });
    let (status, _, answer) = server.post("/v1/reports", &body);
    assert_eq!(status, 200, "{answer}");
    let block = json!({ "size": "16MiB", "client": format!("client {}", round % 3), "sequence": round + 1 });
    assert!([201, 409].contains(&server.post("/v1/place/replicas", &block).0));
}

/// Applies a difference to a snapshot, as the reference describes.
fn apply(base: &Value, difference: &Value) -> Value {
    let mut later = difference.clone();
    if difference["since"].is_null() {
        return later;
    }
    assert_eq!(difference["since"], base["id"]);
    later["since"] = Value::Null;
    for table in ["links", "racks", "hosts", "devices"].into_iter().filter(|table| base.get(table).is_some())
    {
        let mut columns: Map<String, Value> = base[table].as_object().expect("a table").clone();
        let mut row = 0;
        for (at, distance) in difference[table]["rows"].as_array().expect("rows").iter().enumerate() {
            row += distance.as_u64().expect("a distance") as usize;
            for (name, values) in &mut columns {
                let Some(change) = difference[table].get(name).map(|changes| &changes[at]) else { continue };
                values[row] = match change.as_i64() {
                    Some(number) => json!(values[row].as_i64().unwrap_or(0) + number),
                    None => change.clone(),
                };
            }
        }
        later[table] = Value::Object(columns);
    }
    let mut clients: Vec<Value> = base["clients"].as_array().expect("a list").clone();
    for client in difference["clients"].as_array().expect("a list") {
        clients.retain(|one| one["client"] != client["client"]);
        clients.extend(Some(client.clone()).filter(|client| !client["sequence"].is_null()));
    }
    clients.sort_by_key(|client| client["client"].as_str().map(str::to_owned));
    later["clients"] = Value::Array(clients);
    later
}

#[test]
fn differences_applied_in_turn_give_the_whole_snapshot() {
    let (time, clock) = manual_clock();
    let server = Server::start(service(RACKS_3X2, "", clock.clone()));
    let mut numbers = Numbers::new(7);
    let mut round = 0;
    for columns in [EVERYTHING, "links=measured_steps,pending_steps", "hosts=up,tasks&racks=up_steps"] {
        let path = format!("/v1/snapshot?{columns}");
        let mut followed = server.get(&path).2;
        assert_eq!(followed["since"], Value::Null);
        for _ in 0..20 {
            round += 1;
            // Some loads become unknown in a longer silence.
            let pause = if round % 7 == 0 { 9 } else { 1 };
            time.fetch_add(pause * Nanos::SECOND.0, Ordering::Relaxed);
            change(&server, &clock, &mut numbers, round);
            let whole = server.get(&path).2;
            let id = followed["id"].as_str().expect("an id");
            let difference = server.get(&format!("{path}&since={id}")).2;
            assert_eq!(difference["since"], json!(id), "the service stores the last snapshots");
            followed = apply(&followed, &difference);
            assert_eq!(followed, whole, "round {round}");
        }
    }
}

#[test]
fn the_latest_window_of_a_link_is_beside_its_estimate() {
    let (time, clock) = manual_clock();
    let server = Server::start(service(RACKS_3X2, "", clock.clone()));
    for load in [100_000_000, 400_000_000] {
        let from = clock.text(clock.now());
        time.fetch_add(Nanos::SECOND.0, Ordering::Relaxed);
        let links = json!([{ "link": "r0:uplink", "load_bps": load }]);
        let body = json!({ "from": from, "until": clock.text(clock.now()), "links": links });
        assert_eq!(server.post("/v1/reports", &body).0, 200);
    }
    let links = &server.get("/v1/snapshot?links=link,measured_bps,from,until,latest_bps").2["links"];
    let names = links["link"].as_array().expect("names");
    let row = |name: &str| names.iter().position(|link| *link == json!(name)).expect("a link");
    let (reported, silent) = (row("r0:uplink"), row("r1:uplink"));
    assert_eq!(links["latest_bps"][reported], json!(400_000_000));
    assert_eq!(links["measured_bps"][reported], json!(160_000_000));
    assert_eq!(links["from"][reported], json!("2026-01-31T12:00:02Z"));
    assert_eq!(links["until"][reported], json!("2026-01-31T12:00:03Z"));
    assert_eq!((&links["latest_bps"][silent], &links["from"][silent]), (&Value::Null, &Value::Null));
}

#[test]
fn snapshots_and_differences_have_the_modes_in_force() {
    let (time, clock) = manual_clock();
    let server = Server::start(service(RACKS_3X2, "", clock));
    let path = "/v1/snapshot?links=measured_steps";
    let whole = server.get(path).2;
    assert_eq!(whole["modes"]["replicas"], json!("on"));
    let (status, answer) = server.patch("/v1/modes", &json!({ "replicas": "canary:2.5%:rack" }), "");
    assert_eq!(status, 200, "{answer}");
    time.fetch_add(Nanos::SECOND.0, Ordering::Relaxed);
    // A whole snapshot has everything acknowledged before, and the service stores it for the difference.
    assert_eq!(server.get(path).2["modes"]["replicas"], json!("canary:2.5%:rack"));
    let difference = server.get(&format!("{path}&since={}", whole["id"].as_str().expect("an id"))).2;
    assert_eq!(difference["since"], whole["id"]);
    assert_eq!(
        difference["modes"],
        json!({ "replicas": "canary:2.5%:rack", "tasks": "on", "moves": "on",
        "workload": "on", "volumes": "on" })
    );
}

#[test]
fn an_unchanged_network_has_one_id_and_empty_differences() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let path = "/v1/snapshot?links=link,measured_steps&racks=rack,hosts";
    let whole = server.get(path).2;
    assert_eq!(server.get(path).2, whole);
    let difference = server.get(&format!("{path}&since={}", whole["id"].as_str().expect("an id"))).2;
    assert_eq!(difference["since"], whole["id"]);
    assert_eq!(difference["links"], json!({ "rows": [], "measured_steps": [] }));
    assert_eq!(difference["racks"], json!({ "rows": [], "hosts": [] }));
    assert_eq!(apply(&whole, &difference), whole);
}

#[test]
fn a_reader_whose_snapshot_is_not_known_gets_a_whole_one() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let (links, hosts) = ("/v1/snapshot?links=link,measured_bps", "/v1/snapshot?hosts=host,up");
    let id = server.get(links).2["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.get(&format!("{hosts}&since={id}")).2["since"], Value::Null, "other columns");
    assert_eq!(server.get(&format!("{links}&resolution=0.1&since={id}")).2["since"], Value::Null);
    assert_eq!(server.get(&format!("{links}&since={id}")).2["since"], json!(id));
    assert_eq!(server.patch("/v1/cluster", &json!({ "racks": 4 }), "*").0, 200);
    let whole = server.get(&format!("{links}&since={id}")).2;
    assert_eq!((&whole["since"], &whole["cluster_version"]), (&Value::Null, &json!("2")));
    assert_eq!(whole["links"]["link"].as_array().map(Vec::len), Some(24));
}

#[test]
fn invalid_choices_name_the_parameter_and_what_is_expected() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    for (query, field, expected) in [
        (
            "links=link,load",
            "links",
            "`load`: expected columns of link, capacity_bps, measured_bps, until, from, latest_bps, derived",
        ),
        (
            "racks=",
            "racks",
            "``: expected columns of rack, pod, uplink, downlink, hosts, tasks, replicas, up_steps, down_steps",
        ),
        ("hosts=host,host", "hosts", "`host`: named twice"),
        ("devices=host", "devices", "`host`: expected columns of device, until, hot_since, busy_steps"),
        ("resolution=0", "resolution", "0: expected a share of the capacity from 0.0001 to 0.5"),
        ("resolution=NaN", "resolution", "NaN: expected a share"),
        ("since=", "since", "``: expected the `id` of a snapshot"),
        ("since=a&after=1", "after", "expected `since` or `after`, not both"),
        ("interval=61s", "interval", "61s: expected at most 60s"),
    ] {
        let (status, _, problem) = server.get(&format!("/v1/snapshot?{query}"));
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{query}: {problem}");
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.starts_with(expected), "{query}: {detail}");
    }
    assert_eq!(server.get("/v1/snapshot?kinds=links").0, 422);
}

#[test]
fn answers_to_reads_are_compressed_if_the_client_accepts_it_and_they_are_large() {
    let cluster = "racks: 40\nhosts_per_rack: 20\nnic: 1Gbps\noversubscription: 4\n";
    let server = Server::start(service(cluster, "", frozen_clock()));
    for path in
        ["/v1/snapshot", "/v1/links?limit=1000", "/v1/hosts?limit=500", "/v1/openapi.json", "/metrics"]
    {
        let (encoding, size, plain) = get(&server, path, "identity");
        assert_eq!((encoding.as_str(), size), ("", plain.len()), "{path}");
        for accepted in ["gzip", "zstd"] {
            let (encoding, compressed, body) = get(&server, path, accepted);
            assert_eq!(encoding, accepted, "{path}");
            assert!(compressed * 3 < size, "{path}: {compressed} of {size} bytes by {accepted}");
            // Metrics count the request before.
            assert!(path == "/metrics" || body == plain, "{path}");
        }
    }
    assert_eq!(get(&server, "/v1/racks?limit=1", "zstd").0, "", "a small body");
    let decision = json!({ "size": "256MiB" });
    let request = agent().post(server.url("/v1/place/replicas")).header("content-type", "application/json");
    let request = request.header("accept-encoding", "zstd, gzip").send(decision.to_string());
    assert!(request.expect("the service answers").headers().get("content-encoding").is_none());
}

#[test]
fn a_reader_gets_its_next_snapshot_after_the_interval_or_the_end_of_its_wait() {
    let server = Server::start(service(RACKS_3X2, "", Clock::system()));
    let path = "/v1/snapshot?links=measured_bps";
    let id = server.get(path).2["id"].as_str().expect("an id").to_owned();
    let began = Instant::now();
    assert_eq!(server.get(&format!("{path}&since={id}&interval=600ms")).2["since"], json!(id));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
    let began = Instant::now();
    let answer = server.get(&format!("{path}&since={id}&wait=500ms")).2;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}: {answer}");
    let began = Instant::now();
    assert_eq!(server.get(&format!("{path}&interval=300ms")).0, 200);
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[test]
fn many_readers_of_one_snapshot_get_the_same_bytes() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&[("r0:uplink".to_owned(), 1e8)]);
    let bodies = std::thread::scope(|scope| {
        let reader = || scope.spawn(|| get(&server, "/v1/snapshot", "zstd").2);
        let readers: Vec<_> = (0..8).map(|_| reader()).collect();
        readers.into_iter().map(|reader| reader.join().expect("a body")).collect::<Vec<_>>()
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn a_snapshot_of_a_large_cluster_includes_everything_acknowledged_before_the_request() {
    // The service copies the network in pieces of 4,096 links, devices or hosts.
    let cluster = "racks: 250\nhosts_per_rack: 20\nnic: 1Gbps\noversubscription: 4\n\
                   devices: [{read: 50MB/s, write: 50MB/s}]\n";
    let (time, clock) = manual_clock();
    let server = Server::start(service(cluster, "", clock.clone()));
    let columns = "links=link,measured_bps&devices=busy_steps&hosts=draining";
    let reading = AtomicBool::new(true);
    std::thread::scope(|scope| {
        // Other readers keep snapshots in progress.
        for _ in 0..2 {
            scope.spawn(|| {
                while reading.load(Ordering::Relaxed) {
                    assert_eq!(server.get("/v1/racks?limit=1").0, 200);
                }
            });
        }
        for round in 1_u64..30 {
            let from = clock.text(clock.now());
            time.fetch_add(Nanos::SECOND.0, Ordering::Relaxed);
            let ends = [("r0h0:egress", 0), ("r249:downlink", 10_499)];
            let links: Vec<Value> =
                ends.iter().map(|(link, _)| json!({ "link": link, "load_bps": round })).collect();
            let body = json!({
                "from": from, "until": clock.text(clock.now()), "links": links,
                "devices": [{ "device": "r249h19:disk0", "busy": 0.5 }],
                "hosts": [{ "host": "r249h19", "draining": round.is_multiple_of(2) }],
            });
            assert_eq!(server.post("/v1/reports", &body).0, 200);
            let snapshot = server.get(&format!("/v1/snapshot?{columns}")).2;
            for (name, row) in ends {
                assert_eq!(snapshot["links"]["link"][row], name);
                let load = snapshot["links"]["measured_bps"][row].as_i64();
                assert!(load.is_some_and(|load| load > 0), "round {round}: {name}: {load:?}");
            }
            assert_eq!(snapshot["devices"]["busy_steps"][4_999], 50, "round {round}");
            assert_eq!(snapshot["hosts"]["draining"][4_999], json!(round.is_multiple_of(2)), "round {round}");
            assert_eq!(snapshot["time"], json!(clock.text(clock.now())), "round {round}");
        }
        reading.store(false, Ordering::Relaxed);
    });
}

/// Decoder of a stream in one of the encodings.
fn decoder(encoding: &str, stream: BufReader<Chunks>) -> Box<dyn BufRead> {
    match encoding {
        "gzip" => Box::new(BufReader::with_capacity(1, flate2::bufread::GzDecoder::new(stream))),
        _ => Box::new(BufReader::with_capacity(
            1,
            zstd::stream::read::Decoder::with_buffer(stream).expect("zstd"),
        )),
    }
}

/// Data of a chunked response.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                self.stream.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).expect("the size of a chunk");
        }
        let most = into.len().min(self.left);
        let count = self.stream.read(&mut into[..most])?;
        self.left -= count;
        Ok(count)
    }
}

#[test]
fn a_compressed_event_stream_shows_each_event_at_once() {
    for encoding in ["gzip", "zstd"] {
        let mut server = Server::start(service(RACKS_3X2, "", frozen_clock()));
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        let head =
            format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept-encoding: {encoding}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the server reads");
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        let mut head = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).expect("a head");
            head += &line;
        }
        assert!(head.contains(&format!("content-encoding: {encoding}\r\n")), "{head}");
        let mut lines = decoder(encoding, BufReader::with_capacity(1, Chunks { stream, left: 0 })).lines();
        let mut next = |wanted: &str| loop {
            let line = lines.next().expect("a line").expect("a line in time");
            if line.starts_with(wanted) {
                return line;
            }
        };
        next("retry: ");
        for version in 2..5 {
            // Each event is read before the next one is made.
            assert_eq!(server.patch("/v1/cluster", &json!({ "racks": version + 2 }), "*").0, 200);
            next("event: cluster");
            assert_eq!(next("data: "), format!("data: {{\"cluster_version\":\"{version}\"}}"));
        }
        server.stop();
        next(": the service stops");
        assert!(server.end().is_ok());
    }
}
