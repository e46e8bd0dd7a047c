//! Parses a captured frame to an IP packet. Link layers and tags are parsed here, because they are a few bytes each.
//! Etherparse parses IP and its extensions, because it accepts truncated headers.
//!
//! In a tunnel (VXLAN, GRE, IP in IP) the outer addresses count, because they are the endpoints on this network.

use std::net::IpAddr;

use etherparse::{Ipv6ExtensionSlice, LaxIpSlice, UdpHeaderSlice, ip_number};

use crate::discards::Reason;

/// Link types, as numbered by tcpdump.org.
pub mod link_type {
    pub const NULL: u32 = 0;
    pub const ETHERNET: u32 = 1;
    /// Raw IP: the standard number, and numbers that some systems write instead.
    pub const RAW: [u32; 5] = [101, 12, 14, 228, 229];
    pub const LOOP: u32 = 108;
    pub const LINUX_SLL: u32 = 113;
    pub const LINUX_SLL2: u32 = 276;
    /// A stack of MPLS labels, for which sFlow has a protocol number.
    pub const MPLS: u32 = 219;
}

mod ether_type {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
    pub const MPLS: [u16; 2] = [0x8847, 0x8848];
    pub const PPPOE: u16 = 0x8864;
    /// Smallest EtherType; a smaller number in its place is the length of an IEEE 802.3 frame.
    pub const LEAST: u16 = 0x0600;
}

/// Largest number of tags and labels in front of a packet.
const MOST_TAGS: usize = 16;

/// The captured part of an IP packet.
pub struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Ports of TCP, UDP, SCTP and DCCP, if they were captured; `None` for fragments other than the first.
    pub ports: Option<(u16, u16)>,
    pub protocol: u8,
    /// True for any fragment of a datagram, including the first fragment.
    pub fragment: bool,
    /// Length of the packet with its headers.
    pub ip_bytes: u64,
    /// Captured bytes behind the IP headers.
    payload: &'a [u8],
}

