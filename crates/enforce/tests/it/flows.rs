//! Packets through an enforcer: latency beside bulk transfers, limits, and changes that lose nothing.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leeward_enforce::{Event, WorkloadPromise};

use crate::host::{ADDRESSES, Host, now, promise};

/// Bytes of a packet beside its payload: Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Attempts at a measurement of times: other load makes these worse, never better.
const ATTEMPTS: usize = 3;

/// Latencies of probes in seconds, sorted, and the rate of the bulk transfer beside them in bits per second.
struct Measured {
    latencies: Vec<f64>,
    bulk: f64,
}

impl Measured {
    fn quantile(&self, share: f64) -> f64 {
        self.latencies[(share * (self.latencies.len() - 1) as f64) as usize]
    }
}

/// Probes of 100 bytes every 2 ms to the second host, beside four TCP connections to the third one.
fn measure(host: &Host) -> Measured {
    const PROBES: usize = 1000;
    let (sender, receiver) = (host.socket(0), host.socket(1));
    let listener = host.network.at("r0h2", || TcpListener::bind((ADDRESSES[2], 5001)));
    let listener = listener.expect("a host").expect("a port");
    // Nothing counts before the connections are at full rate.
    let (counts, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..4 {
            let connect = || TcpStream::connect((ADDRESSES[2], 5001));
            let mut out = host.at(connect).expect("a connection");
            let (mut input, _) = listener.accept().expect("a connection");
            let (counts, stop) = (&counts, &stop);
            scope.spawn(
                move || {
                    while !stop.load(Ordering::Relaxed) && out.write_all(&[0; 1 << 14]).is_ok() {}
                },
            );
            readers.push(scope.spawn(move || {
                let (mut buffer, mut read) = (vec![0; 1 << 16], 0);
                let mut begin = None;
                while let Ok(length) = input.read(&mut buffer) {
                    if length == 0 {
                        break;
                    }
                    if counts.load(Ordering::Relaxed) {
                        begin = begin.or_else(|| Some(now()));
                        read += length;
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                begin.map_or(0.0, |begin| 8.0 * read as f64 / (now() - begin).as_secs_f64())
            }));
        }
        thread::sleep(Duration::from_millis(500));
        counts.store(true, Ordering::Relaxed);
        let reader = scope.spawn(move || {
            let mut latencies = Vec::with_capacity(PROBES);
            let mut buffer = [0; 200];
            while latencies.len() < PROBES {
                let Ok(length) = receiver.recv(&mut buffer) else { break };
                let arrived = now();
                let sent = u64::from_le_bytes(buffer[..8].try_into().expect("8 bytes"));
                assert_eq!(length, 100);
                latencies.push(arrived.as_secs_f64() - Duration::from_nanos(sent).as_secs_f64());
            }
            latencies
        });
        let begin = now();
        for number in 0..PROBES as u32 {
            let mut probe = [0; 100];
            probe[..8].copy_from_slice(&(now().as_nanos() as u64).to_le_bytes());
            sender.send_to(&probe, (ADDRESSES[1], 5000)).expect("a route");
            thread::sleep((begin + (number + 1) * Duration::from_millis(2)).saturating_sub(now()));
        }
        let mut latencies = reader.join().expect("the reader ends");
        stop.store(true, Ordering::Relaxed);
        let bulk = readers.into_iter().map(|reader| reader.join().expect("the reader ends")).sum();
        assert!(latencies.len() >= PROBES * 99 / 100, "{} probes arrived", latencies.len());
        latencies.sort_by(f64::total_cmp);
        Measured { latencies, bulk }
    })
}

#[test]
fn a_promised_probe_waits_for_no_bulk_transfer() {
    let Some(host) = Host::up() else { return };
    let mut shown = Vec::new();
    let holds = (0..ATTEMPTS).any(|_| {
        let measured = [None, Some(0)].map(|priority| {
            let buckets: &[(f64, f64)] = if priority.is_some() { &[(1e6, 10e3)] } else { &[] };
            host.write(vec![promise("probe", ADDRESSES[1], priority, buckets)]);
            let mut enforcer = host.enforcer();
            let lines = host.turn(&mut enforcer);
            assert!(enforcer.is_enforcing(), "{lines:?}");
            let measured = measure(&host);
            host.at(|| enforcer.undo());
            measured
        });
        let [best_effort, promised] = &measured;
        shown = measured
            .iter()
            .map(|one| (1e6 * one.quantile(0.5), 1e6 * one.quantile(0.99), 1e-6 * one.bulk))
            .collect();
        println!("p50 and p99 in us, bulk in Mbit/s: best effort, promised: {shown:?}");
        promised.quantile(0.5) < best_effort.quantile(0.5) / 10.0
            && promised.quantile(0.99) < best_effort.quantile(0.99) / 5.0
            && promised.bulk > 0.85 * 200e6
    });
    assert!(holds, "{shown:?}");
}

/// Sends packets as fast as the socket takes them, and returns the bytes on the wire by their time of arrival since the
/// beginning.
fn blast(sender: &UdpSocket, receiver: &UdpSocket, length: Duration) -> Vec<(f64, f64)> {
    const PAYLOAD: usize = 1000;
    let begin = now();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut arrivals, mut bytes, mut buffer) = (Vec::new(), 0.0, [0; 2000]);
            while let Ok(payload) = receiver.recv(&mut buffer) {
                // Packets that wait when the sender stops arrive later.
                if stop.load(Ordering::Relaxed) {
                    continue;
                }
                bytes += (payload + HEADERS) as f64;
                arrivals.push(((now() - begin).as_secs_f64(), bytes));
            }
            arrivals
        });
        while now() - begin < length {
            sender.send_to(&[0; PAYLOAD], (ADDRESSES[1], 5000)).expect("a route");
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("the reader ends")
    })
}

