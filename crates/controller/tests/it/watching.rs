//! The event stream.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Server, frozen_clock, idle_but, service, with_clock};
use leeward_testing::clusters::{RACKS_3X2, VOLUMES};
use leeward_testing::workloads::form;
use serde_json::{Value, json};

/// A stream of events.
struct Stream(BufReader<TcpStream>);

/// An event: name, id and data.
type Event = (String, u64, Value);

impl Stream {
    fn open(server: &Server, head: &str) -> Stream {
        Stream::choose(server, "", head)
    }

    /// Opens a stream with a query, which chooses events.
    fn choose(server: &Server, query: &str, head: &str) -> Stream {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        write!(stream, "GET /v1/events{query} HTTP/1.1\r\nhost: localhost\r\n{head}\r\n")
            .expect("the server reads");
        let mut stream = Stream(BufReader::new(stream));
        assert!(stream.line().starts_with("HTTP/1.1 200"));
        while !stream.line().starts_with("retry: ") {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        assert!(!line.is_empty(), "the stream ended");
        line
    }

    /// Reads the next event with this name.
    fn next(&mut self, wanted: &str) -> Event {
        loop {
            let event = self.any();
            if event.0 == wanted {
                return event;
            }
        }
    }

    /// Reads the next event.
    fn any(&mut self) -> Event {
        let (mut name, mut id, mut line) = (String::new(), 0, self.line());
        while !line.starts_with("data: ") {
            match line.trim_end().split_once(": ") {
                Some(("event", text)) => name = text.to_owned(),
                Some(("id", number)) => id = number.parse().expect("a number"),
                _ => {}
            }
            line = self.line();
        }
        (name, id, serde_json::from_str(&line["data: ".len()..]).expect("JSON"))
    }
}

fn block(server: &Server) -> Value {
    let (status, _, decision) = server.post("/v1/place/replicas", &json!({ "size": "256MiB" }));
    assert_eq!(status, 201, "{decision}");
    decision
}

#[test]
fn the_event_stream_has_decisions_racks_hotspots_and_clusters() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let mut stream = Stream::open(&server, "");
    server.report(&idle_but("r1:downlink", 1.9e9));
    let (_, hot, data) = stream.next("hotspot");
    assert_eq!((&data["link"], &data["until"]), (&json!("r1:downlink"), &Value::Null));
    let (_, racks, data) = stream.next("racks");
    assert!(hot < racks, "ids increase");
    assert_eq!(data["items"], server.get("/v1/racks").2["items"]);
    let decision = block(&server);
    assert_eq!(stream.next("decision").2, decision);
    assert_eq!(server.patch("/v1/cluster", &json!({ "racks": 4 }), "*").0, 200);
    assert_eq!(stream.next("cluster").2, json!({ "cluster_version": "2" }));
}

#[test]
fn a_stream_without_racks_or_decisions_has_all_other_events() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let mut quiet = Stream::choose(&server, "?racks=false&decisions=false", "");
    let mut decisions = Stream::choose(&server, "?racks=false", "");
    let mut all = Stream::open(&server, "");
    server.report(&idle_but("r1:downlink", 1.9e9));
    // The racks follow the hotspot, and a decision and a new cluster follow the racks.
    all.next("racks");
    let decision = block(&server);
    assert_eq!(server.patch("/v1/cluster", &json!({ "racks": 4 }), "*").0, 200);
    let names =
        |stream: &mut Stream, count: usize| -> Vec<String> { (0..count).map(|_| stream.any().0).collect() };
    assert_eq!(names(&mut quiet, 2), ["hotspot", "cluster"]);
    assert_eq!(decisions.next("decision").2, decision);
    assert_eq!(names(&mut decisions, 1), ["cluster"]);
    for query in ["racks=maybe", "decisions_per_s=0", "decisions_per_s=-1"] {
        let (status, _, problem) = server.get(&format!("/v1/events?{query}"));
        assert_eq!((status, &problem["type"]), (422, &json!("urn:leeward:problem:invalid")), "{query}");
    }
}

