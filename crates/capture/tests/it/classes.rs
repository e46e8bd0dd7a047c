//! Classes of service: traffic counts for the class of its code point, in packets and in exports, and on the links of
//! its path.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::support::exports::*;
use crate::support::files::{Captured, Order, pcap};
use crate::support::{datagram, ethernet, ip, packets, read, read_into, reasons, v4, v6};
use leeward_capture::places::Mapping;
use leeward_capture::{Classes, Content, Matrix, Places, Settings, Tunnels};
use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, Dscp};
use leeward_testing::rows::{check_rows, contains};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// An IP packet with a code point and both bits of ECN.
fn marked(mut packet: Vec<u8>, point: &str) -> Vec<u8> {
    let class = point.parse::<Dscp>().expect("a code point").traffic_class() | 3;
    if packet[0] >> 4 == 4 {
        packet[1] = class;
    } else {
        (packet[0], packet[1]) = (0x60 | class >> 4, class << 4);
    }
    packet
}

fn packet(source: IpAddr, destination: IpAddr, point: &str, payload: usize) -> Vec<u8> {
    marked(ip(source, destination, 17, &datagram((1, 2), &vec![7; payload])), point)
}

fn classes(classes: &[(&str, &[&str])]) -> Classes {
    named(classes).expect("classes")
}

fn named(classes: &[(&str, &[&str])]) -> Result<Classes, InputError> {
    let own = |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
    let classes: Vec<_> = classes.iter().map(|(name, points)| ((*name).to_owned(), own(points))).collect();
    Classes::named(&classes)
}

fn by_code_point() -> Settings {
    Settings { classes: Some(Classes::code_points()), ..packets() }
}

/// Bytes by class, with each class of the matrix.
fn bytes(matrix: &Matrix) -> Vec<(&str, u128)> {
    let of = |class: usize| {
        let pairs = matrix.pairs.iter().filter(move |pair| pair.class.map(usize::from) == Some(class));
        pairs.map(|pair| pair.cell.bytes).sum::<u128>()
    };
    matrix.classes.iter().enumerate().map(|(class, name)| (name.as_str(), of(class))).collect()
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let frames: Vec<_> = frames.iter().map(|frame| Captured::whole(0, frame.clone())).collect();
    pcap(Order { big: false }, true, 1, &frames)
}

#[test]
fn packets_count_for_their_code_point_without_the_bits_of_ecn() {
    let frames = [
        ethernet(v4(2), &packet(v4(1), v4(2), "ef", 58)),
        ethernet(v4(2), &packet(v4(1), v4(2), "ef", 158)),
        ethernet(v6(2), &packet(v6(1), v6(2), "af41", 38)),
        ethernet(v4(2), &packet(v4(1), v4(2), "13", 358)),
        ethernet(v4(3), &packet(v4(1), v4(3), "default", 58)),
    ];
    let file = capture(&frames);
    let matrix = read(&file, by_code_point());
    assert_eq!(bytes(&matrix), [("default", 100), ("13", 400), ("af41", 100), ("ef", 300)]);

    let own: &[(&str, &[&str])] = &[("PC", &["46", "cs6"]), ("NC", &["af41", "af42"]), ("idle", &["cs1"])];
    let matrix = read(&file, Settings { classes: Some(classes(own)), ..packets() });
    assert_eq!(bytes(&matrix), [("PC", 300), ("NC", 100), ("idle", 0)]);
    let left_out = [("no-class", "13".to_owned(), 1), ("no-class", "default".to_owned(), 1)];
    assert_eq!(reasons(&matrix), left_out);

    let with_rest: &[(&str, &[&str])] = &[("PC", &["ef"]), ("BE", &["*"])];
    let matrix = read(&file, Settings { classes: Some(classes(with_rest)), ..packets() });
    assert_eq!(bytes(&matrix), [("PC", 300), ("BE", 600)]);
    assert_eq!(reasons(&matrix), vec![]);

    let matrix = read(&file, packets());
    assert_eq!((matrix.classes.len(), matrix.pairs.iter().all(|pair| pair.class.is_none())), (0, true));
}

#[test]
fn a_tunnel_has_the_code_point_of_its_outermost_packet() {
    let mut inside = vec![8, 0, 0, 0, 0, 0, 1, 0];
    inside.extend(ethernet(v4(2), &packet(v4(1), v4(2), "af41", 20)));
    let outer = marked(ip(v4(8), v4(9), 17, &datagram((5000, 4789), &inside)), "ef");
    let file = capture(&[ethernet(v4(9), &outer)]);
    for tunnels in Tunnels::ALL {
        let matrix = read(&file, Settings { tunnels, ..by_code_point() });
        assert_eq!(bytes(&matrix), [("ef", outer.len() as u128 + 14)], "{tunnels:?}");
    }
}

