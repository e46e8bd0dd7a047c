//! sFlow version 5 (<https://sflow.org/sflow_version_5.txt>): sampled packets with their rate, and interface counters.
//!
//! A datagram has a header and samples, and a sample has a header and records. Each sample and each record states its
//! length. Unknown parts are therefore skipped, and an invalid record does not affect other records.
//!
//! The parser is written here, because the layout is fixed and the available library (sflow-parser 0.7) has two
//! defects. It recurses as deep as a datagram states, until the stack overflows. It also drops a whole datagram because
//! of one unknown record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use leeward_fabric::Dscp;

use super::direction::Way;
use super::sequence::{Arrived, Unit};
use super::{Arrival, Context, Exporter, Settings, protocol};
use crate::counter::Counter;
use crate::discards::Reason;
use crate::flow::{CHECK_SEQUENCE, ETHERNET, Flow};
use crate::packet::{Packet, link_type};

/// Format numbers of enterprise 0.
mod format {
    pub const FLOW_SAMPLE: u32 = 1;
    pub const COUNTER_SAMPLE: u32 = 2;
    pub const EXPANDED_FLOW_SAMPLE: u32 = 3;
    pub const EXPANDED_COUNTER_SAMPLE: u32 = 4;
    pub const DISCARDED_PACKET: u32 = 5;
    pub const HEADER: u32 = 1;
    pub const ETHERNET_FRAME: u32 = 2;
    pub const IPV4: u32 = 3;
    pub const IPV6: u32 = 4;
    pub const INTERFACE_COUNTERS: u32 = 1;
    /// Records with smaller numbers describe the packet itself; records from this number on only add information.
    pub const FIRST_EXTENSION: u32 = 5;
}

/// Bytes in XDR: words of four bytes, big-endian.
#[derive(Clone, Copy)]
struct Xdr<'a>(&'a [u8]);

impl<'a> Xdr<'a> {
    fn word(&mut self) -> Option<u32> {
        self.bytes(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A byte string with its length, padded to whole words.
    fn opaque(&mut self) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        let bytes = self.bytes(length)?;
        self.bytes(length.next_multiple_of(4) - length)?;
        Some(bytes)
    }

    fn address(&mut self) -> Option<Option<IpAddr>> {
        match self.word()? {
            0 => Some(None),
            1 => Some(Some(Ipv4Addr::from_bits(self.word()?).into())),
            2 => Some(Some(self.ipv6()?)),
            _ => None,
        }
    }

    fn ipv6(&mut self) -> Option<IpAddr> {
        let bytes: [u8; 16] = self.bytes(16)?.try_into().ok()?;
        Some(Ipv6Addr::from(bytes).into())
    }
}

/// Fields of a datagram that concern all its samples.
struct Datagram<'a> {
    exporter: Exporter,
    time_ns: i64,
    record: u64,
    settings: &'a Settings,
}

/// An interface in a sample: its format, and its number or the reason of a discard.
type Interface = (u32, u32);

/// Reason why a sample has no flow, with a detail and the bytes of the packet.
type Refused = (Reason, String, u64);

/// Format of an output interface that is the reason why the switch discarded the packet.
const DISCARDED: u32 = 1;

