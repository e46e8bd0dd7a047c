//! What is sent: reports of agents and placements, as bytes of HTTP.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use leeward_controller::{NewToken, Role};

/// A request that was due.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// The report of an agent, of what its host carried since it reported last.
    Report {
        /// Which agent.
        agent: u64,
        /// Since the beginning.
        from: Duration,
        /// When it was due.
        due: Duration,
    },
    /// A block of this writer.
    Placement {
        /// Its host.
        writer: u64,
        /// When it was due.
        due: Duration,
    },
    /// A task of this job, which ends by itself.
    Task {
        /// The job's number.
        job: u64,
        /// When it was due.
        due: Duration,
    },
}

impl Ask {
    pub fn due(self) -> Duration {
        match self {
            Ask::Report { due, .. } | Ask::Placement { due, .. } | Ask::Task { due, .. } => due,
        }
    }
}

/// A token for each agent, which may report of its host alone unless it tells of a switch too, and one for who places.
pub struct Tokens {
    pub agents: Vec<String>,
    pub placer: String,
}

impl Tokens {
    /// Makes them, and the text of their file.
    pub fn make(agents: u64, racks: u64) -> (Tokens, String) {
        let (mut made, mut file) = (Vec::new(), String::new());
        for agent in 0..agents {
            let name = host(agents / racks, agent);
            // Who is bound to a host may not tell of a switch.
            let hosts = [name.as_str()];
            let hosts = if tells_of_rack(agents / racks, agent) { &[][..] } else { &hosts[..] };
            let NewToken { token, line } =
                NewToken::make(&name, Role::Report, hosts).expect("a name, and randomness");
            made.push(token);
            file += &format!("{line}\n");
        }
        let NewToken { token, line } = NewToken::make("placer", Role::Place, &[]).expect("randomness");
        (Tokens { agents: made, placer: token }, file + &line + "\n")
    }
}

/// Whether an agent tells of its rack's switch as well.
fn tells_of_rack(hosts_per_rack: u64, agent: u64) -> bool {
    agent.is_multiple_of(hosts_per_rack)
}

/// The name of a host.
fn host(hosts_per_rack: u64, number: u64) -> String {
    format!("r{}h{}", number / hosts_per_rack, number % hosts_per_rack)
}

/// Names and times of the cluster that reports.
pub struct Writer<'a> {
    /// When the load began.
    pub began: Timestamp,
    pub hosts_per_rack: u64,
    /// What requests carry; nothing where none is wanted.
    pub tokens: Option<&'a Tokens>,
}

impl<'a> Writer<'a> {
    pub fn new(agents: u64, racks: u64, tokens: Option<&'a Tokens>) -> Writer<'a> {
        let began = Timestamp::try_from(SystemTime::now()).expect("a time of this century");
        Writer { began, hosts_per_rack: agents / racks, tokens }
    }

    fn host(&self, number: u64) -> String {
        host(self.hosts_per_rack, number)
    }

    /// How many links and devices an agent reports.
    pub fn parts(&self, agent: u64) -> u64 {
        if tells_of_rack(self.hosts_per_rack, agent) { 5 } else { 3 }
    }

    /// Writes a request. `noise` makes loads differ.
    pub fn write(&self, ask: Ask, noise: u64, out: &mut Vec<u8>) {
        let (path, body) = match ask {
            Ask::Placement { writer, .. } => {
                ("place/replicas", format!(r#"{{"size":"256MiB","writer":"{}"}}"#, self.host(writer)))
            }
            Ask::Task { job, .. } => {
                let traffic = r#""egress":{"mean":"5Mbps","peak":"20Mbps"},"ingress":{"mean":"5Mbps"}"#;
                let app = format!(r#"{{"tasks":[{{"name":"t","cpus":1,{traffic}}}]}}"#);
                ("place/tasks", format!(r#"{{"app":{app},"job":"j{job}","lasts":"5s"}}"#))
            }
            Ask::Report { agent, from, due } => {
                let host = self.host(agent);
                let load = |link: String, most: u64, beside: &str| {
                    format!(r#"{{"link":"{link}","load_bps":{}{beside}}}"#, noise % most)
                };
                let (speed, queue) = (r#","speed_bps":1000000000"#, noise % 10_000);
                let mut links = vec![
                    load(format!("{host}:egress"), 400_000_000, &format!(r#"{speed},"queue_bytes":{queue}"#)),
                    load(format!("{host}:ingress"), 500_000_000, speed),
                ];
                if tells_of_rack(self.hosts_per_rack, agent) {
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
        let token = self.tokens.map(|tokens| match ask {
            Ask::Report { agent, .. } => &tokens.agents[agent as usize],
            Ask::Placement { .. } | Ask::Task { .. } => &tokens.placer,
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
