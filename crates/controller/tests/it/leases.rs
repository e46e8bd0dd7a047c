//! The lease of an enforcer with a service on loopback: promises in force, changes, and what a silent service leads to.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Server, service};
use leeward_controller::{Access, NewToken, Role, Tokens};
use leeward_fabric::Nanos;
use leeward_lease::{Connection, ControllerSettings, Given, Report, Update, read_promises};
use leeward_promises::RequestCounters;
use leeward_promises::bodies::{AcknowledgedBody, AppliedWord};
use leeward_promises::document::EnforcerPromises;
use leeward_records::{Clock, EnforcerKind};
use leeward_testing::clusters::VOLUMES;
use leeward_testing::workloads::form;
use serde_json::{Value, json};

const PROGRAM: &str = "test/1";
/// Longest wait for a condition.
const LONGEST: Duration = Duration::from_secs(30);

/// The clock of the machine.
#[expect(clippy::disallowed_methods, reason = "leases of a test run out in real time")]
fn machine_clock() -> Clock {
    let start = Instant::now();
    Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), move || {
        Nanos(start.elapsed().as_nanos() as u64 + 10 * Nanos::SECOND.0)
    })
}

/// A port that leads to a service while it is open.
struct Relay {
    address: SocketAddr,
    is_open: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (is_open, streams) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (open, kept) = (is_open.clone(), streams.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if !open.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(service) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &service), (&service, &client)] {
                    let [mut from, mut to] = [from, to].map(|one| one.try_clone().expect("a handle"));
                    kept.lock().expect("no panic").push(from.try_clone().expect("a handle"));
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Relay { address, is_open, streams }
    }

    fn open(&self, open: bool) {
        self.is_open.store(open, Ordering::SeqCst);
        if !open {
            let streams = std::mem::take(&mut *self.streams.lock().expect("no panic"));
            streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
    }
}

/// An enforcer that applies nothing.
struct Enforcer {
    connection: Connection,
    in_force: Option<EnforcerPromises>,
    releases: usize,
    lines: Vec<String>,
}

fn settings(urls: &[String], host: &str, lease: &str) -> ControllerSettings {
    let given = Given { controllers: urls.to_vec(), lease: Some(lease.to_owned()), ..Given::default() };
    ControllerSettings::new(EnforcerKind::Nfs, host, given, None).expect("valid settings")
}

impl Enforcer {
    fn start(urls: &[String], name: &str, lease: &str) -> Enforcer {
        let settings = ControllerSettings { name: name.to_owned(), ..settings(urls, "r1h1", lease) };
        let connection = Connection::start(settings, PROGRAM).expect("a connection");
        Enforcer { connection, in_force: None, releases: 0, lines: Vec::new() }
    }

    fn step(&mut self) {
        let in_force = &self.in_force;
        let body = |name: &String| AcknowledgedBody {
            workload: name.clone(),
            state: if name == "odd" { AppliedWord::Refused } else { AppliedWord::Applied },
            detail: (name == "odd").then(|| "odd".repeat(1000)),
            counters: RequestCounters::default(),
            latencies: Vec::new(),
        };
        let report = || {
            let names = in_force.iter().flat_map(|promises| promises.nfs.iter().map(|one| &one.workload));
            Report {
                addresses: vec!["10.0.0.7".parse().expect("valid")],
                workloads: names.map(body).collect(),
            }
        };
        match self.connection.poll(report) {
            Some(Update::Apply(received)) => {
                self.in_force = Some(received.promises.clone());
                // Names of hosts do not resolve here.
                self.connection.applied(true);
            }
            Some(Update::Release) => {
                self.in_force = None;
                self.releases += 1;
            }
            None => {}
        }
        self.lines.extend(self.connection.take_lines());
    }

    fn names(&self) -> Vec<String> {
        let promises = self.in_force.iter().flat_map(|promises| &promises.nfs);
        promises.map(|promise| promise.workload.clone()).collect()
    }
}

/// Steps of enforcers until a condition holds.
#[expect(clippy::disallowed_methods, reason = "a test waits")]
fn until(enforcers: &mut [&mut Enforcer], holds: impl Fn(&[&mut Enforcer]) -> bool) {
    let start = Instant::now();
    while !holds(enforcers) {
        let shown: Vec<_> = enforcers.iter().map(|one| (one.names(), &one.lines)).collect();
        assert!(start.elapsed() < LONGEST, "{shown:?}");
        enforcers.iter_mut().for_each(|enforcer| enforcer.step());
        thread::sleep(Duration::from_millis(10));
    }
}

fn grant(server: &Server, name: &str) {
    let (status, _, made) =
        server.post("/v1/workloads", &json!({ "workload": form(name, Some("r1h1"), 50, 5) }));
    assert_eq!(status, 201, "{made}");
}

/// State of the storage of a workload.
fn place(server: &Server, name: &str) -> Value {
    let workload = server.get(&format!("/v1/workloads/{name}")).2;
    let places = workload["enforcement"]["places"].as_array().expect("a list").clone();
    places.into_iter().find(|place| place["stage"] == "storage").expect("a place")
}

