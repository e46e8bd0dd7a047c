//! sFlow, NetFlow and IPFIX: every exported flow is read and scaled by its rate, in any order and from any bytes.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr};

use crate::support::exports::*;
use crate::support::files::{Captured, Order, pcap};
use crate::support::{Udp, cells, read, reasons, v4, v6};
use leeward_capture::{Capture, Content, Matrix, Places, Reason, Settings, Size};
use leeward_testing::numbers::Numbers;
use proptest::prelude::*;

/// Header bytes that a count of IP bytes leaves out.
const ETHERNET: u128 = 14;

fn exports(size: Size) -> Settings {
    Settings { content: Content::Exports, interval_s: 3600, size, ..Settings::default() }
}

/// A capture of datagrams from exporters, one datagram per second.
fn captured(datagrams: &[(IpAddr, u16, Vec<u8>)]) -> Vec<u8> {
    let frames = datagrams.iter().zip(0..).map(|((from, port, datagram), at)| {
        let time = (SENT_MS + at * 1000) * 1_000_000;
        Captured::whole(time, sent(*from, 40_000, *port, datagram))
    });
    pcap(Order { big: false }, false, 1, &frames.collect::<Vec<_>>())
}

fn exported_flow() -> impl Strategy<Value = ExportedFlow> {
    let ports = any::<(u16, u16)>();
    (0..4_u8, 0..4_u8, ports, 1..1_000_000_u32, 1..1000_u32, 0..3_000_000_u64, 0..600_000_u64).prop_map(
        |(from, to, ports, octets, packets, start, length)| ExportedFlow {
            source: Ipv4Addr::new(10, 0, 0, from),
            destination: Ipv4Addr::new(10, 0, 0, to),
            ports,
            octets: octets.max(packets * 40),
            packets,
            start_ms: BOOT_MS + start,
            end_ms: BOOT_MS + start + length,
        },
    )
}

type Pairs = BTreeMap<(String, String), (u128, u128)>;

fn truth(flows: &[ExportedFlow], rate: u128, size: Size) -> Pairs {
    let mut pairs = Pairs::new();
    for flow in flows {
        let header = if size == Size::Ip { 0 } else { ETHERNET };
        let pair = pairs.entry((flow.source.to_string(), flow.destination.to_string())).or_default();
        let packets = u128::from(flow.packets);
        *pair = (pair.0 + rate * (u128::from(flow.octets) + header * packets), pair.1 + rate * packets);
    }
    pairs
}

fn pairs(matrix: &Matrix) -> Pairs {
    let mut pairs = Pairs::new();
    for (_, from, to, bytes, packets) in cells(matrix) {
        let pair = pairs.entry((from, to)).or_default();
        *pair = (pair.0 + bytes, pair.1 + packets);
    }
    pairs
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    V5,
    V9,
    Ipfix,
}

/// The datagrams of one exporter: its template and sampling first, then the flows.
fn datagrams(kind: Kind, flows: &[ExportedFlow], rate: u32, domain: u32) -> Vec<Vec<u8>> {
    let all = flows.chunks(20);
    match kind {
        Kind::V5 => all.map(|flows| v5(flows, 0x4000 | rate as u16)).collect(),
        Kind::V9 => {
            let first = v9(domain, 3, &[v9_template(300), v9_sampling(301, rate)]);
            let rest = all.map(|flows| v9(domain, flows.len() as u16, &[v9_data(300, flows)]));
            std::iter::once(first).chain(rest).collect()
        }
        Kind::Ipfix => {
            let first = ipfix(domain, &[ipfix_template(300), ipfix_sampling(301, rate)]);
            let rest = all.map(|flows| ipfix(domain, &[ipfix_data(300, flows)]));
            std::iter::once(first).chain(rest).collect()
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::V5), Just(Kind::V9), Just(Kind::Ipfix)]
}

