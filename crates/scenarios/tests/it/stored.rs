//! Records as bytes: exact, and no other bytes are read.

use leeward_coflows::Arrival;
use leeward_fabric::{Bytes, Cluster, HostId, ResourceId, ResourceKind};
use leeward_scenarios::record::{
    App, Balance, Block, CellInterval, CellTasks, Coflow, File, Host, Hotspot, Job, Link, Migration, Move,
    Read, Record, Repair, SkippedReads, Task,
};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

fn small() -> Cluster {
    cluster("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2}")
}

/// A record with a row of each kind. Some numbers have no short decimal form.
fn record(host: u32, link: u32, at: f64) -> Record {
    let (host, resource, bytes) = (HostId(host), ResourceId(link), Bytes(u64::MAX));
    let tasks = CellTasks { scheduled: 1, intensive: 2, processors: at, ..CellTasks::default() };
    Record {
        blocks: vec![Block {
            file: 0,
            index: 7,
            writer: host,
            bytes,
            full: true,
            copies: vec![host, HostId(0)],
            asked: at,
            placed: Some(at / 3.0),
            blind: false,
            finished: None,
            deleted: Some(f64::MIN_POSITIVE),
            retries: u32::MAX,
        }],
        files: vec![File {
            job: Some(0),
            writer: host,
            bytes,
            fetches: Bytes(0),
            start: at,
            write_start: None,
            finished: Some(at),
            attempts: 2,
        }],
        jobs: vec![Job {
            name: "käse, \"0\"".to_owned(),
            start: -0.0,
            bytes,
            write_start: None,
            communication: 0.1,
            finished: None,
        }],
        links: vec![Link { start: at, resource, load: 1e18, utilization: 0.3 }],
        balance: vec![Balance { start: at, kind: ResourceKind::Device, mean: at, variation: None }],
        hotspots: vec![Hotspot { resource, start: at, end: at + 0.1, utilization: 0.9 }],
        hosts: vec![Host { bytes, blocks: 3 }; 4],
        tasks: vec![Task {
            job: 9,
            arrived: at,
            duration: at,
            placed: None,
            finished: None,
            host: Some(host),
            moves: 1,
            refused: 0,
            down: 0.0,
            tolerant: true,
            intensive: false,
        }],
        moves: vec![Move { at, task: 0, from: host, to: HostId(1), link: resource }],
        cell: vec![CellInterval {
            start: at,
            length: 30.0,
            tors: 2,
            hot_tors: 1,
            hot_uplinks: 0,
            tor_p98: 0.98,
            utilization: 0.1,
            tasks,
        }],
        reads: vec![Read {
            number: 5,
            block: 0,
            reader: host,
            holder: None,
            chunks: vec![host, HostId(1)].into(),
            bytes,
            wasted: Bytes(1),
            lost: true,
            asked: at,
            finished: None,
        }],
        skipped_reads: Some(SkippedReads { without_data: 1, reader_down: u64::MAX }),
        repairs: vec![Repair {
            block: 0,
            from: vec![host].into(),
            missing: Box::default(),
            to: vec![HostId(3)].into(),
            bytes,
            lost: at,
            started: at,
            finished: Some(at),
            abandoned: None,
        }],
        unrepaired: Some(0),
        apps: vec![App { name: String::new(), hosts: vec![host; 3], network_bytes: at, ..App::default() }],
        migrations: vec![Migration {
            at,
            app: 0,
            tasks: 1,
            stays: None,
            moves: at,
            cost: 0.0,
            resumed: None,
        }],
        coflows: vec![Coflow {
            arrival: Arrival { id: "c".to_owned(), arrive: at, bytes: 1 << 60, ..Arrival::default() },
            bound: f64::INFINITY,
            finished: None,
        }],
        flows: (u64::MAX, 1),
        discarded: 2,
    }
}

proptest! {
    #[test]
    fn a_record_survives_as_bytes(host in 0u32..4, link in 0u32..12, at in any::<f64>()) {
        prop_assume!(!at.is_nan() && !(at / 3.0).is_nan());
        let (record, fabric) = (record(host, link, at), small().fabric);
        prop_assert_eq!(Record::from_bytes(&record.to_bytes(), &fabric), Some(record));
        let empty = Record::default();
        prop_assert_eq!(Record::from_bytes(&empty.to_bytes(), &fabric), Some(empty));
    }

    #[test]
    fn damaged_bytes_are_no_record(at in any::<prop::sample::Index>(), change in 1u8.., cut in any::<bool>()) {
        let mut bytes = record(1, 2, 0.5).to_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= change }
        prop_assert_eq!(Record::from_bytes(&bytes, &small().fabric), None);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(Record::from_bytes(&bytes, &small().fabric), None);
    }
}

#[test]
fn a_record_of_another_cluster_is_none() {
    let fabric = small().fabric;
    let links = fabric.resource_count() as u32;
    assert!(Record::from_bytes(&record(4, 0, 1.0).to_bytes(), &fabric).is_none());
    assert!(Record::from_bytes(&record(0, links, 1.0).to_bytes(), &fabric).is_none());
    let without_files = Record { files: Vec::new(), ..record(0, 0, 1.0) };
    assert!(Record::from_bytes(&without_files.to_bytes(), &fabric).is_none());
}
