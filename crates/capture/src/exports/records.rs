//! Records of NetFlow and IPFIX as flows: from one record, one flow, or both directions of one connection.

use std::net::IpAddr;

use leeward_fabric::Dscp;

use super::direction::Way;
use super::fields::{Clock, Fields, Moment, field, moments};
use super::{Context, Exporter};
use crate::discards::Reason;
use crate::flow::{ETHERNET, Flow, Size};
use crate::matrix::MOST_BYTES;
use crate::packet::{Packet, link_type};

/// Longest duration of a record; exporters end a flow after some minutes.
const LONGEST_NS: i64 = 30 * 86_400 * 1_000_000_000;
/// Type of an Ethernet frame in [`field::FRAME_TYPE`].
const ETHERNET_TYPE: u64 = 1;

/// Upper two bits of a forwarding status (RFC 7270): the exporter dropped the packets.
const DROPPED: u64 = 0b10;
/// Event of a firewall that denied the connection.
const DENIED: u64 = 3;

/// Content of one record, in one direction.
#[derive(Clone, Copy)]
pub struct Content {
    pub ends: (Option<IpAddr>, Option<IpAddr>),
    pub ports: Option<(u16, u16)>,
    pub dscp: Option<Dscp>,
    pub octets: Option<u64>,
    pub frame_octets: Option<u64>,
    pub packets: Option<u64>,
    pub start: Moment,
    pub end: Moment,
    /// Time when the exporter sent the record, in nanoseconds since 1970.
    pub sent_ns: i64,
    /// Place of observation, if the record states it.
    pub way: Option<Way>,
    /// True if the exporter discarded the packets.
    pub discarded: bool,
    /// True if lengths of the packet contradict each other.
    pub contradict: bool,
    /// True if the counts are those since the start of the flow, which may be in several records.
    pub total: bool,
}

impl Content {
    /// True if a time is an uptime, which depends on the start of the exporter.
    pub fn needs_boot(&self) -> bool {
        [self.start, self.end].iter().any(|moment| matches!(moment, Moment::Uptime(_)))
    }
}

/// Counts the records of one exporter.
pub struct Counter<'a, 'b, 'c> {
    pub exporter: Exporter,
    /// Number of the record of the file, for errors.
    pub record: u64,
    pub context: &'a mut Context<'b, 'c>,
}

