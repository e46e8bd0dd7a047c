//! What switches send to collectors is no traffic, on any port; samples state where they were taken, and what became of
//! the packet; lengths that contradict each other are a doubt.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::exports::*;
use crate::support::files::{Captured, Order, pcap};
use crate::support::layouts::{options_template, record, records, spec, template};
use crate::support::{Udp, cells, ethernet, ip, packets, read, reasons, v4, v6};
use leeward_capture::{Content, Direction, Matrix, Reason, Settings, Size, Tunnels};
use proptest::prelude::*;

fn exports() -> Settings {
    Settings { content: Content::Exports, interval_s: 3600, sampling: Some(1), ..Settings::default() }
}

fn capture(frames: Vec<Captured>) -> Vec<u8> {
    pcap(Order { big: false }, false, 1, &frames)
}

fn whole(frame: Vec<u8>) -> Captured {
    Captured::whole(1_700_003_600_000_000_000, frame)
}

fn bytes(matrix: &Matrix) -> u128 {
    cells(matrix).iter().map(|cell| cell.3).sum()
}

fn flow(octets: u32) -> ExportedFlow {
    ExportedFlow {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        ports: (1, 2),
        octets,
        packets: 1,
        start_ms: BOOT_MS,
        end_ms: BOOT_MS,
    }
}

fn packet(payload: usize) -> Udp {
    Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (1, 2), payload }
}

