//! NetFlow 5 and 9 and IPFIX: records of flows. Exporters send the layout of records in templates, and their sampling
//! in options.
//!
//! netflow_parser parses the datagrams and limits the memory that they can take. Each exporter has its own templates.
//! Records that arrive before their template wait for it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netflow_parser::static_versions::v5::V5;
use netflow_parser::variable_versions::field_value::DurationValue;
use netflow_parser::variable_versions::ipfix::lookup::IPFixField;
use netflow_parser::variable_versions::ipfix::{FlowSetBody as IpfixBody, IPFix};
use netflow_parser::variable_versions::v9::{FlowSetBody as V9Body, V9};
use netflow_parser::{
    DataNumber, FieldValue, IpfixFieldPair, NetflowPacket, NetflowParser, PendingFlowsConfig, V9FieldPair,
};

use super::sampling::{Rate, Sampling};
use super::{Arrival, Exporter, Found};
use crate::discards::{Discards, Reason};
use crate::flow::{ETHERNET, Flow, Size};
use crate::matrix::MOST_BYTES;

/// Most exporters that are kept apart, each with its templates.
const MOST_EXPORTERS: usize = 4096;
/// Most bytes of an exporter that wait for templates.
const MOST_WAITING: usize = 4 << 20;
/// Most records of one set, which has at most 65,535 bytes.
const MOST_RECORDS: usize = 65_535;
/// Longest duration of a record; exporters end a flow after minutes.
const LONGEST_NS: i64 = 30 * 86_400 * 1_000_000_000;
/// Seconds from 1900, where NTP begins, to 1970.
const NTP_S: i64 = 2_208_988_800;
const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// Field numbers (RFC 7012 and IANA; NetFlow 9 has the same numbers, RFC 3954).
pub mod field {
    pub const OCTETS: u16 = 1;
    pub const PACKETS: u16 = 2;
    pub const SOURCE_PORT: u16 = 7;
    pub const SOURCE_IPV4: u16 = 8;
    pub const DESTINATION_PORT: u16 = 11;
    pub const DESTINATION_IPV4: u16 = 12;
    pub const END_UPTIME: u16 = 21;
    pub const START_UPTIME: u16 = 22;
    pub const SOURCE_IPV6: u16 = 27;
    pub const DESTINATION_IPV6: u16 = 28;
    pub const SAMPLING_INTERVAL: u16 = 34;
    pub const SAMPLER: u16 = 48;
    pub const SAMPLER_INTERVAL: u16 = 50;
    pub const START_S: u16 = 150;
    pub const END_S: u16 = 151;
    pub const START_MS: u16 = 152;
    pub const END_MS: u16 = 153;
    pub const START_US: u16 = 154;
    pub const END_US: u16 = 155;
    pub const START_NS: u16 = 156;
    pub const END_NS: u16 = 157;
    pub const START_DELTA_US: u16 = 158;
    pub const END_DELTA_US: u16 = 159;
    pub const BOOT_MS: u16 = 160;
    pub const INITIATOR_OCTETS: u16 = 231;
    pub const RESPONDER_OCTETS: u16 = 232;
    pub const INITIATOR_PACKETS: u16 = 298;
    pub const RESPONDER_PACKETS: u16 = 299;
    pub const SELECTOR: u16 = 302;
    pub const PACKET_INTERVAL: u16 = 305;
    pub const PACKET_SPACE: u16 = 306;
    pub const SAMPLE_SIZE: u16 = 309;
    pub const SAMPLE_POPULATION: u16 = 310;
    pub const PROBABILITY: u16 = 311;
    pub const LAYER_2_OCTETS: u16 = 352;
}

/// The fields of a record, by number. Enterprise-specific fields are left out.
pub struct Fields<'a>(Vec<(u16, &'a FieldValue)>);

