//! A frame of a TUN device: the header of `virtio_net`, and an IPv4 packet.
//!
//! The lab reads the addresses, the end of a segment's data, and the congestion field; it sets two bits: the mark of a
//! full queue (RFC 3168) and the announcement of a circuit (Etalon, section 4.4).

use std::net::Ipv4Addr;

use leeward_circuits::switch::Ecn;

use crate::frames::HEADER;

/// Flag of the `virtio_net` header: the transport's checksum is partial, and covers addresses only.
const NEEDS_CHECKSUM: u8 = 1;
const TCP: u8 = 6;
/// Flags of TCP.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ECE: u8 = 0x40;

/// Ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tuple {
    pub(crate) source: (Ipv4Addr, u16),
    pub(crate) destination: (Ipv4Addr, u16),
}

/// Part of a packet that the lab reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// Length of the packet in bytes, from the IPv4 header on.
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    pub(crate) segment: Option<Segment>,
    /// True if the packet carries data of TCP, or anything of another protocol.
    pub(crate) has_data: bool,
}

/// TCP header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) ports: (u16, u16),
    /// Sequence number after the last byte of data.
    pub(crate) end: u32,
    pub(crate) opens: bool,
    /// True for the last segment with data (FIN).
    pub(crate) closes: bool,
    /// True if it ends both directions (RST).
    pub(crate) resets: bool,
}

impl Tuple {
    /// The other direction of the connection.
    pub(crate) fn reversed(self) -> Tuple {
        Tuple { source: self.destination, destination: self.source }
    }
}

