//! What is not in the files is known as far as the files tell: gaps in sequence numbers and counts of dropped packets.
//! Nothing is lost between files: appended files are read on, and the state of one does not apply to another.

use std::net::Ipv4Addr;

use crate::support::exports::*;
use crate::support::files::*;
use crate::support::layouts::{options_template, record, records, spec, template};
use crate::support::{Udp, cells, packets, read, read_into, reasons, v4};
use leeward_capture::{Content, Matrix, Places, Reason, Settings, Size};
use proptest::prelude::*;

const LITTLE: Order = Order { big: false };

fn exports() -> Settings {
    Settings { content: Content::Exports, size: Size::Ip, sampling: Some(1), ..Settings::default() }
}

fn bytes(matrix: &Matrix) -> u128 {
    cells(matrix).iter().map(|cell| cell.3).sum()
}

fn packet(payload: usize) -> Udp {
    Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (1, 2), payload }
}

fn flow() -> ExportedFlow {
    ExportedFlow {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        ports: (1, 2),
        octets: 1000,
        packets: 1,
        start_ms: BOOT_MS,
        end_ms: BOOT_MS,
    }
}

/// A datagram of a kind with this sequence number and number of records.
fn numbered(kind: usize, number: u32, records: usize) -> Vec<u8> {
    let flows = vec![flow(); records];
    let sample = flow_sample(false, 1, &[sampled_frame(&packet(100).frame())]);
    let (mut datagram, at) = match kind {
        0 => (v5(&flows, 1), 16),
        1 => (v9(1, records as u16, &[v9_template(300), v9_data(300, &flows)]), 12),
        2 => (ipfix(1, &[ipfix_template(300), ipfix_data(300, &flows)]), 8),
        _ => (sflow(Ipv4Addr::new(10, 9, 9, 9), &vec![sample; records]), 16),
    };
    datagram[at..at + 4].copy_from_slice(&number.to_be_bytes());
    datagram
}

