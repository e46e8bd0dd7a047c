//! NetFlow 5 and 9 and IPFIX: records of flows. Exporters send the layout of records in templates, and their sampling
//! in options.
//!
//! netflow_parser parses the datagrams and limits the memory that they can take. Each exporter has its own templates.
//! Records that arrive before their template wait for it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netflow_parser::static_versions::v5::V5;
use netflow_parser::variable_versions::ipfix::{FlowSetBody as IpfixBody, IPFix};
use netflow_parser::variable_versions::v9::{FlowSetBody as V9Body, V9};
use netflow_parser::{FieldValue, NetflowPacket, NetflowParser, PendingFlowsConfig};

use super::fields::{Clock, Fields, MILLI, SECOND, end, field, start};
use super::sampling::{Rate, Sampling};
use super::{Arrival, Exporter, Sink};
use crate::discards::{Discards, Reason};
use crate::flow::{ETHERNET, Flow, Size};
use crate::matrix::MOST_BYTES;

/// Largest number of exporters, each with its own templates.
const MOST_EXPORTERS: usize = 4096;
/// Largest number of bytes of one exporter that wait for templates.
const MOST_WAITING: usize = 4 << 20;
/// Largest number of records of one set, which has at most 65,535 bytes.
const MOST_RECORDS: usize = 65_535;
/// Longest duration of a record; exporters end a flow after some minutes.
const LONGEST_NS: i64 = 30 * 86_400 * 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: u16,
    from: Option<IpAddr>,
    /// IPFIX has templates per session, which includes the port; NetFlow has templates per exporter.
    port: u16,
    domain: u32,
}

struct ExporterState {
    parser: NetflowParser,
    sampling: Sampling,
    boot_ns: Option<i64>,
}

pub struct Exporters {
    size: Size,
    sampling: Option<u32>,
    exporters: BTreeMap<Key, ExporterState>,
}

impl Exporters {
    pub fn new(size: Size, sampling: Option<u32>) -> Exporters {
        Exporters { size, sampling, exporters: BTreeMap::new() }
    }

    /// Reads a datagram with a known version.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, sink: &mut Sink<'_>) {
        let word = |offset: usize| {
            let bytes = datagram.get(offset..offset + 4).unwrap_or_default();
            bytes.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte))
        };
        let version = (word(0) >> 16) as u16;
        let key = Key {
            version,
            from: arrival.from.map(|(address, _)| address),
            port: arrival.from.map_or(0, |(_, port)| if version == 10 { port } else { 0 }),
            domain: match version {
                9 => word(16),
                10 => word(12),
                _ => 0,
            },
        };
        if !self.exporters.contains_key(&key) && self.exporters.len() >= MOST_EXPORTERS {
            sink.discards.count(Reason::TooManyExporters, "", datagram.len() as u64, || {
                format!("packet {}", arrival.record)
            });
            return;
        }
        let state = self.exporters.entry(key).or_insert_with(ExporterState::new);
        let mut reader = DatagramReader {
            exporter: exporter(&key),
            arrival,
            size: self.size,
            default_rate: self.sampling,
            sink,
        };
        let waiting = state.waiting();
        let (mut sets, mut records) = (0, 0);
        for packet in state.parser.iter_packets(datagram) {
            match packet {
                Ok(NetflowPacket::V5(packet)) => {
                    records += packet.flowsets.len();
                    reader.v5(&packet);
                }
                Ok(NetflowPacket::V9(packet)) => {
                    sets += packet.flowsets.len();
                    reader.v9(&packet, &mut state.sampling);
                }
                Ok(NetflowPacket::IPFix(packet)) => {
                    sets += packet.flowsets.len();
                    reader.ipfix(&packet, &mut state.sampling, &mut state.boot_ns);
                }
                Ok(_) | Err(_) => break,
            }
        }
        // The library skips the bytes after an inconsistency. The number of parsed sets is therefore compared with the
        // number of sets in the datagram. Sets that now wait for a template are not among the parsed sets; sets whose
        // template has arrived are.
        let (expected, trailing) = framing(datagram, version);
        let parsed = if version == 5 { records } else { (sets + state.waiting()).saturating_sub(waiting) };
        if trailing >= 4 || parsed < expected {
            reader.broken(if parsed < expected { datagram.len() } else { trailing });
        }
    }

    /// Counts the sets that still wait for their template.
    pub fn finish(&mut self, discards: &mut Discards) {
        for (key, state) in &self.exporters {
            for info in [state.parser.v9_cache_info(), state.parser.ipfix_cache_info()] {
                let lost = info.metrics.pending_cached.saturating_sub(info.metrics.pending_replayed);
                discards.count_many(Reason::NoTemplate, lost, || {
                    let from = key.from.map_or("a file".into(), |from| from.to_string());
                    format!("exporter {from}, domain {}", key.domain)
                });
            }
        }
        self.exporters.clear();
    }
}

