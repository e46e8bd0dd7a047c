//! Rates of pods, their jobs, and the peaks of jobs over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, frozen_clock, labels, policies, service};
use leeward_controller::{Configured, HistoryOptions, MoveOptions, Service};
use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;
use leeward_records::{Clock, Modes};
use leeward_service::{AdmissionPolicies, NewCluster};
use leeward_store::Sqlite;
use leeward_testing::clusters::RACKS_2X2;
use serde_json::{Value, json};

const UID: &str = "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7d5e";

fn report(server: &Server, minute: u64, pods: &Value) -> (u16, Value) {
    let time = |second| format!("2026-01-31T12:{minute:02}:{second:02}Z");
    let body = json!({ "from": time(9), "until": time(10), "pods": pods });
    let (status, _, answer) = server.post("/v1/reports", &body);
    (status, answer)
}

fn pod(uid: &str, host: &str, egress_bps: u64) -> Value {
    json!({ "pod": uid, "host": host, "egress_bps": egress_bps, "ingress_bps": 7 })
}

/// A service with a history, and a clock that the test sets in seconds.
fn with_history() -> (Server, Arc<AtomicU64>) {
    let configured = Configured {
        policies: Box::new(|| policies("")),
        labels: labels(),
        admission: AdmissionPolicies::default(),
        ledger: LedgerSettings::default(),
        modes: Modes::default(),
        history: Some(HistoryOptions::default()),
        moves: MoveOptions::default(),
        hook: None,
    };
    let cluster = NewCluster::read("test", RACKS_2X2).expect("the cluster of the test is valid");
    let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
    let mut service = Service::with(cluster, configured, 1, store);
    let seconds = Arc::new(AtomicU64::new(10));
    let shown = seconds.clone();
    let now = move || Nanos(shown.load(Ordering::SeqCst) * Nanos::SECOND.0);
    service.clock = Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), now);
    (Server::start(service), seconds)
}

#[test]
fn a_pod_is_listed_until_it_is_named_and_then_its_rates_are_the_peak_of_its_job() {
    let (server, seconds) = with_history();
    let rates = json!([pod(UID, "r0h1", 500_000_000)]);
    assert_eq!(report(&server, 0, &rates).0, 200);
    let unnamed = json!([{ "pod": UID, "host": "r0h1" }]);
    let (status, _, answer) = server.post("/v1/pods", &json!({}));
    assert_eq!((status, answer), (200, json!({ "named": 0, "unnamed": unnamed })));
    let name = |host: &str, job: &str| json!({ "pods": [{ "pod": UID, "host": host, "job": job }] });
    for elsewhere in ["r1h0", "r9h9"] {
        let (status, _, answer) = server.post("/v1/pods", &name(elsewhere, "shop/Deployment/web"));
        assert_eq!((status, &answer["named"]), (200, &json!(0)), "a pod is on the host that reports it");
    }
    // The UID is the same without hyphens and in large letters.
    let plain = UID.replace('-', "").to_uppercase();
    let body = json!({ "pods": [{ "pod": plain, "host": "r0h1", "job": "shop/Deployment/web" }] });
    let (_, _, answer) = server.post("/v1/pods", &body);
    assert_eq!(answer, json!({ "named": 1, "unnamed": [] }));
    assert_eq!(server.get("/v1/peaks").2["items"], json!([]), "no rates since the name");
    assert_eq!(report(&server, 0, &rates).0, 200);
    let (status, _, peaks) = server.get("/v1/peaks");
    assert_eq!((status, &peaks["next"]), (200, &Value::Null));
    let [peak] = peaks["items"].as_array().expect("a list").as_slice() else { panic!("{peaks}") };
    assert_eq!(
        (&peak["job"], &peak["observations"], &peak["egress_mean_bps"], &peak["ingress_peak_bps"]),
        (&json!("shop/Deployment/web"), &json!(1), &json!(500_000_000), &json!(7))
    );
    // A pod counts once in five minutes, and at most the rate of its host's link.
    for (minute, observations) in [(4, 1), (5, 2)] {
        seconds.store(10 + 60 * minute, Ordering::SeqCst);
        report(&server, minute, &json!([pod(UID, "r0h1", 900_000_000_000_000)]));
        let (_, _, peaks) = server.get("/v1/peaks");
        assert_eq!(peaks["items"][0]["observations"], observations, "{peaks}");
    }
    let (_, _, peaks) = server.get("/v1/peaks?limit=1");
    let peak = peaks["items"][0]["egress_peak_bps"].as_u64().expect("a number");
    assert!((1_000_000_000..=1_062_500_000).contains(&peak), "{peak}");
    assert_eq!(server.get("/v1/peaks?after=shop/Deployment/web").2["items"], json!([]));
    let metrics = server.metrics();
    for line in ["leeward_pods{state=\"named\"} 1", "leeward_pods{state=\"unnamed\"} 0"] {
        assert!(metrics.lines().any(|other| other == line), "{line}");
    }
}

#[test]
fn invalid_pods_are_rejected_as_a_whole_with_their_field() {
    let server = Server::start(service(RACKS_2X2, "", frozen_clock()));
    let valid = pod(UID, "r0h1", 1);
    for (pods, field) in [
        (json!([valid, pod("web-0", "r0h1", 1)]), "pods[1].pod"),
        (json!([pod(UID, "r9h9", 1)]), "pods[0].host"),
        (json!([pod(UID, "r0h1", u64::MAX)]), "pods[0].egress_bps"),
        (
            json!([valid, { "pod": UID, "host": "r0h1", "egress_bps": -1, "ingress_bps": 0 }]),
            "pods[1].egress_bps",
        ),
        (json!([{ "pod": UID, "host": "r0h1", "egress_bps": 1.5, "ingress_bps": 0 }]), "pods[0].egress_bps"),
        (json!([{ "pod": UID, "host": "r0h1", "egress_bps": 1 }]), "pods[0].ingress_bps"),
    ] {
        let (status, answer) = report(&server, 0, &pods);
        assert_eq!((status, &answer["field"]), (422, &json!(field)), "{answer}");
    }
    for (body, field) in [
        (json!({ "pods": [{ "pod": "7", "host": "r0h1", "job": "web" }] }), "pods[0].pod"),
        (json!({ "pods": [{ "pod": UID, "host": "r0h1", "job": "a\nb" }] }), "pods[0].job"),
        (json!({ "pods": [{ "pod": UID, "host": "r0h1", "job": "a".repeat(129) }] }), "pods[0].job"),
        (json!({ "limit": 0 }), "limit"),
        (json!({ "pods": vec![json!({ "pod": UID, "host": "r0h1", "job": "a" }); 1_001] }), "pods"),
    ] {
        let (status, _, answer) = server.post("/v1/pods", &body);
        assert_eq!((status, &answer["field"]), (422, &json!(field)), "{answer}");
    }
    assert_eq!(server.get("/v1/peaks?limit=1001").0, 422);
    let (_, _, answer) = server.post("/v1/pods", &json!({}));
    assert_eq!(answer["unnamed"], json!([]), "nothing of an invalid report counts");
}
