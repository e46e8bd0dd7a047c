//! pcap and pcapng files: every packet is read, in every byte order, and no bytes make a reader fail.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::net::IpAddr;

use crate::support::files::{Captured, Order, block, enhanced, interface, pcap, section};
use crate::support::{Udp, cells, ethernet, ip, packets, read, read_into, reasons, tagged, v4, v6};
use leeward_capture::{Capture, Matrix, Places, Reason, Settings, Size};
use proptest::prelude::*;

fn udp() -> impl Strategy<Value = Udp> {
    let ends = prop_oneof![
        (0..5_u8, 0..5_u8).prop_map(|(a, b)| (v4(a), v4(b))),
        (0..5_u16, 0..5_u16).prop_map(|(a, b)| (v6(a), v6(b))),
    ];
    (0..4_000_000_000_u64, ends, any::<(u16, u16)>(), 0..1400_usize).prop_map(
        |(time, ends, ports, payload)| Udp {
            time_ns: 1_700_000_000_000_000_000 + time,
            source: ends.0,
            destination: ends.1,
            ports,
            payload,
        },
    )
}

type Sums = BTreeMap<(i64, String, String), (u128, u128)>;

/// Expected matrix of a list of packets, from counting them one by one.
fn truth(sent: &[Udp], size: impl Fn(&Udp) -> usize) -> Sums {
    let mut sums = Sums::new();
    for packet in sent {
        let key = (
            (packet.time_ns / 1_000_000_000) as i64,
            packet.source.to_string(),
            packet.destination.to_string(),
        );
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + size(packet) as u128, sum.1 + 1);
    }
    sums
}

fn sums(matrix: &Matrix) -> Sums {
    cells(matrix)
        .into_iter()
        .map(|(time, from, to, bytes, packets)| ((time, from, to), (bytes, packets)))
        .collect()
}

proptest! {
    #[test]
    fn every_packet_of_a_pcap_is_in_the_matrix(
        sent in prop::collection::vec(udp(), 0..40), big: bool, nanoseconds: bool, snap in 42..200_usize, ip_bytes: bool
    ) {
        let frames = sent.iter().map(|udp| Captured::whole(udp.time_ns, udp.frame()).snapped(snap.max(54)));
        let file = pcap(Order { big }, nanoseconds, 1, &frames.collect::<Vec<_>>());
        let size = if ip_bytes { Size::Ip } else { Size::Frame };
        let matrix = read(&file, Settings { size, ..packets() });
        let length = |udp: &Udp| if ip_bytes { udp.ip().len() } else { udp.frame().len() };
        prop_assert_eq!(sums(&matrix), truth(&sent, length));
        prop_assert_eq!(reasons(&matrix), vec![]);
        prop_assert!(matrix.pairs.iter().all(|pair| pair.cell.standard_error() == 0.0));
    }

    #[test]
    fn every_packet_of_a_pcapng_is_in_the_matrix(
        sections in prop::collection::vec((any::<bool>(), prop::collection::vec((udp(), 0..3_u32), 0..20)), 1..4)
    ) {
        let (mut file, mut sent) = (Vec::new(), Vec::new());
        for (big, frames) in sections {
            let order = Order { big };
            // Interfaces with microseconds, with nanoseconds and an offset, and with units of 2^-20 s; the last one is
            // not Ethernet.
            file.extend(section(order));
            file.extend(interface(order, 1, None, None));
            file.extend(interface(order, 1, Some(9), Some(1_600_000_000)));
            file.extend(block(order, 4, &[0, 0, 0, 0]));
            file.extend(interface(order, 101, Some(0x80 | 20), None));
            for (udp, number) in frames {
                let ns = u128::from(udp.time_ns);
                let time = match number {
                    0 => ns / 1000,
                    1 => ns - 1_600_000_000_000_000_000,
                    // The time is rounded down, as a clock of this resolution does.
                    _ => (ns << 20) / 1_000_000_000,
                };
                let data = if number == 2 { udp.ip() } else { udp.frame() };
                let frame = Captured { length: udp.frame().len() as u32, time_ns: 0, data };
                file.extend(enhanced(order, number, time as u64, &frame, number == 0));
                sent.push(udp);
            }
        }
        let matrix = read(&file, packets());
        prop_assert_eq!(sums(&matrix), truth(&sent, |udp| udp.frame().len()));
        prop_assert_eq!(reasons(&matrix), vec![]);
    }

    #[test]
    fn a_truncated_file_gives_the_packets_before_and_reports_it(
        sent in prop::collection::vec(udp(), 1..10), cut in any::<prop::sample::Index>(), gzip: bool
    ) {
        let frames: Vec<_> = sent.iter().map(|udp| Captured::whole(udp.time_ns, udp.frame())).collect();
        let file = pcap(Order { big: false }, true, 1, &frames);
        let cut = 24 + cut.index(file.len() - 24);
        let whole = frames.iter().scan(24, |at, frame| { *at += 16 + frame.data.len(); Some(*at) });
        let ends: Vec<usize> = whole.collect();
        let count = ends.iter().filter(|&&end| end <= cut).count();
        let matrix = if gzip {
            let packed = packed(&file[..cut]);
            // The last six bytes, which include the checksum, are missing.
            read(&packed[..packed.len() - 6], packets())
        } else {
            read(&file[..cut], packets())
        };
        prop_assert_eq!(sums(&matrix), truth(&sent[..count], |udp| udp.frame().len()));
        let at_an_edge = cut == 24 || ends.contains(&cut);
        prop_assert_eq!(matrix.discards.of(Reason::CutOffRecord), u64::from(gzip || !at_an_edge));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), head in 0..6_usize) {
        let order = Order { big: head % 2 == 1 };
        let start = match head / 2 {
            0 => pcap(order, false, 1, &[]),
            1 => [section(order), interface(order, 1, None, None)].concat(),
            _ => vec![],
        };
        read_any(&[start, bytes].concat());
    }

    #[test]
    fn no_change_of_a_byte_makes_the_reader_panic(
        sent in prop::collection::vec(udp(), 1..5), ng: bool, big: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let order = Order { big };
        let frames: Vec<_> = sent.iter().map(|udp| Captured::whole(udp.time_ns, udp.frame())).collect();
        let mut file = if ng {
            let head = [section(order), interface(order, 1, Some(6), Some(0))].concat();
            let blocks = frames.iter().flat_map(|frame| enhanced(order, 0, frame.time_ns / 1000, frame, true));
            head.into_iter().chain(blocks).collect()
        } else {
            pcap(order, false, 1, &frames)
        };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        read_any(&file);
    }
}