/// A datagram of each protocol with one flow of 1000 bytes.
fn datagrams() -> [(&'static str, Vec<u8>); 4] {
    let samples = [flow_sample(false, 1, &[sampled_frame(&packet(958).frame())])];
    [
        ("netflow 5", v5(&[flow(986)], 1)),
        ("netflow 9", v9(1, 2, &[v9_template(300), v9_data(300, &[flow(986)])])),
        ("ipfix", ipfix(1, &[ipfix_template(300), ipfix_data(300, &[flow(986)])])),
        ("sflow", sflow(Ipv4Addr::new(10, 9, 9, 9), &samples)),
    ]
}

proptest! {
    #[test]
    fn exports_on_any_port_are_read_as_exports(port in 1..u16::MAX, kind in 0..4_usize) {
        let (name, datagram) = &datagrams()[kind];
        let file = capture(vec![whole(sent(v4(9), 40_000, port, datagram))]);
        let matrix = read(&file, Settings { content: Content::Auto, ..exports() });
        prop_assert_eq!((bytes(&matrix), matrix.sources[0].protocol), (1000, *name));
        let detail = format!("{name}, as with --port {port}");
        let known = [6343, 2055, 4739].contains(&port);
        let expected = if known { vec![] } else { vec![("recognized-export", detail, 1)] };
        prop_assert_eq!(reasons(&matrix), expected);
    }

    #[test]
    fn exports_beside_traffic_are_reported_and_not_counted(
        port in 1..u16::MAX, kind in 0..4_usize, cut: bool, first: bool, content in 0..2_usize,
    ) {
        let (name, datagram) = &datagrams()[kind];
        let mut export = whole(sent(v4(9), 40_000, port, datagram));
        // The headers and the first part of the datagram are enough.
        if cut {
            export = export.snapped(42 + 48);
        }
        let mut frames = vec![whole(packet(100).frame()), export];
        if first {
            frames.reverse();
        }
        let content = [Content::Packets, Content::Auto][content];
        let matrix = read(&capture(frames), Settings { content, ..exports() });
        if first && content == Content::Auto {
            let others = matrix.discards.of(Reason::NotAnExport) + matrix.discards.of(Reason::CutOffDatagram);
            prop_assert_eq!(others, 1 + u64::from(cut));
        } else {
            prop_assert_eq!(bytes(&matrix), 142);
            prop_assert_eq!(reasons(&matrix), vec![("export", format!("{name} to port {port}"), 1)]);
        }
    }

    #[test]
    fn other_datagrams_are_traffic(
        payload in prop::collection::vec(any::<u8>(), 0..200), start in 0..4_usize, port in 10_000..u16::MAX,
    ) {
        let start: &[u8] = [&[0, 0, 0, 5][..], &[0, 5], &[0, 9], &[0, 10]][start];
        let payload = [start, &payload, &[1]].concat();
        // A count that does not fit the length.
        let matrix = read(&capture(vec![whole(sent(v4(9), 1, port, &payload))]), packets());
        prop_assert_eq!(bytes(&matrix), payload.len() as u128 + 42);
    }

    #[test]
    fn one_direction_counts_each_packet_once(
        sent_packets in prop::collection::vec((0..1400_usize, 1..1000_u32), 1..12), expanded: bool, egress: bool,
    ) {
        let mut samples = Vec::new();
        let mut expected = 0;
        for (payload, rate) in sent_packets {
            let frame = packet(payload).frame();
            expected += frame.len() as u128 * u128::from(rate);
            for source in [3, 4] {
                samples.push(sample_at(expanded, rate, source, (3, 4), &[sampled_frame(&frame)]));
            }
        }
        let datagram = sflow(Ipv4Addr::new(10, 9, 9, 9), &samples);
        let file = capture(vec![whole(sent(v4(9), 1, 6343, &datagram))]);
        let direction = if egress { Direction::Egress } else { Direction::Ingress };
        let matrix = read(&file, Settings { direction, ..exports() });
        prop_assert_eq!(bytes(&matrix), expected);
        prop_assert_eq!(reasons(&matrix), vec![("other-direction", String::new(), samples.len() as u64 / 2)]);
        let matrix = read(&file, exports());
        prop_assert_eq!(bytes(&matrix), 2 * expected);
        prop_assert_eq!(reasons(&matrix), vec![("both-directions", String::new(), samples.len() as u64 / 2)]);
    }

    #[test]
    fn a_frame_counts_as_at_least_its_packet(stated in 60..3000_u32, payload in 100..1400_usize) {
        let frame = packet(payload).frame();
        let captured = Captured { time_ns: 0, data: frame[..60].to_vec(), length: stated };
        let (_, mut raw) = sampled_frame(&frame);
        raw[4..8].copy_from_slice(&(stated + 4).to_be_bytes());
        let sample = flow_sample(false, 1, &[(1, raw)]);
        let datagram = sflow(Ipv4Addr::new(10, 9, 9, 9), &[sample]);
        let sampled = capture(vec![whole(sent(v4(9), 1, 6343, &datagram))]);
        let (stated, length) = (u128::from(stated), frame.len() as u128);
        for matrix in [read(&capture(vec![captured]), packets()), read(&sampled, exports())] {
            prop_assert_eq!(bytes(&matrix), stated.max(length));
            let doubts = u64::from(stated < length || stated > length + 64);
            prop_assert_eq!(matrix.discards.of(Reason::LengthMismatch), doubts);
        }
    }
}

#[test]
fn later_fragments_of_exports_are_no_traffic() {
    let (_, datagram) = &datagrams()[0];
    let udp = crate::support::datagram((40_000, 9000), datagram);
    let fragment = |part: &[u8], flags: [u8; 2], number: u8| {
        let mut packet = ip(v4(9), v4(250), 17, part);
        packet[4..8].copy_from_slice(&[0, number, flags[0], flags[1]]);
        whole(ethernet(v4(250), &packet))
    };
    let frames = vec![
        fragment(&udp[..64], [0x20, 0], 7),
        fragment(&udp[64..], [0, 8], 7),
        fragment(&udp[64..], [0, 8], 8),
    ];
    let matrix = read(&capture(frames), packets());
    assert_eq!(bytes(&matrix), 50);
    let expected = [("export", "fragment"), ("export", "netflow 5 to port 9000")];
    assert_eq!(reasons(&matrix), expected.map(|(reason, detail)| (reason, detail.to_owned(), 1)));
}

#[test]
fn sampled_exports_and_discarded_packets_are_no_traffic() {
    let export = sent(v4(9), 1, 7000, &v5(&[flow(1000)], 1));
    let good = sampled_frame(&packet(100).frame());
    for expanded in [false, true] {
        let samples = [
            sample_at(expanded, 10, 3, (3, 4), &[sampled_frame(&export)]),
            sample_at(expanded, 10, 3, (3, 1 << 30 | 257), std::slice::from_ref(&good)),
            sample_at(expanded, 10, 3, (3, 2 << 30 | 2), std::slice::from_ref(&good)),
            (5, vec![0; 40]),
        ];
        let datagram = sflow(Ipv4Addr::new(10, 9, 9, 9), &samples);
        let matrix = read(&capture(vec![whole(sent(v4(9), 1, 6343, &datagram))]), exports());
        assert_eq!(bytes(&matrix), 1420, "{expanded}");
        let expected = [("export", "netflow 5 in samples", 1), ("discarded-packet", "", 2)];
        assert_eq!(reasons(&matrix), expected.map(|(reason, detail, n)| (reason, detail.to_owned(), n)));
    }
}

/// Reads flows of IPFIX with one more field.
fn read_with(field: u16, values: &[u8], settings: Settings) -> Matrix {
    let fields = [spec(8, 4), spec(12, 4), spec(1, 4), spec(2, 4), spec(field, 1)];
    let flow = |&value: &u8| {
        let ends = [vec![10, 0, 0, 1], vec![10, 0, 0, 2]];
        record(&fields, &[&ends[..], &[vec![0, 0, 3, 232], vec![0, 0, 0, 1], vec![value]]].concat())
    };
    let flows: Vec<_> = values.iter().map(flow).collect();
    read(&ipfix(1, &[template(true, 300, &fields), records(300, &flows)]), settings)
}

#[test]
fn records_state_their_direction_and_whether_they_were_forwarded() {
    let only = |direction| Settings { direction, size: Size::Ip, ..exports() };
    let matrix = read_with(61, &[0, 1, 1, 255], only(Direction::Ingress));
    assert_eq!(bytes(&matrix), 2000);
    assert_eq!(matrix.discards.of(Reason::OtherDirection), 2);
    assert_eq!(matrix.discards.of(Reason::NoDirection), 1);
    assert_eq!(bytes(&read_with(61, &[0, 1, 1, 255], only(Direction::Egress))), 3000);
    let matrix = read_with(61, &[0, 1, 1, 255], only(Direction::Both));
    assert_eq!((bytes(&matrix), matrix.discards.of(Reason::BothDirections)), (4000, 1));
    // Unknown, forwarded, dropped, consumed.
    let matrix = read_with(89, &[0, 64, 66, 128, 130, 192], only(Direction::Both));
    assert_eq!((bytes(&matrix), matrix.discards.of(Reason::DiscardedPacket)), (4000, 2));
    // Created, deleted, denied.
    let matrix = read_with(233, &[1, 2, 3], only(Direction::Both));
    assert_eq!((bytes(&matrix), matrix.discards.of(Reason::DiscardedPacket)), (2000, 1));
}

#[test]
fn exporters_that_report_each_direction_of_a_connection_once_report_nothing_twice() {
    let fields = [spec(8, 4), spec(12, 4), spec(1, 4), spec(2, 4), spec(61, 1)];
    let flow = |from: u8, to: u8, way: u8| {
        let ends = [vec![10, 0, 0, from], vec![10, 0, 0, to]];
        record(&fields, &[&ends[..], &[vec![0, 0, 3, 232], vec![0, 0, 0, 1], vec![way]]].concat())
    };
    let flows = [flow(1, 2, 0), flow(2, 1, 1), flow(3, 4, 1)];
    let file = ipfix(1, &[template(true, 300, &fields), records(300, &flows)]);
    assert_eq!(read(&file, exports()).discards.of(Reason::BothDirections), 0);
}

#[test]
fn exports_of_versions_that_are_not_read_are_no_traffic_either() {
    let datagram = |version: u8, header: usize, record: usize| {
        let mut bytes = vec![7; header + 3 * record];
        bytes[..4].copy_from_slice(&[0, version, 0, 3]);
        bytes
    };
    for (version, header, record) in [(1, 16, 52), (7, 24, 52), (8, 28, 32)] {
        let export = sent(v4(9), 1, 9000, &datagram(version, header, record));
        let matrix = read(&capture(vec![whole(export)]), packets());
        assert_eq!((bytes(&matrix), matrix.discards.of(Reason::Export)), (0, 1), "{version}");
        let export = sent(v4(9), 1, 9000, &datagram(version, header, record + 1));
        let matrix = read(&capture(vec![whole(export)]), packets());
        assert_eq!(matrix.discards.of(Reason::Export), 0, "{version}");
    }
}

#[test]
fn options_on_any_port_apply_too() {
    let options = [spec(1, 4), spec(34, 4)];
    let rate = records(301, &[record(&options, &[vec![0; 4], vec![0, 0, 0, 50]])]);
    let messages = [
        v9(1, 1, &[v9_template(300)]),
        v9(1, 1, &[v9_data(300, &[flow(1000)])]),
        v9(1, 2, &[options_template(false, 301, &options), rate]),
    ];
    let frames = messages.iter().map(|message| whole(sent(v4(9), 1, 9996, message))).collect();
    let settings = Settings { content: Content::Auto, size: Size::Ip, ..exports() };
    assert_eq!(bytes(&read(&capture(frames), Settings { sampling: None, ..settings })), 50_000);
}

/// Packets from 10.0.0.1 to 10.0.0.2 in tunnels between 10.0.0.8 and 10.0.0.9.
fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
    let (packet, frame) = (packet(100).ip(), packet(100).frame());
    let outer = |protocol: u8, bytes: &[u8]| ip(v4(8), v4(9), protocol, bytes);
    let udp = |port: u16, head: &[u8], inside: &[u8]| {
        outer(17, &crate::support::datagram((5000, port), &[head, inside].concat()))
    };
    let gre = |head: &[u8], inside: &[u8]| outer(47, &[head, inside].concat());
    let vxlan = [8, 0, 0, 0, 0, 0, 5, 0];
    vec![
        ("vxlan", udp(4789, &vxlan, &frame)),
        ("vxlan of Linux", udp(8472, &vxlan, &frame)),
        ("vxlan-gpe", udp(4790, &[12, 0, 0, 1, 0, 0, 5, 0], &packet)),
        ("geneve", udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 5, 0], &frame)),
        ("geneve with options", udp(6081, &[2, 0, 8, 0, 0, 0, 5, 0, 1, 2, 3, 1, 0, 0, 0, 1], &packet)),
        ("gre", gre(&[0, 0, 8, 0], &packet)),
        ("gre with all fields", gre(&[0xb0, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 1], &packet)),
        ("nvgre", gre(&[0x20, 0, 0x65, 0x58, 0, 0, 5, 0], &frame)),
        ("erspan 2", gre(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0x10; 8]].concat(), &frame)),
        ("ip in ip", outer(4, &packet)),
        ("ip in ip in gre", gre(&[0, 0, 8, 0], &ip(v4(5), v4(6), 4, &packet))),
    ]
}