#[test]
fn promises_are_applied_acknowledged_and_follow_changes_until_the_enforcer_ends() {
    let server = Server::start(service(VOLUMES, "", machine_clock()));
    grant(&server, "mail");
    let url = server.url("");
    let preview = read_promises(&settings(std::slice::from_ref(&url), "r1h1:ssd", "15s"), PROGRAM);
    assert_eq!(preview.expect("promises").promises.nfs.len(), 1);
    assert_eq!(server.get("/v1/enforcers").2["items"], json!([]), "a preview registers nothing");
    let mut enforcer = Enforcer::start(&[url], "nfs@r1h1", "15s");
    let state = |name: &str| place(&server, name)["state"].clone();
    until(&mut [&mut enforcer], |_| state("mail") == json!("applied"));
    assert_eq!(enforcer.names(), ["mail"]);
    // A change comes by the open request, long before the next acknowledgement.
    grant(&server, "web");
    until(&mut [&mut enforcer], |_| state("web") == json!("applied"));
    grant(&server, "odd");
    until(&mut [&mut enforcer], |_| state("odd") == json!("refused"));
    assert_eq!(place(&server, "odd")["detail"].as_str().map(str::len), Some(1000), "as long as may be");
    let (_, _, shown) = server.get("/v1/enforcers/nfs@r1h1");
    assert_eq!((&shown["state"], &shown["addresses"]), (&json!("live"), &json!(["10.0.0.7"])), "{shown}");
    assert_eq!(shown["version"], shown["current"]);
    // A removal by hand: it registers again.
    assert_eq!(server.delete("/v1/enforcers/nfs@r1h1").0, 200);
    until(&mut [&mut enforcer], |_| state("mail") == json!("applied"));
    let removed = enforcer.connection.remove();
    assert!(removed.is_ok(), "{removed:?}");
    assert_eq!(state("mail"), json!("absent"));
    assert!(server.end().is_ok());
}

#[test]
fn a_silent_service_leads_to_best_effort_at_the_end_of_the_lease_and_its_return_to_promises() {
    let server = Server::start(service(VOLUMES, "", machine_clock()));
    grant(&server, "mail");
    let relay = Relay::to(server.address);
    let url = format!("http://{}", relay.address);
    // One enforcer has a long lease, so the silence disturbs it not at all.
    let mut short = Enforcer::start(std::slice::from_ref(&url), "short", "2s");
    let mut long = Enforcer::start(&[url], "long", "1min");
    let state = || server.get("/v1/enforcers/short").2["state"].clone();
    until(&mut [&mut short, &mut long], |all| all.iter().all(|one| one.names() == ["mail"]));
    relay.open(false);
    until(&mut [&mut short, &mut long], |all| all[0].releases == 1);
    assert_eq!((long.names(), long.releases), (vec!["mail".to_owned()], 0));
    assert!(
        short.lines.iter().any(|line| line.contains("the promises stay in force until")),
        "{:?}",
        short.lines
    );
    assert!(short.lines.iter().any(|line| line.starts_with("lease expired")), "{:?}", short.lines);
    // The service counts from a later time.
    until(&mut [&mut short], |_| state() == json!("expired"));
    relay.open(true);
    until(&mut [&mut short, &mut long], |all| all[0].names() == ["mail"]);
    until(&mut [&mut short, &mut long], |_| state() == json!("live"));
    assert_eq!((short.releases, long.releases), (1, 0));
    assert_eq!(short.lines.last().map(String::as_str), Some("the controller answers again"));
    // The end of a promise takes it away.
    let decision = server.get("/v1/workloads/mail").2["decision"].as_str().expect("an id").to_owned();
    assert_eq!(server.delete(&format!("/v1/commitments/{decision}")).0, 200);
    until(&mut [&mut short, &mut long], |all| all.iter().all(|one| one.names().is_empty()));
}

#[test]
fn a_service_that_was_replaced_gets_everything_anew() {
    let first = Server::start(service(VOLUMES, "", machine_clock()));
    grant(&first, "mail");
    let second = Server::start(service(VOLUMES, "", machine_clock()));
    grant(&second, "web");
    let (one, other) = (Relay::to(first.address), Relay::to(second.address));
    other.open(false);
    // Two controllers that do not share a store, one after another.
    let urls = [&one, &other].map(|relay| format!("http://{}", relay.address));
    let mut enforcer = Enforcer::start(&urls, "nfs@r1h1", "15s");
    until(&mut [&mut enforcer], |all| all[0].names() == ["mail"]);
    one.open(false);
    other.open(true);
    until(&mut [&mut enforcer], |all| all[0].names() == ["web"]);
    until(&mut [&mut enforcer], |_| place(&second, "web")["state"] == json!("applied"));
    assert_eq!(enforcer.releases, 0, "the lease held");
}

#[test]
fn a_token_that_is_refused_is_a_line_and_nothing_is_in_force() {
    let made = NewToken::make("agent", Role::Report, &["r0h0"]).expect("randomness");
    let mut service = service(VOLUMES, "", machine_clock());
    let file = format!("{}\n", made.line);
    service.access =
        Arc::new(Access::new(Some(Tokens::from_text("tokens", &file).expect("valid lines")), None));
    let server = Server::start(service);
    // The token is that of another host.
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, made.token).expect("the folder is ours");
    let mut settings = settings(&[server.url("")], "r1h1", "1s");
    settings.access.token = Some(token.display().to_string());
    let connection = Connection::start(settings, PROGRAM).expect("a connection");
    let mut enforcer = Enforcer { connection, in_force: None, releases: 0, lines: Vec::new() };
    until(&mut [&mut enforcer], |all| all[0].releases == 1);
    assert!(enforcer.lines[0].contains("403 Forbidden"), "{:?}", enforcer.lines);
    assert_eq!(enforcer.lines.len(), 2, "each reason once: {:?}", enforcer.lines);
}