impl Counter<'_, '_, '_> {
    /// The contents of a record: of the flow, and of the opposite direction. A record without a flow is refused.
    pub fn contents(&mut self, fields: &Fields<'_>, clock: Clock) -> [Option<Content>; 2] {
        let (start, end) = moments(fields, clock);
        let ends = (
            fields.address(field::SOURCE_IPV4, field::SOURCE_IPV6),
            fields.address(field::DESTINATION_IPV4, field::DESTINATION_IPV6),
        );
        let port = |number| fields.number(number).and_then(|port| u16::try_from(port).ok());
        let protocol = fields.number(field::PROTOCOL).and_then(|number| u8::try_from(number).ok());
        let first = |numbers: &[u16]| numbers.iter().find_map(|&number| fields.number(number));
        let packets = first(&[field::PACKETS, field::INITIATOR_PACKETS, field::TOTAL_PACKETS]);
        let octets = first(&[field::OCTETS, field::INITIATOR_OCTETS]);
        let total = fields.number(field::TOTAL_OCTETS).filter(|_| octets.is_none());
        // The size of one frame, which all packets of a record have.
        let frames =
            fields.number(field::FRAME_SIZE).and_then(|size| size.checked_mul(packets.unwrap_or(1).max(1)));
        let content = Content {
            ends,
            ports: ports(protocol.unwrap_or(6), port(field::SOURCE_PORT), port(field::DESTINATION_PORT)),
            dscp: fields.dscp(),
            octets: octets.or(total),
            frame_octets: fields.number(field::LAYER_2_OCTETS).or(frames),
            packets,
            start,
            end,
            sent_ns: clock.sent_ns,
            way: fields.number(field::DIRECTION).and_then(|way| match way {
                0 => Some(Way::Ingress),
                1 => Some(Way::Egress),
                _ => None,
            }),
            discarded: is_discarded(fields),
            contradict: false,
            total: total.is_some(),
        };
        let octets = fields.number(field::RESPONDER_OCTETS).or_else(|| fields.reverse(field::OCTETS));
        let octets = octets.or_else(|| fields.reverse(field::TOTAL_OCTETS).filter(|_| content.total));
        let back = octets.filter(|&octets| octets > 0).map(|octets| Content {
            ends: (ends.1, ends.0),
            ports: content.ports.map(|(from, to)| (to, from)),
            dscp: fields.reverse_dscp(),
            octets: Some(octets),
            frame_octets: None,
            packets: fields
                .number(field::RESPONDER_PACKETS)
                .or_else(|| fields.reverse(field::PACKETS).or_else(|| fields.reverse(field::TOTAL_PACKETS))),
            ..content
        });
        // A connection may have traffic in the opposite direction only.
        let there = back.is_none() || content.octets != Some(0);
        let content =
            if ends.0.is_none() || ends.1.is_none() { self.section(fields, content) } else { Some(content) };
        [content.filter(|_| there), back]
    }

    /// Content of a record about one packet, from the section of the packet in the record (RFC 5477 section 8.5).
    fn section(&mut self, fields: &Fields<'_>, content: Content) -> Option<Content> {
        let ethernet = fields.number(field::FRAME_TYPE).is_none_or(|kind| kind == ETHERNET_TYPE);
        let frame = fields.get(field::FRAME_SECTION).or_else(|| fields.get(field::LAYER_2_SECTION));
        let frame = frame.filter(|_| ethernet).map(|bytes| (link_type::ETHERNET, bytes));
        let packet = || fields.get(field::IP_SECTION).map(|bytes| (link_type::RAW[0], bytes));
        let Some((link, bytes)) = frame.or_else(packet) else { return Some(content) };
        let offset = fields.number(field::SECTION_OFFSET).or_else(|| fields.number(field::LAYER_2_OFFSET));
        if offset.is_some_and(|offset| offset > 0) {
            self.refuse(
                Reason::NoAddresses,
                "section of a packet behind its headers",
                content.octets.unwrap_or(0),
            );
            return None;
        }
        let captured = fields.number(field::SECTION_OCTETS).and_then(|length| usize::try_from(length).ok());
        let bytes = captured.and_then(|length| bytes.get(..length)).unwrap_or(bytes);
        let of_ip = || content.octets.or_else(|| fields.number(field::IP_LENGTH));
        let length = if link == link_type::ETHERNET { content.frame_octets } else { of_ip() };
        match Packet::read(link, bytes, length.unwrap_or(bytes.len() as u64), self.context.settings.tunnels) {
            Ok(packet) => {
                let one = content.packets.is_none_or(|packets| packets == 1) && link == link_type::ETHERNET;
                let lengths = length.filter(|_| one).map(|length| packet.lengths(length));
                Some(Content {
                    ends: (Some(packet.source), Some(packet.destination)),
                    ports: packet.ports,
                    dscp: packet.dscp.or(content.dscp),
                    octets: of_ip().or(Some(packet.ip_bytes)),
                    frame_octets: lengths.map(|found| found.frame).or(content.frame_octets),
                    packets: content.packets.or(Some(1)),
                    contradict: lengths.is_some_and(|found| found.contradict),
                    ..content
                })
            }
            Err(refused) => {
                self.refuse(refused.reason, &refused.detail, length.unwrap_or(0));
                None
            }
        }
    }

    /// Counts a record. `rate` is the rate that its exporter states.
    pub fn count(&mut self, content: &Content, rate: Option<u32>, boot_ns: Option<i64>) {
        let (Some(source), Some(destination)) = content.ends else {
            return self.refuse(Reason::NoAddresses, "", content.octets.unwrap_or(0));
        };
        let octets = content.octets.filter(|&octets| octets > 0 || content.packets == Some(0));
        let Some(ip_bytes) =
            octets.or(content.frame_octets.filter(|_| self.context.settings.size == Size::Frame))
        else {
            return self.refuse(Reason::NoBytes, "", 0);
        };
        // A record without a packet count describes at least one packet.
        let packets = content.packets.unwrap_or(1).max(1);
        let added = packets.checked_mul(ETHERNET).and_then(|added| ip_bytes.checked_add(added));
        let frame_bytes = content.frame_octets.or(added);
        let bytes = frame_bytes.map(|frame| self.context.settings.size.of(frame, ip_bytes));
        let rate = rate.or(self.context.settings.sampling).unwrap_or_else(|| {
            self.refuse(Reason::NoRate, "", ip_bytes);
            1
        });
        let scaled =
            |count: Option<u64>| count?.checked_mul(rate.into()).filter(|&all| u128::from(all) <= MOST_BYTES);
        let (Some(bytes), Some(_), Some(_)) = (bytes, scaled(bytes), scaled(Some(packets))) else {
            return self.refuse(Reason::NotPlausible, "bytes", 0);
        };
        let sent = content.sent_ns;
        let (start_ns, end_ns) = match (content.start.time(boot_ns, sent), content.end.time(boot_ns, sent)) {
            (Some(start), Some(end)) if start <= end && end.saturating_sub(start) <= LONGEST_NS => {
                (start, end)
            }
            (None, Some(at)) | (Some(at), None) => (at, at),
            _ => {
                self.refuse(Reason::NoFlowTime, "", bytes);
                (sent, sent)
            }
        };
        let Content { ports, dscp, .. } = *content;
        let flow = Flow { start_ns, end_ns, source, destination, ports, dscp, bytes, packets, rate };
        let scaled = bytes.saturating_mul(rate.into());
        if content.discarded {
            return self.refuse(Reason::DiscardedPacket, "", scaled);
        }
        if content.total {
            self.refuse(Reason::TotalCounts, "", scaled);
        }
        if content.contradict {
            self.refuse(Reason::LengthMismatch, "", scaled);
        }
        self.context.count(&flow, self.exporter, content.way);
    }

    /// Counts a record that is not in the matrix, or is there in doubt.
    pub fn refuse(&mut self, reason: Reason, detail: &str, bytes: u64) {
        let (record, protocol) = (self.record, self.exporter.protocol);
        self.context.discard(reason, detail, bytes, || format!("packet {record}: {protocol}"));
    }

    /// Counts bytes of a datagram that are inconsistent; `part` names them.
    pub fn broken(&mut self, bytes: usize, part: &str) {
        let (record, protocol) = (self.record, self.exporter.protocol);
        let example = || format!("packet {record}: {bytes} bytes of {part}");
        self.context.discard(Reason::BrokenDatagram, protocol, bytes as u64, example);
    }

    /// Counts a set of records without a template.
    pub fn no_template(&mut self, id: u16, domain: u32, bytes: usize) {
        let record = self.record;
        let from = self.exporter.name();
        self.context.discard(Reason::NoTemplate, "", bytes as u64, || {
            format!("packet {record}: template {id} of {from}, domain {domain}")
        });
    }

    /// Counts records that were counted before the sampling rate of their exporter arrived.
    pub fn late(&mut self, records: u64) {
        let (record, protocol) = (self.record, self.exporter.protocol);
        self.context.sink.discards.count_all(Reason::LateRate, "", records, 0, || {
            format!("packet {record}: {protocol}: the rate arrived after {records} records")
        });
    }
}

/// True if the exporter discarded the packets of a record, by its forwarding status or by the event of a firewall.
fn is_discarded(fields: &Fields<'_>) -> bool {
    let status = fields.number(field::FORWARDING).filter(|&status| status < 256);
    status.is_some_and(|status| status >> 6 == DROPPED)
        || fields.number(field::FIREWALL_EVENT) == Some(DENIED)
}

/// Ports of the protocols that have ports.
pub fn ports(protocol: u8, source: Option<u16>, destination: Option<u16>) -> Option<(u16, u16)> {
    source.zip(destination).filter(|_| [6, 17, 33, 132].contains(&protocol))
}