impl<'a> Fields<'a> {
    fn of_v9(pairs: &'a [V9FieldPair]) -> Fields<'a> {
        Fields(pairs.iter().map(|(field, value)| (u16::from(*field), value)).collect())
    }

    fn of_ipfix(pairs: &'a [IpfixFieldPair]) -> Fields<'a> {
        let number = |field: &IPFixField| match field {
            IPFixField::IANA(field) => Some(number_of(*field)),
            _ => None,
        };
        Fields(pairs.iter().filter_map(|(field, value)| Some((number(field)?, value))).collect())
    }

    fn get(&self, number: u16) -> Option<&'a FieldValue> {
        self.0.iter().find(|(found, _)| *found == number).map(|(_, value)| *value)
    }

    pub fn number(&self, number: u16) -> Option<u64> {
        match self.get(number)? {
            // A length for which the library has no type, which exporters may choose (RFC 7011 section 6.2).
            FieldValue::DataNumber(DataNumber::Vec(bytes)) | FieldValue::Vec(bytes) if bytes.len() <= 8 => {
                Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
            }
            value => value.as_u64(),
        }
    }

    pub fn float(&self, number: u16) -> Option<f64> {
        match self.get(number)? {
            FieldValue::Float64(value) => Some(*value),
            _ => None,
        }
    }

    fn address(&self, ipv4: u16, ipv6: u16) -> Option<IpAddr> {
        let found = |number| match self.get(number)? {
            FieldValue::Ip4Addr(address) => Some(IpAddr::from(*address)),
            FieldValue::Ip6Addr(address) => Some(IpAddr::from(*address)),
            _ => None,
        };
        // Records for both address families set the unused one to 0.
        let (four, six) = (found(ipv4), found(ipv6));
        four.filter(|address| !address.is_unspecified())
            .or(six.filter(|a| !a.is_unspecified()))
            .or(four)
            .or(six)
    }

    /// A time since 1970 in nanoseconds.
    fn time(&self, number: u16, unit_ns: i64) -> Option<i64> {
        match self.get(number)? {
            FieldValue::Duration(
                DurationValue::MicrosNtp { seconds, fraction }
                | DurationValue::NanosNtp { seconds, fraction },
            ) => {
                let fraction = (u64::from(*fraction) * SECOND as u64) >> 32;
                Some((i64::from(*seconds) - NTP_S) * SECOND + fraction as i64)
            }
            // The library gives durations in milliseconds.
            FieldValue::Duration(_) => i64::try_from(self.number(number)?).ok()?.checked_mul(MILLI),
            _ => i64::try_from(self.number(number)?).ok()?.checked_mul(unit_ns),
        }
    }
}

/// Number of a field, for which the library has names.
fn number_of(field: netflow_parser::variable_versions::ipfix::lookup::IANAIPFixField) -> u16 {
    use netflow_parser::variable_versions::ipfix::lookup::IANAIPFixField as Iana;
    use std::sync::LazyLock;
    static NUMBERS: LazyLock<BTreeMap<Iana, u16>> =
        LazyLock::new(|| (0..=600).map(|number| (Iana::from(number), number)).collect());
    match field {
        Iana::Unknown(number) => number,
        known => NUMBERS.get(&known).copied().unwrap_or(u16::MAX),
    }
}

/// The clock of an exporter, from a datagram's header.
#[derive(Clone, Copy)]
struct Clock {
    /// Time of sending, in nanoseconds since 1970.
    sent_ns: i64,
    /// Uptime of the exporter, in milliseconds; IPFIX does not state it.
    uptime_ms: Option<u32>,
    /// Start of the exporter, in nanoseconds since 1970; IPFIX may state it in options.
    boot_ns: Option<i64>,
}

impl Clock {
    /// Time at an uptime in milliseconds. The number wraps around after 49.7 days.
    fn at_uptime(self, uptime_ms: u64) -> Option<i64> {
        if let Some(boot) = self.boot_ns {
            return boot.checked_add(i64::try_from(uptime_ms).ok()?.checked_mul(MILLI)?);
        }
        let age = self.uptime_ms?.wrapping_sub(u32::try_from(uptime_ms).ok()?);
        Some(self.sent_ns - i64::from(age) * MILLI)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: u16,
    from: Option<IpAddr>,
    /// IPFIX has templates per session, which has a port; NetFlow only per exporter.
    port: u16,
    domain: u32,
}

struct Known {
    parser: NetflowParser,
    sampling: Sampling,
    boot_ns: Option<i64>,
}

pub struct Exporters {
    size: Size,
    sampling: Option<u32>,
    known: BTreeMap<Key, Known>,
}

impl Exporters {
    pub fn new(size: Size, sampling: Option<u32>) -> Exporters {
        Exporters { size, sampling, known: BTreeMap::new() }
    }

