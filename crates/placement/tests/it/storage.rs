//! Storage of hosts: sums over racks and the cluster after any changes.

use leeward_fabric::{Bytes, HostId};
use leeward_placement::Pool;
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

/// Two racks in a pod and one beside it; the hosts of the first rack have 1 GB, the others no limit.
const MIXED: &str = "hosts_per_rack: 3\nnic: 1Gbps\noversubscription: 2\nracks:\n  \
                     - {devices: [{read: 50MB/s, write: 50MB/s, capacity: 1GB}]}\n  - {}\n  - {}\n";

/// A change of a host: its state, its stored bytes or its storage.
#[derive(Clone, Copy, Debug)]
enum Change {
    Up(bool),
    Stored(u64),
    Store(u64),
    Discard(u64),
    Storage(u64),
}

fn change() -> impl Strategy<Value = (u32, Change)> {
    let bytes = || prop_oneof![0_u64..3_000_000_000, Just(u64::MAX)];
    let change = prop_oneof![
        any::<bool>().prop_map(Change::Up),
        bytes().prop_map(Change::Stored),
        bytes().prop_map(Change::Store),
        bytes().prop_map(Change::Discard),
        bytes().prop_map(Change::Storage),
    ];
    (0_u32..10, change)
}

proptest! {
    #[test]
    fn sums_and_counts_of_open_hosts_are_those_of_the_hosts(changes in prop::collection::vec(change(), 0..60)) {
        let fabric = cluster(MIXED).fabric;
        let mut pool = Pool::new(fabric.clone());
        for (host, change) in changes {
            // Host 9 does not exist: its changes are ignored.
            let host = HostId(host);
            match change {
                Change::Up(up) => pool.set_up(host, up),
                Change::Stored(stored) => pool.set_stored(host, Bytes(stored)),
                Change::Store(bytes) => pool.store(host, Bytes(bytes)),
                Change::Discard(bytes) => pool.discard(host, Bytes(bytes)),
                Change::Storage(storage) => pool.set_storage(host, Bytes(storage)),
            }
        }
        let limit = |host: HostId| pool.storage_of(host);
        let sum = |bytes: &mut dyn Iterator<Item = Bytes>| {
            Bytes(u64::try_from(bytes.map(|bytes| u128::from(bytes.0)).sum::<u128>()).unwrap_or(u64::MAX))
        };
        for rack in fabric.all_racks() {
            let hosts = || fabric.hosts(rack).map(HostId);
            let limits: Option<Vec<Bytes>> = hosts().map(limit).collect();
            prop_assert_eq!(pool.storage(rack), limits.map(|limits| sum(&mut limits.into_iter())));
            prop_assert_eq!(pool.stored_in(rack), sum(&mut hosts().map(|host| pool.stored(host))));
            prop_assert_eq!(pool.open(rack) as usize, hosts().filter(|&host| pool.is_open(host)).count());
        }
        for host in fabric.all_hosts() {
            if let Some(own) = fabric.storage(host) {
                prop_assert!(limit(host).is_some_and(|limit| limit <= own), "the cluster file is the upper limit");
            }
            let full = limit(host).is_some_and(|limit| pool.stored(host) >= limit);
            prop_assert_eq!(pool.is_open(host), pool.is_up(host) && !full && pool.stored(host).0 < u64::MAX);
        }
        let limited = || fabric.all_hosts().filter(|&host| limit(host).is_some());
        let (stored, storage): (f64, f64) = limited()
            .map(|host| (pool.stored(host).0 as f64, limit(host).unwrap_or_default().0 as f64))
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let expected = if storage == 0.0 { 0.0 } else { stored / storage };
        prop_assert!((pool.mean_fill() - expected).abs() <= 1e-9 * expected.max(1.0), "{} {expected}", pool.mean_fill());
    }
}