impl ExporterState {
    fn new() -> ExporterState {
        // Without these limits an exporter could fill the memory.
        let mut waiting = PendingFlowsConfig::default();
        waiting.max_total_bytes = MOST_WAITING;
        let parser = NetflowParser::builder()
            .with_allowed_versions(&[5, 9, 10])
            .with_max_records_per_flowset(MOST_RECORDS)
            .with_pending_flows(waiting)
            .build();
        let parser = parser.expect("the versions are known, and no limit is 0");
        ExporterState { parser, sampling: Sampling::default(), boot_ns: None }
    }

    /// Number of sets that wait for a template.
    fn waiting(&self) -> usize {
        let waiting = [self.parser.v9_cache_info(), self.parser.ipfix_cache_info()]
            .map(|info| info.metrics.pending_cached.saturating_sub(info.metrics.pending_replayed));
        waiting.iter().sum::<u64>() as usize
    }
}

fn exporter(key: &Key) -> Exporter {
    let protocol = match key.version {
        5 => "netflow 5",
        9 => "netflow 9",
        _ => "ipfix",
    };
    Exporter { protocol, address: key.from }
}

/// A datagram that is being read.
struct DatagramReader<'a, 'b> {
    exporter: Exporter,
    arrival: Arrival,
    size: Size,
    /// The sampling rate of exporters that do not state a rate.
    default_rate: Option<u32>,
    sink: &'a mut Sink<'b>,
}