/// Reason why a frame is not counted, with a detail such as its EtherType; the detail may be empty.
pub struct PacketError {
    pub reason: Reason,
    pub detail: String,
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
    pub fn read(link_type: u32, frame: &'a [u8], length: u64) -> Result<Packet<'a>, PacketError> {
        let packet = strip_link_layer(link_type, frame)?;
        Packet::read_ip(packet, length.saturating_sub((frame.len() - packet.len()) as u64))
    }

    /// Reads a packet that begins with its IP header; `length` is its length on the wire.
    fn read_ip(bytes: &'a [u8], length: u64) -> Result<Packet<'a>, PacketError> {
        use etherparse::err::ip::LaxHeaderSliceError::{Content, Len};
        let (ip, _) = LaxIpSlice::from_slice(bytes).map_err(|error| match error {
            Len(_) => refuse(Reason::CutOffHeader),
            Content(_) => refuse(Reason::BrokenIp),
        })?;
        let (stated, is_later_fragment) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                (u64::from(ip.header().total_len()), ip.header().fragments_offset().value() > 0)
            }
            LaxIpSlice::Ipv6(ip) => {
                let payload = u64::from(ip.header().payload_length());
                let is_later_fragment = |extension| match extension {
                    Ipv6ExtensionSlice::Fragment(part) => part.fragment_offset().value() > 0,
                    _ => false,
                };
                // A jumbogram states a length of 0; its true length is in an option.
                let stated = if payload == 0 { 0 } else { payload + 40 };
                (stated, ip.extensions().clone().into_iter().any(is_later_fragment))
            }
        };
        let protocol = ip.payload_ip_number();
        let payload = ip.payload().payload;
        let has_ports =
            [ip_number::TCP, ip_number::UDP, ip_number::SCTP, ip_number::DCCP].contains(&protocol);
        let ports = match payload {
            [a, b, c, d, ..] if has_ports && !is_later_fragment => {
                Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
            }
            _ => None,
        };
        Ok(Packet {
            source: ip.source_addr(),
            destination: ip.destination_addr(),
            ports,
            protocol: protocol.0,
            fragment: ip.is_fragmenting_payload(),
            // With segmentation offload, headers are captured before their length is known and state a length of 0.
            ip_bytes: if stated == 0 { length } else { stated },
            payload,
        })
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

fn refuse(reason: Reason) -> PacketError {
    PacketError { reason, detail: String::new() }
}

/// Removes the link layer: the rest begins with an IP header.
fn strip_link_layer(link: u32, frame: &[u8]) -> Result<&[u8], PacketError> {
    match link {
        link_type::ETHERNET => strip_tags(word(frame, 12)?, frame.get(14..).unwrap_or_default()),
        link_type::LINUX_SLL => strip_tags(word(frame, 14)?, frame.get(16..).unwrap_or_default()),
        link_type::LINUX_SLL2 => strip_tags(word(frame, 0)?, frame.get(20..).unwrap_or_default()),
        link_type::NULL | link_type::LOOP => {
            // The family is in the byte order of the capturing machine, and the file does not state that order.
            let family = [word(frame, 0)?, word(frame, 2)?];
            let family = if family[0] == 0 { family[1] } else { family[0].swap_bytes() };
            match family {
                // The number of the IPv6 family differs between systems.
                2 | 10 | 24 | 28 | 30 => Ok(frame.get(4..).unwrap_or_default()),
                _ => Err(PacketError { reason: Reason::NotIp, detail: format!("address family {family}") }),
            }
        }
        link_type::MPLS => strip_labels(frame, ether_type::MPLS[0]),
        link if link_type::RAW.contains(&link) => Ok(frame),
        link => Err(PacketError { reason: Reason::UnknownLinkType, detail: link.to_string() }),
    }
}

/// Removes VLAN tags and MPLS labels. `kind` is the EtherType of the following bytes.
fn strip_tags(mut kind: u16, mut bytes: &[u8]) -> Result<&[u8], PacketError> {
    for _ in 0..MOST_TAGS {
        match kind {
            ether_type::IPV4 | ether_type::IPV6 => return Ok(bytes),
            tag if ether_type::TAGS.contains(&tag) => {
                kind = word(bytes, 2)?;
                bytes = bytes.get(4..).unwrap_or_default();
            }
            label if ether_type::MPLS.contains(&label) => return strip_labels(bytes, label),
            ether_type::PPPOE => {
                return match word(bytes, 6)? {
                    0x0021 | 0x0057 => Ok(bytes.get(8..).unwrap_or_default()),
                    other => Err(PacketError { reason: Reason::NotIp, detail: format!("PPP {other:#06x}") }),
                };
            }
            length if length < ether_type::LEAST => {
                return Err(PacketError { reason: Reason::NotIp, detail: "IEEE 802.3".into() });
            }
            other => return Err(PacketError { reason: Reason::NotIp, detail: ether_type_name(other) }),
        }
    }
    Err(PacketError { reason: Reason::NotIp, detail: "too many tags".into() })
}

/// Removes MPLS labels. The first bits behind the last label are the only evidence that IP follows.
fn strip_labels(mut bytes: &[u8], kind: u16) -> Result<&[u8], PacketError> {
    for _ in 0..MOST_TAGS {
        let last = word(bytes, 2)? & 0x0100 != 0;
        bytes = bytes.get(4..).unwrap_or_default();
        if last {
            return match bytes.first().map(|first| first >> 4) {
                Some(4 | 6) => Ok(bytes),
                Some(_) => Err(PacketError { reason: Reason::NotIp, detail: ether_type_name(kind) }),
                None => Err(refuse(Reason::CutOffHeader)),
            };
        }
    }
    Err(PacketError { reason: Reason::NotIp, detail: "too many labels".into() })
}

/// Name of an EtherType: its number, with a word for the common types.
fn ether_type_name(kind: u16) -> String {
    let name = match kind {
        0x0806 => " ARP",
        0x8847 | 0x8848 => " MPLS",
        0x8809 => " LACP",
        0x88cc => " LLDP",
        0x8906 => " FCoE",
        0x8915 => " RoCE",
        _ => "",
    };
    format!("{kind:#06x}{name}")
}

fn word(bytes: &[u8], at: usize) -> Result<u16, PacketError> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(refuse(Reason::CutOffHeader)),
    }
}
