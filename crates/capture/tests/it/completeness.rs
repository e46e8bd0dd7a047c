//! No record is lost in silence: each record of an export is in the matrix or among the discards, for any template, and
//! with its sampling rate wherever the rate is in the file.

use std::net::IpAddr;

use crate::support::exports::{BOOT_MS, SENT_MS, ipfix, set, v9};
use crate::support::files::{Captured, Order, pcap};
use crate::support::layouts::*;
use crate::support::{Udp, cells, read, reasons, v4};
use leeward_capture::{Content, Matrix, Reason, Settings, Size};
use proptest::prelude::*;

fn settings() -> Settings {
    Settings { content: Content::Exports, size: Size::Ip, sampling: Some(1), ..Settings::default() }
}

/// Message of NetFlow 9 or IPFIX with these sets.
fn message(is_ipfix: bool, sets: &[Vec<u8>]) -> Vec<u8> {
    if is_ipfix { ipfix(7, sets) } else { v9(7, 1, sets) }
}

/// A capture of messages from one exporter.
fn sent(messages: &[Vec<u8>]) -> Vec<u8> {
    let frame = |message: &Vec<u8>| {
        let frame = crate::support::exports::sent(v4(9), 40_000, 2055, message);
        Captured::whole(1_700_003_600_000_000_000, frame)
    };
    pcap(Order { big: false }, false, 1, &messages.iter().map(frame).collect::<Vec<_>>())
}

fn bytes(matrix: &Matrix) -> u128 {
    cells(matrix).iter().map(|cell| cell.3).sum()
}

fn counted(matrix: &Matrix) -> u64 {
    matrix.sources.iter().map(|source| source.flows).sum()
}

/// Fields with their values.
type Values = Vec<(Spec, Vec<u8>)>;

/// The fields of a flow without times: addresses, octets and packets.
fn flow_fields() -> Vec<Spec> {
    vec![spec(8, 4), spec(12, 4), spec(1, 4), spec(2, 4)]
}

fn flow_values(octets: u32) -> Vec<Vec<u8>> {
    vec![vec![10, 0, 0, 1], vec![10, 0, 0, 2], octets.to_be_bytes().to_vec(), 1_u32.to_be_bytes().to_vec()]
}

/// A field that has no meaning for a flow, with the lengths of its values.
fn other_field() -> impl Strategy<Value = (Spec, Vec<u16>)> {
    let number = prop_oneof![Just(82_u16), Just(95), Just(371), 500..600_u16];
    let length = prop_oneof![Just(0_u16), 1..9_u16, Just(VARIABLE), Just(VARIABLE)];
    let lengths = prop::collection::vec(prop_oneof![Just(0_u16), 0..5_u16, 253..258_u16], 40);
    (number, length, prop::option::of(1..70_000_u32), lengths)
        .prop_map(|(number, length, enterprise, lengths)| (Spec { number, length, enterprise }, lengths))
}

/// A template in any order of fields, and its records with the given octets.
fn laid_out(
    is_ipfix: bool,
    others: &[(Spec, Vec<u16>)],
    order: &[prop::sample::Index],
    octets: &[u32],
) -> (Vec<Spec>, Vec<Vec<u8>>) {
    let mut fields: Vec<(Spec, usize)> = flow_fields().into_iter().zip(0..).collect();
    for (at, ((field, _), order)) in others.iter().zip(order).enumerate() {
        // NetFlow 9 has neither variable lengths nor enterprises.
        let length = if is_ipfix || field.length != VARIABLE { field.length } else { 3 };
        let field = Spec { length, enterprise: field.enterprise.filter(|_| is_ipfix), ..*field };
        fields.insert(order.index(fields.len() + 1), (field, 4 + at));
    }
    let specs: Vec<Spec> = fields.iter().map(|(field, _)| *field).collect();
    let value = |record: usize, (field, at): (Spec, usize)| match at {
        0..4 => flow_values(octets[record])[at].clone(),
        _ if field.length == VARIABLE => vec![0xff; usize::from(others[at - 4].1[record])],
        _ => vec![0xff; usize::from(field.length)],
    };
    let records = (0..octets.len()).map(|number| {
        let values: Vec<_> = fields.iter().map(|&field| value(number, field)).collect();
        record(&specs, &values)
    });
    (specs.clone(), records.collect())
}