#[test]
fn several_buckets_hold_at_once_and_to_a_packet() {
    let Some(host) = Host::up() else { return };
    let buckets = [(1e6, 20e3), (250e3, 200e3)];
    host.write(vec![promise("limited", ADDRESSES[1], Some(3), &buckets)]);
    let mut enforcer = host.enforcer();
    let lines = host.turn(&mut enforcer);
    assert!(enforcer.is_enforcing(), "{lines:?}");
    let (sender, receiver) = (host.socket(0), host.socket(1));
    let packet = (1000 + HEADERS) as f64;
    let allowed = |seconds: f64| {
        buckets.iter().map(|(rate, burst)| burst + rate * seconds).fold(f64::INFINITY, f64::min) + packet
    };
    // After a pause, the buckets are full again.
    for attempt in 0..2 {
        let arrivals = blast(&sender, &receiver, Duration::from_secs(2));
        // A packet is late by its way to the reader, never early.
        let above = arrivals.iter().find(|&&(seconds, bytes)| bytes > allowed(seconds));
        assert!(above.is_none(), "{attempt}: {above:?} of {:?}", above.map(|&(seconds, _)| allowed(seconds)));
        let &(seconds, bytes) = arrivals.last().expect("packets arrive");
        assert!(
            bytes > 0.95 * allowed(seconds),
            "{attempt}: {bytes} of {} after {seconds} s",
            allowed(seconds)
        );
        thread::sleep(Duration::from_secs(2));
    }
    let status = host.status();
    let row = &status.workloads[0];
    assert_eq!((row.state, row.drops), ("enforced", Some(0)), "{row:?}");
    assert!(row.overlimits.is_some_and(|count| count > 0), "{row:?}");
    host.at(|| enforcer.undo());
}

