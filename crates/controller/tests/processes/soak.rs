//! A service with bad clients: slow, silent and malformed ones, and many that disconnect. Meanwhile, another client
//! places blocks, tasks and workloads, requests scores, ends its placements and gets responses. After all clients have
//! left, their resources are free again.
//!
//! The soak test takes five seconds. `LEEWARD_SOAK` sets another number of seconds (`make soak`).

#![allow(clippy::disallowed_methods, reason = "a test waits")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::leewardd::{Process, command};
use serde_json::{Value, json};

/// Request timeout of the services under test.
const PATIENCE: Duration = Duration::from_secs(1);
/// Limit on connections.
const CONNECTIONS: usize = 64;
const CLUSTER: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 1, priorities: 8, cpus: 16, \
                       devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]}";
const HEAD: &str =
    "POST /v1/place/replicas HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

fn start(folder: &std::path::Path) -> Process {
    let settings = format!("limits: {{patience: {}s, connections: {CONNECTIONS}}}\n", PATIENCE.as_secs());
    std::fs::write(folder.join("settings.yaml"), settings).expect("a file");
    let mut command = command(folder, "store.db");
    std::fs::write(folder.join("c.yaml"), CLUSTER).expect("a file");
    command.args(["--config", "settings.yaml"]);
    Process::run(command)
}

impl Process {
    fn connect(&self) -> TcpStream {
        let address = self.url.strip_prefix("http://").expect("the URL is HTTP");
        let stream = TcpStream::connect(address).expect("the server listens");
        let time = Some(10 * PATIENCE);
        stream.set_read_timeout(time).and_then(|()| stream.set_write_timeout(time)).expect("a time");
        stream
    }

    /// Number of open files and connections.
    fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.expect("/proc is available on Linux").count()
    }

    /// Resident memory, in MiB.
    fn memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process runs");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes.expect("a number of kB") / 1_024
    }
}

