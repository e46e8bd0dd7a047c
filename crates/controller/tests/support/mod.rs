//! A service on loopback and a client for it. The tests and the benches share them.

#![allow(dead_code, reason = "each test and bench uses a part")]

#[path = "../../../service/tests/it/support/mod.rs"]
mod core;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use leeward_controller::Service;
use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;
use leeward_records::Clock;
use leeward_service::NewCluster;
use leeward_store::{Sqlite, Store};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[allow(unused_imports, reason = "each test and bench uses a part")]
pub use self::core::{Numbers, decision_of, labels, place_now, policies, samples};

/// A frozen clock: 2026-01-31T12:00:10Z, ten seconds after its origin.
pub fn frozen_clock() -> Clock {
    Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), || Nanos(10 * Nanos::SECOND.0))
}

pub fn service(cluster: &str, settings: &str, clock: Clock) -> Service {
    let store = Sqlite::in_memory().expect("an in-memory store opens");
    service_on(cluster, settings, clock, Box::new(store))
}

pub fn service_on(cluster: &str, settings: &str, clock: Clock, store: Box<dyn Store>) -> Service {
    let cluster = NewCluster::read("test", cluster).expect("the cluster of the test is valid");
    let (ledger, settings) = (LedgerSettings::default(), settings.to_owned());
    let service = Service::new(cluster, move || policies(&settings), labels(), ledger, 1, store);
    let mut service = service.expect("the defaults are valid");
    service.clock = clock;
    service
}

/// A service in its own thread, and connections to it.
pub struct Server {
    pub address: SocketAddr,
    agent: ureq::Agent,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// A response: status, content type and body.
pub type Response = (u16, String, Value);

impl Server {
    pub fn start(service: Service) -> Server {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                ready.send(listener.local_addr()?).expect("the test waits for the address");
                let stop = async {
                    let _ = stopped.await;
                };
                service.serve(listener, stop).await
            })
        });
        let address = listening.recv().expect("the service listens");
        Server { address, agent: agent(), stop: Some(stop), thread: Some(thread) }
    }

    /// Signals the service to stop. The service finishes requests in progress.
    pub fn stop(&mut self) {
        self.stop.take();
    }

    /// Stops the service and returns its result.
    pub fn end(mut self) -> io::Result<()> {
        self.stop();
        self.thread.take().expect("the service stops once").join().expect("the service does not panic")
    }

    pub fn get(&self, path: &str) -> Response {
        read_response(self.agent.get(self.url(path)).call())
    }

    /// Returns metrics that include everything acknowledged. The metrics show the last network snapshot, and a request
    /// for the status makes a new snapshot.
    pub fn metrics(&self) -> String {
        assert_eq!(self.get("/v1/status").0, 200);
        let mut response = self.agent.get(self.url("/metrics")).call().expect("the server answers");
        let media = response.headers()["content-type"].to_str().expect("text").to_owned();
        assert!(media.starts_with("application/openmetrics-text"), "{media}");
        response.body_mut().read_to_string().expect("text")
    }

    pub fn delete(&self, path: &str) -> Response {
        read_response(self.agent.delete(self.url(path)).call())
    }

    pub fn put(&self, path: &str, body: &Value) -> Response {
        let request = self.agent.put(self.url(path)).header("content-type", "application/json");
        read_response(request.send(body.to_string()))
    }

    pub fn patch(&self, path: &str, body: &Value, version: &str) -> (u16, Value) {
        let request = self.agent.patch(self.url(path)).header("content-type", "application/json");
        let (status, _, body) = read_response(request.header("if-match", version).send(body.to_string()));
        (status, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.post_text(path, "application/json", &body.to_string())
    }

    pub fn post_text(&self, path: &str, media_type: &str, body: &str) -> Response {
        read_response(self.agent.post(self.url(path)).header("content-type", media_type).send(body))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Reports the loads of links in the second before the time of the frozen clock.
    pub fn report(&self, links: &[(String, f64)]) {
        let links: Vec<Value> =
            links.iter().map(|(link, load_bps)| json!({ "link": link, "load_bps": load_bps })).collect();
        let (from, until) = ("2026-01-31T12:00:09Z", "2026-01-31T12:00:10Z");
        let response = self.post("/v1/reports", &json!({ "from": from, "until": until, "links": links }));
        assert_eq!(response.0, 200, "{response:?}");
    }
}

/// Loads of all links of three racks of two hosts: zero, except for one link.
pub fn idle_but(link: &str, load: f64) -> Vec<(String, f64)> {
    let links = ["r0:downlink", "r1:downlink", "r2:downlink"].map(str::to_owned);
    let hosts = (0..3).flat_map(|rack| (0..2).map(move |host| format!("r{rack}h{host}:ingress")));
    let links = links.into_iter().chain(hosts);
    links.map(|name| if name == link { (name, load) } else { (name, 0.0) }).collect()
}

/// A service whose clock the test sets, in seconds after the clock's origin.
pub fn with_clock(cluster: &str, settings: &str) -> (Server, Clock, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(10));
    let shown = seconds.clone();
    let now = move || Nanos(shown.load(Ordering::SeqCst) * Nanos::SECOND.0);
    let clock = Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), now);
    (Server::start(service(cluster, settings, clock.clone())), clock, seconds)
}

/// Reports loads over the last second.
pub fn report(server: &Server, clock: &Clock, links: &[(&str, f64)], tasks: &[Value]) {
    let links: Vec<Value> =
        links.iter().map(|(link, load_bps)| json!({ "link": link, "load_bps": load_bps })).collect();
    let (from, until) = (clock.text(clock.now().since(Nanos::SECOND)), clock.text(clock.now()));
    let body = json!({ "from": from, "until": until, "links": links, "tasks": tasks });
    let (status, _, answer) = server.post("/v1/reports", &body);
    assert_eq!(status, 200, "{answer}");
}

pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

fn read_response(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Response {
    let mut response = response.expect("the service answers");
    let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let (status, media_type) = (response.status().as_u16(), media_type.unwrap_or_default().to_owned());
    let text = response.body_mut().with_config().limit(1 << 30).read_to_string().expect("the body is text");
    (status, media_type, serde_json::from_str(&text).expect("the body is JSON"))
}
