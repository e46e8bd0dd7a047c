//! The order in which requests reach the server: priorities, limits, caps, and clients that do not read.

use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_fabric::input::Text;
use leeward_nfs::calls::{NFS, READ, VERSION, WRITE};
use leeward_nfs::proxy::ProxySettings;
use leeward_nfs::recorder::RecorderSettings;
use leeward_nfs::workloads::Workloads;
use leeward_shaping::Caps;
use leeward_traces::Kind;
use leeward_traces::read::{ReadSettings, Requests};

use crate::support::client::{Client, place, write};
use crate::support::memory_server::{Behaviour, MemoryServer};
use crate::support::proxies::{Row, TestProxy, settings, workloads};
use crate::support::{pattern, run};

/// A device that serves one request at a time.
const SERIAL: Behaviour =
    Behaviour { delay: Duration::from_millis(2), is_serial: true, ignored: None, answers_backwards: false };

fn shaped(server: &MemoryServer, outstanding: u32, workloads: Workloads) -> ProxySettings {
    let caps = Caps { outstanding, ..Caps::NONE };
    ProxySettings { caps, workloads, ..settings(server.address) }
}

/// Files of the calls that reached the server, in order.
fn order(server: &MemoryServer) -> Vec<String> {
    server.seen().into_iter().map(|seen| String::from_utf8(seen.file).unwrap()).collect()
}

/// Sends reads of a file without waiting for replies.
async fn send_reads(client: &mut Client, file: &str, count: u32) {
    for at in 0..count {
        client.send([NFS, VERSION, READ], &place(file, u64::from(at) * 4096, 4096)).await;
    }
}

#[test]
fn a_higher_priority_overtakes_what_waits_and_a_workload_over_its_limits_comes_last() {
    run(async {
        let server = MemoryServer::start(SERIAL).await;
        // Work is 1 ms a request: the burst is 10 requests, and the rate next to nothing.
        let rows: &[Row] = &[("mail", 0, "127.0.0.2", &[(1e-6, 0.0101)]), ("web", 1, "127.0.0.3", &[])];
        let proxy = TestProxy::start(shaped(&server, 1, workloads(rows)));
        let mut other = Client::connect_from("127.0.0.4", proxy.address).await;
        let mut web = Client::connect_from("127.0.0.3", proxy.address).await;
        let mut mail = Client::connect_from("127.0.0.2", proxy.address).await;
        send_reads(&mut other, "other", 20).await;
        // The first request is at the server.
        while server.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        send_reads(&mut web, "web", 10).await;
        send_reads(&mut mail, "mail", 15).await;
        for (client, count) in [(&mut other, 20), (&mut web, 10), (&mut mail, 15)] {
            for _ in 0..count {
                client.receive().await.unwrap();
            }
        }
        let order = order(&server);
        let position = |file: &str, number: usize| {
            let all: Vec<usize> = (0..order.len()).filter(|&at| order[at] == file).collect();
            all[number]
        };
        // A few requests may have started before those of the other clients came.
        assert!(position("mail", 9) < position("other", 15), "{order:?}");
        assert!(position("mail", 9) < position("web", 9), "{order:?}");
        assert!(position("web", 9) < position("other", 19), "{order:?}");
        assert_eq!(order[order.len() - 5..], ["mail"; 5].map(str::to_owned));
        let report = proxy.handle.report();
        let counters = |name: &str| report.workloads.iter().find(|one| one.workload == name).unwrap().clone();
        assert_eq!((counters("mail").reads, counters("mail").over_limit), (15, 5));
        assert_eq!((counters("web").over_limit, counters("client 127.0.0.4").reads), (0, 20));
        assert!(counters("mail").waited_s > 0.0);
        proxy.stop().await;
    });
}

#[test]
fn caps_hold_at_the_server_and_other_calls_pass_them() {
    run(async {
        let behaviour = Behaviour { is_serial: false, delay: Duration::from_millis(5), ..SERIAL };
        for cap in [1, 3] {
            let server = MemoryServer::start(behaviour).await;
            let proxy = TestProxy::start(shaped(&server, cap, Workloads::none(1)));
            let mut client = Client::connect(proxy.address).await;
            let mut other = Client::connect(proxy.address).await;
            send_reads(&mut client, "file", 30).await;
            // A call without work does not wait for the device.
            other.call([NFS, VERSION, 0], &[]).await;
            assert!(server.seen().len() < 30);
            for _ in 0..30 {
                client.receive().await.unwrap();
            }
            assert_eq!(server.most(), cap as usize);
            proxy.stop().await;
        }
    });
}

#[test]
fn byte_caps_hold_at_the_server() {
    run(async {
        let behaviour = Behaviour { is_serial: false, delay: Duration::from_millis(5), ..SERIAL };
        let server = MemoryServer::start(behaviour).await;
        let caps = Caps { write_bytes: 3 * 4096, ..Caps::NONE };
        let proxy = TestProxy::start(ProxySettings { caps, ..settings(server.address) });
        let mut client = Client::connect(proxy.address).await;
        for at in 0..20 {
            client.send([NFS, VERSION, WRITE], &write("file", at * 4096, &[7; 4096])).await;
        }
        for _ in 0..20 {
            client.receive().await.unwrap();
        }
        assert_eq!(server.most(), 3);
        proxy.stop().await;
    });
}

