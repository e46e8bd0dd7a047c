//! A hook that receives advised moves: a scheduler's HTTP server, which the test plays.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use leeward_controller::{Configured, MoveOptions, Service};
use leeward_fabric::Nanos;
use leeward_hooks::Hook;
use leeward_ledger::LedgerSettings;
use leeward_records::{Clock, Modes};
use leeward_service::AdmissionPolicies;
use leeward_settings::HookSettings;
use leeward_store::{Database, Durability, Postgres, Sqlite, Store};
use leeward_testing::clusters::RACKS_4X3;
use leeward_testing::postgres;
use serde_json::{Value, json};

use crate::hotspots::{HOT, carry, moves, place, rates};
use crate::support::{Server, labels, policies, service_on};

/// Time limit of the test's waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request that waits for its response.
struct Posted {
    key: String,
    body: Value,
    respond: Sender<(&'static str, &'static str)>,
}

impl Posted {
    fn reject(&self) {
        self.respond.send(("503 Service Unavailable", "later")).expect("the service waits");
    }
}

/// A scheduler on loopback. Returns its address, and the requests as they arrive.
fn scheduler() -> (String, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/secret/moves", listener.local_addr().expect("an address"));
    let (posted, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, posted) = (stream.expect("a connection"), posted.clone());
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
                let mut headers = BTreeMap::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                        break;
                    }
                    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                    headers.insert(name.to_lowercase(), value.trim().to_owned());
                }
                let length =
                    headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let body = serde_json::from_slice(&body).expect("JSON");
                let (respond, response) = channel();
                let key = headers.remove("idempotency-key").expect("a key");
                // At the end of the test nobody reads requests and responses.
                let _ = posted.send(Posted { key, body, respond });
                let Ok((status, body)) = response.recv() else { return };
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            });
        }
    });
    (url, requests)
}

/// A service with a hook at this address.
fn hooked(url: &str, clock: Clock, store: Box<dyn Store>) -> Service {
    let hook = HookSettings { url: url.to_owned(), name: "scheduler".to_owned(), ..HookSettings::default() };
    let moves = MoveOptions { hook: Some(hook.clone()), ..MoveOptions::default() };
    let service = service_on(RACKS_4X3, "", clock, store);
    service.configured.store(Arc::new(Configured {
        policies: Box::new(|| policies("")),
        labels: labels(),
        admission: AdmissionPolicies::default(),
        ledger: LedgerSettings::default(),
        modes: Modes::default(),
        history: None,
        hook: Some(Arc::new(Hook::new(&hook, moves.timeout).expect("valid settings"))),
        moves,
    }));
    service
}

type Hooked = (Server, Clock, Arc<AtomicU64>);

/// A clock that the test sets, in seconds after its origin.
fn clock() -> (Clock, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(10));
    let shown = seconds.clone();
    let now = move || Nanos(shown.load(Ordering::SeqCst) * Nanos::SECOND.0);
    (Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), now), seconds)
}

/// A service whose only hot link has tolerant tasks, so that it advises moves.
fn start(url: &str) -> Hooked {
    let (clock, seconds) = clock();
    let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
    let hooked = (Server::start(hooked(url, clock.clone(), store)), clock, seconds);
    advise(&hooked);
    hooked
}

fn advise(hooked: &Hooked) {
    carry(hooked, &[], &[]);
    let tolerant = json!({ "name": "t", "tolerant": true });
    let movable: Vec<Value> = (0..8).map(|_| place(&hooked.0, &tolerant)).collect();
    carry(hooked, &HOT, &rates(&movable));
}

/// States and executors of all moves, by id.
fn states(server: &Server) -> BTreeMap<String, (String, Value)> {
    let (_, _, page) = server.get("/v1/migrations?limit=1000");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let items = page["items"].as_array().expect("a list").iter();
    items.map(|one| (text(&one["id"]), (text(&one["state"]), one["executor"].clone()))).collect()
}