    /// Reads a datagram with a known version.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, found: &mut Found<'_>) {
        let word = |at: usize| {
            let bytes = datagram.get(at..at + 4).unwrap_or_default();
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
        if !self.known.contains_key(&key) && self.known.len() >= MOST_EXPORTERS {
            found.discards.count(Reason::TooManyExporters, "", datagram.len() as u64, || {
                format!("packet {}", arrival.record)
            });
            return;
        }
        let known = self.known.entry(key).or_insert_with(Known::new);
        let mut reading =
            Reading { exporter: exporter(&key), arrival, size: self.size, otherwise: self.sampling, found };
        let waiting = known.waiting();
        let (mut sets, mut records) = (0, 0);
        for packet in known.parser.iter_packets(datagram) {
            match packet {
                Ok(NetflowPacket::V5(packet)) => {
                    records += packet.flowsets.len();
                    reading.v5(&packet);
                }
                Ok(NetflowPacket::V9(packet)) => {
                    sets += packet.flowsets.len();
                    reading.v9(&packet, &mut known.sampling);
                }
                Ok(NetflowPacket::IPFix(packet)) => {
                    sets += packet.flowsets.len();
                    reading.ipfix(&packet, &mut known.sampling, &mut known.boot_ns);
                }
                Ok(_) | Err(_) => break,
            }
        }
        // The library skips the bytes after a contradiction, so the number of parsed sets is compared with the number
        // present. Sets that start to wait are not among the parsed ones; sets that stop waiting are.
        let (whole, left) = framing(datagram, version);
        let came = if version == 5 { records } else { (sets + known.waiting()).saturating_sub(waiting) };
        if left >= 4 || came < whole {
            reading.broken(if came < whole { datagram.len() } else { left });
        }
    }

