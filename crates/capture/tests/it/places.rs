//! Places of addresses: the longest matching prefix decides, and services depend on port and address.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::files::{Captured, Order, pcap};
use crate::support::{Udp, cells, packets, read_into, v4};
use leeward_capture::places::{Mapping, Prefix, Prefixes};
use leeward_capture::{Places, Reason, Settings};
use leeward_testing::rows::{check_rows, equal};
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_longest_prefix_wins(
        prefixes in prop::collection::vec((any::<u32>(), 0..=32_u8), 0..20), addresses in prop::collection::vec(any::<u32>(), 1..10)
    ) {
        let mut found = Prefixes::default();
        let mut kept: Vec<(u32, u8, usize)> = Vec::new();
        for (number, &(bits, length)) in prefixes.iter().enumerate() {
            // Prefixes have few different leading bits, so that some contain others.
            let bits = bits & 0xe000_00ff;
            found.insert(Prefix::new(Ipv4Addr::from_bits(bits).into(), length).expect("a prefix"), number);
            let covers = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            kept.retain(|&(other, of, _)| (other, of) != (bits & covers, length));
            kept.push((bits & covers, length, number));
        }
        for bits in addresses {
            let bits = bits & 0xe000_00ff;
            let inside = |&&(of, length, _): &&(u32, u8, usize)| {
                bits & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0) == of
            };
            let expected = kept.iter().filter(inside).max_by_key(|prefix| prefix.1).map(|prefix| prefix.2);
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(found.find(address.into()).copied(), expected);
            prop_assert_eq!(found.find(IpAddr::V6(address.to_ipv6_mapped())).copied(), expected);
        }
    }

    #[test]
    fn no_text_makes_the_reader_of_mappings_panic(text in "[a-z0-9:./{}\\[\\] ,\n#-]{0,80}", ending in 0..3_usize) {
        let name = ["m.yaml", "m.csv", "hosts"][ending];
        if let Err(error) = Mapping::of(name, &text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

const YAML: &str = r#"
addresses:
  10.0.0.1: web0
  10.0.0.2: db0
  10.0.1.0/24: r1
  "fd00::/64": r2
services:
  - {name: web, ports: [80, 8000-8099]}
  - {name: db, ports: [5432], at: [db0, 10.0.1.109]}
  - {name: batch, at: [10.0.1.0/24]}
"#;

#[test]
fn every_form_of_a_mapping_has_the_same_addresses() {
    let list = [("10.0.0.1", "web0"), ("10.0.0.2", "db0"), ("10.0.1.0/24", "r1"), ("fd00::/64", "r2")];
    let csv: String = list.iter().map(|(address, name)| format!("{address},{name}\n")).collect();
    let hosts: String =
        list.iter().map(|(address, name)| format!("{address}\t{name} {name}.example # a host\n")).collect();
    let texts = [
        ("m.yaml", YAML.to_owned()),
        ("m.csv", format!("address,host\n{csv}")),
        ("hosts", format!("127.0.0.1 localhost\n::1 localhost\n\n{hosts}")),
    ];
    let addresses = texts.map(|(name, text)| {
        let mapping = Mapping::of(name, &text).expect("a mapping");
        mapping.addresses().map(|(prefix, name)| (prefix, name.to_owned())).collect::<Vec<_>>()
    });
    assert_eq!(addresses[0].len(), 4);
    assert_eq!((&addresses[1], &addresses[2]), (&addresses[0], &addresses[0]));
}

#[test]
fn an_invalid_mapping_is_rejected_with_place_and_reason() {
    let cases = [
        (
            "m.csv",
            "address,host\n10.0.0.300,a\n",
            "m.csv:2: address: `10.0.0.300`: expected an address or a prefix such as 10.0.1.0/24",
        ),
        (
            "m.csv",
            "ip,host\n",
            "m.csv:1: address: no such column; expected a header with address,host, found `ip,host`",
        ),
        ("hosts", "10.0.0.1 a\n10.0.0.1 b\n", "hosts:2: `10.0.0.1`: already mapped to `a`"),
        ("hosts", "10.0.0.1\n", "hosts:1: expected an address and a name"),
        ("hosts", "# nothing\n", "hosts: no addresses; expected lines such as `10.0.0.1 r0h0`"),
        (
            "m.yaml",
            "addresses: {10.0.0.0/33: a}",
            "m.yaml:1:26: addresses: `10.0.0.0/33`: expected an address or a prefix such as 10.0.1.0/24",
        ),
        (
            "m.yaml",
            "services: [{name: web}]",
            "m.yaml:1:19: services[0]: expected `ports`, addresses (`at`), or both",
        ),
        (
            "m.yaml",
            "services: [{name: web, ports: [9-8]}]",
            "m.yaml:1:32: services[0]: 9-8: the first port is above the last",
        ),
        (
            "m.yaml",
            "services: [{name: web, at: [db]}]",
            "m.yaml:1:29: services[0]: `db`: expected an address, a prefix, or a name from `addresses`",
        ),
    ];
    check_rows(cases, |(name, text, message)| {
        let error = Mapping::of(name, text).err().map(|error| error.to_string());
        equal(&error.as_deref(), &Some(message))
    });
}

/// Cells of packets (source, its port, destination, its port), without their times.
fn by(places: Places, sent: &[(u8, u16, u8, u16)]) -> (Vec<(String, String, u128)>, leeward_capture::Matrix) {
    let frames = sent.iter().map(|&(from, from_port, to, to_port)| {
        let address = |host: u8| if host < 100 { v4(host) } else { Ipv4Addr::new(10, 0, 1, host).into() };
        let udp = Udp {
            time_ns: 0,
            source: address(from),
            destination: address(to),
            ports: (from_port, to_port),
            payload: 58,
        };
        Captured::whole(0, udp.frame())
    });
    let file = pcap(Order { big: false }, false, 1, &frames.collect::<Vec<_>>());
    let matrix = read_into(&[&file], Settings { ..packets() }, places);
    (cells(&matrix).into_iter().map(|(_, from, to, bytes, _)| (from, to, bytes)).collect(), matrix)
}

fn expected(cells: &[(&str, &str, u128)]) -> Vec<(String, String, u128)> {
    cells.iter().map(|&(from, to, bytes)| (from.to_owned(), to.to_owned(), bytes)).collect()
}

#[test]
fn traffic_of_unknown_addresses_is_counted_and_listed() {
    let mapping = Mapping::of("m.yaml", YAML).expect("a mapping");
    let places = Places::mapped(&mapping, |name| Some(name.to_owned()));
    let (cells, matrix) = by(places, &[(1, 5, 2, 6), (1, 5, 120, 6), (3, 5, 4, 6), (3, 5, 1, 6)]);
    assert_eq!(cells, expected(&[("web0", "db0", 100), ("web0", "r1", 100)]));
    assert_eq!(matrix.discards.of(Reason::NoPlace), 2);
    assert_eq!(matrix.unknown, [(v4(3), 200), (v4(4), 100)]);
}

#[test]
fn a_name_without_a_place_hides_shorter_prefixes() {
    let mapping = Mapping::of("m.yaml", "addresses: {10.0.0.0/8: r1, 10.0.0.1: core, 10.0.0.2: r2}")
        .expect("a mapping");
    let places = Places::mapped(&mapping, |name| (name != "core").then(|| name.to_owned()));
    let (cells, matrix) = by(places, &[(3, 5, 2, 6), (1, 5, 2, 6)]);
    assert_eq!(cells, expected(&[("r1", "r2", 100)]));
    assert_eq!(matrix.unknown, [(v4(1), 100)]);
}

#[test]
fn services_match_by_port_then_by_address_and_others_are_clients() {
    let mapping = Mapping::of("m.yaml", YAML).expect("a mapping");
    let sent = [
        // In order: a client of the web; the web's reply; the web to the database; a batch host to the database at an
        // address inside the batch prefix.
        (3, 50_000, 1, 8042),
        (1, 80, 3, 50_000),
        (1, 80, 2, 5432),
        (120, 50_000, 109, 5432),
        // At another address the database's port is no service, so this packet is between two unknown places.
        (3, 50_000, 4, 5432),
    ];
    let (cells, matrix) = by(Places::services(&mapping), &sent);
    let all = [("batch", "db", 100), ("others", "web", 100), ("web", "db", 100), ("web", "others", 100)];
    assert_eq!(cells, expected(&all));
    assert_eq!(matrix.discards.of(Reason::NoPlace), 1);
}
