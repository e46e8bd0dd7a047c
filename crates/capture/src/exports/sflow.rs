//! sFlow version 5 (<https://sflow.org/sflow_version_5.txt>): sampled packets with their rate, and interface counters.
//!
//! A datagram has a header and samples, and a sample has a header and records. Each sample and each record states its
//! length. Unknown parts are therefore skipped, and an invalid record does not affect other records.
//!
//! The parser is written here, because the layout is fixed and the available library (sflow-parser 0.7) has two
//! defects. It recurses as deep as a datagram states, until the stack overflows. It also drops a whole datagram because
//! of one unknown record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Arrival, Exporter, Sink};
use crate::counter::Counter;
use crate::discards::Reason;
use crate::flow::{CHECK_SEQUENCE, ETHERNET, Flow, Size};
use crate::packet::{Packet, link_type};

/// Format numbers of enterprise 0.
mod format {
    pub const FLOW_SAMPLE: u32 = 1;
    pub const COUNTER_SAMPLE: u32 = 2;
    pub const EXPANDED_FLOW_SAMPLE: u32 = 3;
    pub const EXPANDED_COUNTER_SAMPLE: u32 = 4;
    pub const HEADER: u32 = 1;
    pub const ETHERNET_FRAME: u32 = 2;
    pub const IPV4: u32 = 3;
    pub const IPV6: u32 = 4;
    pub const INTERFACE_COUNTERS: u32 = 1;
    /// Records with smaller numbers describe the packet itself; records from this number on only add information.
    pub const FIRST_EXTENSION: u32 = 5;
}

pub struct Settings {
    pub size: Size,
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
struct Datagram {
    exporter: Exporter,
    time_ns: i64,
    record: u64,
    size: Size,
}

pub fn read(bytes: &[u8], arrival: Arrival, settings: &Settings, sink: &mut Sink<'_>) {
    let record = arrival.record;
    let mut xdr = Xdr(bytes);
    let header = || -> Option<(Option<IpAddr>, u32)> {
        xdr.word()?;
        let agent = xdr.address()?;
        // Skips the sub-agent, a sequence number, and the uptime.
        xdr.bytes(12)?;
        Some((agent, xdr.word()?))
    };
    let mut header = header;
    let (Some((agent, samples)), Some(time_ns)) = (header(), arrival.time_ns) else {
        let length = bytes.len() as u64;
        sink.discards
            .count(Reason::BrokenDatagram, "sFlow", length, || format!("packet {record}: its header"));
        return;
    };
    let address = agent.or(arrival.from.map(|(address, _)| address));
    let exporter = Exporter { protocol: "sflow", address };
    let datagram = Datagram { exporter, time_ns, record, size: settings.size };
    for sample in 0..samples {
        let Some((kind, body)) = xdr.word().zip(xdr.opaque()) else {
            let (lost, left) = (samples - sample, xdr.0.len() as u64);
            sink.discards.count(Reason::BrokenDatagram, "sFlow", left, || {
                format!("packet {record}: {lost} of {samples} samples are missing")
            });
            return;
        };
        let body = Xdr(body);
        let read = match kind {
            format::FLOW_SAMPLE => datagram.flow(body, false, sink),
            format::EXPANDED_FLOW_SAMPLE => datagram.flow(body, true, sink),
            format::COUNTER_SAMPLE => datagram.counters(body, false, sink),
            format::EXPANDED_COUNTER_SAMPLE => datagram.counters(body, true, sink),
            other => {
                let detail = format!("sample {}:{}", other >> 12, other & 0xfff);
                sink.discards.count(Reason::UnknownSample, &detail, 0, || format!("packet {record}"));
                Some(())
            }
        };
        if read.is_none() {
            sink.discards.count(Reason::BrokenDatagram, "sFlow sample", body.0.len() as u64, || {
                format!("packet {record}: sample {}", sample + 1)
            });
        }
    }
}

impl Datagram {
    /// Reads a sampled packet; `None` if the sample contradicts itself.
    fn flow(&self, mut xdr: Xdr<'_>, expanded: bool, sink: &mut Sink<'_>) -> Option<()> {
        // Skips the sequence number, and the source in one word or two.
        xdr.bytes(if expanded { 12 } else { 8 })?;
        let rate = xdr.word()?;
        // Skips the number of packets that could have been sampled, the number of lost samples, and the interfaces.
        xdr.bytes(if expanded { 24 } else { 16 })?;
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
        if let Some(flow) = seen {
            (sink.flow)(&Flow { rate, ..flow }, self.exporter, sink.discards);
        } else {
            let (reason, detail, bytes) = refused.unwrap_or((Reason::NoHeader, String::new(), 0));
            let record = self.record;
            sink.discards.count(reason, &detail, bytes, || format!("packet {record}: a sample"));
        }
        Some(())
    }

    /// Flow of a record about the sampled packet, or the reason why the record has no flow. `None` if the record
    /// contradicts itself.
    fn packet(&self, kind: u32, mut xdr: Xdr<'_>) -> Option<Result<Flow, (Reason, String, u64)>> {
        match kind {
            format::HEADER => {
                let protocol = xdr.word()?;
                let length = u64::from(xdr.word()?);
                xdr.word()?;
                let header = xdr.opaque()?;
                // Lengths of Ethernet frames include the check sequence, even if it was stripped.
                let (link, length) = match protocol {
                    1 => (link_type::ETHERNET, length.saturating_sub(CHECK_SEQUENCE)),
                    11 | 12 => (link_type::RAW[0], length),
                    13 => (link_type::MPLS, length),
                    other => {
                        let detail = format!("sFlow header protocol {other}");
                        return Some(Err((Reason::UnknownLinkType, detail, length)));
                    }
                };
                Some(match Packet::read(link, header, length) {
                    Ok(packet) => Ok(self.one_packet(
                        (packet.source, packet.destination),
                        packet.ports,
                        self.size.of(length, packet.ip_bytes),
                    )),
                    Err(refused) => Err((refused.reason, refused.detail, length)),
                })
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
                Some(Ok(self.one_packet(ends, ports, self.size.of(ip_bytes + ETHERNET, ip_bytes))))
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
        Flow { start_ns, end_ns, source, destination, ports, bytes, packets: 1, rate: 1 }
    }

    /// Reads the counters of an interface; `None` if the sample contradicts itself.
    fn counters(&self, mut xdr: Xdr<'_>, expanded: bool, sink: &mut Sink<'_>) -> Option<()> {
        xdr.bytes(if expanded { 12 } else { 8 })?;
        for _ in 0..xdr.word()? {
            let (kind, body) = xdr.word().zip(xdr.opaque())?;
            // Counters of hosts, queues and processors do not concern traffic between two endpoints.
            if let (format::INTERFACE_COUNTERS, Some(agent)) = (kind, self.exporter.address) {
                let counter = self.counter(agent, Xdr(body))?;
                if let Some(counters) = &mut sink.counters {
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
