//! Recognizes exported datagrams by their content, on any port: a datagram is an export if its parts fill it exactly.

use super::PORTS;
use crate::packet::Packet;

/// Largest number of records or samples of a datagram.
const MOST_PARTS: usize = 2000;

/// Protocol of an exported datagram, or `None` for other packets. On a port of exports, the first bytes are enough.
#[inline]
pub fn protocol(packet: &Packet<'_>, ports: &[u16]) -> Option<&'static str> {
    let (payload, length) = packet.udp()?;
    let name = match *payload {
        [0, 0, 0, 2 | 4 | 5, ..] => "sflow",
        [0, 1, ..] => "netflow 1",
        [0, 5, ..] => "netflow 5",
        [0, 7, ..] => "netflow 7",
        [0, 8, ..] => "netflow 8",
        [0, 9, ..] => "netflow 9",
        [0, 10, ..] => "ipfix",
        _ => return None,
    };
    let known = packet.ports.is_some_and(|(_, to)| is_port(to, ports));
    (known || fills(payload, length)).then_some(name)
}

/// True for a port of exports.
pub fn is_port(port: u16, more: &[u16]) -> bool {
    PORTS.contains(&port) || more.contains(&port)
}

/// True if the parts of a datagram of `length` bytes end where it ends. Only the first bytes may have been captured.
fn fills(payload: &[u8], length: usize) -> bool {
    let word = |at: usize| {
        payload.get(at..at + 2).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])))
    };
    let of_records = |header: usize, record: usize| {
        (1..=MOST_PARTS).contains(&word(2)) && length == header + record * word(2)
    };
    match *payload {
        [0, 0, 0, 5, ..] => samples_fill(payload, length),
        [0, 1, ..] => of_records(16, 52),
        [0, 5, ..] => of_records(24, 48),
        [0, 7, ..] => of_records(24, 52),
        // The kind of aggregation decides the length of records.
        [0, 8, ..] => [28, 32, 40, 44, 52].iter().any(|&record| of_records(28, record)),
        [0, 9, ..] => sets_fill(payload, 20, length, [0, 1]),
        [0, 10, ..] => word(2) == length && sets_fill(payload, 16, length, [2, 3]),
        _ => false,
    }
}

/// True if the sets of NetFlow 9 or IPFIX fill a datagram.
fn sets_fill(payload: &[u8], header: usize, length: usize, templates: [usize; 2]) -> bool {
    let (mut at, mut sets) = (header, 0);
    while at + 4 <= length {
        let Some(&[a, b, c, d]) = payload.get(at..at + 4) else { return sets > 0 };
        let (id, size) = (usize::from(u16::from_be_bytes([a, b])), usize::from(u16::from_be_bytes([c, d])));
        if !(templates.contains(&id) || id >= 256) || size < 4 || size > length - at {
            return false;
        }
        (at, sets) = (at + size, sets + 1);
    }
    sets > 0 && payload.get(at..).unwrap_or_default().iter().all(|&byte| byte == 0)
}

/// True if the samples of sFlow 5 fill a datagram.
fn samples_fill(payload: &[u8], length: usize) -> bool {
    let long = |at: usize| {
        let four = payload.get(at..at + 4)?;
        Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]) as usize)
    };
    let header = match long(4) {
        Some(1) => 28,
        Some(2) => 40,
        _ => return false,
    };
    let Some(samples) = long(header - 4).filter(|&samples| samples <= MOST_PARTS) else { return false };
    let mut at = header;
    for sample in 0..samples {
        let Some(size) = long(at + 4) else { return sample > 0 && at + 8 <= length };
        at = at.saturating_add(8).saturating_add(size.next_multiple_of(4));
        if at > length {
            return false;
        }
    }
    at <= length && payload.get(at..).unwrap_or_default().iter().all(|&byte| byte == 0)
}
