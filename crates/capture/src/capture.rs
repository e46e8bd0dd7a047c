//! Reads files into a matrix: determines the kind of each record, the places of its traffic, and the sums of bytes and
//! packets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::net::IpAddr;

use foldhash::fast::FixedState;
use leeward_fabric::Dscp;
use leeward_fabric::input::InputError;

use crate::classes::Classes;
use crate::counter::Counter;
use crate::discards::{Discards, Reason};
use crate::exports::{self, Arrival, Exporter, Exports, Sink, is_port, protocol};
use crate::flow::Flow;
use crate::frames::{Frame, Frames, OpenError, Record, other_content};
use crate::matrix::{MOST_CELLS, Matrix, Source, Sums, name_classes};
use crate::packet::{Datagram, Packet, cooked};
use crate::places::Places;
use crate::settings::{Content, Settings};

/// Number of addresses without a place to keep in memory. At twice as many, the addresses with the fewest bytes are
/// dropped.
const MOST_UNKNOWN: usize = 50_000;
/// Largest number of fragmented exports to keep in memory.
const MOST_FRAGMENTS: usize = 4096;
/// Largest number of agents and exporters that are counted separately.
const MOST_SOURCES: usize = 10_000;
/// Largest number of counter readings in memory.
const MOST_COUNTERS: usize = 20_000_000;

/// Reads files into one matrix.
pub struct Capture {
    settings: Settings,
    exports: Exports,
    /// Fragmented exports in captured traffic, by ends and number.
    fragments: HashSet<(IpAddr, IpAddr, u32), FixedState>,
    flows: FlowSums,
    counters: Vec<Counter>,
    discards: Discards,
}

/// Sums over the flows of all files.
struct FlowSums {
    places: Places,
    classes: Option<Classes>,
    sums: Sums,
    sources: BTreeMap<(&'static str, String), Source>,
    exporters: HashMap<Exporter, Source, FixedState>,
    unknown: HashMap<IpAddr, u128, FixedState>,
}

/// A file that is being read.
pub struct OpenFile {
    name: String,
    frames: Frames,
    content: Content,
    /// Number of the file, once it has been read from.
    number: Option<usize>,
    /// Number of records read so far.
    records: u64,
    packets: Source,
}

impl OpenFile {
    /// Bytes of the file read so far; for compressed files, after decompression.
    pub fn bytes_read(&self) -> u64 {
        self.frames.bytes_read()
    }
}

impl Capture {
    /// Creates a capture without traffic.
    pub fn new(settings: Settings, places: Places) -> Capture {
        let exports = Exports::new(exports::Settings {
            size: settings.size,
            sampling: settings.sampling,
            direction: settings.direction,
            tunnels: settings.tunnels,
            ports: settings.ports.clone(),
        });
        let flows = FlowSums {
            places,
            sums: Sums::new(settings.interval_s, settings.classes.as_ref()),
            classes: settings.classes.clone(),
            sources: BTreeMap::new(),
            exporters: HashMap::default(),
            unknown: HashMap::default(),
        };
        Capture {
            settings,
            exports,
            fragments: HashSet::default(),
            flows,
            counters: Vec::new(),
            discards: Discards::default(),
        }
    }

    /// Opens a file: pcap, pcapng, or IPFIX messages, plain or gzip. The content determines the format.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has an unknown format.
    pub fn open(&self, name: &str, reader: impl Read + 'static) -> Result<OpenFile, InputError> {
        let frames = Frames::open(reader).map_err(|error| {
            let message = match error {
                OpenError::Broken(error) => error.to_string(),
                OpenError::Empty => "the file is empty".into(),
                OpenError::CutOff => "the file ends inside its header: is it truncated?".into(),
                OpenError::Version(format, major, minor) => {
                    format!("{format} version {major}.{minor}; expected pcap 2.3 or 2.4, or pcapng 1")
                }
                OpenError::Unknown(first) => {
                    let [a, b, c, d] = first;
                    let content = other_content(first).map_or(String::new(), |name| format!(" ({name})"));
                    format!(
                        "first bytes {a:02x}{b:02x}{c:02x}{d:02x}{content}; \
                         expected pcap, pcapng or a file of IPFIX messages"
                    )
                }
            };
            InputError::new(name, message)
        })?;
        let content = if frames.are_messages() { Content::Exports } else { self.settings.content };
        let packets = Source { protocol: "packets", name: name.to_owned(), ..Source::default() };
        Ok(OpenFile { name: name.to_owned(), frames, content, number: None, records: 0, packets })
    }