#[test]
fn a_client_that_takes_no_replies_holds_no_other() {
    run(async {
        let server = MemoryServer::start(Behaviour::default()).await;
        server.put(b"file", pattern(1, 4 << 20));
        let mut shaped = shaped(&server, 1, Workloads::none(1));
        shaped.limits.buffer = 16 << 20;
        let proxy = TestProxy::start(shaped);
        let mut deaf = Client::connect_from("127.0.0.2", proxy.address).await;
        // More than all buffers between the server and this client.
        for _ in 0..200 {
            deaf.send([NFS, VERSION, READ], &place("file", 0, 1 << 20)).await;
        }
        let mut client = Client::connect_from("127.0.0.3", proxy.address).await;
        for _ in 0..100 {
            assert_eq!(client.read("file", 0, 4096).await.len(), 4096);
        }
        // Once it reads, the client gets all replies.
        for _ in 0..200 {
            assert!(deaf.receive().await.unwrap().len() > 1 << 20);
        }
        proxy.stop().await;
    });
}

#[test]
fn requests_of_a_connection_that_ended_never_reach_the_server() {
    run(async {
        let server = MemoryServer::start(Behaviour { delay: Duration::from_millis(30), ..SERIAL }).await;
        let proxy = TestProxy::start(shaped(&server, 1, Workloads::none(1)));
        let mut client = Client::connect(proxy.address).await;
        for at in 0..10 {
            client.send([NFS, VERSION, WRITE], &write("file", at, b"old")).await;
        }
        while server.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(client);
        let mut again = Client::connect(proxy.address).await;
        assert!(again.write("file", 0, b"new").await);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let report = proxy.handle.report();
        assert_eq!((report.waiting, report.in_service, report.connections), (0, 0, 1));
        assert!(server.seen().len() <= 3, "{:?}", server.seen());
        assert!(server.file(b"file").starts_with(b"new"));
        proxy.stop().await;
    });
}

#[test]
fn workloads_are_replaced_while_requests_wait() {
    run(async {
        let server = MemoryServer::start(Behaviour { delay: Duration::from_millis(10), ..SERIAL }).await;
        let rows = |mail, web| workloads(&[("mail", mail, "127.0.0.2", &[]), ("web", web, "127.0.0.3", &[])]);
        let proxy = TestProxy::start(shaped(&server, 1, rows(0, 1)));
        let mut mail = Client::connect_from("127.0.0.2", proxy.address).await;
        let mut web = Client::connect_from("127.0.0.3", proxy.address).await;
        send_reads(&mut mail, "mail", 20).await;
        send_reads(&mut web, "web", 20).await;
        while proxy.handle.report().waiting < 30 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        proxy.handle.replace(rows(1, 0)).unwrap();
        for client in [&mut mail, &mut web] {
            for _ in 0..20 {
                client.receive().await.unwrap();
            }
        }
        let order = order(&server);
        let last_web = order.iter().rposition(|file| file == "web").unwrap();
        let mail_after = order[last_web..].iter().filter(|file| *file == "mail").count();
        assert!(mail_after >= 5, "{order:?}");
        assert!(proxy.log().iter().any(|line| line == "workloads replaced: 2"));
        proxy.stop().await;
    });
}

#[test]
fn a_recorded_trace_has_the_requests_that_came() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let server = MemoryServer::start(Behaviour::default()).await;
        let mut settings = settings(server.address);
        settings.workloads = workloads(&[("mail", 0, "127.0.0.2", &[])]);
        settings.recorder = Some(RecorderSettings {
            folder: folder.path().to_owned(),
            every: Nanos(3_600 * Nanos::SECOND.0),
            limit: 1 << 20,
        });
        let proxy = TestProxy::start(settings);
        let mut mail = Client::connect_from("127.0.0.2", proxy.address).await;
        for at in 0..10 {
            assert!(mail.write("file", at * 4096, &[7; 4096]).await);
            mail.read("file", at * 4096, 8192).await;
        }
        assert!(mail.commit("file").await);
        proxy.stop().await;
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        // Beside the lock of the folder.
        let names: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "csv")).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].file_name().unwrap().to_string_lossy().starts_with("mail-"));
        let text = Text::from_bytes("mail", std::fs::read(&names[0]).unwrap()).unwrap();
        let requests = Requests::open(text, &ReadSettings::default()).unwrap();
        let requests = requests.collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(requests.len(), 20, "a COMMIT has no payload");
        let base = requests[0].offset.unwrap();
        for (at, pair) in requests.chunks(2).enumerate() {
            let offset = Some(base + at as u64 * 4096);
            assert_eq!((pair[0].kind, pair[0].size, pair[0].offset), (Kind::Write, 4096, offset));
            assert_eq!((pair[1].kind, pair[1].size, pair[1].offset), (Kind::Read, 8192, offset));
        }
        assert!(requests[0].at.0 > 1_600_000_000 * Nanos::SECOND.0, "times since 1970");
    });
}