proptest! {
    #[test]
    fn every_exported_flow_is_in_the_matrix(
        flows in prop::collection::vec(exported_flow(), 1..60), kind in kind(), rate in 1..5000_u32, ip_bytes: bool
    ) {
        let size = if ip_bytes { Size::Ip } else { Size::Frame };
        let sent: Vec<_> = datagrams(kind, &flows, rate, 7).into_iter().map(|bytes| (v4(9), 2055, bytes)).collect();
        let matrix = read(&captured(&sent), exports(size));
        prop_assert_eq!(pairs(&matrix), truth(&flows, rate.into(), size));
        prop_assert_eq!(reasons(&matrix), vec![]);
        prop_assert_eq!(matrix.sources.len(), 1);
    }

    #[test]
    fn records_before_their_template_wait_for_it(
        flows in prop::collection::vec(exported_flow(), 1..60), kind in prop_oneof![Just(Kind::V9), Just(Kind::Ipfix)]
    ) {
        let mut sent: Vec<_> = datagrams(kind, &flows, 1, 7).into_iter().map(|bytes| (v4(9), 4739, bytes)).collect();
        sent.rotate_left(1);
        let matrix = read(&captured(&sent), Settings { sampling: Some(1), ..exports(Size::Ip) });
        prop_assert_eq!(pairs(&matrix), truth(&flows, 1, Size::Ip));
        prop_assert_eq!(matrix.discards.of(Reason::NoTemplate) + matrix.discards.of(Reason::BrokenDatagram), 0);
        // Without the template the flows are lost, and the discards show that.
        sent.pop();
        let matrix = read(&captured(&sent), exports(Size::Ip));
        prop_assert_eq!((pairs(&matrix).len(), matrix.discards.of(Reason::NoTemplate)), (0, sent.len() as u64));
    }

    #[test]
    fn flows_are_spread_over_their_duration(flow in exported_flow(), interval_s in 1..600_u32) {
        let sent: Vec<_> = datagrams(Kind::Ipfix, &[flow], 1, 7).into_iter().map(|bytes| (v4(9), 4739, bytes)).collect();
        let matrix = read(&captured(&sent), Settings { interval_s, ..exports(Size::Ip) });
        let length = f64::from(interval_s) * 1000.0;
        let whole = (flow.end_ms - flow.start_ms) as f64;
        for (start_s, _, _, bytes, _) in cells(&matrix) {
            prop_assert_eq!(start_s % i64::from(interval_s), 0);
            let start_ms = start_s as f64 * 1000.0;
            let inside = (flow.end_ms as f64).min(start_ms + length) - (flow.start_ms as f64).max(start_ms);
            let expected = if whole > 0.0 { f64::from(flow.octets) * inside / whole } else { f64::from(flow.octets) };
            prop_assert!((bytes as f64 - expected).abs() <= 1.0, "{bytes} {expected}");
        }
        prop_assert_eq!(pairs(&matrix), truth(&[flow], 1, Size::Ip));
    }

    #[test]
    fn sampled_packets_count_by_their_rate(
        sent in prop::collection::vec((0..4_u8, 0..4_u8, 0..1400_usize, 1..10_000_u32, any::<bool>(), 0..3_u8), 1..30)
    ) {
        let (mut samples, mut expected) = (Vec::new(), BTreeMap::<_, (u128, f64)>::new());
        for (from, to, payload, rate, expanded, record) in sent {
            let six = record == 2;
            let (from, to) = if six { (v6(from.into()), v6(to.into())) } else { (v4(from), v4(to)) };
            let udp = Udp { time_ns: 0, source: from, destination: to, ports: (1, 2), payload };
            let length = udp.frame().len() as u32;
            let packet = match record {
                0 => sampled_frame(&udp.frame()),
                _ => sampled_ip(from, to, (1, 2), length - 14),
            };
            // The first record is of an unknown format.
            samples.push(flow_sample(expanded, rate, &[(1001, vec![0; 16]), packet]));
            let sum = expected.entry((from.to_string(), to.to_string())).or_default();
            let (rate, length) = (f64::from(rate), f64::from(length));
            *sum = (sum.0 + (rate * length) as u128, sum.1 + rate * (rate - 1.0) * length * length);
        }
        let datagrams: Vec<_> =
            samples.chunks(6).map(|samples| (v4(9), 6343, sflow(Ipv4Addr::new(10, 9, 9, 9), samples))).collect();
        // An independent reader finds the same samples in the datagrams.
        for (_, _, datagram) in &datagrams {
            let parsed = sflow_parser::parse_datagram(datagram).expect("a good datagram");
            let known = |sample: &sflow_parser::SampleRecord| {
                !matches!(sample.sample_data, sflow_parser::SampleData::Unknown { .. })
            };
            prop_assert!(parsed.samples.iter().all(known));
        }
        let matrix = read(&captured(&datagrams), exports(Size::Frame));
        prop_assert_eq!(reasons(&matrix), vec![]);
        prop_assert_eq!(matrix.pairs.len(), expected.len());
        for pair in &matrix.pairs {
            let names = [pair.source, pair.destination].map(|place| matrix.places[place as usize].clone());
            let (bytes, variance) = expected[&(names[0].clone(), names[1].clone())];
            prop_assert_eq!(pair.cell.bytes, bytes);
            prop_assert!((pair.cell.standard_error() - variance.sqrt()).abs() <= 1e-9 * variance.sqrt());
        }
        prop_assert_eq!((matrix.sources[0].protocol, matrix.sources[0].name.as_str()), ("sflow", "10.9.9.9"));
    }

    #[test]
    fn no_change_of_a_byte_makes_the_readers_panic(
        flows in prop::collection::vec(exported_flow(), 1..10), kind in kind(), sflow_too: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>()
    ) {
        let mut sent = datagrams(kind, &flows, 10, 7);
        if sflow_too {
            let udp = Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (1, 2), payload: 99 };
            let samples = [flow_sample(false, 9, &[sampled_frame(&udp.frame())]), counter_sample(3, 10, (1, 2))];
            sent.push(sflow(Ipv4Addr::new(10, 9, 9, 9), &samples));
        }
        for (at, value) in changes {
            let last = sent.len() - 1;
            let datagram = &mut sent[at.index(last + 1)];
            let at = at.index(datagram.len());
            datagram[at] = value;
        }
        let last = sent.len() - 1;
        let cut = cut.index(sent[last].len());
        sent[last].truncate(cut + 1);
        let datagrams: Vec<_> = sent.into_iter().map(|bytes| (v4(9), 2055, bytes)).collect();
        read_any(&captured(&datagrams));
    }

    #[test]
    fn no_datagram_makes_the_readers_panic(
        head in 0..5_usize, bytes in prop::collection::vec(prop_oneof![Just(0_u8), 0..20_u8, any::<u8>()], 0..300)
    ) {
        let start: &[u8] = [&[0, 5][..], &[0, 9], &[0, 10], &[0, 0, 0, 5], &[]][head];
        let datagram = [start, &bytes].concat();
        read_any(&captured(&[(v4(9), 2055, datagram.clone()), (v4(9), 2055, datagram.clone())]));
        read_any(&datagram);
    }
}

