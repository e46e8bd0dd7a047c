//! The promises of one enforcer.

use leeward_agreements::Grant;
use leeward_fabric::Nanos;
use leeward_promises::document::{EnforcerPromises, document};
use leeward_records::{Enforcer, EnforcerKind};
use leeward_slo::file::OverName;

use crate::support::{acknowledgement, grant};

fn of(kind: EnforcerKind, host: &str, device: Option<&str>, grants: &[Grant]) -> EnforcerPromises {
    let sent = acknowledgement(kind, host, Nanos(15 * Nanos::SECOND.0), None, &[]);
    let enforcer = Enforcer {
        name: sent.name,
        kind,
        host: sent.host,
        device: device.map(str::to_owned),
        addresses: Vec::new(),
        ttl: sent.ttl,
        applied: None,
        workloads: Default::default(),
        expired: false,
        since: Nanos(0),
    };
    document(&enforcer, u64::MAX, 9, grants.iter(), |host: &str| vec![format!("address of {host}")])
}

#[test]
fn each_enforcer_has_the_stages_of_its_host() {
    let grants = [
        grant("z", "c1", "s", [0, 1, 2]),
        grant("b", "c2", "s", [7, 0, 0]),
        grant("back", "s", "c1", [3, 0, 1]),
    ];
    let client = of(EnforcerKind::Net, "c1", None, &grants);
    assert_eq!((client.set.as_str(), client.version, client.lease_s), ("18446744073709551615", 9, 15.0));
    let rows = |promises: &EnforcerPromises| -> Vec<(String, String, String, u32)> {
        let row = |one: &leeward_promises::document::NetPromise| {
            (one.workload.clone(), one.stage.clone(), one.peer.clone(), one.priority)
        };
        promises.net.iter().map(row).collect()
    };
    let row = |workload: &str, stage: &str, peer: &str, priority| {
        (workload.to_owned(), stage.to_owned(), peer.to_owned(), priority)
    };
    // A host is the client of some workloads and the server of others.
    assert_eq!(rows(&client), [row("back", "network-out", "s", 1), row("z", "network-in", "s", 0)]);
    assert_eq!(client.net[0].peer_addresses, ["address of s"]);
    assert_eq!(
        rows(&of(EnforcerKind::Net, "s", None, &grants)),
        [
            row("b", "network-out", "c2", 0),
            row("back", "network-in", "c1", 3),
            row("z", "network-out", "c1", 2),
        ]
    );
    let server = of(EnforcerKind::Nfs, "s", None, &grants);
    let volumes: Vec<(&str, &str, u32)> =
        server.nfs.iter().map(|one| (one.workload.as_str(), one.client.as_str(), one.priority)).collect();
    assert_eq!(volumes, [("b", "c2", 0), ("z", "c1", 1)]);
    assert!(server.net.is_empty() && client.nfs.is_empty());
    assert_eq!(of(EnforcerKind::Nfs, "s", Some("s:hdd"), &grants).nfs, []);
    assert_eq!(of(EnforcerKind::Nfs, "s", Some("s:ssd"), &grants).nfs.len(), 2);
    assert_eq!(of(EnforcerKind::Nfs, "c2", None, &grants).nfs, []);
    // Enforcers read the same type.
    let text = serde_json::to_string(&server).expect("it is serializable");
    assert_eq!(serde_json::from_str::<EnforcerPromises>(&text).expect("the same text"), server);
}

#[test]
fn the_promise_of_a_file_server_states_what_its_bound_assumes() {
    let mut stated = grant("stated", "c", "s", [0, 1, 2]);
    (stated.stages[1].over, stated.stages[1].outstanding) = (Some(OverName::Demoted), Some(8));
    let promises = of(EnforcerKind::Nfs, "s", None, &[grant("plain", "c", "s", [0, 1, 2]), stated]);
    let text = serde_json::to_value(&promises.nfs).expect("JSON");
    assert_eq!((&text[0]["over"], text[0].get("outstanding")), (&serde_json::Value::Null, None));
    assert_eq!((&text[1]["over"], &text[1]["outstanding"]), (&"demoted".into(), &8.into()));
}

#[test]
fn a_client_on_the_server_needs_no_network() {
    let mut local = grant("local", "s", "s", [0, 0, 0]);
    local.stages[0].queues.clear();
    local.stages[2].queues.clear();
    let grants = [local];
    assert_eq!(of(EnforcerKind::Net, "s", None, &grants).net, []);
    assert_eq!(of(EnforcerKind::Nfs, "s", None, &grants).nfs.len(), 1);
}