impl Packet {
    /// Ends of the connection of a TCP packet, its sender first.
    pub(crate) fn tuple(&self) -> Option<Tuple> {
        let (source, destination) = self.segment?.ports;
        Some(Tuple { source: (self.source, source), destination: (self.destination, destination) })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a frame; `None` if it is not an IPv4 packet whose length is that of the frame.
pub(crate) fn read(frame: &[u8]) -> Option<Packet> {
    let ip = frame.get(HEADER..)?;
    let first = *ip.first()?;
    let header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header < 20 || usize::from(word(ip, 2)?) != ip.len() || ip.len() < header {
        return None;
    }
    let ecn = match ip[1] & 0b11 {
        0 => Ecn::Incapable,
        0b11 => Ecn::Congested,
        _ => Ecn::Capable,
    };
    let is_fragment = word(ip, 6)? & 0x1fff != 0;
    let segment = if ip[9] == TCP && !is_fragment { segment(ip.get(header..)?) } else { None };
    Some(Packet {
        source: Ipv4Addr::from(double(ip, 12)?),
        destination: Ipv4Addr::from(double(ip, 16)?),
        bytes: ip.len() as u32,
        ecn,
        has_data: segment.is_none_or(|(_, data)| data > 0),
        segment: segment.map(|(segment, _)| segment),
    })
}

/// Reads a TCP header; returns also the number of bytes of data.
fn segment(tcp: &[u8]) -> Option<(Segment, u32)> {
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    if header < 20 || tcp.len() < header {
        return None;
    }
    let (flags, data) = (tcp[13], (tcp.len() - header) as u32);
    let opens = flags & SYN != 0;
    let segment = Segment {
        ports: (word(tcp, 0)?, word(tcp, 2)?),
        end: double(tcp, 4)?.wrapping_add(data).wrapping_add(u32::from(opens)),
        opens,
        closes: flags & FIN != 0,
        resets: flags & RST != 0,
    };
    Some((segment, data))
}

/// Marks the packet of a valid frame as congested.
pub(crate) fn mark_congested(frame: &mut [u8]) {
    let ip = &mut frame[HEADER..];
    let before = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= 0b11;
    let after = u16::from_be_bytes([ip[0], ip[1]]);
    patch(&mut ip[10..12], before, after);
}

/// Sets the echo of congestion (ECE) on the TCP packet of a valid frame, which announces a circuit.
pub(crate) fn announce_circuit(frame: &mut [u8]) {
    let is_partial = frame[0] & NEEDS_CHECKSUM != 0;
    let ip = &mut frame[HEADER..];
    let header = usize::from(ip[0] & 0x0f) * 4;
    let is_fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0;
    if ip[9] != TCP || is_fragment || ip.len() < header + 20 {
        return;
    }
    let tcp = &mut ip[header..];
    let before = u16::from_be_bytes([tcp[12], tcp[13]]);
    tcp[13] |= ECE;
    let after = u16::from_be_bytes([tcp[12], tcp[13]]);
    // A partial checksum covers addresses and length only; the receiver does not verify it.
    if !is_partial {
        patch(&mut tcp[16..18], before, after);
    }
}

/// Updates a checksum for one changed word (RFC 1624, equation 3).
fn patch(checksum: &mut [u8], before: u16, after: u16) {
    let old = u16::from_be_bytes([checksum[0], checksum[1]]);
    let mut sum = u32::from(!old) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    checksum.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sum of a header whose checksum is right: 0xffff.
    fn sum(words: &[u8], pseudo: u32) -> u16 {
        let mut sum = pseudo;
        for pair in words.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn pseudo(ip: &[u8]) -> u32 {
        let length = ip.len() as u32 - 20;
        ip[12..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>()
            + u32::from(TCP)
            + length
    }

    /// A TCP frame with complete checksums.
    fn frame(flags: u8, tos: u8, sequence: u32, data: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x45, tos, 0, 0, 0, 7, 0x40, 0, 64, TCP, 0, 0, 10, 1, 0, 2, 10, 2, 3, 2];
        ip.extend([0x13, 0x89, 0x20, 0x00]);
        ip.extend(sequence.to_be_bytes());
        ip.extend([0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        ip.extend(data);
        let length = (ip.len() as u16).to_be_bytes();
        ip[2..4].copy_from_slice(&length);
        let ip_sum = !sum(&ip[..20], 0);
        ip[10..12].copy_from_slice(&ip_sum.to_be_bytes());
        let tcp_sum = !sum(&ip[20..], pseudo(&ip));
        ip[36..38].copy_from_slice(&tcp_sum.to_be_bytes());
        [vec![0; HEADER], ip].concat()
    }

    #[test]
    fn a_segment_has_its_ends_and_its_end() {
        let packet = read(&frame(0x10, 0, 100, b"abc")).expect("a packet");
        assert_eq!((packet.bytes, packet.has_data, packet.ecn), (43, true, Ecn::Incapable));
        let tuple = packet.tuple().expect("a connection");
        assert_eq!(tuple.source, (Ipv4Addr::new(10, 1, 0, 2), 5001));
        assert_eq!(tuple.destination, (Ipv4Addr::new(10, 2, 3, 2), 8192));
        let segment = packet.segment.expect("a segment");
        assert_eq!((segment.end, segment.opens, segment.closes), (103, false, false));
        let ack = read(&frame(0x10, 2, 100, b"")).expect("a packet");
        assert_eq!((ack.has_data, ack.ecn), (false, Ecn::Capable));
        assert!(
            read(&frame(SYN, 0, 9, b"")).is_some_and(|p| p.segment.is_some_and(|s| s.opens && s.end == 10))
        );
    }

    proptest! {
        #[test]
        fn marks_keep_checksums_right(
            flags in 0_u8..64,
            tos in 0_u8..=255,
            sequence in any::<u32>(),
            data in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut frame = frame(flags, tos, sequence, &data);
            mark_congested(&mut frame);
            announce_circuit(&mut frame);
            let ip = &frame[HEADER..];
            prop_assert_eq!(sum(&ip[..20], 0), 0xffff);
            prop_assert_eq!(sum(&ip[20..], pseudo(ip)), 0xffff);
            prop_assert_eq!(ip[33] & ECE, ECE);
            prop_assert_eq!(read(&frame).map(|packet| packet.ecn), Some(Ecn::Congested));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if read(&bytes).is_some() {
                let mut bytes = bytes;
                mark_congested(&mut bytes);
                announce_circuit(&mut bytes);
            }
        }
    }
}
