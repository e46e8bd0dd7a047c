//! Hosts on the loopback measure each other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use leeward_probe::control::{Answer, Ask, Listener, Order, Outcome, Peer, Place, Secret, Stop, order};
use leeward_probe::{Limits, ProbeError, Train, Transfer};

/// A host that listens until it is dropped.
struct Host {
    at: String,
    stop: Stop,
    runs: Option<thread::JoinHandle<Result<(), ProbeError>>>,
}

impl Host {
    fn start(secret: Option<&str>) -> Host {
        let secret = Secret(secret.map(str::to_owned));
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Limits::default(), secret).unwrap();
        let (at, stop) = (listener.address().unwrap().to_string(), listener.stop());
        Host { at, stop, runs: Some(thread::spawn(move || listener.run())) }
    }

    fn place(&self) -> Place {
        self.at.parse().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.stop();
        self.runs.take().unwrap().join().unwrap().unwrap();
    }
}

const TRAIN: Order = Order::Train { train: Train { bursts: 3, packets: 50, bytes: 1472, gap_ns: 1_000_000 } };

#[test]
fn a_path_is_measured_from_here_and_between_two_others() {
    let (a, b) = (Host::start(None), Host::start(None));
    for from in [Place::Here, a.place()] {
        let Outcome::Train { estimate } = order(&from, &b.at, &TRAIN, &Secret::default()).unwrap() else {
            panic!()
        };
        assert!(estimate.rate_bps > 1e6 && estimate.rtt_ns.is_some(), "{estimate:?}");
        assert_eq!(estimate.sent, 150);
    }
}

#[test]
fn a_transfer_is_told_slot_by_slot_and_connection_by_connection() {
    let (a, b) = (Host::start(None), Host::start(None));
    let transfer = Order::Transfer { transfer: Transfer { duration_ns: 300_000_000, connections: 3 } };
    let made = order(&a.place(), &b.at, &transfer, &Secret::default()).unwrap();
    let Outcome::Transfer { transferred } = made else { panic!() };
    assert_eq!(transferred.slots.len(), 3);
    assert!(transferred.rate_bps() > 1e6, "{transferred:?}");
}

#[test]
fn hops_are_counted() {
    let b = Host::start(None);
    let made = order(&Place::Here, &b.at, &Order::Hops {}, &Secret::default()).unwrap();
    assert_eq!(made, Outcome::Hops { hops: Some(1) });
}

#[test]
fn trains_to_one_host_wait_for_each_other() {
    let hosts = [Host::start(None), Host::start(None), Host::start(None)];
    let b = Host::start(None);
    thread::scope(|scope| {
        for host in &hosts {
            scope.spawn(|| order(&host.place(), &b.at, &TRAIN, &Secret::default()).unwrap());
        }
    });
}

#[test]
fn only_who_knows_the_secret_is_heard() {
    let b = Host::start(Some("wind"));
    let told = |secret: Option<&str>| order(&Place::Here, &b.at, &TRAIN, &Secret(secret.map(str::to_owned)));
    assert!(told(Some("wind")).is_ok());
    for wrong in [None, Some(""), Some("win"), Some("wine"), Some("windy")] {
        let error = told(wrong).unwrap_err().to_string();
        assert!(error.contains("the secret is another one"), "{error}");
    }
}

#[test]
fn absurd_trains_are_refused_by_who_would_receive_them() {
    let b = Host::start(None);
    let mut peer = Peer::greet(&b.at, &Secret::default()).unwrap();
    let train = Train { bursts: 1000, packets: 10_000, ..Train::default() };
    let error = peer.ask(&Ask::ReceiveTrain { train }, std::time::Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("expected at most 268435456"), "{error}");
    let transfer = Transfer { duration_ns: u64::MAX, connections: 1 };
    let error = peer.ask(&Ask::ReceiveTransfer { transfer }, std::time::Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("expected 0.1 to 60 s"), "{error}");
    assert_eq!(peer.ask(&Ask::Ping {}, std::time::Duration::ZERO).unwrap(), Answer::Pong {});
}

#[test]
fn what_is_not_of_the_protocol_is_told_so_and_hurts_nobody() {
    let b = Host::start(None);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, b'{', b'}'], &[0; 64], &[0xff; 64]] {
        let mut stream = TcpStream::connect(&b.at).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let mut peer = Peer::greet(&b.at, &Secret::default()).unwrap();
    let error = peer.ask(&Ask::Ended {}, std::time::Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("not to be said now"), "{error}");
    assert!(order(&Place::Here, &b.at, &TRAIN, &Secret::default()).is_ok());
}

#[test]
fn nobody_there_is_said_with_the_address() {
    let gone = Host::start(None).at.clone();
    let error = order(&Place::Here, &gone, &TRAIN, &Secret::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{gone}: nobody listens there; start `leeward probe listen`"));
    let a = Host::start(None);
    let error = order(&a.place(), &gone, &TRAIN, &Secret::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: {gone}: nobody listens", a.at)), "{error}");
}