/// Reads any bytes, and checks that the errors of the resulting cells are finite.
fn read_any(bytes: &[u8]) {
    let mut capture = Capture::new(Settings::default(), Places::addresses());
    let Ok(mut open) = capture.open("file", Cursor::new(bytes.to_vec())) else { return };
    while let Ok(true) = capture.read(&mut open, 3) {}
    assert!(capture.finish().pairs.iter().all(|pair| pair.cell.standard_error().is_finite()));
}

fn flow() -> ExportedFlow {
    ExportedFlow {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        ports: (1, 2),
        octets: 1000,
        packets: 10,
        start_ms: BOOT_MS,
        end_ms: BOOT_MS,
    }
}

#[test]
fn exporters_and_their_domains_have_separate_templates() {
    // Both exporters use one template number with different layouts: the second layout swaps source and destination.
    let mut other = v9_template(300);
    other[8..16].copy_from_slice(&[0, 12, 0, 4, 0, 8, 0, 4]);
    let data = v9_data(300, &[flow()]);
    let sent = [
        (v4(8), 2055, v9(1, 1, &[v9_template(300)])),
        (v4(8), 2055, v9(2, 1, std::slice::from_ref(&other))),
        (v4(9), 2055, v9(1, 1, &[other])),
        (v4(8), 2055, v9(1, 1, std::slice::from_ref(&data))),
        (v4(8), 2055, v9(2, 1, std::slice::from_ref(&data))),
        (v4(9), 2055, v9(1, 1, &[data])),
    ];
    let matrix = read(&captured(&sent), Settings { sampling: Some(1), ..exports(Size::Ip) });
    let pair = |from: &str, to: &str, bytes| ((from.to_owned(), to.to_owned()), bytes);
    assert_eq!(
        pairs(&matrix),
        Pairs::from([pair("10.0.0.1", "10.0.0.2", (1000, 10)), pair("10.0.0.2", "10.0.0.1", (2000, 20))])
    );
    assert_eq!(
        matrix.sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
        ["10.0.0.8", "10.0.0.9"]
    );
}