proptest! {
    #[test]
    fn every_record_of_any_template_is_counted(
        is_ipfix: bool,
        others in prop::collection::vec(other_field(), 0..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 5),
        octets in prop::collection::vec(1..1_000_000_u32, 1..40),
        padding in 0..4_usize,
    ) {
        let (fields, all) = laid_out(is_ipfix, &others, &order, &octets);
        let mut data = records(300, &all);
        data.resize(data.len() + padding, 0);
        let length = (data.len() as u16).to_be_bytes();
        data[2..4].copy_from_slice(&length);
        let file = sent(&[message(is_ipfix, &[template(is_ipfix, 300, &fields)]), message(is_ipfix, &[data])]);
        let matrix = read(&file, settings());
        prop_assert_eq!(counted(&matrix), octets.len() as u64);
        prop_assert_eq!(bytes(&matrix), octets.iter().map(|&octets| u128::from(octets)).sum::<u128>());
        prop_assert_eq!(matrix.discards.of(Reason::BrokenDatagram) + matrix.discards.of(Reason::NoTemplate), 0);
    }

    #[test]
    fn a_set_that_ends_inside_a_record_gives_the_records_before_and_counts_the_other_bytes(
        is_ipfix: bool,
        others in prop::collection::vec(other_field(), 0..4),
        order in prop::collection::vec(any::<prop::sample::Index>(), 4),
        octets in prop::collection::vec(1..1_000_000_u32, 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (fields, all) = laid_out(is_ipfix, &others, &order, &octets);
        let body = all.concat();
        let cut = cut.index(body.len());
        let (mut whole, mut used) = (0, 0);
        while used + all[whole].len() <= cut {
            used += all[whole].len();
            whole += 1;
        }
        let data = records(300, &[body[..cut].to_vec()]);
        let file = sent(&[message(is_ipfix, &[template(is_ipfix, 300, &fields), data])]);
        let matrix = read(&file, settings());
        prop_assert_eq!(counted(&matrix), whole as u64);
        let broken: u64 = matrix.discards.iter()
            .filter(|(reason, _, _)| *reason == Reason::BrokenDatagram).map(|(_, _, discard)| discard.bytes).sum();
        let rest = &body[used..cut];
        let expected = if rest.iter().all(|&byte| byte == 0) { 0 } else { rest.len() as u64 };
        prop_assert_eq!(broken, expected);
    }

    #[test]
    fn options_apply_wherever_they_are_in_the_file(
        is_ipfix: bool, named: bool, rate in 1..100_000_u32, at in 0..6_usize, apart: bool,
    ) {
        // A sampler with a number or the sampling of the whole exporter; records that name the sampler or not.
        let mut fields = flow_fields();
        let mut values = flow_values(1000);
        if named {
            fields.push(spec(48, 1));
            values.push(vec![3]);
        }
        let options = [spec(if is_ipfix { 144 } else { 1 }, 4), spec(48, 1), spec(50, 4)];
        let scope = vec![0; 4];
        let option = record(&options, &[scope, vec![3], rate.to_be_bytes().to_vec()]);
        let layout = options_template(is_ipfix, 301, &options);
        let mut messages = vec![message(is_ipfix, &[template(is_ipfix, 300, &fields)])];
        messages.extend(vec![message(is_ipfix, &[records(300, &[record(&fields, &values)])]); 5]);
        let first = if apart { 0 } else { at };
        messages.insert(at, message(is_ipfix, &[records(301, &[option])]));
        messages.insert(first, message(is_ipfix, &[layout]));
        let matrix = read(&sent(&messages), Settings { sampling: None, ..settings() });
        prop_assert_eq!(bytes(&matrix), 5 * 1000 * u128::from(rate));
        prop_assert_eq!(matrix.discards.of(Reason::NoRate) + matrix.discards.of(Reason::LateRate), 0);
    }
}

/// Reads flows with additional fields.
fn read_with(more: &[(Spec, Vec<u8>)]) -> Matrix {
    let fields = [flow_fields(), more.iter().map(|(spec, _)| *spec).collect()].concat();
    let values = [flow_values(1000), more.iter().map(|(_, value)| value.clone()).collect()].concat();
    let sets = [template(true, 300, &fields), records(300, &[record(&fields, &values)])];
    read(&sent(&[message(true, &sets)]), Settings { sampling: None, ..settings() })
}

#[test]
fn a_rate_in_a_record_is_read_from_every_field_that_exporters_use() {
    let cases: [(&[(u16, u32)], u128); 5] = [
        (&[(34, 100)], 100),
        (&[(50, 100)], 100),
        (&[(305, 100)], 100),
        (&[(305, 1), (306, 99)], 100),
        (&[(309, 2), (310, 200)], 100),
    ];
    for (fields, rate) in cases {
        let more: Vec<_> =
            fields.iter().map(|&(number, value)| (spec(number, 4), value.to_be_bytes().to_vec())).collect();
        assert_eq!(bytes(&read_with(&more)), 1000 * rate, "{fields:?}");
    }
    for probability in [0.01_f64.to_be_bytes().to_vec(), 0.01_f32.to_be_bytes().to_vec()] {
        let length = probability.len() as u16;
        assert_eq!(bytes(&read_with(&[(spec(311, length), probability)])), 100_000);
    }
}

#[test]
fn rates_of_interfaces_apply_to_the_records_of_each_interface() {
    let fields = [flow_fields(), vec![spec(10, 2)]].concat();
    let flow = |interface: u8| record(&fields, &[flow_values(1000), vec![vec![0, interface]]].concat());
    for is_ipfix in [false, true] {
        let options = [spec(if is_ipfix { 10 } else { 2 }, 4), spec(34, 4)];
        let option = |interface: u8, rate: u32| {
            record(&options, &[vec![0, 0, 0, interface], rate.to_be_bytes().to_vec()])
        };
        let sets = [
            template(is_ipfix, 300, &fields),
            records(300, &[flow(1), flow(2)]),
            options_template(is_ipfix, 301, &options),
            records(301, &[option(1, 10), option(2, 1000)]),
            records(300, &[flow(1), flow(2), flow(3)]),
        ];
        let matrix = read(&sent(&[message(is_ipfix, &sets)]), Settings { sampling: None, ..settings() });
        assert_eq!(bytes(&matrix), 2 * 10_000 + 2 * 1_000_000 + 1000);
        assert_eq!(matrix.discards.of(Reason::NoRate), 1);
    }
}

#[test]
fn rates_of_parts_of_an_exporter_apply_if_they_are_one_rate() {
    let fields = flow_fields();
    let flow = record(&fields, &flow_values(1000));
    // A line card in NetFlow 9 (scope 3) and in IPFIX (field 141); a template (scope 5, field 145).
    for (is_ipfix, number) in [(false, 3), (true, 141), (false, 5), (true, 145)] {
        for rates in [[50, 50], [50, 70]] {
            let options = [spec(number, 4), spec(34, 4)];
            let option = |part: u16, rate: u32| {
                let part = u32::from(part).to_be_bytes().to_vec();
                record(&options, &[part, rate.to_be_bytes().to_vec()])
            };
            let sets = [
                template(is_ipfix, 300, &fields),
                template(is_ipfix, 400, &fields),
                records(300, std::slice::from_ref(&flow)),
                options_template(is_ipfix, 301, &options),
                records(301, &[option(300, rates[0]), option(400, rates[1])]),
                records(400, std::slice::from_ref(&flow)),
            ];
            let matrix = read(&sent(&[message(is_ipfix, &sets)]), Settings { sampling: None, ..settings() });
            let known = rates[0] == rates[1] || [5, 145].contains(&number);
            let expected = if known { 1000 * u128::from(rates[0] + rates[1]) } else { 2000 };
            assert_eq!(bytes(&matrix), expected, "{is_ipfix} {number} {rates:?}");
            assert_eq!(matrix.discards.of(Reason::NoRate), if known { 0 } else { 2 });
        }
    }
}

#[test]
fn the_opposite_direction_of_a_connection_counts_back() {
    let reverse = |number| Spec { number, length: 4, enterprise: Some(29_305) };
    let matrix = read_with(&[
        (reverse(1), 700_u32.to_be_bytes().to_vec()),
        (reverse(2), 2_u32.to_be_bytes().to_vec()),
        (spec(34, 4), 1_u32.to_be_bytes().to_vec()),
    ]);
    let pairs: Vec<_> =
        cells(&matrix).into_iter().map(|(_, from, _, bytes, packets)| (from, bytes, packets)).collect();
    assert_eq!(pairs, [("10.0.0.1".to_owned(), 1000, 1), ("10.0.0.2".to_owned(), 700, 2)]);
}

#[test]
fn counts_since_the_start_of_a_flow_are_a_doubt() {
    let reverse = |number| Spec { number, length: 4, enterprise: Some(29_305) };
    let fields = [spec(8, 4), spec(12, 4), spec(85, 8), spec(86, 8), reverse(85), reverse(86)];
    let values = [vec![10, 0, 0, 1], vec![10, 0, 0, 2], vec![0, 0, 0, 0, 0, 0, 3, 232], vec![0; 8]];
    let back = [vec![0, 0, 2, 188], vec![0, 0, 0, 2]];
    let flow = record(&fields, &[&values[..], &back].concat());
    let matrix = read(&ipfix(1, &[template(true, 300, &fields), records(300, &[flow])]), settings());
    assert_eq!((bytes(&matrix), matrix.discards.of(Reason::TotalCounts)), (1700, 2));
}

#[test]
fn records_with_a_section_of_a_packet_have_its_addresses() {
    let udp = Udp { time_ns: 0, source: v4(1), destination: v4(2), ports: (1, 2), payload: 1472 };
    let size = (udp.frame().len() as u16).to_be_bytes().to_vec();
    let cases: [(&str, Values, u128); 5] = [
        (
            "frame",
            vec![(spec(312, 2), size.clone()), (spec(315, VARIABLE), udp.frame()[..60].to_vec())],
            1514,
        ),
        ("frame without size", vec![(spec(315, VARIABLE), udp.frame()[..60].to_vec())], 1514),
        ("NetFlow 9", vec![(spec(312, 2), size), (spec(104, 60), udp.frame()[..60].to_vec())], 1514),
        ("packet", vec![(spec(313, VARIABLE), udp.ip()[..300].to_vec())], 1514),
        (
            "padded",
            vec![(spec(410, 2), vec![0, 40]), (spec(313, 64), [&udp.ip()[..40], &[0; 24]].concat())],
            1514,
        ),
    ];
    for (name, mut more, expected) in cases {
        more.push((spec(305, 4), 1000_u32.to_be_bytes().to_vec()));
        let fields: Vec<_> = more.iter().map(|(spec, _)| *spec).collect();
        let values: Vec<_> = more.iter().map(|(_, value)| value.clone()).collect();
        let sets = [template(true, 300, &fields), records(300, &[record(&fields, &values)])];
        let matrix = read(&ipfix(1, &sets), Settings { size: Size::Frame, sampling: None, ..settings() });
        let ends: [IpAddr; 2] = [v4(1), v4(2)];
        let cell = &cells(&matrix)[0];
        assert_eq!((cell.1.clone(), cell.2.clone()), (ends[0].to_string(), ends[1].to_string()), "{name}");
        assert_eq!((cell.3, cell.4), (expected * 1000, 1000), "{name}");
    }
}

#[test]
fn a_section_that_is_not_a_packet_is_counted_with_its_reason() {
    let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
    let cases = [
        (vec![(spec(315, VARIABLE), arp)], ("not-ip", "0x0806 ARP")),
        (vec![(spec(315, VARIABLE), vec![])], ("no-addresses", "")),
        (
            vec![(spec(409, 2), vec![0, 60]), (spec(315, VARIABLE), vec![1; 60])],
            ("no-addresses", "section of a packet behind its headers"),
        ),
    ];
    for (more, (reason, detail)) in cases {
        let fields: Vec<_> = more.iter().map(|(spec, _)| *spec).collect();
        let values: Vec<_> = more.iter().map(|(_, value)| value.clone()).collect();
        let sets = [template(true, 300, &fields), records(300, &[record(&fields, &values)])];
        let matrix = read(&ipfix(1, &sets), settings());
        assert_eq!(reasons(&matrix), [(reason, detail.to_owned(), 1)]);
    }
}

#[test]
fn a_start_of_the_exporter_applies_to_records_before_it() {
    let fields = [flow_fields(), vec![spec(22, 4), spec(21, 4)]].concat();
    let up = |seconds: u32| (seconds * 1000).to_be_bytes().to_vec();
    let flow = record(&fields, &[flow_values(1000), vec![up(100), up(100)]].concat());
    let options = [spec(144, 4), spec(160, 8)];
    let boot = record(&options, &[vec![0; 4], BOOT_MS.to_be_bytes().to_vec()]);
    let sets = [
        template(true, 300, &fields),
        records(300, &[flow]),
        options_template(true, 301, &options),
        records(301, &[boot]),
    ];
    let matrix = read(&ipfix(1, &sets), Settings { interval_s: 1, ..settings() });
    assert_eq!((cells(&matrix)[0].0, reasons(&matrix)), ((BOOT_MS / 1000) as i64 + 100, vec![]));
}

#[test]
fn an_uptime_of_32_bits_is_the_nearest_to_the_time_of_sending() {
    let fields = [flow_fields(), vec![spec(22, 4), spec(21, 4)]].concat();
    let options = [spec(144, 4), spec(160, 8)];
    let boot = |at: u64| record(&options, &[vec![0; 4], at.to_be_bytes().to_vec()]);
    let wrap = 1_u64 << 32;
    // The exporter has run for a minute, for 50 days and for 149; or its packets are of a file from before its start.
    for (started, uptime) in [
        (SENT_MS - 60_000, 50_000),
        (SENT_MS - wrap - 60_000, 50_000),
        (SENT_MS - 3 * wrap - 60_000, 50_000),
        (SENT_MS - wrap + 5_000, wrap - 15_000),
        (SENT_MS, wrap - 10_000),
    ] {
        let up = (uptime as u32).to_be_bytes().to_vec();
        let flow = record(&fields, &[flow_values(1000), vec![up.clone(), up]].concat());
        let sets = [
            options_template(true, 301, &options),
            records(301, &[boot(started)]),
            template(true, 300, &fields),
            records(300, &[flow]),
        ];
        let matrix = read(&ipfix(1, &sets), Settings { interval_s: 1, ..settings() });
        let seconds = cells(&matrix)[0].0;
        assert_eq!((seconds, reasons(&matrix)), (SENT_MS as i64 / 1000 - 10, vec![]), "{started} {uptime}");
    }
}

#[test]
fn sets_of_unknown_kinds_and_templates_without_bytes_are_counted() {
    let fields = [spec(82, 0), spec(83, 0)];
    let withdrawn = [set(2, &[1, 44, 0, 0]), records(300, &[vec![1; 16]])];
    let cases: [(Vec<Vec<u8>>, &str, u64); 4] = [
        (vec![set(77, &[1; 8])], "broken-datagram", 12),
        (vec![template(true, 300, &fields), records(300, &[vec![1; 16]])], "broken-datagram", 16),
        (vec![set(2, &[1, 44, 0, 9, 0, 8, 0, 4])], "broken-datagram", 8),
        ([&[template(true, 300, &flow_fields())][..], &withdrawn].concat(), "no-template", 16),
    ];
    for (sets, reason, bytes) in cases {
        let matrix = read(&ipfix(1, &sets), settings());
        let found: Vec<_> =
            matrix.discards.iter().map(|(reason, _, found)| (reason.name(), found.bytes)).collect();
        assert_eq!(found, [(reason, bytes)]);
    }
}
