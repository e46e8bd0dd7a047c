//! The requests to send, as HTTP bytes: agents' reports and placements.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use leeward_controller::{NewToken, Role};

/// A request with its due time.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Report of an agent, over the time since its last report.
    Report {
        /// Number of the agent.
        agent: u64,
        /// Start of the window, from the start of the load.
        from: Duration,
        /// Due time, from the start of the load.
        due: Duration,
    },
    /// Placement of a block.
    Placement {
        /// Number of the writer's host.
        writer: u64,
        /// Due time, from the start of the load.
        due: Duration,
    },
    /// Placement of a task, which expires on its own.
    Task {
        /// Number of the job.
        job: u64,
        /// Due time, from the start of the load.
        due: Duration,
    },
}

impl Request {
    pub fn due(self) -> Duration {
        match self {
            Request::Report { due, .. } | Request::Placement { due, .. } | Request::Task { due, .. } => due,
        }
    }
}

/// One token per agent and one for placements. An agent's token is bound to its host unless the agent also
/// reports on a switch.
pub struct Tokens {
    pub agents: Vec<String>,
    pub placer: String,
}

impl Tokens {
    /// Creates the tokens and the text of their file.
    pub fn make(agents: u64, racks: u64) -> (Tokens, String) {
        let (mut agent_tokens, mut file) = (Vec::new(), String::new());
        for agent in 0..agents {
            let name = host(agents / racks, agent);
            // A token bound to a host cannot report on a switch.
            let hosts = [name.as_str()];
            let hosts = if reports_rack(agents / racks, agent) { &[][..] } else { &hosts[..] };
            let NewToken { token, line } = NewToken::make(&name, Role::Report, hosts)
                .expect("the name is valid, and the system has randomness");
            agent_tokens.push(token);
            file += &format!("{line}\n");
        }
        let NewToken { token, line } =
            NewToken::make("placer", Role::Place, &[]).expect("the system has randomness");
        (Tokens { agents: agent_tokens, placer: token }, file + &line + "\n")
    }
}

/// True if the agent also reports on the switch of its rack.
fn reports_rack(hosts_per_rack: u64, agent: u64) -> bool {
    agent.is_multiple_of(hosts_per_rack)
}

/// Name of a host.
fn host(hosts_per_rack: u64, number: u64) -> String {
    format!("r{}h{}", number / hosts_per_rack, number % hosts_per_rack)
}

/// Writes requests as HTTP bytes, with names, times and tokens.
pub struct Writer<'a> {
    /// Start of the load.
    pub began: Timestamp,
    pub hosts_per_rack: u64,
    /// Tokens for the requests; `None` without access control.
    pub tokens: Option<&'a Tokens>,
}

impl<'a> Writer<'a> {
    pub fn new(agents: u64, racks: u64, tokens: Option<&'a Tokens>) -> Writer<'a> {
        let began = Timestamp::try_from(SystemTime::now()).expect("the system time is a valid timestamp");
        Writer { began, hosts_per_rack: agents / racks, tokens }
    }

    fn host(&self, number: u64) -> String {
        host(self.hosts_per_rack, number)
    }

    /// Number of links and devices in an agent's report.
    pub fn parts(&self, agent: u64) -> u64 {
        if reports_rack(self.hosts_per_rack, agent) { 5 } else { 3 }
    }

    /// Writes a request into `out`. `noise` varies the loads.
    pub fn write(&self, request: Request, noise: u64, out: &mut Vec<u8>) {
        let (path, body) = match request {
            Request::Placement { writer, .. } => {
                ("place/replicas", format!(r#"{{"size":"256MiB","writer":"{}"}}"#, self.host(writer)))
            }
            Request::Task { job, .. } => {
                let traffic = r#""egress":{"mean":"5Mbps","peak":"20Mbps"},"ingress":{"mean":"5Mbps"}"#;
                let app = format!(r#"{{"tasks":[{{"name":"t","cpus":1,{traffic}}}]}}"#);
                ("place/tasks", format!(r#"{{"app":{app},"job":"j{job}","lasts":"5s"}}"#))
            }
            Request::Report { agent, from, due } => {
                let host = self.host(agent);
                let load = |link: String, most: u64, more: &str| {
                    format!(r#"{{"link":"{link}","load_bps":{}{more}}}"#, noise % most)
                };
                let (speed, queue) = (r#","speed_bps":1000000000"#, noise % 10_000);
                let mut links = vec![
                    load(format!("{host}:egress"), 400_000_000, &format!(r#"{speed},"queue_bytes":{queue}"#)),
                    load(format!("{host}:ingress"), 500_000_000, speed),
                ];
                if reports_rack(self.hosts_per_rack, agent) {
                    let rack = agent / self.hosts_per_rack;
                    links.push(load(format!("r{rack}:uplink"), 900_000_000, ""));
                    links.push(load(format!("r{rack}:downlink"), 1_100_000_000, ""));
                }
                let disk = format!(
                    r#"{{"device":"{host}:disk0","busy":0.{},"read_bps":80000000,"write_bps":40000000,"queue":0.{queue},"in_flight":{}}}"#,
                    noise % 1_000,
                    noise % 4
                );
                let (from, until, links) = (self.began + from, self.began + due, links.join(","));
                let window = format!(r#""from":"{from}","until":"{until}""#);
                ("reports", format!(r#"{{{window},"links":[{links}],"devices":[{disk}]}}"#))
            }
        };
        let token = self.tokens.map(|tokens| match request {
            Request::Report { agent, .. } => &tokens.agents[agent as usize],
            Request::Placement { .. } | Request::Task { .. } => &tokens.placer,
        });
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        out.clear();
        out.extend(head.as_bytes());
        out.extend(body.as_bytes());
    }
}