/// Content of one record, in one direction.
struct RecordContent {
    ends: (Option<IpAddr>, Option<IpAddr>),
    ports: Option<(u16, u16)>,
    octets: Option<u64>,
    frame_octets: Option<u64>,
    packets: Option<u64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl DatagramReader<'_, '_> {
    fn v5(&mut self, packet: &V5) {
        let header = &packet.header;
        let clock = Clock {
            sent_ns: i64::from(header.unix_secs) * SECOND + i64::from(header.unix_nsecs.min(999_999_999)),
            uptime_ms: Some(header.sys_up_time),
            boot_ns: None,
        };
        // The upper two bits are the sampling mode.
        let rate = match header.sampling_interval & 0x3fff {
            0 => Rate::Unknown,
            rate => Rate::Stated(rate.into()),
        };
        for record in &packet.flowsets {
            let content = RecordContent {
                ends: (Some(record.src_addr.into()), Some(record.dst_addr.into())),
                ports: ports(record.protocol_number, Some(record.src_port), Some(record.dst_port)),
                octets: Some(record.d_octets.into()),
                frame_octets: None,
                packets: Some(record.d_pkts.into()),
                start_ns: clock.at_uptime(record.first.into()),
                end_ns: clock.at_uptime(record.last.into()),
            };
            self.take(content, rate, clock);
        }
    }

    fn v9(&mut self, packet: &V9, sampling: &mut Sampling) {
        let header = &packet.header;
        let clock = Clock {
            sent_ns: i64::from(header.unix_secs) * SECOND,
            uptime_ms: Some(header.sys_up_time),
            boot_ns: None,
        };
        for set in &packet.flowsets {
            match &set.body {
                V9Body::Data(data) => {
                    for record in &data.fields {
                        self.record(&Fields::of_v9(record), sampling, clock);
                    }
                }
                V9Body::OptionsData(data) => {
                    for record in &data.fields {
                        self.late(sampling.learn(&Fields::of_v9(&record.options_fields)));
                    }
                }
                V9Body::NoTemplate(_) => self.no_template(set.header.flowset_id),
                V9Body::Template(_) | V9Body::OptionsTemplate(_) | V9Body::Empty => {}
            }
        }
    }

    fn ipfix(&mut self, packet: &IPFix, sampling: &mut Sampling, boot_ns: &mut Option<i64>) {
        let mut clock = Clock {
            sent_ns: i64::from(packet.header.export_time) * SECOND,
            uptime_ms: None,
            boot_ns: *boot_ns,
        };
        for set in &packet.flowsets {
            match &set.body {
                IpfixBody::Data(data) => {
                    for record in &data.fields {
                        self.record(&Fields::of_ipfix(record), sampling, clock);
                    }
                }
                IpfixBody::OptionsData(data) => {
                    for record in &data.fields {
                        let options = Fields::of_ipfix(record);
                        self.late(sampling.learn(&options));
                        if let Some(boot) = options.time(field::BOOT_MS, MILLI) {
                            (*boot_ns, clock.boot_ns) = (Some(boot), Some(boot));
                        }
                    }
                }
                IpfixBody::V9Data(data) => {
                    for record in &data.fields {
                        self.record(&Fields::of_v9(record), sampling, clock);
                    }
                }
                IpfixBody::V9OptionsData(data) => {
                    for record in &data.fields {
                        self.late(sampling.learn(&Fields::of_v9(&record.options_fields)));
                    }
                }
                IpfixBody::NoTemplate(_) => self.no_template(set.header.header_id),
                _ => {}
            }
        }
    }

    /// Reads a record, which has one flow, or both directions of one connection.
    fn record(&mut self, fields: &Fields<'_>, sampling: &mut Sampling, clock: Clock) {
        let (source, destination) = (
            fields.address(field::SOURCE_IPV4, field::SOURCE_IPV6),
            fields.address(field::DESTINATION_IPV4, field::DESTINATION_IPV6),
        );
        let port = |number| fields.number(number).and_then(|port| u16::try_from(port).ok());
        let protocol = fields.get(4).and_then(FieldValue::as_u8);
        let ports = ports(protocol.unwrap_or(6), port(field::SOURCE_PORT), port(field::DESTINATION_PORT));
        let rate = sampling.of(fields);
        let start_ns = start(fields, clock);
        let content = RecordContent {
            ends: (source, destination),
            ports,
            octets: fields.number(field::OCTETS).or_else(|| fields.number(field::INITIATOR_OCTETS)),
            frame_octets: fields.number(field::LAYER_2_OCTETS),
            packets: fields.number(field::PACKETS).or_else(|| fields.number(field::INITIATOR_PACKETS)),
            start_ns,
            end_ns: end(fields, clock),
        };
        let back =
            fields.number(field::RESPONDER_OCTETS).filter(|&octets| octets > 0).map(|octets| RecordContent {
                ends: (destination, source),
                ports: ports.map(|(from, to)| (to, from)),
                octets: Some(octets),
                frame_octets: None,
                packets: fields.number(field::RESPONDER_PACKETS),
                ..content
            });
        self.take(content, rate, clock);
        if let Some(back) = back {
            self.take(back, rate, clock);
        }
    }

    fn take(&mut self, content: RecordContent, rate: Rate, clock: Clock) {
        let (Some(source), Some(destination)) = content.ends else {
            return self.refuse(Reason::NoAddresses, "", content.octets.unwrap_or(0));
        };
        let octets = content.octets.filter(|&octets| octets > 0 || content.packets == Some(0));
        let Some(ip_bytes) = octets.or(content.frame_octets.filter(|_| self.size == Size::Frame)) else {
            return self.refuse(Reason::NoBytes, "", 0);
        };
        // A record without a packet count describes at least one packet.
        let packets = content.packets.unwrap_or(1).max(1);
        let added = packets.checked_mul(ETHERNET).and_then(|added| ip_bytes.checked_add(added));
        let frame_bytes = content.frame_octets.or(added);
        let bytes = frame_bytes.map(|frame| self.size.of(frame, ip_bytes));
        let rate = match (rate, self.default_rate) {
            (Rate::Stated(rate), _) => rate,
            (Rate::Unknown, Some(rate)) => rate,
            (Rate::Unknown, None) => {
                self.refuse(Reason::NoRate, "", ip_bytes);
                1
            }
        };
        let scaled =
            |count: Option<u64>| count?.checked_mul(rate.into()).filter(|&all| u128::from(all) <= MOST_BYTES);
        let (Some(bytes), Some(_), Some(_)) = (bytes, scaled(bytes), scaled(Some(packets))) else {
            return self.refuse(Reason::NotPlausible, "bytes", 0);
        };
        let sent = clock.sent_ns;
        let (start_ns, end_ns) = match (content.start_ns, content.end_ns) {
            (Some(start), Some(end)) if start <= end && end.saturating_sub(start) <= LONGEST_NS => {
                (start, end)
            }
            (None, Some(at)) | (Some(at), None) => (at, at),
            _ => {
                self.refuse(Reason::NoFlowTime, "", bytes);
                (sent, sent)
            }
        };
        let flow = Flow { start_ns, end_ns, source, destination, ports: content.ports, bytes, packets, rate };
        (self.sink.flow)(&flow, self.exporter, self.sink.discards);
    }

    fn refuse(&mut self, reason: Reason, detail: &str, bytes: u64) {
        let (record, protocol) = (self.arrival.record, self.exporter.protocol);
        self.sink.discards.count(reason, detail, bytes, || format!("packet {record}: {protocol}"));
    }

    fn no_template(&mut self, id: u16) {
        let record = self.arrival.record;
        self.sink.discards.count(Reason::NoTemplate, "", 0, || format!("packet {record}: template {id}"));
    }

    fn broken(&mut self, bytes: usize) {
        self.refuse(Reason::BrokenDatagram, self.exporter.protocol, bytes as u64);
    }

    fn late(&mut self, records: u64) {
        let (record, protocol) = (self.arrival.record, self.exporter.protocol);
        self.sink.discards.count_many(Reason::LateRate, records, || {
            format!("packet {record}: {protocol}: the rate arrived after {records} records")
        });
    }
}

/// Number of sets in a datagram (records for NetFlow 5), and number of trailing bytes outside of all sets.
fn framing(datagram: &[u8], version: u16) -> (usize, usize) {
    let word = |bytes: &[u8], at: usize| {
        Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
    };
    let (mut sets, mut rest) = (0, datagram);
    while let [0, 5 | 9 | 10, ..] = rest {
        let message = match version {
            5 => {
                let records = word(rest, 2).unwrap_or(0);
                return (records, datagram.len().saturating_sub(24 + 48 * records));
            }
            9 => rest.len(),
            _ => word(rest, 2).filter(|&length| length >= 16).unwrap_or(rest.len()).min(rest.len()),
        };
        let (body, after) = rest.split_at(message);
        let mut body = body.get(if version == 9 { 20 } else { 16 }..).unwrap_or_default();
        while let Some(length) = word(body, 2).filter(|length| (4..=body.len()).contains(length)) {
            (sets, body) = (sets + 1, &body[length..]);
        }
        if body.len() >= 4 {
            return (sets, body.len() + after.len());
        }
        rest = after;
    }
    (sets, rest.len())
}

fn ports(protocol: u8, source: Option<u16>, destination: Option<u16>) -> Option<(u16, u16)> {
    source.zip(destination).filter(|_| [6, 17, 33, 132].contains(&protocol))
}