/// Reason, detail and number of packets that are left out.
type LeftOut = (&'static str, String, u64);

/// Bytes by class of one exported datagram, and what is left out.
fn exported(port: u16, datagram: &[u8]) -> (Vec<(String, u128)>, Vec<LeftOut>) {
    let frame = Captured::whole(SENT_MS * 1_000_000, sent(v4(200), 40_000, port, datagram));
    let settings = Settings { content: Content::Exports, ..by_code_point() };
    let matrix = read(&pcap(Order { big: false }, true, 1, &[frame]), settings);
    let sums = bytes(&matrix).into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    let lost = reasons(&matrix).into_iter().filter(|(reason, _, _)| *reason == "no-class").collect();
    (sums, lost)
}

#[test]
fn samples_of_sflow_have_the_code_point_of_the_sampled_packet() {
    let agent = Ipv4Addr::new(10, 0, 0, 200);
    let frame = ethernet(v4(2), &packet(v4(1), v4(2), "ef", 58));
    let (datagram_of, rate) = (|sample| sflow(agent, &[sample]), 10);
    let sample = flow_sample(false, rate, &[sampled_frame(&frame)]);
    assert_eq!(exported(6343, &datagram_of(sample)), (vec![("ef".into(), 1000)], vec![]));

    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let (kind, mut record) = sampled_ip(from, to, (1, 2), 86);
        let last = record.len() - 1;
        record[last] = 0xb8;
        let sample = flow_sample(true, rate, &[(kind, record.clone())]);
        assert_eq!(exported(6343, &datagram_of(sample)), (vec![("ef".into(), 1000)], vec![]));
        // A record without its last two words states no code point.
        record.truncate(record.len() - 8);
        let (sums, lost) = exported(6343, &datagram_of(flow_sample(true, rate, &[(kind, record)])));
        assert_eq!((sums, lost), (vec![], vec![("no-class", "not stated".into(), 1)]));
    }
}

#[test]
fn records_of_netflow_and_ipfix_have_the_code_point_of_their_flow() {
    let flow = ExportedFlow {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        ports: (1, 2),
        octets: 986,
        packets: 1,
        start_ms: BOOT_MS,
        end_ms: BOOT_MS + 1,
    };
    let mut datagram = v5(&[flow], 0x4001);
    datagram[24 + 39] = 0xb8;
    assert_eq!(exported(2055, &datagram), (vec![("ef".into(), 1000)], vec![]));

    // The field of the code point, or the field of the byte that has it; the former counts if there are both.
    type Case = (&'static [(u16, u16)], &'static [u8], &'static str);
    let cases: [Case; 4] = [
        (&[(195, 1)], &[46], "ef"),
        (&[(5, 1)], &[0xbb], "ef"),
        (&[(5, 1), (195, 1)], &[0, 34], "af41"),
        (&[], &[], ""),
    ];
    for (fields, values, class) in cases {
        let common = [(8, 4), (12, 4), (1, 4), (2, 4), (152, 8), (153, 8)];
        let fields: Vec<_> = common.iter().chain(fields).copied().collect();
        let mut record = Vec::new();
        record.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        [986_u32, 1].iter().for_each(|word| record.extend(word.to_be_bytes()));
        [SENT_MS, SENT_MS].iter().for_each(|time| record.extend(time.to_be_bytes()));
        record.extend(values);
        let datagram = ipfix(1, &[set(2, &template(300, &fields)), set(300, &record)]);
        let expected = match class {
            "" => (vec![], vec![("no-class", "not stated".to_owned(), 1)]),
            class => (vec![(class.to_owned(), 1000)], vec![]),
        };
        assert_eq!(exported(4739, &datagram), expected, "{fields:?}");
    }
}

#[test]
fn wrong_classes_are_rejected() {
    type Given = &'static [(&'static str, &'static [&'static str])];
    let rows: [(Given, &str); 8] = [
        (&[], "classes: expected 1 to 64 classes"),
        (&[("a b", &["ef"])], "expected a name of letters, digits and -_., at most 64 characters"),
        (&[("a", &["ef"]), ("a", &["cs1"])], "given twice; expected each class once"),
        (&[("a", &[])], "no code points; expected some, such as ef or 46"),
        (&[("a", &["64"])], "`64`: expected a code point from 0 to 63"),
        (&[("a", &["ef"]), ("b", &["46"])], "`46`: also a code point of a"),
        (&[("a", &["ef", "46"])], "`46`: also a code point of a"),
        (&[("a", &["*"]), ("b", &["*"])], "`*`: also a code point of a"),
    ];
    check_rows(rows, |(given, expected)| {
        let message = named(given).map_or_else(|error| error.to_string(), |_| String::new());
        contains(&message, expected)
    });
}

const HOSTS: u8 = 6;

/// Three racks of two hosts, and a map with an address for each host.
fn racks() -> (Cluster, Mapping) {
    let text = "racks: 3\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1";
    let hosts: String = (0..HOSTS).map(|host| format!("10.0.0.{host} {}\n", name(host))).collect();
    let mapping = Mapping::of("hosts", &hosts).expect("a map");
    (Cluster::from_text("cluster.yaml", text).expect("a cluster"), mapping)
}