/// Numbers of the packets that arrived, of those that were sent every millisecond until `stop`.
fn flow(sender: &UdpSocket, receiver: &UdpSocket, to: &str, stop: &AtomicBool) -> (u32, BTreeSet<u32>) {
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut arrived, mut buffer) = (BTreeSet::new(), [0; 200]);
            while receiver.recv(&mut buffer).is_ok() {
                arrived.insert(u32::from_le_bytes(buffer[..4].try_into().expect("4 bytes")));
            }
            arrived
        });
        let mut sent: u32 = 0;
        let begin = now();
        while !stop.load(Ordering::Relaxed) {
            let mut packet = [0; 100];
            packet[..4].copy_from_slice(&sent.to_le_bytes());
            sender.send_to(&packet, (to, 5000)).expect("a route");
            sent += 1;
            thread::sleep((begin + sent * Duration::from_millis(1)).saturating_sub(now()));
        }
        (sent, reader.join().expect("the reader ends"))
    })
}

/// A thousand workloads of addresses that do not exist, and one of the second host.
fn thousand(buckets: &[(f64, f64)], priority: u32, own: &[(f64, f64)]) -> Vec<WorkloadPromise> {
    let number = |at: u32| format!("w{at:04}");
    let address = |at: u32| format!("10.200.{}.{}", at / 250, at % 250 + 1);
    let others = (0..1000).map(|at| promise(&number(at), &address(at), Some((at + priority) % 7), buckets));
    others.chain([promise("own", ADDRESSES[1], Some(priority % 7), own)]).collect()
}

#[test]
fn a_thousand_workloads_are_changed_within_a_second_and_no_packet_is_lost() {
    let Some(host) = Host::up_alone() else { return };
    let one: &[(f64, f64)] = &[(1e6, 64e3)];
    let two: &[(f64, f64)] = &[(1e6, 64e3), (5e5, 1e6)];
    host.write(thousand(one, 0, one));
    let mut enforcer = host.enforcer();
    // Before the first program, the interface has another qdisc, whose packets the kernel drops.
    let took = |events: Vec<Event>| {
        let took = events.iter().find_map(|event| match event {
            Event::Enforced { workloads: 1001, took, .. } => Some(*took),
            _ => None,
        });
        took.unwrap_or_else(|| panic!("{:?}", events.iter().map(Event::to_string).collect::<Vec<_>>()))
    };
    let mut times = vec![took(host.at(|| enforcer.turn()))];
    let sockets = [host.socket(1), host.socket(2)];
    let senders = [5000_u16, 5002].map(|port| {
        let bind = || UdpSocket::bind((ADDRESSES[0], port)).expect("a free port");
        host.at(bind)
    });
    let stop = AtomicBool::new(false);
    let results = thread::scope(|scope| {
        let stop = &stop;
        let flows: Vec<_> = [ADDRESSES[1], ADDRESSES[2]]
            .into_iter()
            .zip(senders.iter().zip(&sockets))
            .map(|(to, (sender, receiver))| scope.spawn(move || flow(sender, receiver, to, stop)))
            .collect();
        // Rates in place; priorities; classes with one more bucket; fewer; none but the flow's own; all again.
        for workloads in [
            thousand(&[(2e6, 64e3)], 0, &[(2e6, 64e3)]),
            thousand(one, 3, one),
            thousand(two, 3, two),
            thousand(one, 5, one),
        ] {
            host.write(workloads);
            times.push(took(host.at(|| enforcer.turn())));
            thread::sleep(Duration::from_millis(200));
        }
        host.write(vec![promise("own", ADDRESSES[1], Some(1), two)]);
        host.at(|| enforcer.turn());
        host.write(thousand(two, 1, one));
        times.push(took(host.at(|| enforcer.turn())));
        thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        flows.into_iter().map(|flow| flow.join().expect("it ends")).collect::<Vec<_>>()
    });
    println!("changes took {times:?}");
    for (sent, arrived) in results {
        let lost: Vec<u32> = (0..sent).filter(|number| !arrived.contains(number)).collect();
        assert!(lost.is_empty() && sent > 1000, "{} of {sent} packets are lost: {lost:?}", lost.len());
    }
    assert!(host.status().is_enforced());
    host.at(|| enforcer.undo());
    let longest = times.iter().max().expect("changes");
    assert!(*longest < Duration::from_secs(1), "{times:?}");
}
