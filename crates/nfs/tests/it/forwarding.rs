//! Calls and replies pass through a proxy as they are.

use leeward_nfs::calls::{NFS, READ, VERSION, WRITE};
use leeward_nfs::mount::{MNT, MOUNT, path_arguments};
use leeward_nfs::proxy::{Export, ProxySettings};
use leeward_nfs::rpc::{Credential, HeaderError, call, results};
use leeward_nfs::xdr::{Reader, Writer};

use crate::support::client::{Client, place, write, xid};
use crate::support::memory_server::{Behaviour, GETATTR, MemoryServer, STALE};
use crate::support::proxies::{TestProxy, settings};
use crate::support::{pattern, run};

#[test]
fn data_and_attributes_are_the_same_with_and_without_a_proxy() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(settings(server.address));
        let mut through = Client::connect(proxy.address).await;
        let mut direct = Client::connect(server.address).await;
        for (seed, length) in [(1, 1), (2, 4096), (3, 65_537), (4, 1 << 20), (5, (4 << 20) - 3)] {
            let (file, data) = (format!("file{seed}"), pattern(seed, length));
            assert!(through.write(&file, 0, &data).await && through.commit(&file).await);
            assert!(server.file(file.as_bytes()) == data, "{length} bytes");
            assert!(through.read(&file, 0, length as u32).await == data, "{length} bytes");
            assert_eq!(through.read(&file, length as u64, 10).await, b"");
            let handle = Writer::new().opaque(file.as_bytes()).into_bytes();
            let attributes = through.call([NFS, VERSION, GETATTR], &handle).await;
            assert_eq!(attributes, direct.call([NFS, VERSION, GETATTR], &handle).await);
        }
        let missing = Writer::new().opaque(b"missing").into_bytes();
        let missing = through.call([NFS, VERSION, GETATTR], &missing).await;
        assert_eq!(Reader::new(&missing).u32(), Ok(STALE));
        assert!(through.call([NFS, VERSION, 0], &[]).await.is_empty());
        let report = proxy.handle.report();
        assert_eq!((report.connections, report.waiting, report.in_service, report.passed), (1, 0, 0, 7));
        let counters = &report.workloads[0];
        assert_eq!(counters.workload, "client 127.0.0.1");
        assert_eq!((counters.reads, counters.writes, counters.commits), (10, 5, 5));
        assert_eq!(counters.written_bytes, 1 + 4096 + 65_537 + (1 << 20) + (4 << 20) - 3);
        assert!(counters.latency.p50_s.is_some_and(|seconds| seconds > 0.0 && seconds < 10.0));
        proxy.stop().await;
    });
}

#[test]
fn calls_in_fragments_of_any_size_arrive_whole() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(settings(server.address));
        for size in [1, 3, 100, 4096, 70_000] {
            let data = pattern(size as u64, 10_000);
            let user = Credential::System { machine: "test", user: 1, group: 1 };
            let message = call(5, [NFS, VERSION, WRITE], user, &write("file", 0, &data)).split_off(4);
            let last = message.chunks(size).count() - 1;
            let mut client = Client::connect(proxy.address).await;
            let mut stream = Vec::new();
            for (at, fragment) in message.chunks(size).enumerate() {
                let mark = fragment.len() as u32 | if at == last { 1 << 31 } else { 0 };
                stream.extend(mark.to_be_bytes());
                stream.extend(fragment);
            }
            // Pieces that are cut without regard to the fragments.
            for piece in stream.chunks(1777) {
                client.send_bytes(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            let reply = client.receive().await.unwrap();
            assert_eq!(results(&reply, 5).map(|results| Reader::new(results).u32()), Ok(Ok(0)));
            assert!(server.file(b"file") == data, "fragments of {size} bytes");
        }
        proxy.stop().await;
    });
}

