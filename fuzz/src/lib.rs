//! Shared parts of the targets: a small cluster, and properties of any accepted or rejected input.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::LazyLock;

use leeward_capture::{Capture, Places, Settings};
use leeward_controller::{Beside, understand};
use leeward_prometheus::Ear;
use leeward_records::Clock;
use leeward_fabric::input::{InputError, Text, read_yaml};
use leeward_fabric::{Cluster, Nanos};
use leeward_probe::control::{self, Reply, Request, Order, Outcome};
use leeward_probe::{Collector, Head, Limits, ProbeError, SendStatistics, Train, estimate};
use leeward_scenarios::workload::{Loaded, Source};
use serde::de::DeserializeOwned;

/// Seconds to read of each source.
pub const HORIZON: f64 = 100.0;

const CLUSTER_TEXT: &str = r#"{"racks": 3, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 10,
    "devices": [{"read": "100MB/s", "write": "50MB/s"}]}"#;

/// Three racks of two hosts with one disk each.
pub static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::from_text("cluster", CLUSTER_TEXT).expect("a good cluster file"));

/// Reads a request as the service does. An error is one short line and never an internal error of the service.
pub fn request(bytes: &[u8]) {
    let clock = Clock::new("2020-01-01T00:00:00Z".parse().expect("a time"), || Nanos(0));
    let beside = Beside { cluster: &CLUSTER, text: CLUSTER_TEXT, clock: &clock };
    if let Some(Err((status, detail))) = understand(bytes, &beside) {
        assert!((400..500).contains(&status), "{status}: {detail}");
        assert!(detail.len() < 2000 && !detail.contains('\n'), "{detail}");
    }
}

/// Reads a conversation of measuring hosts: requests of one and replies of the other, in turn. A request survives writing and
/// reading; a reply that passes its check can be shown.
pub fn conversation(mut bytes: &[u8]) {
    let (mut train, mut asked) = (Train::default(), Order::Hops {});
    loop {
        let Some(ask) = heard::<Request>(&mut bytes) else { return };
        let mut written = Vec::new();
        control::write(&mut written, &ask).expect("what was read is not too long");
        assert_eq!(control::read::<Request>(&mut &written[..]).expect("it was written"), ask);
        match ask {
            Request::ReceiveTrain { train: one } if one.check(&Limits::default()).is_ok() => train = one,
            Request::Measure { order, .. } => asked = order,
            _ => {}
        }
        match heard::<Reply>(&mut bytes) {
            Some(Reply::Received { received }) => {
                let sent = SendStatistics { packets: train.total_packets(), busy_ns: 1_000, waited_ns: 0 };
                match estimate(&train, &sent, &received, Some(1_000)) {
                    Ok(estimate) => estimate.check(&train).expect("it is made of a report that was checked"),
                    Err(error) => short(&error.to_string()),
                }
            }
            Some(Reply::Measured { outcome }) => match outcome.check(&asked) {
                Ok(()) => shown(&outcome),
                Err(error) => short(&error.to_string()),
            },
            Some(Reply::Refused { message }) => {
                short(&ProbeError::refused("10.0.0.1", &message).to_string())
            }
            Some(_) => {}
            None => return,
        }
    }
}

/// Next message; `None` after an error, which must be one short line.
fn heard<T: DeserializeOwned>(bytes: &mut &[u8]) -> Option<T> {
    control::read(bytes).map_err(|error| short(&error.to_string())).ok()
}

/// Checks that a result can be shown: its rates are finite numbers.
fn shown(outcome: &Outcome) {
    let rates = match outcome {
        Outcome::Train { estimate } => vec![estimate.rate_bps, estimate.train_bps],
        Outcome::Transfer { transferred } => {
            let mut rates = transferred.windows_bps(10);
            rates.push(transferred.rate_bps());
            rates
        }
        Outcome::Hops { .. } => Vec::new(),
    };
    assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{rates:?}");
}

/// Receives packets, each after two bytes with its length and eight with its arrival time. The receiver's report must be a
/// possible one.
pub fn packets(mut bytes: &[u8]) {
    let train = Train { bursts: 3, packets: 5, bytes: 64, gap_ns: 0 };
    let mut collector = Collector::new(1, train);
    while let Some((head, rest)) = bytes.split_first_chunk::<10>() {
        let [a, b, at @ ..] = *head;
        let length = usize::from(u16::from_be_bytes([a, b])).min(rest.len());
        let (packet, rest) = rest.split_at(length);
        collector.packet(Head::read(packet), packet.len(), u64::from_be_bytes(at));
        bytes = rest;
    }
    let received = collector.finish(0);
    received.check(&train).expect("it was received");
    assert!(received.packets() <= train.total_packets());
}