/// Reads any bytes, and checks that times and errors of the resulting cells are within bounds.
fn read_any(bytes: &[u8]) {
    let mut capture = Capture::new(Settings::default(), Places::addresses());
    let Ok(mut open) = capture.open("file", Cursor::new(bytes.to_vec())) else { return };
    while let Ok(true) = capture.read(&mut open, 3) {}
    // No reader stops before the end of the file.
    assert_eq!(open.bytes_read(), bytes.len() as u64);
    for pair in capture.finish().pairs {
        assert!(pair.cell.standard_error().is_finite() && pair.start_s.abs() <= 10_000_000_000);
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).expect("in memory");
    writer.finish().expect("in memory")
}

fn one(source: IpAddr, destination: IpAddr) -> Udp {
    Udp { time_ns: 5_500_000_000, source, destination, ports: (1000, 2000), payload: 100 }
}

/// Matrix of one frame of a link type.
fn alone(link_type: u32, frame: Vec<u8>) -> Matrix {
    read(&pcap(Order { big: false }, true, link_type, &[Captured::whole(5_500_000_000, frame)]), packets())
}

#[test]
fn every_link_layer_is_decoded_to_the_packet() {
    let (four, six) = (one(v4(1), v4(2)).ip(), one(v6(1), v6(2)).ip());
    let sll = |ether_type: u16, packet: &[u8]| {
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &ether_type.to_be_bytes(), packet].concat()
    };
    let sll2 = |ether_type: u16, packet: &[u8]| {
        [&ether_type.to_be_bytes()[..], &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], packet]
            .concat()
    };
    let frames: Vec<(&str, u32, Vec<u8>)> = vec![
        ("ethernet", 1, tagged(&[], 0x0800, &four)),
        ("vlan", 1, tagged(&[0x81, 0, 0, 5], 0x0800, &four)),
        ("qinq", 1, tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], 0x86dd, &six)),
        ("mpls", 1, tagged(&[], 0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &four].concat())),
        ("mpls, ipv6", 1, tagged(&[], 0x8847, &[&[0, 2, 1, 64][..], &six].concat())),
        ("pppoe", 1, tagged(&[], 0x8864, &[&[0x11, 0, 0, 1, 0, 130, 0, 0x21][..], &four].concat())),
        ("cooked", 113, sll(0x0800, &four)),
        ("cooked 2", 276, sll2(0x86dd, &six)),
        ("raw", 101, four.clone()),
        ("raw, ipv6", 101, six.clone()),
        ("raw of BSD", 12, four.clone()),
        ("ipv4", 228, four.clone()),
        ("ipv6", 229, six.clone()),
        ("loopback, little-endian", 0, [&[2, 0, 0, 0][..], &four].concat()),
        ("loopback, big-endian", 0, [&[0, 0, 0, 30][..], &six].concat()),
        ("loopback of OpenBSD", 108, [&[0, 0, 0, 2][..], &four].concat()),
    ];
    for (name, link_type, frame) in frames {
        // Linux writes 16 or 20 bytes in place of a header of 14.
        let beyond =
            [(113, 2), (276, 6)].iter().find(|(kind, _)| *kind == link_type).map_or(0, |(_, more)| *more);
        let length = frame.len() as u128 - beyond;
        let matrix = alone(link_type, frame);
        let ends =
            if matrix.places.contains(&"10.0.0.1".to_owned()) { (v4(1), v4(2)) } else { (v6(1), v6(2)) };
        assert_eq!(cells(&matrix), [(5, ends.0.to_string(), ends.1.to_string(), length, 1)], "{name}");
        assert_eq!(reasons(&matrix), [], "{name}");
    }
}