pub fn read(bytes: &[u8], arrival: Arrival, context: &mut Context<'_, '_>) {
    let record = arrival.record;
    let mut xdr = Xdr(bytes);
    let header = || -> Option<(Option<IpAddr>, (u32, u32), u32)> {
        xdr.word()?;
        let agent = xdr.address()?;
        let (sub_agent, number) = (xdr.word()?, xdr.word()?);
        // Skips the uptime.
        xdr.word()?;
        Some((agent, (sub_agent, number), xdr.word()?))
    };
    let mut header = header;
    let (Some((agent, (sub_agent, number), samples)), Some(time_ns)) = (header(), arrival.time_ns) else {
        let length = bytes.len() as u64;
        context.discard(Reason::BrokenDatagram, "sFlow", length, || format!("packet {record}: its header"));
        return;
    };
    let address = agent.or(arrival.from.map(|(address, _)| address));
    let exporter = Exporter { protocol: "sflow", address, file: None };
    let arrived = Arrived { number, units: Some(1), others: [None; 2] };
    context.sequences.arrive(exporter, sub_agent, Unit::Datagrams, arrived);
    let datagram = Datagram { exporter, time_ns, record, settings: context.settings };
    for sample in 0..samples {
        let Some((kind, body)) = xdr.word().zip(xdr.opaque()) else {
            let (lost, left) = (samples - sample, xdr.0.len() as u64);
            context.discard(Reason::BrokenDatagram, "sFlow", left, || {
                format!("packet {record}: {lost} of {samples} samples are missing")
            });
            return;
        };
        let body = Xdr(body);
        let read = match kind {
            format::FLOW_SAMPLE => datagram.flow(body, false, context),
            format::EXPANDED_FLOW_SAMPLE => datagram.flow(body, true, context),
            format::COUNTER_SAMPLE => datagram.counters(body, false, context),
            format::EXPANDED_COUNTER_SAMPLE => datagram.counters(body, true, context),
            format::DISCARDED_PACKET => {
                context.discard(Reason::DiscardedPacket, "", 0, || format!("packet {record}: a sample"));
                Some(())
            }
            other => {
                let detail = format!("sample {}:{}", other >> 12, other & 0xfff);
                context.discard(Reason::UnknownSample, &detail, 0, || format!("packet {record}"));
                Some(())
            }
        };
        if read.is_none() {
            context.discard(Reason::BrokenDatagram, "sFlow sample", body.0.len() as u64, || {
                format!("packet {record}: sample {}", sample + 1)
            });
        }
    }
    if xdr.0.iter().any(|&byte| byte != 0) {
        let left = xdr.0.len() as u64;
        context.discard(Reason::BrokenDatagram, "sFlow", left, || {
            format!("packet {record}: {left} bytes behind the last sample")
        });
    }
}