fn name(host: u8) -> String {
    format!("r{}h{}", host / 2, host % 2)
}

/// A matrix of packets: second, sender, receiver, code point, length of the payload.
fn sent_between_hosts(sent: &[(u64, u8, u8, &str, usize)], mapping: &Mapping, settings: Settings) -> Matrix {
    let frames = sent.iter().map(|&(second, from, to, point, length)| {
        let frame = ethernet(v4(to), &packet(v4(from), v4(to), point, length));
        Captured::whole(second * SECOND, frame)
    });
    let file = pcap(Order { big: false }, true, 1, &frames.collect::<Vec<_>>());
    read_into(&[&file], settings, Places::mapped(mapping, |name| Some(name.to_owned())))
}

const LAST: u64 = 5;

proptest! {
    #[test]
    fn each_link_has_the_traffic_of_the_paths_that_cross_it_in_each_whole_second(
        sent in prop::collection::vec((0..=LAST, 0..HOSTS, 0..HOSTS, any::<bool>(), 0..1400_usize), 0..60)
    ) {
        let (cluster, mapping) = racks();
        let points = ["ef", "default"];
        let mut all = vec![(0, 0, 2, "ef", 10), (LAST, 0, 2, "ef", 10)];
        all.extend(sent.iter().map(|&(at, from, to, high, length)| (at, from, to, points[usize::from(!high)], length)));
        let own: &[(&str, &[&str])] = &[("high", &["ef"]), ("low", &["*"])];
        let settings = Settings { classes: Some(classes(own)), ..packets() };
        let matrix = sent_between_hosts(&all, &mapping, settings);
        let loads = matrix.link_loads(&cluster.fabric).expect("loads");

        let mut truth = BTreeMap::<(i64, String, &str), u128>::new();
        for (at, from, to, point, length) in all {
            let (source, target) = (name(from), name(to));
            let mut links = vec![format!("{source}:egress"), format!("{target}:ingress")];
            if from / 2 != to / 2 {
                links.extend([format!("{}:uplink", &source[..2]), format!("{}:downlink", &target[..2])]);
            }
            let class = if point == "ef" { "high" } else { "low" };
            for link in links.into_iter().filter(|_| from != to && at > 0 && at < LAST) {
                *truth.entry((at as i64, link, class)).or_default() += length as u128 + 42;
            }
        }
        prop_assert_eq!(loads.len(), 4 * 18 * 2);
        for load in loads {
            let link = cluster.fabric.resource_name(load.link);
            let key = (load.start_s, link, matrix.classes[usize::from(load.class)].as_str());
            prop_assert_eq!(truth.remove(&key).unwrap_or(0), load.cell.bytes, "{:?}", key);
        }
        prop_assert!(truth.is_empty());
    }
}

#[test]
fn loads_of_links_need_classes_and_a_fitting_number_of_whole_intervals() {
    let (cluster, mapping) = racks();
    let loads = |sent: &[(u64, u8, u8, &str, usize)], settings: Settings| {
        sent_between_hosts(sent, &mapping, settings)
            .link_loads(&cluster.fabric)
            .map_or_else(|error| error.to_string(), |loads| loads.len().to_string())
    };
    let until = |last: u64| [(0, 0, 2, "ef", 10), (last, 0, 2, "ef", 10)];
    assert_eq!(loads(&[], by_code_point()), "0");
    assert_eq!(loads(&until(2), by_code_point()), "18");
    assert!(loads(&until(2), packets()).starts_with("classes: none"));
    assert!(loads(&until(1), by_code_point()).starts_with("interval: expected at least three intervals"));
    assert!(loads(&until(400_000), by_code_point()).starts_with("interval: 7199982 loads"));
}

#[test]
fn places_may_be_racks_and_must_be_in_the_cluster() {
    let (cluster, _) = racks();
    let sent: Vec<_> = (0..3).map(|second| (second, 0, 2, "ef", 58)).collect();
    let matrix = |names: &str| {
        let mapping = Mapping::of("hosts", names).expect("a map");
        sent_between_hosts(&sent, &mapping, by_code_point())
    };
    let loads = matrix("10.0.0.0 r0\n10.0.0.2 r2h1\n").link_loads(&cluster.fabric).expect("loads");
    let used = loads.iter().filter(|load| load.cell.bytes > 0);
    let names: Vec<_> = used.map(|load| cluster.fabric.resource_name(load.link)).collect();
    assert_eq!(names, ["r2h1:ingress", "r0:uplink", "r2:downlink"]);
    assert_eq!(loads.len(), 6, "the links of r0, of r2 and of r2h1");

    let error =
        matrix("10.0.0.0 r0\n10.0.0.2 r9\n").link_loads(&cluster.fabric).expect_err("an unknown rack");
    assert!(
        error.to_string().starts_with("cluster: `r9`: the cluster has no such host, rack or pod"),
        "{error}"
    );
}