#[test]
fn a_file_of_plain_ipfix_messages_is_readable() {
    let file = datagrams(Kind::Ipfix, &[flow(); 3], 100, 1).concat();
    let matrix = read(&file, exports(Size::Ip));
    assert_eq!(pairs(&matrix), truth(&[flow(); 3], 100, Size::Ip));
    // Thirty sampled packets of 100 bytes: an error of 196 √(1/30) %, reduced by the sampled share.
    let error = 196.0 * matrix.pairs[0].cell.standard_error() / matrix.pairs[0].cell.bytes as f64;
    assert!((error - 196.0 * (0.99_f64 / 30.0).sqrt()).abs() < 1e-9, "{error}");
}

#[test]
fn an_unknown_rate_is_reported_and_can_be_set() {
    let sent = |sampling: &[Vec<u8>]| {
        let first = v9(1, 1, &[v9_template(300)]);
        let data = v9(1, 1, &[v9_data(300, &[flow()])]);
        let all = [&[first, data][..], sampling].concat();
        captured(&all.into_iter().map(|bytes| (v4(9), 2055, bytes)).collect::<Vec<_>>())
    };
    let matrix = read(&sent(&[]), exports(Size::Ip));
    assert_eq!(reasons(&matrix), [("no-rate", String::new(), 1)]);
    assert_eq!(cells(&matrix)[0].3, 1000);
    let matrix = read(&sent(&[]), Settings { sampling: Some(50), ..exports(Size::Ip) });
    assert_eq!((reasons(&matrix), cells(&matrix)[0].3), (vec![], 50_000));
    let matrix = read(&sent(&[v9(1, 2, &[v9_sampling(301, 10)])]), exports(Size::Ip));
    assert_eq!((reasons(&matrix), cells(&matrix)[0].3), (vec![], 10_000));
}