impl Datagram<'_> {
    /// Reads a sampled packet; `None` if the sample contradicts itself.
    fn flow(&self, mut xdr: Xdr<'_>, expanded: bool, context: &mut Context<'_, '_>) -> Option<()> {
        // Skips the sequence number.
        xdr.word()?;
        // A compact sample has kind and number of its source in one word, as it has format and number of an interface.
        let source = if expanded { (xdr.word()?, xdr.word()?) } else { split(xdr.word()?, 24) };
        let rate = xdr.word()?;
        // Skips the number of packets that could have been sampled, and the number of lost samples.
        xdr.bytes(8)?;
        let mut interface =
            || Some(if expanded { (xdr.word()?, xdr.word()?) } else { split(xdr.word()?, 30) });
        let (input, output) = (interface()?, interface()?);
        let records = xdr.word()?;
        if rate == 0 {
            return None;
        }
        let (mut seen, mut refused) = (None, None);
        for _ in 0..records {
            let (kind, body) = xdr.word().zip(xdr.opaque())?;
            if seen.is_some() || kind >= format::FIRST_EXTENSION {
                continue;
            }
            match self.packet(kind, Xdr(body))? {
                Ok(flow) => seen = Some(flow),
                // The sample may hold another record with the same packet, so the first reason is kept until the end.
                Err(reason) => refused = Some(refused.unwrap_or(reason)),
            }
        }
        let record = self.record;
        let example = || format!("packet {record}: a sample");
        let Some((flow, contradict)) = seen else {
            let (reason, detail, bytes) = refused.unwrap_or((Reason::NoHeader, String::new(), 0));
            context.discard(reason, &detail, bytes.saturating_mul(rate.into()), example);
            return Some(());
        };
        let bytes = flow.bytes.saturating_mul(rate.into());
        if output.0 == DISCARDED {
            context.discard(Reason::DiscardedPacket, "", bytes, example);
            return Some(());
        }
        if contradict {
            context.discard(Reason::LengthMismatch, "", bytes, example);
        }
        context.count(&Flow { rate, ..flow }, self.exporter, way(source, input, output));
        Some(())
    }

    /// Flow of a record about the sampled packet, with true if its lengths contradict each other; or the reason why the
    /// record has no flow. `None` if the record contradicts itself.
    fn packet(&self, kind: u32, mut xdr: Xdr<'_>) -> Option<Result<(Flow, bool), Refused>> {
        let size = self.settings.size;
        match kind {
            format::HEADER => {
                let header_protocol = xdr.word()?;
                let length = u64::from(xdr.word()?);
                xdr.word()?;
                let header = xdr.opaque()?;
                // Lengths of Ethernet frames include the check sequence, even if it was stripped.
                let (link, length) = match header_protocol {
                    1 => (link_type::ETHERNET, length.saturating_sub(CHECK_SEQUENCE)),
                    7 => (link_type::PPP, length),
                    11 | 12 => (link_type::RAW[0], length),
                    13 => (link_type::MPLS, length),
                    14 => (link_type::PPP_HDLC, length),
                    other => {
                        let detail = format!("sFlow header protocol {other}");
                        return Some(Err((Reason::UnknownLinkType, detail, length)));
                    }
                };
                let packet = match Packet::read(link, header, length, self.settings.tunnels) {
                    Ok(packet) => packet,
                    Err(refused) => return Some(Err((refused.reason, refused.detail, length))),
                };
                if let Some(export) = protocol(&packet, &self.settings.ports) {
                    return Some(Err((Reason::Export, format!("{export} in samples"), length)));
                }
                let lengths = packet.lengths(length);
                let bytes = size.of(lengths.frame, lengths.ip);
                let ends = (packet.source, packet.destination);
                let flow = Flow { dscp: packet.dscp, ..self.one_packet(ends, packet.ports, bytes) };
                Some(Ok((flow, lengths.contradict)))
            }
            format::IPV4 | format::IPV6 => {
                let ip_bytes = u64::from(xdr.word()?);
                let protocol = xdr.word()?;
                let ends = if kind == format::IPV4 {
                    let mut address = || Some(Ipv4Addr::from_bits(xdr.word()?).into());
                    (address()?, address()?)
                } else {
                    (xdr.ipv6()?, xdr.ipv6()?)
                };
                let ports = (xdr.word()? as u16, xdr.word()? as u16);
                let ports = [6, 17, 33, 132].contains(&protocol).then_some(ports);
                // The flags of TCP, then the byte that has the code point.
                let class = xdr.word().and_then(|_| xdr.word()).and_then(|word| u8::try_from(word).ok());
                let bytes = size.of(ip_bytes + ETHERNET, ip_bytes);
                let dscp = class.map(Dscp::of_traffic_class);
                Some(Ok((Flow { dscp, ..self.one_packet(ends, ports, bytes) }, false)))
            }
            format::ETHERNET_FRAME => {
                let length = u64::from(xdr.word()?);
                Some(Err((Reason::NoHeader, String::new(), length.saturating_sub(CHECK_SEQUENCE))))
            }
            _ => Some(Err((Reason::NoHeader, String::new(), 0))),
        }
    }

    fn one_packet(&self, ends: (IpAddr, IpAddr), ports: Option<(u16, u16)>, bytes: u64) -> Flow {
        let (source, destination) = ends;
        let (start_ns, end_ns) = (self.time_ns, self.time_ns);
        Flow { start_ns, end_ns, source, destination, ports, dscp: None, bytes, packets: 1, rate: 1 }
    }

    /// Reads the counters of an interface; `None` if the sample contradicts itself.
    fn counters(&self, mut xdr: Xdr<'_>, expanded: bool, context: &mut Context<'_, '_>) -> Option<()> {
        xdr.bytes(if expanded { 12 } else { 8 })?;
        for _ in 0..xdr.word()? {
            let (kind, body) = xdr.word().zip(xdr.opaque())?;
            // Counters of hosts, queues and processors do not concern traffic between two endpoints.
            if let (format::INTERFACE_COUNTERS, Some(agent)) = (kind, self.exporter.address) {
                let counter = self.counter(agent, Xdr(body))?;
                if let Some(counters) = &mut context.sink.counters {
                    counters.push(counter);
                }
            }
        }
        Some(())
    }

    fn counter(&self, agent: IpAddr, mut xdr: Xdr<'_>) -> Option<Counter> {
        let interface = xdr.word()?;
        xdr.word()?;
        let speed_bps = xdr.long()?;
        xdr.long()?;
        let in_octets = xdr.long()?;
        // Skips the counts of packets by kind, discards, errors and unknown protocols.
        xdr.bytes(24)?;
        let out_octets = xdr.long()?;
        Some(Counter { time_ns: self.time_ns, agent, interface, speed_bps, in_octets, out_octets })
    }
}

/// Upper bits and lower bits of a word.
fn split(word: u32, lower: u32) -> Interface {
    (word >> lower, word & ((1 << lower) - 1))
}

/// Direction of a sample: its source is the interface where the packet enters, or where it leaves.
fn way(source: Interface, input: Interface, output: Interface) -> Option<Way> {
    // Sources of kind 0 are interfaces, and so are interfaces of format 0.
    match (source == input, source == output) {
        (true, false) => Some(Way::Ingress),
        (false, true) => Some(Way::Egress),
        _ => None,
    }
}
