//! Targets for messages from the network: requests to the service, replies of Prometheus, and messages between probe
//! hosts.

use std::collections::BTreeMap;

use leeward_controller::Service;
use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;
use leeward_placement::{replicas, tasks};
use leeward_probe::control::{self, Order, Outcome, Reply, Request};
use leeward_probe::{Collector, Head, Limits, ProbeError, SendStatistics, Train, estimate};
use leeward_prometheus::PrometheusReader;
use leeward_records::Clock;
use leeward_service::{NewCluster, PolicyLabels};
use leeward_store::Sqlite;
use serde::de::DeserializeOwned;

use crate::{CLUSTER, CLUSTER_TEXT, assert_one_line, request_text, short};

/// Messages and train packets that probe hosts read from each other.
pub fn probe(bytes: &[u8]) {
    conversation(bytes);
    packets(bytes);
}

/// Sends a request to the routes of a new service. A problem document is one short line and never an internal error.
pub fn request(bytes: &[u8]) {
    let Some(request) = request_text::parse(bytes) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let reply = runtime.block_on(async {
        let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
        let labels = PolicyLabels {
            replicas: "uniform".into(),
            tasks: "leeward".into(),
            moves: None,
            ..PolicyLabels::default()
        };
        let policies = || Policies {
            replicas: replicas::REGISTRY.make("uniform", "").ok(),
            tasks: tasks::REGISTRY.make("leeward", "").ok(),
            ..Policies::default()
        };
        let cluster = NewCluster::read("cluster", CLUSTER_TEXT).expect("a good cluster file");
        let service = Service::new(cluster, policies, labels, LedgerSettings::default(), 1, store);
        let mut service = service.expect("valid settings");
        service.clock = Clock::new("2020-01-01T00:00:00Z".parse().expect("a time"), || Nanos(0));
        let (routes, actor) = service.open().await.expect("an empty store");
        let actor = tokio::spawn(actor);
        let reply = request_text::send(&routes, request).await;
        actor.abort();
        reply
    });
    if let Some((status, problem)) = reply {
        assert!(status != 500, "{problem}");
        assert!(problem.len() < 3000 && !problem.contains('\n'), "{problem}");
    }
}

/// Reads a conversation of probe hosts, in which a request and a reply alternate. A request survives writing and
/// reading, and a reply that passes its check can be shown.
fn conversation(mut bytes: &[u8]) {
    let (mut train, mut last_order) = (Train::default(), Order::Hops {});
    loop {
        let Some(request) = next_message::<Request>(&mut bytes) else { return };
        let mut written = Vec::new();
        control::write(&mut written, &request).expect("the length of a read message");
        assert_eq!(control::read::<Request>(&mut &written[..]).expect("a written message"), request);
        match request {
            Request::ReceiveTrain { train: next } if next.check(&Limits::default()).is_ok() => train = next,
            Request::Measure { order, .. } => last_order = order,
            _ => {}
        }
        match next_message::<Reply>(&mut bytes) {
            Some(Reply::Received { received }) => {
                let sent = SendStatistics { packets: train.total_packets(), busy_ns: 1_000, waited_ns: 0 };
                match estimate(&train, &sent, &received, Some(1_000)) {
                    Ok(estimate) => estimate.check(&train).expect("its report was checked"),
                    Err(error) => short(&error.to_string()),
                }
            }
            Some(Reply::Measured { outcome }) => match outcome.check(&last_order) {
                Ok(()) => check_outcome(&outcome),
                Err(error) => short(&error.to_string()),
            },
            Some(Reply::Refused { message }) => short(&ProbeError::refused("10.0.0.1", &message).to_string()),
            Some(_) => {}
            None => return,
        }
    }
}

/// Next message; `None` after an error, which must be one short line.
fn next_message<T: DeserializeOwned>(bytes: &mut &[u8]) -> Option<T> {
    control::read(bytes).map_err(|error| short(&error.to_string())).ok()
}

/// Checks that a result can be shown: its rates are finite numbers.
fn check_outcome(outcome: &Outcome) {
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

/// Receives packets, each after two bytes with its length and eight with its arrival time. The receiver's report must
/// be valid.
fn packets(mut bytes: &[u8]) {
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
    received.check(&train).expect("a valid report");
    assert!(received.packets() <= train.total_packets());
}

/// Reads a map file and replies of Prometheus to its queries, separated by empty lines. Reported loads are valid and
/// their times follow each other.
pub fn answer(bytes: &[u8]) {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
        parts.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    parts.push(rest);
    let Ok(map) = std::str::from_utf8(parts[0]) else { return };
    let mut reader = match PrometheusReader::new("map", map, &CLUSTER, Nanos(15 * Nanos::SECOND.0)) {
        Ok(reader) => reader,
        Err(error) => return assert_one_line(&error),
    };
    let mut ends = BTreeMap::new();
    for round in parts[1..].chunks(reader.query_count()) {
        match reader.read_round(round) {
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