#[test]
fn discarded_packets_are_counted_by_reason() {
    let packet = one(v4(1), v4(2));
    let mut short_header = packet.frame();
    short_header[14] = 0x44;
    let cases = [
        ("arp", 1, tagged(&[], 0x0806, &[0; 28]), ("not-ip", "0x0806 ARP")),
        ("802.3", 1, tagged(&[], 0x0026, &[0; 38]), ("not-ip", "IEEE 802.3")),
        ("mpls pseudowire", 1, tagged(&[], 0x8847, &[0, 2, 1, 64, 0, 0, 0, 0]), ("not-ip", "0x8847 MPLS")),
        ("wireless", 105, vec![0; 60], ("unknown-link-type", "105")),
        ("cut off in the addresses", 1, packet.frame()[..28].to_vec(), ("cut-off-header", "")),
        ("cut off in Ethernet", 1, packet.frame()[..10].to_vec(), ("cut-off-header", "")),
        ("a header too short for itself", 1, short_header, ("broken-ip", "")),
        ("version 5", 101, vec![0x50; 40], ("broken-ip", "")),
    ];
    for (name, link_type, frame, (reason, detail)) in cases {
        let matrix = alone(link_type, frame);
        assert_eq!(reasons(&matrix), [(reason, detail.to_owned(), 1)], "{name}");
        assert!(matrix.pairs.is_empty(), "{name}");
    }
}

#[test]
fn a_missing_interface_or_time_is_reported() {
    let order = Order { big: false };
    let frame = Captured::whole(0, one(v4(1), v4(2)).frame());
    let simple = [&order.w32(frame.length)[..], &frame.data].concat();
    let blocks = [
        section(order),
        enhanced(order, 0, 0, &frame, false),
        interface(order, 1, None, None),
        enhanced(order, 1, 0, &frame, false),
        block(order, 3, &simple),
        block(order, 2, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0]),
        enhanced(order, 0, 7_000_000, &frame, false),
    ];
    let matrix = read(&blocks.concat(), packets());
    assert_eq!(cells(&matrix).len(), 1);
    let expected =
        [("broken-block", "obsolete packet block", 1), ("no-interface", "", 2), ("no-time", "", 1)];
    assert_eq!(reasons(&matrix), expected.map(|(reason, detail, count)| (reason, detail.to_owned(), count)));
}

#[test]
fn an_invalid_block_affects_no_other() {
    let order = Order { big: true };
    let frame = Captured::whole(0, one(v4(1), v4(2)).frame());
    let mut wrong = enhanced(order, 0, 0, &frame, false);
    // The captured length is larger than the block.
    wrong[20..24].copy_from_slice(&order.w32(5000));
    let blocks = [
        section(order),
        interface(order, 1, None, None),
        wrong,
        enhanced(order, 0, 3_000_000, &frame, false),
    ];
    let matrix = read(&blocks.concat(), packets());
    assert_eq!(cells(&matrix).iter().map(|cell| cell.0).collect::<Vec<_>>(), [3]);
    assert_eq!(matrix.discards.of(Reason::BrokenBlock), 1);
}

#[test]
fn a_record_of_impossible_length_ends_the_file() {
    let frame = Captured::whole(1_000_000_000, one(v4(1), v4(2)).frame());
    let mut file = pcap(Order { big: false }, false, 1, &[frame.clone(), frame.clone(), frame]);
    let second = 24 + 16 + 142;
    file[second + 8..second + 12].copy_from_slice(&[255; 4]);
    let matrix = read(&file, packets());
    assert_eq!(cells(&matrix)[0].4, 1);
    let (_, _, lost) = matrix.discards.iter().next().expect("a discard");
    assert_eq!(lost.bytes as usize, file.len() - second);
    assert!(lost.examples[0].contains("byte 182"), "{:?}", lost.examples);
}

