//! Clients that close, stall and take nothing: the device, the memory and the other clients do not notice.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_nfs::calls::{NFS, READ, VERSION, WRITE};
use leeward_nfs::clock::Clock;
use leeward_nfs::proxy::{Limits, ProxySettings};
use leeward_nfs::rpc::{Credential, call};
use leeward_shaping::Caps;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::support::client::{Client, place, write};
use crate::support::memory_server::{Behaviour, MemoryServer};
use crate::support::program::{Program, command};
use crate::support::proxies::{TestProxy, settings};
use crate::support::{pattern, run};

/// Calls that read a file, in one piece.
fn reads(count: u32, size: u32) -> Vec<u8> {
    let one = |at: u32| call(at, [NFS, VERSION, READ], Credential::None, &place("file", 0, size));
    (0..count).flat_map(one).collect()
}

async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not in time: {what}");
}

#[test]
fn a_client_that_closes_its_connections_gets_no_more_of_the_device_than_the_caps_allow() {
    run(async {
        let delay = Duration::from_millis(100);
        let server = MemoryServer::start(Behaviour { delay, ..Behaviour::default() }).await;
        server.put(b"file", pattern(1, 10_000));
        let caps = Caps { outstanding: 3, ..Caps::NONE };
        let proxy = TestProxy::start(ProxySettings { caps, ..settings(server.address) });
        for _ in 0..10 {
            let mut client = Client::connect_from("127.0.0.2", proxy.address).await;
            client.send_bytes(&reads(100, 4096)).await.unwrap();
            wait_for("calls", || proxy.handle.load().1 >= 90).await;
            drop(client);
            wait_for("a close", || proxy.handle.load().1 == 0).await;
        }
        let mut client = Client::connect_from("127.0.0.3", proxy.address).await;
        assert_eq!(client.read("file", 0, 4096).await.len(), 4096);
        assert!(server.most() <= 3, "{} requests at the device at once", server.most());
        // The connections to the server are gone when it has answered.
        wait_for("the ends", || proxy.handle.load() == (1, 0, 0)).await;
        proxy.stop().await;
    });
}

#[test]
fn places_of_a_client_that_has_gone_are_free_when_the_server_does_not_answer() {
    run(async {
        let server = MemoryServer::start(Behaviour { ignored: Some(0), ..Behaviour::default() }).await;
        let caps = Caps { outstanding: 1, ..Caps::NONE };
        let mut settings = ProxySettings { caps, ..settings(server.address) };
        settings.limits.answer = Nanos(Nanos::SECOND.0 / 2);
        let proxy = TestProxy::start(settings);
        let mut client = Client::connect_from("127.0.0.2", proxy.address).await;
        client.send_bytes(&reads(1, 10)).await.unwrap();
        wait_for("a request at the server", || !server.seen().is_empty()).await;
        drop(client);
        let mut other = Client::connect_from("127.0.0.3", proxy.address).await;
        let clock = Clock::start();
        assert!(other.write("file", 0, b"data").await);
        assert!(clock.now() > Nanos(300_000_000), "the place was kept for the patience");
        wait_for("the end", || proxy.handle.load() == (1, 0, 0)).await;
        assert_eq!(proxy.handle.report().unanswered, 1);
        proxy.stop().await;
    });
}

#[test]
fn a_client_that_goes_while_a_large_reply_comes_leaves_the_others_alone() {
    run(async {
        let delay = Duration::from_millis(20);
        let server = MemoryServer::start(Behaviour { delay, ..Behaviour::default() }).await;
        server.put(b"file", pattern(1, 4 << 20));
        let caps = Caps { outstanding: 2, ..Caps::NONE };
        let proxy = TestProxy::start(ProxySettings { caps, ..settings(server.address) });
        for round in 0..10_u64 {
            let mut client = Client::connect_from("127.0.0.2", proxy.address).await;
            client.send_bytes(&reads(20, 1 << 20)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(7 * round)).await;
        }
        let mut client = Client::connect_from("127.0.0.3", proxy.address).await;
        assert_eq!(client.read("file", 0, 1 << 20).await, pattern(1, 1 << 20));
        wait_for("the ends", || proxy.handle.load() == (1, 0, 0)).await;
        assert!(server.most() <= 2, "{} requests at the device at once", server.most());
        proxy.stop().await;
    });
}

