//! Speed of the proxy beside a direct connection: small calls a second, throughput of large reads and writes, and the
//! latency of a single call. Client, proxy and server are threads of this process, and the server does nothing but
//! answer.
//!
//! Run by `cargo bench -p leeward-nfs --bench proxy`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use leeward_nfs::calls::{NFS, READ, VERSION, WRITE};
use leeward_nfs::clock::Clock;
use leeward_nfs::event::Events;
use leeward_nfs::outgoing::Source;
use leeward_nfs::proxy::{Export, Limits, Proxy, ProxySettings};
use leeward_nfs::rpc::{Accepted, Call, Credential, HEAD, Marking, Records, call, reply};
use leeward_nfs::server::Server;
use leeward_nfs::workloads::Workloads;
use leeward_nfs::xdr::{Reader, Writer};
use leeward_shaping::{Caps, Order};
use leeward_traces::device::Device;
use tokio::runtime::Builder;

const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000000, "write_iops": 1000000}]}"#;
/// Payload of a large call.
const LARGE: u32 = 1 << 20;
/// Payload of a small call.
const SMALL: u32 = 4096;
/// Time of one measurement.
const TIME: Duration = Duration::from_secs(2);
/// Measurements of each kind, direct and through the proxy in turn.
const PAIRS: usize = 3;
/// Bytes per second of a device, for throughput that processors do not limit.
const DEVICE_RATE: f64 = 1e9;

/// A server that answers each READ with its number of bytes and each WRITE with its count, one thread for a connection. With
/// a rate, the connection has this number of bytes a second.
fn server(rate: Option<f64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, rate));
        }
    });
    address
}

fn answer(mut stream: TcpStream, rate: Option<f64>) {
    stream.set_nodelay(true).expect("a socket");
    let (mut records, mut out, mut buffer) = (Records::new(8 << 20), Vec::new(), vec![0; 256 << 10]);
    // Time at which the device has done all work so far.
    let mut busy_until = Instant::now();
    loop {
        let Ok(length @ 1..) = stream.read(&mut buffer) else { return };
        records.push(Bytes::copy_from_slice(&buffer[..length]));
        while let Some(record) = records.next_record().expect("records") {
            let mut head = [0; HEAD];
            let head = record.head(&mut head);
            let call = Call::read(head).expect("a call");
            let mut reader = Reader::new(&head[call.arguments..]);
            let _ = reader.opaque(64).expect("a handle");
            let (_, count) = (reader.u64().expect("an offset"), reader.u32().expect("a count"));
            if let Some(rate) = rate {
                let work = Duration::from_secs_f64(f64::from(count) / rate);
                busy_until = busy_until.max(Instant::now()) + work;
            }
            let results = Writer::new().u32(0).u32(0).u32(count).u32(0);
            let results =
                if call.procedure == READ { results.opaque(&vec![7; count as usize]) } else { results };
            out.extend(reply(call.xid, Accepted::Success(&results.into_bytes())));
        }
        if !out.is_empty() {
            thread::sleep(busy_until.saturating_duration_since(Instant::now()));
            if stream.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }
}

/// A proxy with the caps of a device on a thread of its own, in front of a server.
fn proxy(server: SocketAddr) -> SocketAddr {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let runtime =
            Builder::new_current_thread().enable_all().event_interval(8).build().expect("a runtime");
        let server = Server { export: "bench:/vol".parse().expect("an export"), nfs: server, mount: server };
        let settings = ProxySettings {
            exports: vec![Export { server, listen: "127.0.0.1:0".parse().expect("an address") }],
            limits: Limits::default(),
            source: Source::Any,
            allowed: None,
            reserved_clients: false,
            caps: Caps { outstanding: 256, ..Caps::NONE },
            order: Order::default(),
            device: Some(Arc::new(Device::from_text("ssd.json", DEVICE).expect("a device"))),
            workloads: Workloads::none(1),
            recorder: None,
        };
        runtime.block_on(async {
            let proxy = Proxy::bind(settings, Clock::start(), Events::channel().0).expect("a proxy");
            sender.send(proxy.addresses()[0]).expect("the benchmark waits");
            proxy.run(std::future::pending()).await.expect("no error");
        });
    });
    receiver.recv().expect("an address")
}

