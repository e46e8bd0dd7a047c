//! Reads datagrams that switches and routers export about their traffic (sFlow, NetFlow, IPFIX) as flows.

mod direction;
mod fields;
mod netflow;
mod records;
mod sampling;
mod sequence;
mod sflow;
mod signature;
mod templates;

use std::net::IpAddr;

pub use direction::Direction;
pub use signature::{is_port, protocol};

use crate::counter::Counter;
use crate::discards::{Discards, Reason};
use crate::flow::{Flow, Size};
use crate::packet::Tunnels;
use direction::{Directions, Way};
use sequence::Sequences;

/// Default ports of exported datagrams: sFlow, NetFlow, IPFIX.
pub const PORTS: [u16; 3] = [6343, 2055, 4739];

/// Sender and time of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Address and port of the sender; `None` for a file of messages.
    pub from: Option<(IpAddr, u16)>,
    /// Time of the capture, in nanoseconds since 1970; `None` for a file of messages.
    pub time_ns: Option<i64>,
    /// Number of the file.
    pub file: usize,
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
    /// Number of the file of messages.
    pub file: Option<usize>,
}

impl Exporter {
    /// Name in reports.
    pub fn name(&self) -> String {
        self.address.map_or_else(|| "a file of messages".into(), |address| address.to_string())
    }
}

/// Settings for reading exports.
#[derive(Clone, Debug)]
pub struct Settings {
    pub size: Size,
    /// Sampling rate of exporters that do not state a rate.
    pub sampling: Option<u32>,
    pub direction: Direction,
    pub tunnels: Tunnels,
    /// Further ports of exports.
    pub ports: Vec<u16>,
}

/// State of all exporters: the data of earlier datagrams that later ones need.
pub struct Exports {
    netflow: netflow::Exporters,
    settings: Settings,
    directions: Directions,
    sequences: Sequences,
}

impl Exports {
    /// Creates readers without known exporters.
    pub fn new(settings: Settings) -> Exports {
        let directions = Directions::new(settings.direction);
        Exports {
            netflow: netflow::Exporters::default(),
            settings,
            directions,
            sequences: Sequences::default(),
        }
    }

    /// Begins with another file.
    pub fn open_file(&mut self) {
        self.sequences.pause();
    }

    /// Reads a datagram; its first bytes determine the protocol.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, sink: &mut Sink<'_>) {
        let Exports { settings, directions, sequences, .. } = self;
        let mut context = Context { settings, directions, sequences, sink };
        match datagram {
            [0, 0, 0, 5, ..] => sflow::read(datagram, arrival, &mut context),
            [0, 5 | 9 | 10, ..] => self.netflow.read(datagram, arrival, &mut context),
            _ => {
                let sink = context.sink;
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
        let Exports { settings, directions, sequences, .. } = self;
        let mut context = Context { settings, directions, sequences, sink };
        self.netflow.finish(&mut context);
        self.directions.finish(sink.discards);
        self.sequences.finish(sink.discards);
    }
}

/// Everything that readers of datagrams share.
pub struct Context<'a, 'b> {
    settings: &'a Settings,
    directions: &'a mut Directions,
    sequences: &'a mut Sequences,
    sink: &'a mut Sink<'b>,
}

impl Context<'_, '_> {
    /// Counts a flow, unless its direction is not chosen.
    fn count(&mut self, flow: &Flow, exporter: Exporter, way: Option<Way>) {
        if self.directions.admit(flow, exporter, way, self.sink.discards) {
            (self.sink.flow)(flow, exporter, self.sink.discards);
        }
    }

    fn discard(&mut self, reason: Reason, detail: &str, bytes: u64, example: impl FnOnce() -> String) {
        self.sink.discards.count(reason, detail, bytes, example);
    }
}
