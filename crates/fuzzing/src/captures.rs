//! Fuzz targets for captures of packets and flow exports.

use std::io::Cursor;

use leeward_capture::{Capture, Classes, Places, Settings};

use crate::assert_one_line;

/// Reads the input as a pcap or pcapng capture, or as a file of IPFIX messages.
pub fn capture(bytes: &[u8]) {
    read(bytes.to_vec());
}

/// Reads NetFlow and IPFIX datagrams of one exporter in a capture. In the input, each datagram follows two bytes with
/// its length.
pub fn ipfix(bytes: &[u8]) {
    let mut datagrams = Vec::new();
    let mut rest = bytes;
    while let [high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        datagrams.push(&more[..length]);
        rest = &more[length..];
    }
    read(udp_capture(4739, &datagrams));
}

/// Reads the input as one sFlow datagram in a capture.
pub fn sflow(bytes: &[u8]) {
    read(udp_capture(6343, &[bytes]));
}

/// Reads a capture into a matrix by class of service, with addresses as places. Checks that standard errors are finite
/// and that places and classes exist. Checks that start times are multiples of the interval, and fit 64 bits in nanoseconds.
fn read(bytes: Vec<u8>) {
    let settings = Settings { classes: Some(Classes::code_points()), ..Settings::default() };
    let mut capture = Capture::new(settings, Places::addresses());
    let mut open = match capture.open("file", Cursor::new(bytes)) {
        Ok(open) => open,
        Err(error) => return assert_one_line(&error),
    };
    loop {
        match capture.read(&mut open, 1000) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return assert_one_line(&error),
        }
    }
    let matrix = capture.finish();
    for pair in &matrix.pairs {
        assert!(pair.cell.standard_error().is_finite());
        assert!(pair.start_s.abs() <= i64::MAX / 1_000_000_000);
        assert!(pair.start_s % i64::from(matrix.interval_s) == 0);
        assert!(pair.class.is_some_and(|class| usize::from(class) < matrix.classes.len()));
        assert!([pair.source, pair.destination].iter().all(|&place| (place as usize) < matrix.places.len()));
    }
}

/// A capture of UDP datagrams to a port, each in an Ethernet frame.
fn udp_capture(port: u16, datagrams: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for datagram in datagrams {
        let datagram = &datagram[..datagram.len().min(65_000)];
        let length = datagram.len() as u16;
        for word in [1_700_000_000, 0, u32::from(length) + 42, u32::from(length) + 42] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        file.extend((length + 28).to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40]);
        file.extend(port.to_be_bytes());
        file.extend((length + 8).to_be_bytes());
        file.extend([0, 0]);
        file.extend(datagram);
    }
    file
}