#[test]
fn replies_find_their_calls_in_any_order_and_with_equal_numbers() {
    run(async {
        let server = MemoryServer::start(Behaviour { answers_backwards: true, ..Behaviour::default() }).await;
        server.put(b"file", pattern(1, 100_000));
        let proxy = TestProxy::start(settings(server.address));
        let mut client = Client::connect(proxy.address).await;
        // Numbers 1, 2, 1, 2, ...: a client may send a call again before its reply.
        let mut stream = Vec::new();
        for at in 0..40_u32 {
            stream.extend(call(
                at % 2,
                [NFS, VERSION, READ],
                Credential::None,
                &place("file", at.into(), 100),
            ));
        }
        client.send_bytes(&stream).await.unwrap();
        let mut counts = [0; 2];
        for _ in 0..40 {
            counts[xid(&client.receive().await.unwrap()) as usize] += 1;
        }
        assert_eq!(counts, [20, 20]);
        let report = proxy.handle.report();
        assert_eq!((report.waiting, report.in_service, report.workloads[0].reads), (0, 0, 40));
        proxy.stop().await;
    });
}

#[test]
fn only_version_3_and_only_the_export_are_served() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(settings(server.address));
        let mut client = Client::connect(proxy.address).await;
        for version in [2, 4] {
            let xid = client.send([NFS, version, 1], &[]).await;
            let reply = client.receive().await.unwrap();
            assert_eq!(results(&reply, xid), Err(HeaderError::Rejected(2)), "version mismatch");
        }
        let mount = |path| path_arguments(path);
        let status = |results: Vec<u8>| Reader::new(&results).u32().unwrap();
        assert_eq!(status(client.call([MOUNT, 3, MNT], &mount("/vol/a")).await), 0);
        assert_eq!(status(client.call([MOUNT, 3, MNT], &mount("/other")).await), 13);
        proxy.stop().await;
    });
}

#[test]
fn mount_and_nfs_may_have_ports_of_their_own() {
    run(async {
        let nfs = MemoryServer::start(Behaviour::default()).await;
        let mount = MemoryServer::start(Behaviour::default()).await;
        let mut settings: ProxySettings = settings(nfs.address);
        settings.exports[0].server.mount = mount.address;
        let proxy = TestProxy::start(settings);
        let mut mounting = Client::connect(proxy.address).await;
        let results_of_mount = mounting.call([MOUNT, 3, MNT], &path_arguments("/vol")).await;
        assert_eq!(Reader::new(&results_of_mount).u32(), Ok(0));
        let xid = mounting.send([NFS, VERSION, 0], &[]).await;
        let reply = mounting.receive().await.unwrap();
        assert_eq!(results(&reply, xid), Err(HeaderError::Rejected(1)), "a connection has one program");
        let mut client = Client::connect(proxy.address).await;
        assert!(client.write("file", 0, b"data").await);
        assert_eq!((nfs.file(b"file"), mount.file(b"file")), (b"data".to_vec(), Vec::new()));
        proxy.stop().await;
    });
}

#[test]
fn each_listener_has_its_export() {
    run(async {
        let servers = [Behaviour::default(); 2].map(MemoryServer::start);
        let [one, two] = servers;
        let (one, two) = (one.await, two.await);
        let mut settings = settings(one.address);
        let mut other = settings.exports[0].server.clone();
        other.export = "127.0.0.1:/vol/b".parse().unwrap();
        (other.nfs, other.mount) = (two.address, two.address);
        settings.exports.push(Export { server: other, listen: "127.0.0.1:0".parse().unwrap() });
        settings.workloads = leeward_nfs::workloads::Workloads::none(2);
        let (events, _log) = leeward_nfs::event::Events::channel();
        let clock = leeward_nfs::clock::Clock::start();
        let proxy = leeward_nfs::proxy::Proxy::bind(settings, clock, events).unwrap();
        let (addresses, handle) = (proxy.addresses(), proxy.handle());
        tokio::spawn(proxy.run(std::future::pending()));
        for (address, data) in addresses.into_iter().zip([b"one", b"two"]) {
            assert!(Client::connect(address).await.write("file", 0, data).await);
        }
        assert_eq!((one.file(b"file"), two.file(b"file")), (b"one".to_vec(), b"two".to_vec()));
        let names: Vec<String> =
            handle.report().workloads.into_iter().map(|summary| summary.workload).collect();
        assert_eq!(names, ["client 127.0.0.1 127.0.0.1:/vol", "client 127.0.0.1 127.0.0.1:/vol/b"]);
    });
}
