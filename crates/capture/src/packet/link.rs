//! Link layers: the bytes in front of an IP packet. They are parsed here, because they are a few bytes each.

use super::PacketError;
use crate::discards::Reason;
use crate::flow::ETHERNET;

/// Link types, as numbered by tcpdump.org.
pub mod link_type {
    pub const NULL: u32 = 0;
    pub const ETHERNET: u32 = 1;
    /// PPP, with or without its address and control bytes, which Cisco's framing may replace.
    pub const PPP: u32 = 9;
    pub const PPP_HDLC: u32 = 50;
    pub const PPP_ETHER: u32 = 51;
    /// Raw IP: the standard number, and numbers that some systems write instead.
    pub const RAW: [u32; 5] = [101, 12, 14, 228, 229];
    pub const CISCO_HDLC: u32 = 104;
    pub const LOOP: u32 = 108;
    pub const LINUX_SLL: u32 = 113;
    /// PPP and Cisco's framing behind a byte that states the direction.
    pub const PPP_DIRECTION: [u32; 2] = [166, 204];
    pub const CISCO_HDLC_DIRECTION: u32 = 205;
    pub const LINUX_SLL2: u32 = 276;
    /// A stack of MPLS labels, for which sFlow has a protocol number.
    pub const MPLS: u32 = 219;
}

pub mod ether_type {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
    pub const MPLS: [u16; 2] = [0x8847, 0x8848];
    pub const PPPOE: u16 = 0x8864;
    /// An Ethernet frame inside a tunnel.
    pub const ETHERNET: u16 = 0x6558;
    /// Smallest EtherType; a smaller number in its place is the length of an IEEE 802.3 frame.
    pub const LEAST: u16 = 0x0600;
}

/// Largest number of tags and labels in front of a packet.
const MOST_TAGS: usize = 16;
/// First bytes of a frame with Cisco's framing: to one receiver, and to all.
const CISCO: [u8; 2] = [0x0f, 0x8f];

/// Bytes that a header has beyond one of Ethernet, if Linux wrote it in place of the frame's own header. Its length
/// depends on the version of the capturing program.
pub fn cooked(link: u32) -> u64 {
    match link {
        link_type::LINUX_SLL => 16 - ETHERNET,
        link_type::LINUX_SLL2 => 20 - ETHERNET,
        _ => 0,
    }
}

/// Removes the link layer: the rest begins with an IP header.
pub fn strip(link: u32, frame: &[u8]) -> Result<&[u8], PacketError> {
    match link {
        link_type::ETHERNET => strip_tags(word(frame, 12)?, rest(frame, 14)),
        link_type::LINUX_SLL => strip_tags(word(frame, 14)?, rest(frame, 16)),
        link_type::LINUX_SLL2 => strip_tags(word(frame, 0)?, rest(frame, 20)),
        link_type::NULL | link_type::LOOP => {
            // The family is in the byte order of the capturing machine, and the file does not state that order.
            let family = [word(frame, 0)?, word(frame, 2)?];
            let family = if family[0] == 0 { family[1] } else { family[0].swap_bytes() };
            match family {
                // The number of the IPv6 family differs between systems.
                2 | 10 | 24 | 28 | 30 => Ok(rest(frame, 4)),
                _ => Err(PacketError { reason: Reason::NotIp, detail: format!("address family {family}") }),
            }
        }
        link_type::PPP | link_type::PPP_HDLC => strip_ppp(frame),
        link_type::PPP_ETHER => strip_ppp(rest(frame, 6)),
        link_type::CISCO_HDLC => strip_cisco(frame),
        link_type::CISCO_HDLC_DIRECTION => strip_cisco(rest(frame, 1)),
        link if link_type::PPP_DIRECTION.contains(&link) => strip_ppp(rest(frame, 1)),
        link_type::MPLS => strip_labels(frame, ether_type::MPLS[0]),
        link if link_type::RAW.contains(&link) => Ok(frame),
        link => Err(PacketError { reason: Reason::UnknownLinkType, detail: link.to_string() }),
    }
}

/// Removes VLAN tags and MPLS labels. `kind` is the EtherType of the following bytes.
pub fn strip_tags(mut kind: u16, mut bytes: &[u8]) -> Result<&[u8], PacketError> {
    for _ in 0..MOST_TAGS {
        match kind {
            ether_type::IPV4 | ether_type::IPV6 => return Ok(bytes),
            tag if ether_type::TAGS.contains(&tag) => {
                kind = word(bytes, 2)?;
                bytes = rest(bytes, 4);
            }
            label if ether_type::MPLS.contains(&label) => return strip_labels(bytes, label),
            ether_type::PPPOE => return strip_ppp(rest(bytes, 6)),
            length if length < ether_type::LEAST => {
                return Err(PacketError { reason: Reason::NotIp, detail: "IEEE 802.3".into() });
            }
            other => return Err(PacketError { reason: Reason::NotIp, detail: ether_type_name(other) }),
        }
    }
    Err(PacketError { reason: Reason::NotIp, detail: "too many tags".into() })
}

/// Removes the header of PPP: address and control, which may be left out, and a protocol of one byte or two (RFC 1661).
fn strip_ppp(frame: &[u8]) -> Result<&[u8], PacketError> {
    let bytes = match *frame {
        [first, ..] if CISCO.contains(&first) => return strip_cisco(frame),
        [0xff, 0x03, ref bytes @ ..] => bytes,
        _ => frame,
    };
    let (protocol, bytes) = match *bytes {
        // A protocol number is odd in its last byte, and even in a first byte.
        [short, ref bytes @ ..] if short & 1 == 1 => (u16::from(short), bytes),
        _ => (word(bytes, 0)?, rest(bytes, 2)),
    };
    match protocol {
        0x0021 | 0x0057 => Ok(bytes),
        0x0281 | 0x0283 => strip_labels(bytes, ether_type::MPLS[usize::from(protocol == 0x0283)]),
        other => Err(PacketError { reason: Reason::NotIp, detail: format!("PPP {other:#06x}") }),
    }
}

/// Removes the header of Cisco's framing: address, control, EtherType.
fn strip_cisco(frame: &[u8]) -> Result<&[u8], PacketError> {
    strip_tags(word(frame, 2)?, rest(frame, 4))
}

/// Removes MPLS labels. The first bits behind the last label are the only evidence that IP follows.
fn strip_labels(mut bytes: &[u8], kind: u16) -> Result<&[u8], PacketError> {
    for _ in 0..MOST_TAGS {
        let last = word(bytes, 2)? & 0x0100 != 0;
        bytes = rest(bytes, 4);
        if last {
            return match bytes.first().map(|first| first >> 4) {
                Some(4 | 6) => Ok(bytes),
                Some(_) => Err(PacketError { reason: Reason::NotIp, detail: ether_type_name(kind) }),
                None => Err(PacketError::from(Reason::CutOffHeader)),
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

fn rest(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

pub fn word(bytes: &[u8], at: usize) -> Result<u16, PacketError> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(PacketError::from(Reason::CutOffHeader)),
    }
}