/// Waits until a condition holds.
fn until(what: &str, condition: impl Fn() -> bool) {
    let pause = Duration::from_millis(50);
    let mut left = PATIENCE;
    while !condition() {
        assert!(!left.is_zero(), "{what}");
        thread::sleep(pause);
        left = left.saturating_sub(pause);
    }
}

#[test]
fn a_rejected_move_is_posted_again_and_the_answer_survives_a_change_of_the_cluster() {
    let (url, requests) = scheduler();
    let hooked = start(&url);
    let server = &hooked.0;
    let first = requests.recv_timeout(PATIENCE).expect("a move is posted");
    let id = first.body["id"].as_str().expect("an id").to_owned();
    assert_eq!(first.body["link"], "r0:uplink");
    first.reject();
    // The service's time stands still, so the retry is not due.
    thread::sleep(Duration::from_millis(2_500));
    for other in requests.try_iter() {
        assert_ne!(other.key, first.key, "posted again within 5 s");
        other.reject();
    }
    hooked.2.fetch_add(5, Ordering::SeqCst);
    let again = loop {
        let posted = requests.recv_timeout(PATIENCE).expect("the move is posted again");
        if posted.key == first.key {
            break posted;
        }
        posted.reject();
    };
    assert_eq!(again.body["id"], json!(id));
    // The cluster changes while the service waits for the response.
    let (status, answer) = server.patch("/v1/cluster", &json!({ "name": "other" }), "*");
    assert_eq!(status, 200, "{answer}");
    again.respond.send(("200 OK", "{\"answer\": \"taken\"}")).expect("the service waits");
    let taken = || states(server).get(&id) == Some(&("taken".to_owned(), json!("scheduler")));
    until("the answer is stored", taken);
    // Clients see neither the path of the address nor the address as the executor.
    let (_, _, status) = server.get("/v1/status");
    let shown = status["moves"]["hook"]["url"].as_str().expect("an address").to_owned();
    assert!(shown.starts_with("http://127.0.0.1:") && !shown.contains("secret"), "{shown}");
    drop(requests);
}

#[test]
fn no_move_is_posted_after_moves_are_turned_off() {
    let (url, requests) = scheduler();
    let hooked = start(&url);
    let server = &hooked.0;
    let first = requests.recv_timeout(PATIENCE).expect("a move is posted");
    moves(server, "off");
    first.reject();
    // Requests that began before moves were turned off arrive.
    thread::sleep(Duration::from_millis(500));
    requests.try_iter().for_each(|other| other.reject());
    assert!(states(server).values().all(|(state, _)| state == "expired"), "{:?}", states(server));
    hooked.2.fetch_add(5, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(2_500));
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn only_the_leader_posts_moves() {
    let Some(database) = postgres::Server::shared() else { return };
    let (url, requests) = scheduler();
    let address = database.url(&database.database());
    let (clock, seconds) = clock();
    let open = || {
        let address = Database::read(&address, None).expect("a valid URL");
        let store = Postgres::open(address, Durability::Process, 1_000).expect("the database is available");
        Server::start(hooked(&url, clock.clone(), Box::new(store)))
    };
    let leader = open();
    until("the service leads", || leader.get("/v1/status").2["role"] == "leader");
    let follower = open();
    assert_eq!(follower.get("/v1/status").2["role"], "follower");
    let hooked = (leader, clock.clone(), seconds);
    advise(&hooked);
    let advised = states(&hooked.0);
    assert!(!advised.is_empty());
    until("the follower knows the moves", || states(&follower) == advised);
    // The responses wait, so each service would post its own requests meanwhile.
    thread::sleep(Duration::from_millis(3_000));
    let posted: Vec<Posted> = requests.try_iter().collect();
    let mut keys: Vec<&String> = posted.iter().map(|posted| &posted.key).collect();
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert!(all > 0 && keys.len() == all, "{keys:?} in {all} requests");
    drop((posted, requests));
}
