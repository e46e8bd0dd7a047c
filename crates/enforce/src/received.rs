//! Promises of a controller as promises of a host.

use leeward_lease::{Received, singles};
use leeward_traces::Stage;

use crate::promises::{Bucket, Direction, HostPromises, LeftOut, WorkloadPromise};

/// Promises of this host, and the workloads that have no addresses.
pub(crate) fn host_promises(received: &Received) -> (HostPromises, Vec<LeftOut>) {
    let promises = &received.promises;
    let mut left_out = Vec::new();
    let mut workloads = Vec::with_capacity(promises.net.len());
    for promise in &promises.net {
        let name = &promise.workload;
        let direction = match Stage::from_name(&promise.stage) {
            Some(Stage::NetworkIn) => Direction::ToServer,
            Some(Stage::NetworkOut) => Direction::ToClient,
            Some(Stage::Storage) | None => {
                let why = format!("stage `{}`: no packets leave a host there", promise.stage);
                left_out.push(LeftOut { workload: name.clone(), why });
                continue;
            }
        };
        // The client of a workload may be a virtual machine with an address of its own.
        let listed = |name: &str| received.file.listed(name);
        let (own, peers) = match direction {
            Direction::ToServer => (listed(name).or(listed(&promises.host)), received.of_host(&promise.peer)),
            Direction::ToClient => (listed(&promises.host), received.of_client(name, &promise.peer)),
        };
        match peers {
            Ok(peers) => workloads.push(WorkloadPromise {
                name: name.clone(),
                direction,
                own: own.map(singles).unwrap_or_default(),
                peers: singles(&peers),
                priority: Some(promise.priority),
                buckets: promise
                    .limits
                    .iter()
                    .map(|bucket| Bucket { rate: bucket.rate, burst: bucket.burst })
                    .collect(),
            }),
            Err(why) => left_out.push(LeftOut { workload: name.clone(), why }),
        }
    }
    let (host, version, notes) = (promises.host.clone(), Some(promises.version), Vec::new());
    (HostPromises { host, version, workloads, notes }, left_out)
}

#[cfg(test)]
mod tests {
    use leeward_lease::Addresses;
    use serde_json::json;

    use super::*;

    #[test]
    fn stages_are_directions_and_names_without_addresses_are_left_out() {
        let promise = |workload: &str, stage: &str, peer: &str, addresses: &[&str]| {
            json!({
                "workload": workload, "stage": stage, "peer": peer, "peer_addresses": addresses,
                "priority": 2, "limits": [{ "rate": 1e6, "burst": 65536.0 }],
            })
        };
        let promises = json!({
            "enforcer": "net@c0", "kind": "net", "host": "c0", "set": "9", "version": 7, "lease_s": 15.0, "nfs": [], "net": [
                promise("mail", "network-in", "s0", &["10.0.1.2", "fd00::2"]),
                promise("web", "network-out", "c1", &["10.0.0.3"]),
                promise("lost", "network-in", "localhost", &[]),
                promise("odd", "storage", "s0", &["10.0.1.2"]),
            ],
        });
        let promises = serde_json::from_value(promises).expect("promises");
        let file = Addresses::of("hosts", "10.0.0.2 c0\n10.0.0.77 web\n").expect("a valid file");
        let (host, left_out) = host_promises(&Received::new(promises, file));
        assert_eq!((host.host.as_str(), host.version), ("c0", Some(7)));
        let shown: Vec<String> = host
            .workloads
            .iter()
            .map(|one| {
                format!("{} {} {:?} > {:?} {:?}", one.name, one.direction, one.own, one.peers, one.priority)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "mail to-server [10.0.0.2] > [10.0.1.2, fd00::2] Some(2)",
                "web to-client [10.0.0.2] > [10.0.0.77] Some(2)",
            ]
        );
        let names: Vec<&str> = left_out.iter().map(|one| one.workload.as_str()).collect();
        assert_eq!(names, ["lost", "odd"]);
    }
}
