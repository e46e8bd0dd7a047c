//! Writers of packets, captures and exports for tests. They follow the specifications and share no code with the
//! readers.
pub mod exports;
pub mod files;
pub mod layouts;

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use leeward_capture::{Capture, Content, Matrix, Places, Settings};

/// A packet of a test: source, destination, ports, length of the UDP payload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Udp {
    pub time_ns: u64,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ports: (u16, u16),
    pub payload: usize,
}

pub fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

pub fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into()
}

impl Udp {
    /// The IP packet.
    pub fn ip(&self) -> Vec<u8> {
        ip(self.source, self.destination, 17, &datagram(self.ports, &vec![7; self.payload]))
    }

    /// The packet in an Ethernet frame.
    pub fn frame(&self) -> Vec<u8> {
        ethernet(self.destination, &self.ip())
    }
}

pub fn datagram(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend((payload.len() as u16 + 8).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

pub fn ip(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes.extend([0x45, 0]);
            bytes.extend((payload.len() as u16 + 20).to_be_bytes());
            bytes.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend((payload.len() as u16).to_be_bytes());
            bytes.extend([protocol, 64]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
        }
        _ => panic!("one kind of address"),
    }
    bytes.extend(payload);
    bytes
}

pub fn ether_type(address: IpAddr) -> u16 {
    if address.is_ipv4() { 0x0800 } else { 0x86dd }
}

pub fn ethernet(destination: IpAddr, packet: &[u8]) -> Vec<u8> {
    tagged(&[], ether_type(destination), packet)
}

/// An Ethernet frame with tags or labels: the bytes between the addresses and the packet.
pub fn tagged(tags: &[u8], ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(tags);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    frame
}

/// Reads one file into a matrix by address.
pub fn read(file: &[u8], settings: Settings) -> Matrix {
    read_into(&[file], settings, Places::addresses())
}

pub fn packets() -> Settings {
    Settings { content: Content::Packets, interval_s: 1, ..Settings::default() }
}

pub fn read_into(files: &[&[u8]], settings: Settings, places: Places) -> Matrix {
    let mut capture = Capture::new(settings, places);
    for file in files {
        let mut open = capture.open("file", Cursor::new(file.to_vec())).expect("a capture");
        while capture.read(&mut open, 7).expect("a readable capture") {}
    }
    capture.finish()
}

/// Cells as (start, source, destination, bytes, packets).
pub fn cells(matrix: &Matrix) -> Vec<(i64, String, String, u128, u128)> {
    let name = |place: u32| matrix.places[place as usize].clone();
    let cell = |pair: &leeward_capture::Pair| {
        (pair.start_s, name(pair.source), name(pair.destination), pair.cell.bytes, pair.cell.packets)
    };
    matrix.pairs.iter().map(cell).collect()
}

/// Discards as (reason, detail, count).
pub fn reasons(matrix: &Matrix) -> Vec<(&'static str, String, u64)> {
    matrix
        .discards
        .iter()
        .map(|(reason, detail, discard)| (reason.name(), detail.to_owned(), discard.count))
        .collect()
}