#[test]
fn other_packets_in_a_capture_of_exports_are_counted() {
    let other = Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (5, 6), payload: 9 };
    let mut cut = Captured::whole(0, sent(v4(9), 1, 2055, &v5(&[flow(); 10], 0)));
    cut.data.truncate(200);
    let mut fragment = sent(v4(9), 1, 2055, &v5(&[flow()], 0));
    fragment[20] |= 0x20;
    let frames = [
        Captured::whole(0, sent(v4(9), 1, 2055, &v5(&[flow()], 1))),
        Captured::whole(0, other.frame()),
        cut,
        Captured::whole(0, fragment),
        Captured::whole(0, sent(v4(9), 1, 2055, b"\0\x08 is version 8")),
        Captured::whole(0, sent(v4(9), 1, 2055, &v5(&[flow()], 1)[..60])),
    ];
    let matrix = read(
        &pcap(Order { big: false }, false, 1, &frames),
        Settings { interval_s: 3600, ..Settings::default() },
    );
    assert_eq!(pairs(&matrix), truth(&[flow()], 1, Size::Frame));
    let expected = [
        ("not-an-export", "", 1),
        ("fragment", "", 1),
        ("cut-off-datagram", "", 1),
        ("broken-datagram", "netflow 5", 1),
        ("unknown-version", "", 1),
    ];
    assert_eq!(reasons(&matrix), expected.map(|(reason, detail, count)| (reason, detail.to_owned(), count)));
}

#[test]
fn an_invalid_sample_affects_no_other_and_counters_are_optional() {
    let udp = Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (1, 2), payload: 100 };
    let good = flow_sample(false, 4, &[sampled_frame(&udp.frame())]);
    let mut wrong = good.clone();
    wrong.1.truncate(40);
    let arp = flow_sample(false, 4, &[sampled_frame(&crate::support::tagged(&[], 0x0806, &[0; 28]))]);
    let rateless = flow_sample(true, 0, &[sampled_frame(&udp.frame())]);
    let bare = flow_sample(false, 4, &[]);
    let samples = [
        wrong,
        arp,
        (4242, vec![0; 8]),
        rateless,
        bare,
        good,
        counter_sample(7, 100_000_000_000, (1 << 40, 5)),
    ];
    let datagram = sflow(Ipv4Addr::new(10, 9, 9, 9), &samples);
    let capture = captured(&[(v4(9), 6343, datagram)]);
    assert_eq!(read(&capture, exports(Size::Frame)).counters, []);
    let matrix = read(&capture, Settings { counters: true, ..exports(Size::Frame) });
    assert_eq!(cells(&matrix)[0].3, 4 * 142);
    let expected = [
        ("not-ip", "0x0806 ARP", 1),
        ("broken-datagram", "sFlow sample", 2),
        ("unknown-sample", "sample 1:146", 1),
        ("no-header", "", 1),
    ];
    assert_eq!(reasons(&matrix), expected.map(|(reason, detail, count)| (reason, detail.to_owned(), count)));
    let counter = matrix.counters[0];
    assert_eq!((counter.interface, counter.speed_bps), (7, 100_000_000_000));
    assert_eq!((counter.in_octets, counter.out_octets), (1 << 40, 5));
    assert_eq!(counter.time_ns, SENT_MS as i64 * 1_000_000);
}

#[test]
fn deeply_nested_records_do_not_overflow_the_stack() {
    // Nested aggregations; the sFlow library follows them until its stack overflows.
    let mut inner = vec![0; 4];
    for _ in 0..3000 {
        inner = [&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 3, 248][..], &(inner.len() as u32).to_be_bytes(), &inner]
            .concat();
    }
    let datagram = sflow(Ipv4Addr::new(10, 9, 9, 9), &[flow_sample(false, 4, &[(1016, inner)])]);
    let matrix = read(&captured(&[(v4(9), 6343, datagram)]), exports(Size::Frame));
    assert_eq!(reasons(&matrix), [("no-header", String::new(), 1)]);
}

#[test]
fn a_record_that_ends_before_it_starts_is_counted_at_the_time_of_export() {
    let reversed = ExportedFlow { start_ms: BOOT_MS + 1, end_ms: BOOT_MS, ..flow() };
    let sent = datagrams(Kind::Ipfix, &[flow(), reversed], 1, 1).concat();
    let matrix = read(&sent, exports(Size::Ip));
    assert_eq!(reasons(&matrix), [("no-flow-time", String::new(), 1)]);
    assert_eq!(cells(&matrix).iter().map(|cell| cell.0).collect::<Vec<_>>(), [1_699_999_200, 1_700_002_800]);
}

