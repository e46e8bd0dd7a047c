//! What switches and routers export of the traffic they see: sFlow, NetFlow and IPFIX datagrams as flows.

mod netflow;
mod sampling;
mod sflow;

use std::net::IpAddr;

pub use sflow::Counter;

use crate::discards::{Discards, Reason};
use crate::flow::{Flow, Size};

/// The ports that datagrams of exports are sent to: sFlow, NetFlow, IPFIX.
pub const PORTS: [u16; 3] = [6343, 2055, 4739];

/// Where a datagram came from and when.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Who sent it, with its port; `None` of a file of messages.
    pub from: Option<(IpAddr, u16)>,
    /// When it was captured, in nanoseconds since 1970; `None` of a file of messages.
    pub time_ns: Option<i64>,
    /// How errors name it.
    pub record: u64,
}

/// What comes out of a datagram.
pub struct Found<'a> {
    /// Given each flow, with who saw it.
    pub flow: &'a mut dyn FnMut(&Flow, Exporter, &mut Discards),
    /// Takes counters of interfaces, where they are wanted.
    pub counters: Option<&'a mut Vec<Counter>>,
    pub discards: &'a mut Discards,
}

/// Who saw a flow: an agent or exporter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Exporter {
    pub protocol: &'static str,
    /// Its address; `None` of a file of messages.
    pub address: Option<IpAddr>,
}

/// What all exporters said so far that later datagrams rest on.
pub struct Exports {
    netflow: netflow::Exporters,
    sflow: sflow::Settings,
}

impl Exports {
    /// `sampling` is the rate of those who do not tell theirs.
    pub fn new(size: Size, sampling: Option<u32>) -> Exports {
        Exports { netflow: netflow::Exporters::new(size, sampling), sflow: sflow::Settings { size } }
    }

    /// Reads a datagram, whose first bytes say what it is.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, found: &mut Found<'_>) {
        match datagram {
            [0, 0, 0, 5, ..] => sflow::read(datagram, arrival, &self.sflow, found),
            [0, 5 | 9 | 10, ..] => self.netflow.read(datagram, arrival, found),
            _ => {
                let start = datagram.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
                let record = arrival.record;
                found.discards.count(Reason::UnknownVersion, "", datagram.len() as u64, || {
                    format!("packet {record}: it begins with {start}")
                });
            }
        }
    }

    /// Counts what still waits for a template.
    pub fn finish(&mut self, discards: &mut Discards) {
        self.netflow.finish(discards);
    }
}