    /// Reads up to `records` more records of a file; returns `false` after the last record.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if there are too many cells or readings of counters.
    pub fn read(&mut self, open: &mut OpenFile, records: u64) -> Result<bool, InputError> {
        let broken = |name: &str, error: io::Error| InputError::new(name, error);
        let file = match open.number {
            Some(file) => file,
            None => {
                self.exports.open_file();
                *open.number.insert(self.discards.open_file(&open.name))
            }
        };
        self.discards.set_file(file);
        for _ in 0..records {
            match open.frames.next(&mut self.discards) {
                Ok(Some(Record::Frame(frame))) => {
                    open.records += 1;
                    // The first IP packet determines the content.
                    if open.content == Content::Auto {
                        open.content = detect_content(&frame, &self.settings);
                    }
                    if open.content == Content::Exports {
                        self.read_exported(&frame, file, open.records);
                    } else {
                        self.count_packet(&frame, open.records, &mut open.packets);
                    }
                }
                Ok(Some(Record::Message(message))) => {
                    open.records += 1;
                    let arrival = Arrival { from: None, time_ns: None, file, record: open.records };
                    self.read_datagram(message, arrival);
                }
                Ok(None) => {
                    open.frames.close(&mut self.discards).map_err(|error| broken(&open.name, error))?;
                    let packets = std::mem::take(&mut open.packets);
                    if packets.flows > 0 {
                        add(
                            self.flows.sources.entry((packets.protocol, packets.name.clone())).or_default(),
                            packets,
                        );
                    }
                    return Ok(false);
                }
                Err(error) => return Err(broken(&open.name, error)),
            }
        }
        if self.counters.len() > MOST_COUNTERS {
            let message = format!("more than {MOST_COUNTERS} readings of counters: read fewer files at once");
            return Err(InputError::new(&open.name, message));
        }
        if self.flows.sums.is_full() {
            let message = format!(
                "more than {MOST_CELLS} pairs and intervals: choose a longer interval or a coarser kind of place"
            );
            return Err(InputError::new(&open.name, message));
        }
        Ok(true)
    }

    /// The matrix of all files.
    pub fn finish(mut self) -> Matrix {
        let flows = &mut self.flows;
        let mut flow = |flow: &Flow, exporter: Exporter, discards: &mut Discards| {
            flows.count_source(exporter, flow);
            flows.take(flow, false, discards);
        };
        self.exports.finish(&mut Sink { flow: &mut flow, counters: None, discards: &mut self.discards });
        let FlowSums { places, classes, sums, mut sources, exporters, unknown } = self.flows;
        for (exporter, source) in exporters {
            let file = || self.discards.file_name(exporter.file.unwrap_or(usize::MAX)).to_owned();
            let name = exporter.address.map_or_else(file, |address| address.to_string());
            let source = Source { protocol: exporter.protocol, name: name.clone(), ..source };
            add(sources.entry((exporter.protocol, name)).or_default(), source);
        }
        self.discards.name_files();
        let mut unknown: Vec<(IpAddr, u128)> = unknown.into_iter().collect();
        unknown.sort_unstable_by_key(|&(address, bytes)| (std::cmp::Reverse(bytes), address));
        unknown.truncate(MOST_UNKNOWN);
        let places = places.names().to_vec();
        let mut pairs = sums.pairs(&places);
        Matrix {
            classes: name_classes(classes, &mut pairs),
            pairs,
            places,
            interval_s: self.settings.interval_s,
            sources: sources.into_values().collect(),
            unknown,
            discards: self.discards,
            counters: self.counters,
        }
    }

