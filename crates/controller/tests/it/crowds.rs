//! Many clients at once, some of them hostile: legitimate clients get through, and memory stays bounded.

#![allow(clippy::disallowed_methods, reason = "the tests measure durations")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Server, frozen_clock, service, service_on};
use leeward_controller::{Access, ConnectionLimit, NewToken, Role, Service, Tokens};
use leeward_store::{Durability, Sqlite};
use leeward_testing::clusters::RACKS_3X2;
use serde_json::json;

const HEAD: &str = "POST /v1/reports HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

fn start(settings: impl FnOnce(&mut Service)) -> Server {
    let mut service = service(RACKS_3X2, "", frozen_clock());
    settings(&mut service);
    Server::start(service)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    stream
}

/// Sends a request and returns the status of the response.
fn response_status(stream: &mut TcpStream, sent: &str) -> String {
    stream.write_all(sent.as_bytes()).expect("the server reads");
    let mut response = [0; 4_096];
    let length = stream.read(&mut response).expect("the server answers");
    String::from_utf8_lossy(&response[..length]).chars().skip(9).take(3).collect()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("the socket is open");
    let read = std::iter::repeat_with(|| stream.read(&mut [0; 4_096])).find(|read| !matches!(read, Ok(1..)));
    stream.set_nonblocking(false).expect("the socket is open");
    !matches!(read, Some(Err(error)) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn silent_sockets_block_no_client_and_authenticated_clients_stay() {
    let made = NewToken::make("reader", Role::Read, &[]).expect("randomness");
    let server = start(|service| {
        let tokens = Tokens::from_text("tokens", &made.line).expect("a valid line");
        (service.access, service.connections) =
            (Arc::new(Access::new(Some(tokens), None)), ConnectionLimit::fixed(4));
    });
    let ask = |path: &str, token: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n")
    };
    let mut known = connect(&server);
    assert_eq!(response_status(&mut known, &ask("/v1/commitments", &made.token)), "200");
    let mut unauthenticated: Vec<TcpStream> = (0..3).map(|_| connect(&server)).collect();
    // Public operations and invalid tokens do not authenticate a connection.
    assert_eq!(response_status(&mut unauthenticated[0], &ask("/healthz", "none")), "200");
    assert_eq!(response_status(&mut unauthenticated[1], &ask("/v1/commitments", "none")), "401");
    let mut late: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        let mut client = connect(&server);
        assert_eq!(response_status(&mut client, &ask("/v1/commitments", &made.token)), "200");
        late.push(client);
    }
    assert_eq!(unauthenticated.iter_mut().map(is_closed).collect::<Vec<_>>(), [true; 3]);
    assert!(!is_closed(&mut known) && !late.iter_mut().any(is_closed));
    assert_eq!(response_status(&mut known, &ask("/v1/commitments", &made.token)), "200");
}

