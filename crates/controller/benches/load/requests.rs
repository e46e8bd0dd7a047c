//! What is sent: reports of agents and placements, as bytes of HTTP.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

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
}

impl Ask {
    pub fn due(self) -> Duration {
        match self {
            Ask::Report { due, .. } | Ask::Placement { due, .. } => due,
        }
    }
}

/// Names and times of the cluster that reports.
pub struct Writer {
    /// When the load began.
    pub began: Timestamp,
    pub hosts_per_rack: u64,
}

impl Writer {
    pub fn new(agents: u64, racks: u64) -> Writer {
        let began = Timestamp::try_from(SystemTime::now()).expect("a time of this century");
        Writer { began, hosts_per_rack: agents / racks }
    }

    fn host(&self, number: u64) -> String {
        format!("r{}h{}", number / self.hosts_per_rack, number % self.hosts_per_rack)
    }

    /// How many links an agent reports: the first of each rack tells of the rack's switch as well.
    pub fn links(&self, agent: u64) -> u64 {
        if agent.is_multiple_of(self.hosts_per_rack) { 4 } else { 2 }
    }

    /// Writes a request. `noise` makes loads differ.
    pub fn write(&self, ask: Ask, noise: u64, out: &mut Vec<u8>) {
        let (path, body) = match ask {
            Ask::Placement { writer, .. } => {
                ("place/replicas", format!(r#"{{"size":"256MiB","writer":"{}"}}"#, self.host(writer)))
            }
            Ask::Report { agent, from, due } => {
                let host = self.host(agent);
                let load =
                    |link: String, most: u64| format!(r#"{{"link":"{link}","load_bps":{}}}"#, noise % most);
                let mut links = vec![
                    load(format!("{host}:egress"), 400_000_000),
                    load(format!("{host}:ingress"), 500_000_000),
                ];
                if self.links(agent) == 4 {
                    let rack = agent / self.hosts_per_rack;
                    links.push(load(format!("r{rack}:uplink"), 900_000_000));
                    links.push(load(format!("r{rack}:downlink"), 1_100_000_000));
                }
                let (from, until) = (self.began + from, self.began + due);
                ("reports", format!(r#"{{"from":"{from}","until":"{until}","links":[{}]}}"#, links.join(",")))
            }
        };
        let head = format!(
            "POST /v1/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        out.clear();
        out.extend(head.as_bytes());
        out.extend(body.as_bytes());
    }
}