#[test]
fn a_stream_has_as_many_decisions_a_second_as_it_asks_for() {
    // All decisions are in the same second.
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    let mut few = Stream::choose(&server, "?racks=false&decisions_per_s=2", "");
    let decisions = [(); 3].map(|()| block(&server));
    assert_eq!(server.patch("/v1/cluster", &json!({ "racks": 4 }), "*").0, 200);
    assert_eq!([few.any().2, few.any().2], [decisions[0].clone(), decisions[1].clone()]);
    assert_eq!(few.any().0, "cluster");
}

#[test]
fn a_reconnected_stream_continues_after_its_last_event() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    let mut stream = Stream::open(&server, "");
    let first = block(&server);
    let (_, id, data) = stream.next("decision");
    assert_eq!(data, first);
    drop(stream);
    let (second, third) = (block(&server), block(&server));
    let mut stream = Stream::open(&server, &format!("last-event-id: {id}\r\n"));
    assert_eq!(stream.next("decision").2, second);
    assert_eq!(stream.next("decision").2, third);
    // The service recognizes an id of an earlier run.
    let mut stream = Stream::open(&server, "last-event-id: 5\r\n");
    assert_eq!(stream.next("missed").2, json!({ "after": "5" }));
    assert_eq!(stream.next("decision").2, first);
}

#[test]
fn a_stream_ends_when_the_service_stops() {
    let mut server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let mut stream = Stream::open(&server, "");
    server.stop();
    while !stream.line().starts_with(": the service stops") {}
    assert!(server.end().is_ok());
}

#[test]
fn the_number_of_event_streams_is_limited() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let streams: Vec<Stream> = (0..64).map(|_| Stream::open(&server, "")).collect();
    let (status, _, problem) = server.get("/v1/events");
    assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:busy")));
    drop(streams);
}

#[test]
fn the_event_stream_has_promises_and_leases_of_enforcers() {
    let (server, _, seconds) = with_clock(VOLUMES, "");
    let mut stream = Stream::choose(&server, "?racks=false&decisions=false", "");
    let body = json!({ "workload": form("mail", Some("r1h1"), 50, 10) });
    assert_eq!(server.post("/v1/workloads", &body).0, 201);
    let (name, _, decided) = stream.any();
    assert_eq!(
        (name.as_str(), &decided["workload"], &decided["before"]),
        ("promise", &json!("mail"), &Value::Null)
    );
    assert_eq!(decided["enforcement"]["state"], json!("decided"));
    let enforcer = json!({ "kind": "net", "host": "r0h0" });
    assert_eq!(server.put("/v1/enforcers/net@r0h0", &enforcer).0, 200);
    let (_, _, live) = stream.next("enforcer");
    assert_eq!((&live["enforcer"], &live["state"]), (&json!("net@r0h0"), &json!("live")));
    // An acknowledgement that says nothing new is no event.
    assert_eq!(server.put("/v1/enforcers/net@r0h0", &enforcer).0, 200);
    seconds.fetch_add(15, Ordering::SeqCst);
    assert_eq!(server.get("/v1/enforcers").2["items"][0]["state"], json!("expired"));
    // The snapshot after the end of the lease may be there before the lease is stored.
    let mut both = [stream.any(), stream.any()];
    both.sort_by(|a, b| a.0.cmp(&b.0));
    let [(first, _, expired), (second, _, silent)] = both;
    assert_eq!((first.as_str(), &expired["state"]), ("enforcer", &json!("expired")));
    assert_eq!(expired["since"], json!("2026-01-31T12:00:25Z"));
    assert_eq!((second.as_str(), &silent["before"]), ("promise", &json!("decided")));
    assert_eq!(silent["enforcement"]["state"], json!("unenforced"));
}