#[test]
fn a_first_call_may_be_as_large_as_any() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(settings(server.address));
        let data = pattern(7, 3 << 20);
        // A client that was disconnected repeats what it sent before.
        let mut client = Client::connect(proxy.address).await;
        assert!(client.write("file", 0, &data).await);
        assert!(server.file(b"file") == data);
        proxy.stop().await;
    });
}

#[test]
fn large_calls_that_stall_do_not_keep_others_from_theirs() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let mut settings = settings(server.address);
        let call_time = Nanos(Nanos::SECOND.0 / 5);
        settings.limits = Limits { buffer: 1 << 20, call: call_time, ..Limits::default() };
        let proxy = TestProxy::start(settings);
        let user = Credential::None;
        let large = call(1, [NFS, VERSION, WRITE], user, &write("other", 0, &pattern(1, 1 << 20)));
        let mut stalled = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect_from("127.0.0.2", proxy.address).await;
            client.send_bytes(&large[..300 << 10]).await.unwrap();
            stalled.push(client);
        }
        let data = pattern(2, 1 << 20);
        let mut client = Client::connect_from("127.0.0.3", proxy.address).await;
        // Small calls need no permit.
        assert!(client.write("file", 0, b"data").await);
        assert!(client.write("file", 0, &data).await && client.read("file", 0, 1 << 20).await == data);
        for client in &mut stalled {
            assert_eq!(client.receive().await, None);
        }
        let log = proxy.log();
        assert!(log.iter().any(|line| line.contains("a large call did not come in time")), "{log:?}");
        assert!(server.file(b"other").is_empty());
        proxy.stop().await;
    });
}

#[test]
fn clients_need_a_reserved_port_where_calls_from_one_count_as_those_of_root() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        let proxy = TestProxy::start(ProxySettings { reserved_clients: true, ..settings(server.address) });
        let mut client = Client::connect(proxy.address).await;
        assert_eq!(client.try_call([NFS, VERSION, 0], &[]).await, None);
        assert_eq!(proxy.handle.report().refused_connections, 1);
        let log = proxy.log();
        assert!(log.iter().any(|line| line.contains("the port is not a reserved one")), "{log:?}");
        proxy.stop().await;
    });
}

/// A connection from an address of this machine that sends as much as its peer takes, with little room of its own.
fn pushing(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_send_buffer_size(64 << 10).unwrap();
    socket.bind(&SockAddr::from(SocketAddr::from((from, 0)))).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}

#[test]
fn parts_of_calls_of_many_connections_fit_in_the_buffer() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let mut command = command("127.0.0.1:/vol", server.address);
    command.args(["--listen", "127.0.0.1:0", "--buffer", "16MiB"]);
    let program = Program::start(command);
    let whole = call(1, [NFS, VERSION, WRITE], Credential::None, &write("file", 0, &pattern(1, 4 << 20)));
    let part = &whole[..whole.len() - 1];
    let mut connections: Vec<(TcpStream, usize)> =
        (0..120).map(|at: u8| (pushing([127, 0, 0, 2 + at / 60], program.address), 0)).collect();
    let clock = Clock::start();
    while clock.now() < Nanos(2 * Nanos::SECOND.0) {
        for (stream, sent) in &mut connections {
            match stream.write(&part[*sent..]) {
                Ok(bytes) => *sent += bytes,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let most = program.most_memory();
    assert!(most < 128 << 20, "{} MiB of 480 MiB", most >> 20);
    run(async {
        let mut client = Client::connect_from("127.0.0.9", program.address).await;
        assert!(client.write("own", 0, b"data").await);
    });
}

#[test]
fn replies_that_a_client_does_not_take_fit_in_the_buffer_and_come_once_it_does() {
    let server = MemoryServer::on_thread(Behaviour::default());
    server.put(b"file", pattern(1, 1 << 20));
    let mut command = command("127.0.0.1:/vol", server.address);
    command.args(["--listen", "127.0.0.1:0", "--buffer", "16MiB"]);
    let program = Program::start(command);
    run(async {
        let mut client = Client::connect_from("127.0.0.2", program.address).await;
        client.send_bytes(&reads(300, 1 << 20)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let most = program.most_memory();
        assert!(most < 96 << 20, "{} MiB of 300 MiB", most >> 20);
        for _ in 0..300 {
            assert!(client.receive().await.is_some_and(|reply| reply.len() > 1 << 20));
        }
    });
}
