//! `leewardd` as a separate process, and a client for it.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::disallowed_methods, reason = "a test waits")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leeward_testing::clusters::RACKS_4X3;
use serde_json::{Value, json};

/// A service that runs until it is dropped or killed.
pub struct Process {
    pub child: Child,
    pub url: String,
    /// Log output so far.
    log: Arc<Mutex<String>>,
    agent: ureq::Agent,
}

/// The command of a service with this store and its files in the folder.
pub fn command(folder: &Path, store: &str) -> Command {
    std::fs::write(folder.join("c.yaml"), RACKS_4X3).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_leewardd"));
    command.current_dir(folder).env("HOME", folder).args(["--cluster", "c.yaml", "--listen", "127.0.0.1:0"]);
    command.args(["--policy", "sinbad:without_telemetry=default", "--store", store]);
    command
}

impl Process {
    /// Starts the service and waits until it listens.
    pub fn start(folder: &Path, store: &str) -> Process {
        Process::run(command(folder, store))
    }

    pub fn run(mut command: Command) -> Process {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let url = first.strip_prefix("listening on ").unwrap_or_else(|| panic!("{first}")).to_owned();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *kept.lock().expect("the lock is not poisoned") += &format!("{line}\n");
            }
        });
        let agent = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = agent.timeout_global(Some(Duration::from_secs(10))).build().into();
        Process { child, url, log, agent }
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("the lock is not poisoned").clone()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("`kill` is installed").success());
    }

    /// Kills the service with SIGKILL, which no process can block.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process runs");
        self.child.wait().expect("the process ends");
    }

    /// Response to a GET; `None` without a response.
    pub fn get(&self, path: &str) -> Option<(u16, Value)> {
        read_response(self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// Response to a POST without a body; `None` without a response.
    pub fn post(&self, path: &str) -> Option<(u16, Value)> {
        read_response(self.agent.post(format!("{}{path}", self.url)).send_empty())
    }

    /// Response text of a GET.
    pub fn text(&self, path: &str) -> String {
        let response = self.agent.get(format!("{}{path}", self.url)).call();
        response.and_then(|mut response| response.body_mut().read_to_string()).expect("the response is text")
    }

    /// Response to a POST with a body; `None` without a response.
    pub fn send(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.url));
        read_response(request.header("content-type", "application/json").send(body.to_string()))
    }

    /// Response to a PATCH with JSON; `None` without a response.
    pub fn patch(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.agent.patch(format!("{}{path}", self.url));
        read_response(request.header("content-type", "application/json").send(body.to_string()))
    }

    /// Response to a DELETE; `None` without a response.
    pub fn delete(&self, path: &str) -> Option<(u16, Value)> {
        read_response(self.agent.delete(format!("{}{path}", self.url)).call())
    }

    /// Response to a block placement by this client; `None` without a response.
    pub fn place(&self, client: &str, sequence: u64) -> Option<(u16, Value)> {
        let block = json!({ "size": "64MiB", "client": client, "sequence": sequence });
        self.send("/v1/place/replicas", &block)
    }

    /// Waits until the condition holds and returns the time it took.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Process) -> bool) -> Duration {
        let began = Instant::now();
        while !holds(self) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "not in half a minute: {what}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        began.elapsed()
    }

    /// Reads `/readyz`: true if this service answers placements.
    pub fn is_ready(&self) -> bool {
        self.agent.get(format!("{}/readyz", self.url)).call().is_ok_and(|response| response.status() == 200)
    }

    /// One field of the status.
    pub fn status(&self, field: &str) -> Value {
        self.get("/v1/status").map(|(_, status)| status[field].clone()).unwrap_or_default()
    }

    /// Asserts that every acknowledged decision is stored unchanged.
    pub fn assert_has_all(&self, acknowledged: &[Value]) {
        for decision in acknowledged {
            let id = decision["id"].as_str().expect("an id");
            // For a short time, a read from the store may get the status 503.
            let response = (0..20).map_while(|_| match self.get(&format!("/v1/decisions/{id}")) {
                Some((503, _)) => {
                    std::thread::sleep(Duration::from_millis(50));
                    Some(None)
                }
                response => response.map(Some),
            });
            let response = response.flatten().next();
            assert_eq!(response, Some((200, decision.clone())), "{}", self.log());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_response(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<(u16, Value)> {
    let mut response = response.ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    Some((response.status().as_u16(), serde_json::from_str(&text).ok()?))
}

/// Places one block after another from each client, until a request gets no response or `stop` returns true. Returns
/// the acknowledged decisions.
pub fn placers(
    process: &Process,
    clients: &[String],
    from: u64,
    stop: impl Fn(usize) -> bool + Sync,
) -> Vec<Value> {
    let placer = |client: &String| {
        let mut acknowledged = Vec::new();
        for sequence in from.. {
            match process.place(client, sequence) {
                Some((200 | 201, decision)) => acknowledged.push(decision),
                Some(_) => {}
                None => break,
            }
            if stop(acknowledged.len()) {
                break;
            }
        }
        acknowledged
    };
    std::thread::scope(|scope| {
        let placers: Vec<_> = clients.iter().map(|client| scope.spawn(move || placer(client))).collect();
        placers.into_iter().flat_map(|placer| placer.join().expect("the thread does not panic")).collect()
    })
}