    /// Counts the sets that still wait for their template.
    pub fn finish(&mut self, discards: &mut Discards) {
        for (key, known) in &self.known {
            for info in [known.parser.v9_cache_info(), known.parser.ipfix_cache_info()] {
                let lost = info.metrics.pending_cached.saturating_sub(info.metrics.pending_replayed);
                discards.count_many(Reason::NoTemplate, lost, || {
                    let from = key.from.map_or("a file".into(), |from| from.to_string());
                    format!("exporter {from}, domain {}", key.domain)
                });
            }
        }
        self.known.clear();
    }
}

impl Known {
    fn new() -> Known {
        let mut waiting = PendingFlowsConfig::default();
        waiting.max_total_bytes = MOST_WAITING;
        let parser = NetflowParser::builder()
            .with_allowed_versions(&[5, 9, 10])
            .with_max_records_per_flowset(MOST_RECORDS)
            .with_pending_flows(waiting)
            .build();
        // Without these limits an exporter could fill the memory.
        let parser = parser.expect("the versions are known, and no limit is 0");
        Known { parser, sampling: Sampling::default(), boot_ns: None }
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
struct Reading<'a, 'b> {
    exporter: Exporter,
    arrival: Arrival,
    size: Size,
    /// The rate of exporters that do not state theirs.
    otherwise: Option<u32>,
    found: &'a mut Found<'b>,
}

/// Content of one record, in one direction.
struct Seen {
    ends: (Option<IpAddr>, Option<IpAddr>),
    ports: Option<(u16, u16)>,
    octets: Option<u64>,
    frame_octets: Option<u64>,
    packets: Option<u64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl Reading<'_, '_> {
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
            rate => Rate::Told(rate.into()),
        };
        for record in &packet.flowsets {
            let seen = Seen {
                ends: (Some(record.src_addr.into()), Some(record.dst_addr.into())),
                ports: ports(record.protocol_number, Some(record.src_port), Some(record.dst_port)),
                octets: Some(record.d_octets.into()),
                frame_octets: None,
                packets: Some(record.d_pkts.into()),
                start_ns: clock.at_uptime(record.first.into()),
                end_ns: clock.at_uptime(record.last.into()),
            };
            self.take(seen, rate, clock);
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

    /// Reads a record: one flow, or both directions of one.
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
        let seen = Seen {
            ends: (source, destination),
            ports,
            octets: fields.number(field::OCTETS).or_else(|| fields.number(field::INITIATOR_OCTETS)),
            frame_octets: fields.number(field::LAYER_2_OCTETS),
            packets: fields.number(field::PACKETS).or_else(|| fields.number(field::INITIATOR_PACKETS)),
            start_ns,
            end_ns: end(fields, clock),
        };
        let back = fields.number(field::RESPONDER_OCTETS).filter(|&octets| octets > 0).map(|octets| Seen {
            ends: (destination, source),
            ports: ports.map(|(from, to)| (to, from)),
            octets: Some(octets),
            frame_octets: None,
            packets: fields.number(field::RESPONDER_PACKETS),
            ..seen
        });
        self.take(seen, rate, clock);
        if let Some(back) = back {
            self.take(back, rate, clock);
        }
    }

    fn take(&mut self, seen: Seen, rate: Rate, clock: Clock) {
        let (Some(source), Some(destination)) = seen.ends else {
            return self.refuse(Reason::NoAddresses, "", seen.octets.unwrap_or(0));
        };
        let octets = seen.octets.filter(|&octets| octets > 0 || seen.packets == Some(0));
        let Some(ip_bytes) = octets.or(seen.frame_octets.filter(|_| self.size == Size::Frame)) else {
            return self.refuse(Reason::NoBytes, "", 0);
        };
        // An exporter that counts no packets has seen at least one.
        let packets = seen.packets.unwrap_or(1).max(1);
        let added = packets.checked_mul(ETHERNET).and_then(|added| ip_bytes.checked_add(added));
        let frame_bytes = seen.frame_octets.or(added);
        let bytes = frame_bytes.map(|frame| self.size.of(frame, ip_bytes));
        let rate = match (rate, self.otherwise) {
            (Rate::Told(rate), _) => rate,
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
        let (start_ns, end_ns) = match (seen.start_ns, seen.end_ns) {
            (Some(start), Some(end)) if start <= end && end.saturating_sub(start) <= LONGEST_NS => {
                (start, end)
            }
            (None, Some(at)) | (Some(at), None) => (at, at),
            _ => {
                self.refuse(Reason::NoFlowTime, "", bytes);
                (sent, sent)
            }
        };
        let flow = Flow { start_ns, end_ns, source, destination, ports: seen.ports, bytes, packets, rate };
        (self.found.flow)(&flow, self.exporter, self.found.discards);
    }

    fn refuse(&mut self, reason: Reason, detail: &str, bytes: u64) {
        let (record, protocol) = (self.arrival.record, self.exporter.protocol);
        self.found.discards.count(reason, detail, bytes, || format!("packet {record}: {protocol}"));
    }

    fn no_template(&mut self, id: u16) {
        let record = self.arrival.record;
        self.found.discards.count(Reason::NoTemplate, "", 0, || format!("packet {record}: template {id}"));
    }

    fn broken(&mut self, bytes: usize) {
        self.refuse(Reason::BrokenDatagram, self.exporter.protocol, bytes as u64);
    }

    fn late(&mut self, records: u64) {
        let (record, protocol) = (self.arrival.record, self.exporter.protocol);
        self.found.discards.count_many(Reason::LateRate, records, || {
            format!("packet {record}: {protocol}: the rate came after {records} records")
        });
    }
}

/// Number of sets in a datagram (for NetFlow 5, of records), and of trailing bytes that are not part of one.
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

fn start(fields: &Fields<'_>, clock: Clock) -> Option<i64> {
    let absolute =
        [(field::START_MS, MILLI), (field::START_S, SECOND), (field::START_US, 0), (field::START_NS, 0)];
    moment(fields, clock, absolute, field::START_UPTIME, field::START_DELTA_US)
}

fn end(fields: &Fields<'_>, clock: Clock) -> Option<i64> {
    let absolute = [(field::END_MS, MILLI), (field::END_S, SECOND), (field::END_US, 0), (field::END_NS, 0)];
    moment(fields, clock, absolute, field::END_UPTIME, field::END_DELTA_US)
}

/// A time from several alternative fields.
fn moment(fields: &Fields<'_>, clock: Clock, absolute: [(u16, i64); 4], up: u16, before: u16) -> Option<i64> {
    if let Some(time) = absolute.into_iter().find_map(|(number, unit)| fields.time(number, unit)) {
        return Some(time);
    }
    if let Some(uptime) = fields.number(up) {
        let boot_ns = fields.time(field::BOOT_MS, MILLI).or(clock.boot_ns);
        return Clock { boot_ns, ..clock }.at_uptime(uptime);
    }
    let before = i64::try_from(fields.number(before)?).ok()?.checked_mul(1_000)?;
    clock.sent_ns.checked_sub(before)
}