/// Reads a map file and the replies of a Prometheus to it, separated by empty lines. Reported loads are valid and their times
/// follow each other.
pub fn answers(bytes: &[u8]) {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
        parts.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    parts.push(rest);
    let Ok(map) = std::str::from_utf8(parts[0]) else { return };
    let mut ear = match Ear::new("map", map, &CLUSTER, Nanos(15 * Nanos::SECOND.0)) {
        Ok(ear) => ear,
        Err(error) => return one_line(&error),
    };
    let mut ends = BTreeMap::new();
    for round in parts[1..].chunks(ear.questions()) {
        match ear.hear(round) {
            Ok(windows) => {
                for (link, from, until, load) in windows {
                    let end = ends.insert(link, until).unwrap_or_default();
                    assert!(end <= from && from < until && load.0 >= 0, "{link:?} {from} {until} {load:?}");
                }
            }
            Err(error) => short(&error),
        }
    }
}

/// Creates a source from its settings.
pub fn source(settings: &str) -> Source {
    read_yaml("settings", settings).expect("good settings")
}

/// Reads `bytes` as the file of a source and checks the result.
pub fn read(source: &Source, bytes: &[u8]) {
    let read = Text::from_bytes("file", bytes).and_then(|text| match source {
        Source::Coflow(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Swim(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Blocks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Flows(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Matrix(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Rates(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Tasks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Facebook(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::Cell(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::Reads(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::App(_) => unreachable!("app files and squares have targets of their own"),
    });
    check(&read);
}

/// Checks a result: an error is one short line. A workload is in order of time, within the run, within this cluster, and
/// without NaN.
pub fn check(read: &Result<Loaded, InputError>) {
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(error) => return one_line(error),
    };
    let workload = &loaded.workload;
    let in_order = |times: Vec<f64>| {
        assert!(times.iter().all(|at| (0.0..HORIZON).contains(at)) && times.is_sorted());
    };
    in_order(workload.flows.iter().map(|flow| flow.start).collect());
    in_order(workload.rates.iter().map(|change| change.at).collect());
    in_order(workload.files.iter().map(|file| file.start).collect());
    assert!(workload.jobs.iter().all(|job| job.start.is_finite()));
    for change in &workload.rates {
        assert!(change.rate.0 >= 0 && change.resource.index() < CLUSTER.fabric.resource_count());
    }
    for file in &workload.files {
        assert!(file.bytes.0 > 0 && file.block.0 > 0 && file.replicas > 0);
        assert!(file.writer.index() < CLUSTER.fabric.host_count());
        assert!(file.job.is_none_or(|job| (job as usize) < workload.jobs.len()));
        for fetch in &file.fetches {
            assert!(fetch.from != file.writer && fetch.from.index() < CLUSTER.fabric.host_count());
        }
    }
}

/// Checks that an error fits a terminal, whatever the file contains.
pub fn one_line(error: &InputError) {
    short(&error.to_string());
}

/// Checks the same of any other message.
fn short(text: &str) {
    assert!(text.len() < 2000 && !text.contains('\n'), "{text}");
}

/// Reads a capture by address. The results are finite and within the times that files can hold.
pub fn capture(bytes: Vec<u8>) {
    let mut capture = Capture::new(Settings::default(), Places::addresses());
    let mut open = match capture.open("file", Cursor::new(bytes)) {
        Ok(open) => open,
        Err(error) => return one_line(&error),
    };
    loop {
        match capture.read(&mut open, 1000) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return one_line(&error),
        }
    }
    let matrix = capture.finish();
    for pair in &matrix.pairs {
        assert!(pair.cell.standard_error().is_finite());
        assert!(pair.start_s.abs() <= i64::MAX / 1_000_000_000);
        assert!(pair.start_s % i64::from(matrix.interval_s) == 0);
        assert!([pair.source, pair.destination].iter().all(|&place| (place as usize) < matrix.places.len()));
    }
}

/// A capture of UDP datagrams to a port, each in an Ethernet frame.
pub fn captured(port: u16, datagrams: &[&[u8]]) -> Vec<u8> {
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