#[test]
fn implausibly_many_bytes_are_rejected_and_not_clamped() {
    let huge = ExportedFlow { octets: u32::MAX, packets: 1, ..flow() };
    // At the first rate, one record has less than 10^18 bytes and two records together have more; at the second rate,
    // each record has more.
    for (rate, counted, refused) in [(200_000_000, 1, 1), (400_000_000, 0, 2)] {
        let sent = datagrams(Kind::V9, &[huge, huge], rate, 1);
        let sent: Vec<_> = sent.into_iter().map(|datagram| (v4(9), 2055, datagram)).collect();
        let matrix = read(&captured(&sent), exports(Size::Ip));
        let bytes: u128 = cells(&matrix).iter().map(|cell| cell.3).sum();
        assert_eq!(bytes, counted * u128::from(rate) * u128::from(u32::MAX));
        assert_eq!(reasons(&matrix), [("not-plausible", "bytes".to_owned(), refused)]);
    }
}

#[test]
fn the_stated_error_holds_in_nineteen_of_twenty_draws() {
    // 5000 packets of three sizes are sampled with probability 1/50, in two thousand repetitions.
    let (rate, draws) = (50, 2000);
    let sizes: Vec<u64> = (0..5000).map(|at| [64, 594, 1500][at % 3]).collect();
    let truth = sizes.iter().sum::<u64>() as f64;
    let (mut numbers, mut held, mut published) = (Numbers::new(9), 0, 0);
    for _ in 0..draws {
        let records = sizes.iter().filter(|_| numbers.draw() % rate == 0).map(|&size| {
            let packet = sampled_ip(v4(1), v4(2), (1, 2), size as u32);
            flow_sample(false, rate as u32, &[packet])
        });
        let samples: Vec<_> = records.collect();
        let datagrams: Vec<_> =
            samples.chunks(20).map(|samples| (v4(9), 6343, sflow(Ipv4Addr::LOCALHOST, samples))).collect();
        let cell = read(&captured(&datagrams), exports(Size::Ip)).pairs[0].cell;
        let off = (cell.bytes as f64 - truth).abs();
        held += usize::from(off <= 1.96 * cell.standard_error());
        published += usize::from(off <= 1.96 / (cell.samples as f64).sqrt() * cell.bytes as f64);
    }
    let share = |count: usize| count as f64 / draws as f64;
    assert!((0.93..0.97).contains(&share(held)), "{}", share(held));
    // The published error is for the number of packets. The error of bytes is larger, because sizes vary.
    assert!((0.80..0.93).contains(&share(published)), "{}", share(published));
}

#[test]
fn uptimes_use_the_start_time_from_options() {
    // A template as softflowd sends it: records have uptimes (fields 22 and 21), and options state when the exporter
    // started (160).
    let mut template = ipfix_template(300);
    let fields = template.len() - 8;
    template[fields..].copy_from_slice(&[0, 22, 0, 8, 0, 21, 0, 8]);
    let up = |time: u64| time - BOOT_MS;
    let flow = ExportedFlow { start_ms: up(BOOT_MS + 5000), end_ms: up(BOOT_MS + 9000), ..flow() };
    let options = [&[1, 45, 0, 2, 0, 1, 1, 46, 0, 4, 0, 160, 0, 8][..], &[]].concat();
    let boot = [set(3, &options), set(301, &[&[0, 0, 0, 1][..], &BOOT_MS.to_be_bytes()].concat())].concat();
    let file = ipfix(1, &[template, boot, ipfix_data(300, &[flow])]);
    let matrix = read(&file, Settings { interval_s: 1, sampling: Some(1), ..exports(Size::Ip) });
    let seconds: Vec<i64> = cells(&matrix).iter().map(|cell| cell.0 - (BOOT_MS / 1000) as i64).collect();
    assert_eq!((seconds, reasons(&matrix)), (vec![5, 6, 7, 8], vec![]));
}
