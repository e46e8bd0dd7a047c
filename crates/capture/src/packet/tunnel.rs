//! Packets in tunnels: the packet inside VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784 and 2890) and IP in IP.

use etherparse::ip_number;

use super::link::{ether_type, link_type, strip, strip_tags, word};
use super::{Packet, PacketError};
use crate::discards::Reason;

/// UDP ports of VXLAN: the standard port, and the port that Linux used before.
const VXLAN: [u16; 2] = [4789, 8472];
const VXLAN_GPE: u16 = 4790;
const GENEVE: u16 = 6081;
/// Bytes of a UDP header.
const UDP: usize = 8;
/// Largest number of tunnels inside each other.
const MOST_TUNNELS: usize = 8;
/// Flags in the first two bytes of GRE: additional words, and the version.
mod gre {
    pub const CHECKSUM: u16 = 0x8000;
    pub const ROUTING: u16 = 0x4000;
    pub const KEY: u16 = 0x2000;
    pub const SEQUENCE: u16 = 0x1000;
    pub const VERSION: u16 = 0x0007;
    /// Mirrored frames (ERSPAN): protocol numbers and bytes in front of the frame.
    pub const MIRRORED: [(u16, usize); 2] = [(0x88be, 8), (0x22eb, 12)];
}

/// Replaces the ends of a packet in a tunnel by the ends of the innermost packet. Its lengths and its
/// code point remain those of the outer packet, which the network carries.
pub fn enter<'a>(outer: Packet<'a>) -> Result<Packet<'a>, PacketError> {
    let mut packet = outer;
    for _ in 0..MOST_TUNNELS {
        let Some(inside) = inside(&packet) else { return Ok(packet) };
        let inner = Packet::read_ip(inside?, 0)?;
        let Packet { ip_bytes, wire_bytes, link_bytes, dscp, .. } = packet;
        packet = Packet { ip_bytes, wire_bytes, link_bytes, dscp, ..inner };
    }
    Err(PacketError { reason: Reason::NotIp, detail: "too many tunnels".into() })
}

/// The bytes of the packet inside a tunnel, from its IP header on; `None` if the packet is not in a tunnel.
fn inside<'a>(packet: &Packet<'a>) -> Option<Result<&'a [u8], PacketError>> {
    let payload = packet.payload;
    let protocol = etherparse::IpNumber(packet.protocol);
    let is_tunnel = [ip_number::GRE, ip_number::IPV4, ip_number::IPV6].contains(&protocol);
    if packet.later_fragment {
        return is_tunnel.then(|| Err(Reason::Fragment.into()));
    }
    match (protocol, packet.ports) {
        (ip_number::GRE, _) => gre_inside(payload).transpose(),
        (ip_number::IPV4 | ip_number::IPV6, _) => Some(Ok(payload)),
        (ip_number::UDP, Some((_, to))) => {
            let bytes = payload.get(UDP..).unwrap_or_default();
            match to {
                GENEVE => Some(geneve_inside(bytes)),
                VXLAN_GPE => gpe_inside(bytes).transpose(),
                port if VXLAN.contains(&port) => Some(behind(ether_type::ETHERNET, bytes, 8)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn gre_inside(bytes: &[u8]) -> Result<Option<&[u8]>, PacketError> {
    let (flags, protocol) = (word(bytes, 0)?, word(bytes, 2)?);
    if flags & (gre::ROUTING | gre::VERSION) != 0 {
        return Ok(None);
    }
    let words = [gre::CHECKSUM, gre::KEY, gre::SEQUENCE].iter().filter(|&&flag| flags & flag != 0).count();
    let header = 4 + 4 * words;
    let mirrored = gre::MIRRORED.iter().find(|(number, _)| *number == protocol);
    let Some(&(_, more)) = mirrored else { return behind(protocol, bytes, header).map(Some) };
    // The first version of mirrored frames has no sequence number and no header.
    let more = if flags & gre::SEQUENCE == 0 { 0 } else { more };
    behind(ether_type::ETHERNET, bytes, header + more).map(Some)
}

fn geneve_inside(bytes: &[u8]) -> Result<&[u8], PacketError> {
    let options = usize::from(word(bytes, 0)? >> 8 & 0x3f) * 4;
    behind(word(bytes, 2)?, bytes, 8 + options)
}

fn gpe_inside(bytes: &[u8]) -> Result<Option<&[u8]>, PacketError> {
    let kind = match word(bytes, 2)? & 0xff {
        1 => ether_type::IPV4,
        2 => ether_type::IPV6,
        3 => ether_type::ETHERNET,
        _ => return Ok(None),
    };
    behind(kind, bytes, 8).map(Some)
}

/// The IP packet behind a header, for the EtherType in the header.
fn behind(kind: u16, bytes: &[u8], header: usize) -> Result<&[u8], PacketError> {
    let bytes = bytes.get(header..).ok_or(Reason::CutOffHeader)?;
    if kind == ether_type::ETHERNET { strip(link_type::ETHERNET, bytes) } else { strip_tags(kind, bytes) }
}