#[test]
fn the_length_on_the_wire_counts_and_not_the_captured_length() {
    // Segmentation offload leaves no length in the IP header.
    let mut frame = one(v4(1), v4(2)).frame();
    frame[16..18].copy_from_slice(&[0, 0]);
    let captured = Captured { time_ns: 0, data: frame[..60].to_vec(), length: 65_014 };
    let file = pcap(Order { big: false }, false, 1, &[captured]);
    assert_eq!(cells(&read(&file, packets()))[0].3, 65_014);
    assert_eq!(cells(&read(&file, Settings { size: Size::Ip, ..packets() }))[0].3, 65_000);
}

#[test]
fn fragments_count_for_their_addresses() {
    let mut later = ip(v4(1), v4(2), 17, &[7; 80]);
    later[6..8].copy_from_slice(&[0, 100]);
    let mut six = vec![17, 0, 3, 32, 0, 0, 0, 1];
    six.extend([7; 72]);
    let six = ip(v6(1), v6(2), 44, &six);
    let frames = [(v4(2), later), (v6(2), six)].map(|(to, packet)| Captured::whole(0, ethernet(to, &packet)));
    let matrix = read(&pcap(Order { big: false }, false, 1, &frames), packets());
    assert_eq!(cells(&matrix).iter().map(|cell| cell.3).collect::<Vec<_>>(), [114, 134]);
}

#[test]
fn several_files_make_one_matrix_and_equal_names_one_source() {
    let file = |second: u64| {
        let packet = Udp { time_ns: second * 1_000_000_000, ..one(v4(1), v4(2)) };
        pcap(Order { big: false }, false, 1, &[Captured::whole(packet.time_ns, packet.frame())])
    };
    let matrix = read_into(&[&file(9), &packed(&file(3))], packets(), Places::addresses());
    assert_eq!(cells(&matrix).iter().map(|cell| cell.0).collect::<Vec<_>>(), [3, 9]);
    assert_eq!((matrix.sources[0].flows, matrix.sources[0].bytes), (2, 284));
}

#[test]
fn files_without_a_capture_format_are_rejected() {
    let other = |content: &str| {
        format!("f: first bytes {content}; expected pcap, pcapng or a file of IPFIX messages")
    };
    for (bytes, content) in [
        (&b"12:00:00.000000 IP 192.0.2.1 > 192.0.2.2"[..], "31323a30 (text)"),
        (b"{\"flows\": []}", "7b22666c (text)"),
        (b"snoop\0\0\0\0\0\0\x02\0\0\0\x04", "736e6f6f (a file of snoop)"),
        (b"\x0c\xa5\x02\0", "0ca50200 (a file of nfdump)"),
        (b"\0\x05\0\x01\0\0", "00050001 (messages of NetFlow 5)"),
        (b"\0\x09\0\x01\0\0", "00090001 (messages of NetFlow 9)"),
        (b"\0\0\0\x05\0\0\0\x01", "00000005 (messages of sFlow 5)"),
        (b"\x28\xb5\x2f\xfd\x04", "28b52ffd (zstd)"),
        (&[0xff; 30], "ffffffff"),
    ] {
        assert_eq!(rejection(bytes), other(content));
    }
    for big in [false, true] {
        let order = Order { big };
        for (major, minor) in [(1, 0), (2, 2), (2, 5), (3, 0), (543, 0)] {
            let mut file = pcap(order, false, 1, &[]);
            file[4..6].copy_from_slice(&order.w16(major));
            file[6..8].copy_from_slice(&order.w16(minor));
            let message = format!("f: pcap version {major}.{minor}; expected pcap 2.3 or 2.4, or pcapng 1");
            assert_eq!(rejection(&file), message);
        }
        let mut file = section(order);
        file[12..14].copy_from_slice(&order.w16(2));
        assert_eq!(rejection(&file), "f: pcapng version 2.0; expected pcap 2.3 or 2.4, or pcapng 1");
    }
    let cases: [(&[u8], &str); 5] = [
        (b"", "f: the file is empty"),
        (b"nf", "f: first bytes 6e660000; expected pcap, pcapng or a file of IPFIX messages"),
        (&[0xd4, 0xc3, 0xb2, 0xa1], "f: the file ends inside its header: is it truncated?"),
        (&[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0], "f: the file ends inside its header: is it truncated?"),
        (
            b"t_s,src,dst,bytes\n0,a,b,1\n",
            "f: first bytes 745f732c (text); expected pcap, pcapng or a file of IPFIX messages",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(rejection(bytes), message);
    }
}

/// The error about a file.
fn rejection(bytes: &[u8]) -> String {
    let capture = Capture::new(Settings::default(), Places::addresses());
    let error = capture.open("f", Cursor::new(bytes.to_vec())).err().expect("an error");
    error.to_string()
}
