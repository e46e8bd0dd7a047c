//! The measured processes, each on its own core.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::post;
use serde_json::Value;

use crate::requests::Tokens;

/// Approximate size of a placement response, in bytes.
const DECISION: usize = 1_500;

/// A running service. Dropping it kills the process.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
    /// Token for requests of metrics.
    token: Option<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Binds a process to a core.
pub fn pin(process: u32, core: usize) {
    let output =
        Command::new("taskset").args(["-a", "-c", "-p", &core.to_string(), &process.to_string()]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("not bound to core {core}: there is no such core, or no taskset (util-linux)");
    }
}

impl Process {
    fn start(mut command: Command) -> Process {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("taskset (util-linux) is installed");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let first = lines.next().and_then(Result::ok).expect("a line");
        let address = first.strip_prefix("listening on http://").unwrap_or_else(|| panic!("{first}"));
        let address = address.parse().expect("an address");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Process { child, address, token: None }
    }

    /// Starts `leewardd` on the other core, with its own store, named `name`.
    pub fn leewardd(folder: &Path, name: &str, durability: &str, tokens: Option<(&Tokens, &str)>) -> Process {
        let settings = folder.join(format!("{name}.yaml"));
        let cluster = folder.join("cluster.yaml");
        let (racks, hosts) = (super::RACKS, super::AGENTS / super::RACKS);
        let text = format!(
            "racks: {racks}\nhosts_per_rack: {hosts}\nnic: 1Gbps\noversubscription: 10\n\
             devices: [{{read: 50MB/s, write: 50MB/s}}]\n"
        );
        std::fs::write(&cluster, text).expect("a file");
        let mut text = format!(
            "cluster: {}\nlisten: 127.0.0.1:0\nstore: {}\ndurability: {durability}\nlimits: {{connections: 4096}}\n",
            cluster.display(),
            folder.join(format!("{name}.db")).display()
        );
        if let Some((_, file)) = tokens {
            let path = folder.join("tokens");
            std::fs::write(&path, file).expect("a file");
            text += &format!("tokens: {}\n", path.display());
        }
        std::fs::write(&settings, text).expect("a file");
        let mut command = Command::new("taskset");
        command.args(["-c", "1", env!("CARGO_BIN_EXE_leewardd"), "--config"]).arg(settings);
        let mut process = Process::start(command);
        process.token = tokens.map(|(tokens, _)| tokens.placer.clone());
        process
    }

    /// Starts a service that only does HTTP and JSON.
    pub fn echo() -> Process {
        let executable = std::env::current_exe().expect("the path of the executable");
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(executable).arg("--echo");
        Process::start(command)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory, in bytes.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))
            .expect("/proc is available on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    pub fn get(&self, path: &str) -> String {
        let request = ureq::get(format!("http://{}{path}", self.address));
        let request = self
            .token
            .iter()
            .fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
        let answer = request.call().expect("the server answers");
        answer.into_body().read_to_string().expect("text")
    }
}

/// CPU time that a process has used.
pub fn used(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("/proc is available on Linux");
    // The process name in parentheses comes first and may contain any text.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    // User and system time, in hundredths of a second.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// A server that parses bodies as JSON and answers with about as many bytes as the service.
pub fn echo() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let answer = |text: String| ([(header::CONTENT_TYPE, "application/json")], text);
        let report = move |axum::Json(_): axum::Json<Value>| async move {
            answer(
                r#"{"links":2,"devices":1,"skipped":{"stale":0,"down":0,"unknown":0},"epoch":1000000}"#
                    .to_owned(),
            )
        };
        let placement = move |axum::Json(_): axum::Json<Value>| async move {
            answer(format!("\"{}\"", "x".repeat(DECISION)))
        };
        let routes =
            Router::new().route("/v1/reports", post(report)).route("/v1/place/replicas", post(placement));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        writeln!(std::io::stderr(), "listening on http://{address}").expect("stderr is open");
        axum::serve(listener, routes).await.expect("the server runs until it is killed");
    });
}