#[test]
fn the_first_head_has_ten_seconds_and_later_heads_the_set_time() {
    let server = start(|service| service.patience = Duration::from_secs(30));
    let began = Instant::now();
    let mut kept = connect(&server);
    assert_eq!(response_status(&mut kept, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"), "200");
    let mut dripping = connect(&server);
    dripping.write_all(b"GET /healthz HTTP/1.1\r\nx: ").expect("the server reads");
    while !is_closed(&mut dripping) {
        assert!(began.elapsed() < Duration::from_secs(20), "the service waits forever for the end of a head");
        let _ = dripping.write_all(b"x");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() > Duration::from_secs(9), "it was closed after {:?}", began.elapsed());
    assert_eq!(response_status(&mut kept, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"), "200");
}

#[test]
fn all_request_bodies_share_one_memory_limit() {
    let server = start(|service| (service.body, service.bodies) = (1 << 20, 1 << 20));
    // The request announces more bytes than it sends; announced bytes reserve no memory.
    let send_most = || {
        let mut slow = connect(&server);
        write!(slow, "{HEAD}content-length: {}\r\n\r\n{}", 1 << 20, " ".repeat(900 << 10))
            .expect("the server reads");
        slow
    };
    let mut slow = send_most();
    let report = |size: usize| {
        let mut stream = connect(&server);
        let body = format!("{{\"pad\": \"{}\"}}", " ".repeat(size));
        // The server may close the connection before the whole request is sent.
        let _ = write!(stream, "{HEAD}content-length: {}\r\n\r\n{body}", body.len());
        let mut response = [0; 4_096];
        let length = stream.read(&mut response).unwrap_or(0);
        String::from_utf8_lossy(&response[..length]).into_owned()
    };
    let is_busy = |response: &str| response.starts_with("HTTP/1.1 503") && response.contains("problem:busy");
    let began = Instant::now();
    while !is_busy(&report(200 << 10)) {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the bodies exceed the limit, and both are accepted"
        );
        // While the server reads the slow body, another body may make it exceed the limit, so that it is rejected.
        if is_closed(&mut slow) {
            slow = send_most();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // A small body still fits; its content is invalid, hence the 422.
    let small = report(10 << 10);
    assert!(small.starts_with("HTTP/1.1 422"), "{small}");
    drop(slow);
    while !report(200 << 10).starts_with("HTTP/1.1 422") {
        assert!(began.elapsed() < Duration::from_secs(20), "a closed connection does not free its memory");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn health_metrics_and_administration_are_available_when_all_connections_are_in_use() {
    let server = start(|service| service.connections = ConnectionLimit::fixed(4));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // Without tokens, a request authorizes its connection, so that no other connection replaces it.
    let mut known: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    for stream in &mut known {
        assert_eq!(response_status(stream, &get("/v1/racks")), "200");
    }
    for path in ["/healthz", "/readyz", "/metrics", "/v1/status", "/v1/cluster"] {
        let began = Instant::now();
        let mut late = connect(&server);
        assert_eq!(response_status(&mut late, &get(path)), "200", "{path}");
        assert!(began.elapsed() < Duration::from_secs(5), "{path}");
    }
    let mut refused = connect(&server);
    assert_eq!(response_status(&mut refused, &get("/v1/racks")), "503");
    // Silent sockets do not use up the reserve.
    let silent: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
    let mut late = connect(&server);
    late.write_all(get("/metrics").as_bytes()).expect("the server reads");
    let mut text = String::new();
    late.read_to_string(&mut text).expect("a connection of the reserve closes after one response");
    for line in [
        "leeward_connections{listener=\"main\"} 4",
        "leeward_connections_limit{listener=\"main\"} 4",
        "leeward_connections_refused_total 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    drop((silent, known));
    let began = Instant::now();
    while response_status(&mut connect(&server), &get("/v1/racks")) != "200" {
        assert!(began.elapsed() < Duration::from_secs(10), "closed connections free their places");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_admin_listener_has_connections_of_its_own_and_serves_nothing_else() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let admin = listener.local_addr().expect("an address");
    let server = start(|service| {
        (service.connections, service.admin_listener) = (ConnectionLimit::fixed(1), Some(listener));
    });
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut known = connect(&server);
    assert_eq!(response_status(&mut known, &get("/v1/racks")), "200");
    let mut door = TcpStream::connect(admin).expect("the server listens");
    for (path, status) in [("/healthz", "200"), ("/v1/status", "200"), ("/v1/racks", "404"), ("/", "404")] {
        assert_eq!(response_status(&mut door, &get(path)), status, "{path}");
    }
    assert!(!is_closed(&mut door) && !is_closed(&mut known));
}

#[test]
fn the_limit_on_connections_follows_the_cluster_and_not_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |limit: ConnectionLimit| {
        let store = Sqlite::open(&folder.path().join("store.db"), Durability::Process, 1_000);
        let mut service = service_on(RACKS_3X2, "", frozen_clock(), Box::new(store.expect("a store")));
        service.connections = limit;
        Server::start(service)
    };
    // Each request for the status has a connection of its own.
    let limit = |server: &Server| {
        let mut stream = connect(server);
        let request = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("the server answers");
        let body = response.split_once("\r\n\r\n").expect("a body").1;
        let status: serde_json::Value = serde_json::from_str(body).expect("JSON");
        status["connections"]["limit"].as_u64().expect("a limit")
    };
    let server = start(ConnectionLimit::default());
    assert_eq!(limit(&server), 512, "six hosts");
    assert_eq!(server.patch("/v1/cluster", &json!({ "racks": 500 }), "*").0, 200);
    let began = Instant::now();
    while limit(&server) != 1_256 {
        assert!(began.elapsed() < Duration::from_secs(10), "a thousand agents and 256 others");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.end().expect("the service ends");
    let restarted = start(ConnectionLimit::default());
    assert_eq!(limit(&restarted), 1_256, "the file has six hosts");
    restarted.end().expect("the service ends");
    let with_few_files = start(ConnectionLimit { setting: None, files: Some(1_024) });
    assert!(limit(&with_few_files) < 1_024);
    with_few_files.end().expect("the service ends");
    assert_eq!(limit(&start(ConnectionLimit::fixed(8))), 8, "the setting counts before the cluster");
}