/// Sends calls of one kind with `window` of them at once, and returns the calls a second.
fn rate(to: SocketAddr, procedure: u32, size: u32, window: u32) -> f64 {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let place = Writer::new().opaque(b"a file handle of usual length...").u64(0).u32(size);
    let arguments = match procedure {
        READ => place,
        _ => place.u32(0).opaque(&vec![7; size as usize]),
    };
    let call = call(1, [NFS, VERSION, procedure], Credential::None, &arguments.into_bytes());
    let mut reading = stream.try_clone().expect("a socket");
    let (mut marking, mut buffer) = (Marking::new(8 << 20), vec![0; 256 << 10]);
    let mut send = |count: u32| stream.write_all(&call.repeat(count as usize)).expect("a connection");
    send(window);
    let start = Instant::now();
    let mut done = 0_u64;
    while start.elapsed() < TIME {
        let length = reading.read(&mut buffer).expect("replies");
        assert!(length > 0, "the connection ended");
        let (mut bytes, mut ended) = (&buffer[..length], 0);
        while !bytes.is_empty() {
            let part = marking.step(bytes).expect("replies");
            ended += u32::from(part.ends);
            bytes = &bytes[part.length..];
        }
        done += u64::from(ended);
        if ended > 0 {
            send(ended);
        }
    }
    done as f64 / start.elapsed().as_secs_f64()
}

/// Median time of a small read without others, in seconds.
fn latency(to: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let arguments = Writer::new().opaque(b"file").u64(0).u32(SMALL).into_bytes();
    let call = call(1, [NFS, VERSION, READ], Credential::None, &arguments);
    let (mut buffer, mut times) = (vec![0; 64 << 10], Vec::new());
    for _ in 0..5_000 {
        let start = Instant::now();
        stream.write_all(&call).expect("a connection");
        let (mut marking, mut ended) = (Marking::new(8 << 20), false);
        while !ended {
            let length = stream.read(&mut buffer).expect("a reply");
            let mut bytes = &buffer[..length];
            while !bytes.is_empty() {
                let part = marking.step(bytes).expect("a reply");
                ended |= part.ends;
                bytes = &bytes[part.length..];
            }
        }
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let [direct, device] = [None, Some(DEVICE_RATE)].map(server);
    let [through, device_through] = [direct, device].map(proxy);
    for (name, to, procedure, size, window) in [
        ("small reads", [direct, through], READ, SMALL, 64),
        ("small writes", [direct, through], WRITE, SMALL, 64),
        ("large reads", [direct, through], READ, LARGE, 16),
        ("large writes", [direct, through], WRITE, LARGE, 16),
        ("large reads of a device of 1 GB/s", [device, device_through], READ, LARGE, 16),
        ("large writes of a device of 1 GB/s", [device, device_through], WRITE, LARGE, 16),
    ] {
        // Pairs, so that a change of the machine's speed meets both.
        let pairs: Vec<[f64; 2]> =
            (0..PAIRS).map(|_| to.map(|to| rate(to, procedure, size, window))).collect();
        let best = |side: usize| pairs.iter().map(|pair| pair[side]).fold(0.0, f64::max);
        let (direct, through) = (best(0), best(1));
        let megabytes = through * f64::from(size) / 1e6;
        println!(
            "{name}: {through:.0} a second, {megabytes:.0} MB/s; direct {direct:.0} a second; {:.1} %",
            100.0 * through / direct
        );
    }
    let (direct, through) = (latency(direct), latency(through));
    println!(
        "latency of a small read: {:.1} us; direct {:.1} us; added {:.1} us",
        through * 1e6,
        direct * 1e6,
        (through - direct) * 1e6
    );
}