/// Sends bytes and reads the response up to the end of the connection. The result is empty if the service
/// closes without a response.
fn raw_response(process: &Process, sent: &[u8]) -> String {
    let mut stream = process.connect();
    // The service may close the connection before the whole request is sent.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut response = Vec::new();
    let _ = stream.take(1 << 16).read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// Sends `first`, then `piece` repeatedly with pauses, until the service closes the connection or the test ends.
fn drip(process: &Process, first: &str, piece: &[u8], stop: &AtomicBool) {
    let mut stream = process.connect();
    let began = Instant::now();
    let mut sent = stream.write_all(first.as_bytes());
    while sent.is_ok() && !stop.load(Ordering::Relaxed) {
        assert!(began.elapsed() < 6 * PATIENCE, "the service waits forever after {first:?}");
        std::thread::sleep(PATIENCE / 10);
        sent = stream.write_all(piece);
        // Reading the response reveals a closed connection.
        stream.set_nonblocking(true).expect("the socket is open");
        let closed = matches!(stream.read(&mut [0; 4_096]), Ok(0));
        stream.set_nonblocking(false).expect("the socket is open");
        if closed {
            return;
        }
    }
}

/// Repeats one kind of bad client until the test ends.
fn misbehave(process: &Process, kind: usize, stop: &AtomicBool) {
    let body = format!("{HEAD}content-length: 1000\r\n\r\n");
    while !stop.load(Ordering::Relaxed) {
        match kind % 8 {
            // Four slow clients: silence, an endless head, an endless body, and a body that stops.
            0 => drip(process, "", b"", stop),
            1 => drip(process, "GET /v1/status HTTP/1.1\r\nx: ", b"x", stop),
            2 => drip(process, &body, b" ", stop),
            3 => drip(process, &body, b"", stop),
            // Sends requests and reads nothing.
            4 => {
                let mut stream = process.connect();
                let requests = "GET /v1/snapshot HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
                let _ = stream.set_write_timeout(Some(2 * PATIENCE));
                while stream.write_all(requests.as_bytes()).is_ok() && !stop.load(Ordering::Relaxed) {}
            }
            // Requests a placement and disconnects.
            5 => {
                let mut stream = process.connect();
                let block = r#"{"size": "64MiB"}"#;
                let _ = write!(stream, "{HEAD}content-length: {}\r\n\r\n{block}", block.len());
            }
            // Listens to events for a short time.
            6 => {
                let mut stream = process.connect();
                let _ = stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
                let _ = stream.read(&mut [0; 64]);
            }
            // Opens connections and closes them.
            _ => drop((0..8).map(|_| process.connect()).collect::<Vec<_>>()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops all bad clients on drop, also on a panic; otherwise the test would wait for them forever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests a placement under a new sequence number, and returns the decision's id.
fn place(process: &Process, path: &str, mut body: Value, sequence: u64) -> String {
    (body["client"], body["sequence"]) = (path.into(), sequence.into());
    let answer = process.send(path, &body);
    let Some((201, decision)) = &answer else { panic!("{path}: {answer:?}\n{}", process.log()) };
    decision["id"].as_str().expect("an id").to_owned()
}

/// Runs all operations once. Ends the placements that do not expire on their own.
fn round(process: &Process, number: u64) {
    let (_, status) = process.get("/v1/status").expect("an answer");
    let (_, links) = process.get("/v1/links?limit=1000").expect("an answer");
    let links = links["items"].as_array().expect("a list").iter();
    let links: Vec<Value> =
        links.map(|link| json!({ "link": link["link"], "load_bps": number % 7 * 10_000_000 })).collect();
    let report = json!({ "from": status["since"], "until": status["time"], "links": links });
    assert_eq!(process.send("/v1/reports", &report).map(|(status, _)| status), Some(200));
    let block = place(process, "/v1/place/replicas", json!({ "size": "64MiB" }), number);
    assert_eq!(process.get(&format!("/v1/decisions/{block}")).map(|(status, _)| status), Some(200));
    let app = json!({
        "tasks": [{ "name": "a", "cpus": 1, "egress": { "mean": "5Mbps" } }, { "name": "b", "cpus": 1 }],
        "transfers": [{ "from": "a", "to": "b", "bytes": "1MB" }],
    });
    let job = format!("j{}", number % 5);
    let tasks = place(process, "/v1/place/tasks", json!({ "app": app, "job": job }), number);
    let peers = json!([{ "host": "r0h0", "egress_bps": 1_000_000, "ingress_bps": 1_000_000 }]);
    let score = json!({ "hosts": ["r1h0", "r2h1", "r3h2"], "egress_bps": 5_000_000, "peers": peers });
    assert_eq!(process.send("/v1/score/hosts", &score).map(|(status, _)| status), Some(200));
    let link = json!([{ "rate": "100kB/s", "burst": "4kB" }]);
    let mut workload = json!({
        "name": format!("w{number}"), "client": "r0h0", "slo": { "percentile": 99, "latency": "400ms" },
        "curves": { "network-in": link, "network-out": link, "storage": [{ "rate": "0.1%", "burst": "100us" }] },
        "unloaded": "100us",
    });
    let is_placed = number.is_multiple_of(2);
    if is_placed {
        workload["server"] = "r1h1".into();
    }
    let path = if is_placed { "/v1/workloads" } else { "/v1/place/volumes" };
    let guarantee = place(process, path, json!({ "workload": workload }), number);
    for id in [tasks, guarantee] {
        let ended = process.delete(&format!("/v1/commitments/{id}"));
        assert_eq!(ended.map(|(status, _)| status), Some(200));
    }
}

/// Asserts that no task, workload or volume holds resources.
fn assert_nothing_is_reserved(process: &Process) {
    for kind in ["tasks", "workload", "volumes"] {
        let (_, held) = process.get(&format!("/v1/commitments?kind={kind}")).expect("an answer");
        assert_eq!(held["items"], json!([]));
    }
    let (_, links) = process.get("/v1/links?limit=1000").expect("an answer");
    for link in links["items"].as_array().expect("a list") {
        assert_eq!(link["reserved_bps"], json!(0), "{link}");
    }
    let (_, racks) = process.get("/v1/racks").expect("an answer");
    assert!(
        racks["items"].as_array().expect("a list").iter().all(|rack| rack["tasks"] == json!(0)),
        "{racks}"
    );
}

#[test]
fn bad_clients_do_not_block_others_and_their_resources_are_freed() {
    let seconds = std::env::var("LEEWARD_SOAK").ok().map(|text| text.parse().expect("LEEWARD_SOAK: seconds"));
    let lasts = Duration::from_secs(seconds.unwrap_or(5));
    let folder = tempfile::tempdir().expect("a folder");
    let process = start(folder.path());
    process.until("the service is ready", Process::is_ready);
    let stop = AtomicBool::new(false);
    // The first rounds allocate what the service needs for requests. The measurement starts after them.
    round(&process, 1);
    round(&process, 2);
    let before = process.descriptors();
    let (mut slowest, mut memory, mut rounds) = (Duration::ZERO, 0, 2);
    std::thread::scope(|scope| {
        let _stop_on_drop = StopOnDrop(&stop);
        for kind in 0..24 {
            let (process, stop) = (&process, &stop);
            scope.spawn(move || misbehave(process, kind, stop));
        }
        let began = Instant::now();
        while began.elapsed() < lasts {
            let started = Instant::now();
            rounds += 1;
            round(&process, rounds);
            slowest = slowest.max(started.elapsed());
            if began.elapsed() < lasts / 4 || memory == 0 {
                memory = process.memory();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(slowest < Duration::from_secs(5), "the slowest round took {slowest:?}");
    // The agent of this test may have one more connection. Connections of clients that have left may stay open for a
    // short time.
    process.until("open connections are closed", |process| process.descriptors() <= before + 1);
    // The service keeps decisions up to a limit, so their memory is no leak. The test allows 4 KiB for each.
    let kept = 4 * process.status("decisions").as_u64().expect("a number") / 1_024;
    let after = process.memory();
    assert!(
        after <= memory + 48 + kept,
        "memory grew from {memory} MiB to {after} MiB; decisions take {kept} MiB"
    );
    assert!(!process.log().contains("panicked"), "{}", process.log());
    assert_nothing_is_reserved(&process);
    round(&process, rounds + 1);
    eprintln!(
        "{rounds} rounds, the slowest {slowest:?}; memory {memory} MiB at first and {after} MiB at the end, decisions \
         take {kept} MiB; {before} descriptors"
    );
}

#[test]
fn malformed_http_is_rejected_without_effect_on_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = start(folder.path());
    process.until("the service is ready", Process::is_ready);
    let get = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\n";
    let long = "x".repeat(1 << 20);
    let wrong: Vec<Vec<u8>> = [
        "\r\n\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /v1/status HTTP/9.9\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET /v1/status\r\n\r\n".to_owned(),
        "GET /v1/ status HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        format!("{get}no colon\r\n\r\n"),
        format!("{get}: no name\r\n\r\n"),
        format!("{get}a name: x\r\n\r\n"),
        format!("{get}x: {long}\r\n\r\n"),
        format!("{get}{}\r\n", "x: y\r\n".repeat(10_000)),
        format!("{HEAD}content-length: -1\r\n\r\n{{}}"),
        format!("{HEAD}content-length: 99999999999999999999999\r\n\r\n{{}}"),
        format!("{HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!("{HEAD}content-length: 100\r\n\r\n{{}}"),
        format!("{HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
        format!("{HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n{{}}"),
        format!("{HEAD}transfer-encoding: chunked, gzip\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET /v1/status HTTP/1.1\r\nhost: local\x00host\r\n\r\n".to_vec(),
        b"GET /v1/\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        vec![0; 4_096],
    ])
    .collect();
    for sent in wrong {
        let response = raw_response(&process, &sent);
        let shown = String::from_utf8_lossy(&sent[..sent.len().min(80)]).into_owned();
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 4"), "{shown:?}: {response}");
        assert_eq!(process.get("/v1/status").map(|(status, _)| status), Some(200), "{shown:?}");
    }
    assert_eq!(process.status("decided").as_u64(), Some(0), "no malformed input counts as a request");
    assert!(!process.log().contains("panicked"), "{}", process.log());
}
