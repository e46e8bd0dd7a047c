//! Reads datagrams that switches and routers export about their traffic (sFlow, NetFlow, IPFIX) as flows.

mod fields;
mod netflow;
mod records;
mod sampling;
mod sflow;
mod templates;

use std::net::IpAddr;

use crate::counter::Counter;
use crate::discards::{Discards, Reason};
use crate::flow::{Flow, Size};

/// Default ports of exported datagrams: sFlow, NetFlow, IPFIX.
pub const PORTS: [u16; 3] = [6343, 2055, 4739];

/// Sender and time of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Address and port of the sender; `None` for a file of messages.
    pub from: Option<(IpAddr, u16)>,
    /// Time of the capture, in nanoseconds since 1970; `None` for a file of messages.
    pub time_ns: Option<i64>,
    /// Number of the record, for errors.
    pub record: u64,
}

/// Receiver of a datagram's contents.
pub struct Sink<'a> {
    /// Receives each flow, with its observer.
    pub flow: &'a mut dyn FnMut(&Flow, Exporter, &mut Discards),
    /// Collects counters of interfaces, if requested.
    pub counters: Option<&'a mut Vec<Counter>>,
    pub discards: &'a mut Discards,
}

/// Observer of a flow: an agent or exporter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Exporter {
    pub protocol: &'static str,
    /// Address of the exporter; `None` for a file of messages.
    pub address: Option<IpAddr>,
}

/// State of all exporters: the data of earlier datagrams that later ones need.
pub struct Exports {
    netflow: netflow::Exporters,
    sflow: sflow::Settings,
}

impl Exports {
    /// Creates readers without known exporters. `sampling` is the sampling rate of exporters that do not state a rate.
    pub fn new(size: Size, sampling: Option<u32>) -> Exports {
        Exports { netflow: netflow::Exporters::new(size, sampling), sflow: sflow::Settings { size } }
    }

    /// Reads a datagram; its first bytes determine the protocol.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, sink: &mut Sink<'_>) {
        match datagram {
            [0, 0, 0, 5, ..] => sflow::read(datagram, arrival, &self.sflow, sink),
            [0, 5 | 9 | 10, ..] => self.netflow.read(datagram, arrival, sink),
            _ => {
                let start = datagram.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
                let record = arrival.record;
                sink.discards.count(Reason::UnknownVersion, "", datagram.len() as u64, || {
                    format!("packet {record}: first bytes {start}")
                });
            }
        }
    }

    /// Counts the records that wait for options, and the sets that wait for a template.
    pub fn finish(&mut self, sink: &mut Sink<'_>) {
        self.netflow.finish(sink);
    }
}
