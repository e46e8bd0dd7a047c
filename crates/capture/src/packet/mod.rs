//! Parses a captured frame to an IP packet. Etherparse parses IP and its extensions, because it accepts truncated
//! headers.
//!
//! In a tunnel (VXLAN, Geneve, GRE, IP in IP) the outer addresses count, because they are the endpoints on this network;
//! by choice, those of the packet inside.

mod link;
mod tunnel;

use std::net::IpAddr;

use etherparse::{Ipv6ExtensionSlice, LaxIpSlice, UdpHeaderSlice, ip_number};
use leeward_fabric::Dscp;
pub use link::{cooked, link_type};

use crate::discards::Reason;
use link::strip;

/// Addresses of packets in tunnels.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Tunnels {
    /// The ends of the tunnel.
    #[default]
    Outer,
    /// The ends of the packet in the tunnel.
    Inner,
}

impl Tunnels {
    /// All choices.
    pub const ALL: [Tunnels; 2] = [Tunnels::Outer, Tunnels::Inner];

    /// Name of the choice in settings.
    pub fn name(self) -> &'static str {
        match self {
            Tunnels::Outer => "outer",
            Tunnels::Inner => "inner",
        }
    }

    /// The choice with this name.
    pub fn from_name(name: &str) -> Option<Tunnels> {
        Tunnels::ALL.into_iter().find(|tunnels| tunnels.name() == name)
    }
}

/// Largest number of bytes behind an IP packet in its frame that are padding, a check sequence, or the trailer of a tap.
const LONGEST_TRAILER: u64 = 64;

/// The captured part of an IP packet.
pub struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Ports of TCP, UDP, SCTP and DCCP, if they were captured; `None` for fragments other than the first.
    pub ports: Option<(u16, u16)>,
    pub protocol: u8,
    /// Code point, which decides the queue in switches; in tunnels, that of the outermost packet.
    pub dscp: Option<Dscp>,
    /// True for any fragment of a datagram, including the first fragment.
    pub fragment: bool,
    /// True for all fragments but the first, which has the ports.
    pub later_fragment: bool,
    /// Number that all fragments of a datagram have.
    pub identification: u32,
    /// Length of the packet with its headers.
    pub ip_bytes: u64,
    /// Length of the frame from the IP header on.
    pub wire_bytes: u64,
    /// Length of the frame before the IP header.
    pub link_bytes: u64,
    /// Captured bytes behind the IP headers.
    pub payload: &'a [u8],
}

/// Lengths of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Length of the frame, at least that of its IP packet.
    pub frame: u64,
    /// Length of the IP packet.
    pub ip: u64,
    /// True if the lengths of the frame and of the IP packet contradict each other.
    pub contradict: bool,
}

/// Reason why a frame is not counted, with a detail such as its EtherType; the detail may be empty.
pub struct PacketError {
    pub reason: Reason,
    pub detail: String,
}

impl From<Reason> for PacketError {
    fn from(reason: Reason) -> PacketError {
        PacketError { reason, detail: String::new() }
    }
}

/// The payload of a UDP datagram.
pub enum Datagram<'a> {
    Whole(&'a [u8]),
    /// A datagram that was not captured completely.
    CutOff,
    Fragment,
    /// Not a UDP datagram.
    Other,
}