#[test]
fn packets_in_tunnels_count_for_either_pair_of_ends() {
    for (name, packet) in tunnels() {
        let frame = ethernet(v4(9), &packet);
        for (tunnels, ends) in [(Tunnels::Outer, (v4(8), v4(9))), (Tunnels::Inner, (v4(1), v4(2)))] {
            let matrix = read(&capture(vec![whole(frame.clone())]), Settings { tunnels, ..packets() });
            let cell = &cells(&matrix)[0];
            assert_eq!((cell.1.clone(), cell.2.clone()), (ends.0.to_string(), ends.1.to_string()), "{name}");
            assert_eq!((cell.3, reasons(&matrix)), (frame.len() as u128, vec![]), "{name}");
        }
    }
}

#[test]
fn packets_in_tunnels_that_are_not_readable_are_counted() {
    let inner = Settings { tunnels: Tunnels::Inner, ..packets() };
    let (_, vxlan) = &tunnels()[0];
    let frame = ethernet(v4(9), vxlan);
    let arp = [&[8, 0, 0, 0, 0, 0, 5, 0][..], &[0; 12], &[8, 6], &[0; 28]].concat();
    let arp = ip(v4(8), v4(9), 17, &crate::support::datagram((5000, 4789), &arp));
    let mut later = ip(v4(8), v4(9), 47, &[7; 80]);
    later[6..8].copy_from_slice(&[0, 100]);
    let cases = [
        (whole(frame.clone()).snapped(14 + 20 + 8 + 8 + 20), ("cut-off-header", "")),
        (whole(ethernet(v4(9), &arp)), ("not-ip", "0x0806 ARP")),
        (whole(ethernet(v4(9), &later)), ("fragment", "")),
    ];
    for (frame, (reason, detail)) in cases {
        let matrix = read(&capture(vec![frame]), inner.clone());
        assert_eq!((bytes(&matrix), reasons(&matrix)), (0, vec![(reason, detail.to_owned(), 1)]));
    }
}

