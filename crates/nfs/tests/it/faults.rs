//! Clients and servers that fail, and bytes that are no calls.

use std::time::Duration;

use leeward_capture::places::Prefixes;
use leeward_fabric::Nanos;
use leeward_nfs::calls::{NFS, READ, VERSION};
use leeward_nfs::proxy::ProxySettings;
use leeward_shaping::Caps;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::client::{Client, place};
use crate::support::memory_server::{Behaviour, MemoryServer};
use crate::support::proxies::{TestProxy, settings};
use crate::support::{pattern, run};

#[test]
fn a_server_that_restarts_costs_a_reconnect() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(settings(server.address));
        let mut client = Client::connect(proxy.address).await;
        assert!(client.write("file", 0, b"data").await);
        let address = server.address;
        server.stop();
        assert!(!client.write("file", 0, b"data").await, "the connection ends, so that the client retries");
        // The server is away: the proxy accepts, and closes.
        let mut early = Client::connect(proxy.address).await;
        assert!(!early.write("file", 0, b"data").await);
        let server = MemoryServer::start_at(address, Behaviour::default()).await;
        let mut again = Client::connect(proxy.address).await;
        assert!(again.write("file", 0, b"data").await);
        assert_eq!(server.file(b"file"), b"data");
        let log = proxy.log();
        assert!(
            log.iter().any(|line| line.contains("the server closed the connection")
                || line.contains("the connection to the server failed")),
            "{log:?}"
        );
        assert!(log.iter().any(|line| line.contains("unavailable")), "{log:?}");
        proxy.stop().await;
    });
}

#[test]
fn a_request_without_an_answer_gives_its_place_to_others() {
    run(async {
        let behaviour = Behaviour { ignored: Some(77), ..Behaviour::default() };
        let server = MemoryServer::start(behaviour).await;
        server.put(b"file", pattern(1, 10_000));
        let caps = Caps { outstanding: 1, ..Caps::NONE };
        let mut settings = ProxySettings { caps, ..settings(server.address) };
        settings.limits.answer = Nanos(Nanos::SECOND.0 / 2);
        let proxy = TestProxy::start(settings);
        let mut stuck = Client::connect_from("127.0.0.2", proxy.address).await;
        stuck.send([NFS, VERSION, READ], &place("file", 77, 10)).await;
        while server.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut client = Client::connect_from("127.0.0.3", proxy.address).await;
        assert_eq!(client.read("file", 0, 100).await.len(), 100);
        let report = proxy.handle.report();
        assert_eq!((report.unanswered, report.in_service), (1, 0));
        // Its connection still works.
        assert_eq!(stuck.read("file", 0, 100).await.len(), 100);
        proxy.stop().await;
    });
}

#[test]
fn broken_calls_end_their_connection_and_no_other() {
    let too_large = ((8_u32 << 20) | 1 << 31).to_be_bytes().to_vec();
    let reply = leeward_nfs::rpc::reply(7, leeward_nfs::rpc::Accepted::ProgramUnavailable);
    let short = [0x80, 0, 0, 4, 0, 0, 0, 1].to_vec();
    let empty_fragments = vec![0; 5 << 20];
    for broken in [too_large, reply, short, empty_fragments] {
        run(async {
            let server = MemoryServer::start(Behaviour::default()).await;
            let proxy = TestProxy::start(settings(server.address));
            let mut good = Client::connect(proxy.address).await;
            assert!(good.write("file", 0, b"data").await);
            for begins_well in [false, true] {
                let mut bad = Client::connect(proxy.address).await;
                if begins_well {
                    bad.call([NFS, VERSION, 0], &[]).await;
                }
                // The proxy may close before it has taken all bytes.
                let _ = bad.send_bytes(&broken).await;
                assert_eq!(bad.receive().await, None);
            }
            assert_eq!(good.read("file", 0, 4).await, b"data");
            let report = proxy.handle.report();
            assert_eq!((report.broken_connections, report.connections), (2, 1), "{:?}", proxy.log());
            proxy.stop().await;
        });
    }
}

#[test]
fn no_bytes_of_a_client_end_the_proxy() {
    // Numbers near those of real calls, and noise.
    let word = prop_oneof![
        2 => 0u32..30,
        1 => Just(1 << 31),
        2 => Just((1 << 31) | 40),
        1 => Just(100_003),
        1 => Just(100_005),
        1 => any::<u32>(),
    ];
    let streams = prop::collection::vec(word, 1..60);
    let mut runner = TestRunner::new(Config { cases: 64, ..Config::default() });
    let check = runner.run(&streams, |words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        run(async {
            let server = MemoryServer::start(Behaviour::default()).await;
            let proxy = TestProxy::start(settings(server.address));
            let mut bad = Client::connect_from("127.0.0.2", proxy.address).await;
            let _ = bad.send_bytes(&bytes).await;
            let mut good = Client::connect(proxy.address).await;
            assert!(good.write("file", 0, b"data").await);
            drop(bad);
            proxy.stop().await;
        });
        Ok(())
    });
    check.unwrap();
}

#[test]
fn connections_beyond_a_limit_and_of_other_addresses_are_refused() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let mut settings = settings(server.address);
        settings.limits.connections_per_client = 2;
        let mut allowed = Prefixes::default();
        allowed.insert("127.0.0.0/30".parse().unwrap(), ());
        settings.allowed = Some(allowed);
        let proxy = TestProxy::start(settings);
        let mut open = Vec::new();
        for (address, is_served) in [
            ("127.0.0.1", true),
            ("127.0.0.1", true),
            ("127.0.0.1", false),
            ("127.0.0.9", false),
            ("127.0.0.2", true),
        ] {
            let mut client = Client::connect_from(address, proxy.address).await;
            let answer = client.try_call([NFS, VERSION, 0], &[]).await;
            assert_eq!(answer.is_some(), is_served, "{address}");
            open.push(client);
        }
        assert_eq!(proxy.handle.report().refused_connections, 2);
        let log = proxy.log();
        assert!(log.iter().any(|line| line.contains("too many connections of this client")), "{log:?}");
        assert!(log.iter().any(|line| line.contains("the address is not allowed")), "{log:?}");
        // A connection that ends makes room.
        open.clear();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(Client::connect(proxy.address).await.try_call([NFS, VERSION, 0], &[]).await.is_some());
        proxy.stop().await;
    });
}