fn file(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let frames =
        datagrams.iter().map(|datagram| Captured::whole(SENT_MS * 1_000_000, sent(v4(9), 1, 2055, datagram)));
    pcap(LITTLE, false, 1, &frames.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn lost_datagrams_are_counted_and_late_ones_are_not_lost(
        kind in 0..4_usize, start: u32, sizes in prop::collection::vec(2..9_usize, 3..20),
        lost in any::<prop::sample::Index>(), late: bool,
    ) {
        let mut number = start;
        let mut all = Vec::new();
        for &size in &sizes {
            all.push(numbered(kind, number, size));
            number = number.wrapping_add(if [0, 2].contains(&kind) { size as u32 } else { 1 });
        }
        // Neither the first nor the last datagram: nothing states that they exist.
        let at = 1 + lost.index(sizes.len() - 2);
        let missing = all.remove(at);
        if late {
            all.insert(at + 1, missing);
        }
        let matrix = read(&file(&all), exports());
        let units = if [0, 2].contains(&kind) { sizes[at] as u64 } else { 1 };
        prop_assert_eq!(matrix.discards.of(Reason::LostExports), if late { 0 } else { units });
    }

    #[test]
    fn appended_captures_are_read_on(
        counts in prop::collection::vec((0..4_usize, any::<bool>(), any::<bool>()), 1..6),
    ) {
        let frame = Captured::whole(1_000_000_000, packet(100).frame());
        let files: Vec<_> = counts.iter()
            .map(|&(count, big, nanoseconds)| pcap(Order { big }, nanoseconds, 1, &vec![frame.clone(); count]))
            .collect();
        let matrix = read(&files.concat(), packets());
        let sent: usize = counts.iter().map(|&(count, ..)| count).sum();
        prop_assert_eq!(bytes(&matrix), 142 * sent as u128);
        prop_assert_eq!(reasons(&matrix), vec![]);
    }
}

#[test]
fn exporters_that_count_otherwise_lose_nothing() {
    // NetFlow 9 by records, IPFIX by messages, and numbers that never change.
    let by = |kind: usize, step: u32| (0..9).map(|at| numbered(kind, at * step, 3)).collect::<Vec<_>>();
    for (kind, step) in [(1, 3), (2, 1), (0, 1), (0, 0), (1, 0), (2, 0), (3, 0)] {
        let matrix = read(&file(&by(kind, step)), exports());
        assert_eq!(matrix.discards.of(Reason::LostExports), 0, "{kind} {step}");
    }
}

#[test]
fn a_restart_of_an_exporter_loses_nothing() {
    let all = [numbered(0, 3_000_000_000, 3), numbered(0, 0, 3), numbered(0, 3, 3)];
    assert_eq!(read(&file(&all), exports()).discards.of(Reason::LostExports), 0);
}

#[test]
fn packets_that_the_capture_dropped_are_counted_once() {
    for big in [false, true] {
        let order = Order { big };
        let statistics = |interface: u32, dropped: u64, of_system: u64| {
            let mut body = [order.w32(interface), order.w32(0), order.w32(0)].concat();
            for (code, value) in [(5, dropped), (7, of_system)] {
                body.extend([order.w16(code), order.w16(8)].concat());
                body.extend(order.w64(value));
            }
            body.extend([0; 4]);
            block(order, 5, &body)
        };
        let blocks = [
            section(order),
            interface(order, 1, None, None),
            enhanced(order, 0, 1_000_000, &Captured::whole(0, packet(100).frame()), false),
            statistics(0, 10, 1),
            statistics(0, 15, 2),
        ];
        let matrix = read(&blocks.concat(), packets());
        assert_eq!((bytes(&matrix), matrix.discards.of(Reason::CaptureDrops)), (142, 17), "{big}");
    }
}

#[test]
fn check_sequences_at_the_end_of_frames_do_not_count() {
    let frame = [packet(100).frame(), vec![9; 4]].concat();
    let flags = pcap(LITTLE, false, 0x2400_0001, &[Captured::whole(0, frame.clone())]);
    let mut described = [LITTLE.w16(1), LITTLE.w16(0)].concat();
    described.extend([LITTLE.w32(0).to_vec(), vec![13, 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0]].concat());
    let captured = Captured::whole(0, frame);
    let blocks = [section(LITTLE), block(LITTLE, 1, &described), enhanced(LITTLE, 0, 0, &captured, false)];
    for file in [flags, blocks.concat()] {
        assert_eq!(bytes(&read(&file, packets())), 142);
    }
}

#[test]
fn obsolete_packet_blocks_are_read() {
    for big in [false, true] {
        let order = Order { big };
        let frame = packet(100).frame();
        let mut body = [order.w16(0), order.w16(0xffff)].concat();
        [0, 5_000_000, 60, 142].iter().for_each(|&word| body.extend(order.w32(word)));
        body.extend(&frame[..60]);
        let blocks = [section(order), interface(order, 1, None, None), block(order, 2, &body)];
        let matrix = read(&blocks.concat(), packets());
        assert_eq!((cells(&matrix)[0].0, bytes(&matrix), reasons(&matrix)), (5, 142, vec![]));
    }
}

#[test]
fn files_of_messages_have_templates_and_rates_of_their_own() {
    let fields = [spec(8, 4), spec(12, 4), spec(1, 4), spec(2, 4)];
    let values = [vec![10, 0, 0, 1], vec![10, 0, 0, 2], vec![0, 0, 3, 232], vec![0, 0, 0, 1]];
    let data = records(300, &[record(&fields, &values)]);
    let options = [spec(144, 4), spec(34, 4)];
    let rate = records(301, &[record(&options, &[vec![0; 4], vec![0, 0, 0, 100]])]);
    let first = [template(true, 300, &fields), options_template(true, 301, &options), rate, data.clone()];
    let files =
        [ipfix(1, &first), ipfix(1, &[template(true, 300, &fields), data.clone()]), ipfix(1, &[data])];
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let matrix = read_into(&files, Settings { sampling: None, ..exports() }, Places::addresses());
    assert_eq!(bytes(&matrix), 100_000 + 1000);
    assert_eq!((matrix.discards.of(Reason::NoRate), matrix.discards.of(Reason::NoTemplate)), (1, 1));
}

#[test]
fn examples_name_their_file_if_there_are_several() {
    let arp = pcap(LITTLE, false, 105, &[Captured::whole(0, vec![0; 60])]);
    let example = |files: &[&[u8]]| {
        let matrix = read_into(files, packets(), Places::addresses());
        matrix.discards.iter().next().expect("a discard").2.examples.clone()
    };
    assert_eq!(example(&[&arp]), ["packet 1"]);
    assert_eq!(example(&[&arp, &arp]), ["file: packet 1", "file: packet 1"]);
}