#[test]
fn links_of_ppp_and_hdlc_are_decoded_to_the_packet() {
    let (four, six) = (packet(100).ip(), Udp { source: v6(1), destination: v6(2), ..packet(100) }.ip());
    let with = |head: &[u8], packet: &[u8]| [head, packet].concat();
    let frames: [(&str, u32, Vec<u8>); 11] = [
        ("ppp", 9, with(&[0, 0x21], &four)),
        ("ppp with its address", 9, with(&[0xff, 3, 0, 0x57], &six)),
        ("ppp with a short protocol", 9, with(&[0xff, 3, 0x21], &four)),
        ("ppp, mpls", 9, with(&[0xff, 3, 2, 0x81, 0, 1, 1, 64], &four)),
        ("ppp in hdlc", 50, with(&[0xff, 3, 0, 0x21], &four)),
        ("cisco in ppp", 50, with(&[0x0f, 0, 8, 0], &four)),
        ("pppoe", 51, with(&[0x11, 0, 0, 1, 0, 130, 0, 0x21], &four)),
        ("cisco", 104, with(&[0x0f, 0, 0x86, 0xdd], &six)),
        ("pppd", 166, with(&[1, 0xff, 3, 0, 0x21], &four)),
        ("ppp with direction", 204, with(&[0, 0xff, 3, 0, 0x21], &four)),
        ("cisco with direction", 205, with(&[1, 0x8f, 0, 8, 0], &four)),
    ];
    let ends: [(IpAddr, IpAddr); 2] = [(v4(1), v4(2)), (v6(1), v6(2))];
    for (name, link, frame) in frames {
        let length = frame.len() as u128;
        let matrix = read(&pcap(Order { big: false }, false, link, &[whole(frame)]), packets());
        let cell = &cells(&matrix)[0];
        let (from, to) = ends[usize::from(cell.1.contains(':'))];
        assert_eq!((cell.1.clone(), cell.2.clone()), (from.to_string(), to.to_string()), "{name}");
        assert_eq!((cell.3, reasons(&matrix)), (length, vec![]), "{name}");
    }
    let lcp = whole(with(&[0xff, 3, 0xc0, 0x21], &[1, 1, 0, 4]));
    let matrix = read(&pcap(Order { big: false }, false, 9, &[lcp]), packets());
    assert_eq!(reasons(&matrix), [("not-ip", "PPP 0xc021".to_owned(), 1)]);
}

#[test]
fn bytes_behind_the_samples_of_a_datagram_are_counted() {
    let good = flow_sample(false, 10, &[sampled_frame(&packet(100).frame())]);
    let datagram = [sflow(Ipv4Addr::new(10, 9, 9, 9), &[good]), vec![1; 12]].concat();
    let matrix = read(&capture(vec![whole(sent(v4(9), 1, 6343, &datagram))]), exports());
    assert_eq!((bytes(&matrix), matrix.discards.of(Reason::BrokenDatagram)), (1420, 1));
}