    /// Counts a packet.
    fn count_packet(&mut self, frame: &Frame<'_>, record: u64, source: &mut Source) {
        let packet = match Packet::read(frame.link_type, frame.data, frame.length, self.settings.tunnels) {
            Ok(packet) => packet,
            Err(refused) => {
                self.discards
                    .count(refused.reason, &refused.detail, frame.length, || format!("packet {record}"));
                return;
            }
        };
        if let Some(export) = self.export(&packet) {
            return self.discards.count(Reason::Export, &export, frame.length, || format!("packet {record}"));
        }
        let lengths = packet.lengths(frame.length.saturating_sub(cooked(frame.link_type)));
        let flow = Flow {
            start_ns: frame.time_ns,
            end_ns: frame.time_ns,
            source: packet.source,
            destination: packet.destination,
            ports: packet.ports,
            dscp: packet.dscp,
            bytes: self.settings.size.of(lengths.frame, lengths.ip),
            packets: 1,
            rate: self.settings.sampling.unwrap_or(1),
        };
        if lengths.contradict {
            let bytes = flow.bytes.saturating_mul(flow.rate.into());
            self.discards.count(Reason::LengthMismatch, "", bytes, || {
                format!("packet {record}: frame of {} bytes, IP packet of {}", frame.length, lengths.ip)
            });
        }
        source.flows += 1;
        source.bytes += u128::from(flow.bytes) * u128::from(flow.rate);
        self.flows.take(&flow, packet.fragment, &mut self.discards);
    }

    /// Protocol and port of a packet that is an exported datagram, or a fragment of one.
    #[inline]
    fn export(&mut self, packet: &Packet<'_>) -> Option<String> {
        let name = protocol(packet, &self.settings.ports);
        if name.is_none() && !packet.later_fragment {
            return None;
        }
        let key = (packet.source, packet.destination, packet.identification);
        let Some((name, (_, to))) = name.zip(packet.ports) else {
            return self.fragments.contains(&key).then(|| "fragment".into());
        };
        if packet.fragment {
            if self.fragments.len() >= MOST_FRAGMENTS {
                self.fragments.clear();
            }
            self.fragments.insert(key);
        }
        Some(format!("{name} to port {to}"))
    }

    /// Reads a packet as an exported datagram.
    fn read_exported(&mut self, frame: &Frame<'_>, file: usize, record: u64) {
        let mut refuse = |reason, detail: &str| {
            self.discards.count(reason, detail, frame.length, || format!("packet {record}"))
        };
        let packet = match Packet::read(frame.link_type, frame.data, frame.length, self.settings.tunnels) {
            Ok(packet) => packet,
            Err(refused) => return refuse(refused.reason, &refused.detail),
        };
        let ports = &self.settings.ports;
        let recognized = protocol(&packet, ports);
        let is_export = |to| is_port(to, ports) || recognized.is_some();
        let Some((from, to)) = packet.ports.filter(|&(_, to)| is_export(to)) else {
            let reason = if packet.fragment { Reason::Fragment } else { Reason::NotAnExport };
            return refuse(reason, "");
        };
        match packet.datagram() {
            Datagram::Whole(datagram) => {
                if let Some(name) = recognized.filter(|_| !is_port(to, ports)) {
                    refuse(Reason::RecognizedExport, &format!("{name}, as with --port {to}"));
                }
                let from = Some((packet.source, from));
                self.read_datagram(datagram, Arrival { from, time_ns: Some(frame.time_ns), file, record });
            }
            Datagram::CutOff => refuse(Reason::CutOffDatagram, ""),
            Datagram::Fragment => refuse(Reason::Fragment, ""),
            Datagram::Other => refuse(Reason::NotAnExport, ""),
        }
    }