impl<'a> Packet<'a> {
    /// Reads a frame of a link type; `length` is its length on the wire.
    pub fn read(
        link_type: u32,
        frame: &'a [u8],
        length: u64,
        tunnels: Tunnels,
    ) -> Result<Packet<'a>, PacketError> {
        let bytes = strip(link_type, frame)?;
        let link_bytes = (frame.len() - bytes.len()) as u64;
        let packet = Packet::read_ip(bytes, length.saturating_sub(link_bytes))?;
        let packet = Packet { link_bytes: link_bytes.saturating_sub(cooked(link_type)), ..packet };
        if tunnels == Tunnels::Inner { tunnel::enter(packet) } else { Ok(packet) }
    }

    /// Reads a packet that begins with its IP header; `length` is its length on the wire.
    pub fn read_ip(bytes: &'a [u8], length: u64) -> Result<Packet<'a>, PacketError> {
        use etherparse::err::ip::LaxHeaderSliceError::{Content, Len};
        let (ip, _) = LaxIpSlice::from_slice(bytes).map_err(|error| match error {
            Len(_) => PacketError::from(Reason::CutOffHeader),
            Content(_) => PacketError::from(Reason::BrokenIp),
        })?;
        let (stated, later_fragment, identification) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                let later = header.fragments_offset().value() > 0;
                (u64::from(header.total_len()), later, header.identification().into())
            }
            LaxIpSlice::Ipv6(ip) => {
                let payload = u64::from(ip.header().payload_length());
                let mut parts = ip.extensions().clone().into_iter().filter_map(|extension| match extension {
                    Ipv6ExtensionSlice::Fragment(part) => Some(part),
                    _ => None,
                });
                let (later, identification) = parts
                    .next()
                    .map_or((false, 0), |part| (part.fragment_offset().value() > 0, part.identification()));
                // A jumbogram states a length of 0; its true length is in an option.
                (if payload == 0 { 0 } else { payload + 40 }, later, identification)
            }
        };
        let protocol = ip.payload_ip_number();
        let payload = ip.payload().payload;
        let has_ports =
            [ip_number::TCP, ip_number::UDP, ip_number::SCTP, ip_number::DCCP].contains(&protocol);
        let ports = match payload {
            [a, b, c, d, ..] if has_ports && !later_fragment => {
                Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
            }
            _ => None,
        };
        Ok(Packet {
            source: ip.source_addr(),
            destination: ip.destination_addr(),
            ports,
            protocol: protocol.0,
            dscp: code_point(bytes),
            fragment: ip.is_fragmenting_payload(),
            later_fragment,
            identification,
            // With segmentation offload, headers are captured before their length is known and state a length of 0.
            ip_bytes: if stated == 0 { length } else { stated },
            wire_bytes: length,
            link_bytes: 0,
            payload,
        })
    }

    /// Lengths of a frame of `frame` bytes. A frame is at least as long as its IP packet, and not much longer.
    pub fn lengths(&self, frame: u64) -> Lengths {
        let ip = self.ip_bytes;
        if ip > self.wire_bytes {
            return Lengths { frame: self.link_bytes + ip, ip, contradict: true };
        }
        Lengths { frame, ip, contradict: self.wire_bytes - ip > LONGEST_TRAILER }
    }

    /// Captured payload of a UDP datagram, and the length that its header states. The datagram may be the first
    /// fragment, and may not have been captured completely.
    pub fn udp(&self) -> Option<(&'a [u8], usize)> {
        if self.protocol != ip_number::UDP.0 || self.later_fragment {
            return None;
        }
        let [_, _, _, _, high, low, _, _, ..] = *self.payload else { return None };
        let length = usize::from(u16::from_be_bytes([high, low])).saturating_sub(8);
        let payload = &self.payload[8..];
        Some((&payload[..length.min(payload.len())], length))
    }

    /// The packet's payload as a UDP datagram.
    pub fn datagram(&self) -> Datagram<'a> {
        if self.protocol != ip_number::UDP.0 {
            return Datagram::Other;
        }
        if self.fragment {
            return Datagram::Fragment;
        }
        let Ok(header) = UdpHeaderSlice::from_slice(self.payload) else { return Datagram::CutOff };
        match self.payload.get(8..usize::from(header.length())) {
            Some(payload) => Datagram::Whole(payload),
            None => Datagram::CutOff,
        }
    }
}

/// Code point of an IP packet. The byte that has it is the second one (IPv4), or begins in the middle of the first one
/// (IPv6).
fn code_point(ip: &[u8]) -> Option<Dscp> {
    let [first, second, ..] = *ip else { return None };
    let byte = if first >> 4 == 4 { second } else { first << 4 | second >> 4 };
    Some(Dscp::of_traffic_class(byte))
}