    fn read_datagram(&mut self, datagram: &[u8], arrival: Arrival) {
        let flows = &mut self.flows;
        let mut flow = |flow: &Flow, exporter: Exporter, discards: &mut Discards| {
            flows.count_source(exporter, flow);
            flows.take(flow, false, discards);
        };
        let counters = self.settings.counters.then_some(&mut self.counters);
        let mut sink = Sink { flow: &mut flow, counters, discards: &mut self.discards };
        self.exports.read(datagram, arrival, &mut sink);
    }
}

impl FlowSums {
    /// Counts a flow from its source place to its destination place.
    fn take(&mut self, flow: &Flow, fragment: bool, discards: &mut Discards) {
        let ends = (flow.source, flow.destination);
        let (source, destination) = match self.places.of(ends, flow.ports) {
            (Some(source), Some(destination)) => (source, destination),
            found => {
                let scaled = u128::from(flow.bytes) * u128::from(flow.rate);
                let bytes = u64::try_from(scaled).unwrap_or(u64::MAX);
                let example = || format!("{} to {}", flow.source, flow.destination);
                if fragment && self.places.needs_ports() && flow.ports.is_none() {
                    return discards.count(Reason::Fragment, "", bytes, example);
                }
                let detail = match found {
                    (_, None) if flow.destination.is_multicast() => "multicast",
                    (_, None) if flow.destination == std::net::Ipv4Addr::BROADCAST => "broadcast",
                    (None, None) => "both ends",
                    (None, _) => "source",
                    (_, None) => "destination",
                    _ => "",
                };
                discards.count(Reason::NoPlace, detail, bytes, example);
                for (address, place) in [(flow.source, found.0), (flow.destination, found.1)] {
                    if place.is_none() {
                        self.count_unknown_address(address, scaled);
                    }
                }
                return;
            }
        };
        let class = match &self.classes {
            None => 0,
            Some(classes) => match flow.dscp.and_then(|point| classes.of(point)) {
                Some(class) => class,
                None => {
                    let detail = flow.dscp.map_or_else(|| "not stated".into(), Dscp::name);
                    let bytes = flow.bytes.saturating_mul(flow.rate.into());
                    let example = || format!("{} to {}", flow.source, flow.destination);
                    return discards.count(Reason::NoClass, &detail, bytes, example);
                }
            },
        };
        if let Err(limit) = self.sums.add(flow, class, source, destination) {
            let example = || format!("{} to {}", flow.source, flow.destination);
            discards.count(Reason::NotPlausible, limit.name(), flow.bytes, example);
        }
    }

    fn count_source(&mut self, exporter: Exporter, flow: &Flow) {
        let room = self.exporters.len() < MOST_SOURCES || self.exporters.contains_key(&exporter);
        let exporter = if room { exporter } else { Exporter { address: None, file: None, ..exporter } };
        let source = self.exporters.entry(exporter).or_default();
        source.flows += 1;
        source.bytes += u128::from(flow.bytes) * u128::from(flow.rate);
    }

    fn count_unknown_address(&mut self, address: IpAddr, bytes: u128) {
        *self.unknown.entry(address).or_default() += bytes;
        if self.unknown.len() >= 2 * MOST_UNKNOWN {
            let mut all: Vec<(IpAddr, u128)> = self.unknown.drain().collect();
            all.sort_unstable_by_key(|&(address, bytes)| (std::cmp::Reverse(bytes), address));
            self.unknown.extend(all.into_iter().take(MOST_UNKNOWN));
        }
    }
}

fn add(to: &mut Source, from: Source) {
    let (flows, bytes) = (to.flows + from.flows, to.bytes + from.bytes);
    *to = Source { flows, bytes, ..from };
}

/// Content of a file, determined from one of its packets; `Auto` if the packet does not determine it.
fn detect_content(frame: &Frame<'_>, settings: &Settings) -> Content {
    let Ok(packet) = Packet::read(frame.link_type, frame.data, frame.length, settings.tunnels) else {
        return Content::Auto;
    };
    let is_cut_off = packet.ports.is_some_and(|(_, to)| is_port(to, &settings.ports))
        && matches!(packet.datagram(), Datagram::CutOff);
    if is_cut_off || protocol(&packet, &settings.ports).is_some() {
        Content::Exports
    } else {
        Content::Packets
    }
}
