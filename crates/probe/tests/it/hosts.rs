//! Hosts on the loopback interface measure each other.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leeward_probe::control::{
    Listener, MOST_BYTES, Order, Outcome, Peer, Place, Reply, Request, Secret, Stop, VERSION, order, read,
    write,
};
use leeward_probe::mesh::{Parts, Shape};
use leeward_probe::survey::{self, Host as Named, Schedule};
use leeward_probe::{Congestion, Estimate, Limits, ProbeError, Train, Transfer, TransferReport};
use proptest::prelude::*;
use serde_json::json;

/// A listening host that stops when dropped.
struct Host {
    address: String,
    stop: Stop,
    runs: Option<thread::JoinHandle<()>>,
}

impl Host {
    fn start(secret: Option<&str>) -> Host {
        let secret = Secret(secret.map(str::to_owned));
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Limits::default(), secret).unwrap();
        let (address, stop) = (listener.address().unwrap().to_string(), listener.stop());
        Host { address, stop, runs: Some(thread::spawn(move || listener.run())) }
    }

    fn place(&self) -> Place {
        self.address.parse().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.stop();
        self.runs.take().unwrap().join().unwrap();
    }
}

const TRAIN: Order = Order::Train { train: Train { bursts: 3, packets: 50, bytes: 1472, gap_ns: 1_000_000 } };

#[test]
fn a_path_is_measured_from_here_and_between_two_others() {
    let (a, b) = (Host::start(None), Host::start(None));
    for from in [Place::Here, a.place()] {
        let Outcome::Train { estimate } = order(&from, &b.address, &TRAIN, &Secret::default()).unwrap()
        else {
            panic!()
        };
        assert!(estimate.rate_bps > 1e6 && estimate.rtt_ns.is_some(), "{estimate:?}");
        assert_eq!(estimate.sent, 150);
    }
}

#[test]
fn a_transfer_is_reported_by_slot_and_connection() {
    let (a, b) = (Host::start(None), Host::start(None));
    let transfer =
        Order::Transfer { transfer: Transfer { duration_ns: 300_000_000, connections: 3, congestion: None } };
    let outcome = order(&a.place(), &b.address, &transfer, &Secret::default()).unwrap();
    let Outcome::Transfer { transferred } = outcome else { panic!() };
    assert_eq!(transferred.slots.len(), 3);
    assert!(transferred.rate_bps() > 1e6, "{transferred:?}");
}

#[test]
fn hops_are_counted() {
    let b = Host::start(None);
    let outcome = order(&Place::Here, &b.address, &Order::Hops {}, &Secret::default()).unwrap();
    assert_eq!(outcome, Outcome::Hops { hops: Some(1) });
}

/// A connection to a host that is ready to receive a train and stays busy until [`end_train`].
fn begin_train(host: &Host) -> Peer {
    let mut peer = Peer::greet(&host.address, &Secret::default()).unwrap();
    let reply = peer.request(&receive_train(), Duration::ZERO).unwrap();
    assert!(matches!(reply, Reply::Ready { .. }), "{reply:?}");
    peer
}

fn end_train(mut peer: Peer) {
    let reply = peer.request(&Request::Ended {}, Duration::from_secs(10)).unwrap();
    assert!(matches!(reply, Reply::Received { .. }), "{reply:?}");
}

fn receive_train() -> Request {
    let Order::Train { train } = TRAIN else { unreachable!("a train") };
    Request::ReceiveTrain { train }
}

#[test]
fn trains_to_one_host_wait_for_each_other() {
    let (a, b) = (Host::start(None), Host::start(None));
    let first = begin_train(&b);
    // While the host receives a train, it accepts no other.
    let mut second = Peer::greet(&b.address, &Secret::default()).unwrap();
    let busy = second.request(&receive_train(), Duration::ZERO).unwrap_err();
    assert!(matches!(busy, ProbeError::Busy { .. }), "{busy}");
    // Trains from here and from another host wait until the first one ends, and then follow one after another.
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = [Place::Here, a.place()].map(|from| {
            let (b, ended) = (&b, &ended);
            scope.spawn(move || {
                let outcome = order(&from, &b.address, &TRAIN, &Secret::default()).unwrap();
                (outcome, ended.load(Ordering::SeqCst))
            })
        });
        thread::sleep(Duration::from_millis(800));
        ended.store(true, Ordering::SeqCst);
        end_train(first);
        for order in waiting {
            let (outcome, after_the_first) = order.join().unwrap();
            assert!(matches!(outcome, Outcome::Train { .. }), "{outcome:?}");
            assert!(after_the_first, "a train was received during another one");
        }
    });
    // The host is free again.
    end_train(begin_train(&b));
}

#[test]
fn a_wrong_secret_is_refused() {
    let b = Host::start(Some("wind"));
    let measure =
        |secret: Option<&str>| order(&Place::Here, &b.address, &TRAIN, &Secret(secret.map(str::to_owned)));
    assert!(measure(Some("wind")).is_ok());
    for wrong in [None, Some(""), Some("win"), Some("wine"), Some("windy")] {
        let error = measure(wrong).unwrap_err().to_string();
        assert!(error.contains("wrong secret"), "{error}");
    }
}

#[test]
fn receivers_refuse_trains_out_of_range() {
    let b = Host::start(None);
    let mut peer = Peer::greet(&b.address, &Secret::default()).unwrap();
    let train = Train { bursts: 1000, packets: 10_000, ..Train::default() };
    let error = peer.request(&Request::ReceiveTrain { train }, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("expected at most 536870912"), "{error}");
    let transfer = Transfer { duration_ns: u64::MAX, connections: 1, congestion: None };
    let error = peer.request(&Request::ReceiveTransfer { transfer }, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("expected 0.1 to 60 s"), "{error}");
    assert_eq!(peer.request(&Request::Ping {}, Duration::ZERO).unwrap(), Reply::Pong {});
}

#[test]
fn protocol_violations_are_refused_and_harmless() {
    let b = Host::start(None);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, b'{', b'}'], &[0; 64], &[0xff; 64]] {
        let mut stream = TcpStream::connect(&b.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let mut peer = Peer::greet(&b.address, &Secret::default()).unwrap();
    let error = peer.request(&Request::Ended {}, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("unexpected message"), "{error}");
    assert!(order(&Place::Here, &b.address, &TRAIN, &Secret::default()).is_ok());
}

#[test]
fn impossible_replies_are_refused_at_once_in_a_short_line() {
    let transfer = Transfer { duration_ns: 1_000_000_000, connections: 1, congestion: None };
    let estimate = Estimate {
        rate_bps: -1.0,
        train_bps: 1e9,
        bound_bps: None,
        sent_bps: None,
        sender_limited: false,
        loss: 0.0,
        overran: false,
        rtt_ns: None,
        sent: 150,
        received: 150,
        overrun: 0,
        spread: None,
    };
    // A receiver would count slots of this duration for years.
    let long = TransferReport { duration_ns: u64::MAX, slots: vec![vec![1; 100]] };
    let replies = [
        (TRAIN, Reply::Measured { outcome: Outcome::Train { estimate } }),
        (Order::Transfer { transfer }, Reply::Measured { outcome: Outcome::Transfer { transferred: long } }),
        (TRAIN, Reply::Measured { outcome: Outcome::Hops { hops: Some(1) } }),
        (TRAIN, Reply::Hello { version: VERSION }),
        (TRAIN, Reply::Refused { message: "no\n".repeat(10_000) }),
    ];
    for (request, invalid) in replies {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place: Place = listener.local_addr().unwrap().to_string().parse().unwrap();
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for reply in [Reply::Hello { version: VERSION }, invalid] {
                read::<Request>(&mut stream).unwrap();
                write(&mut stream, &reply).unwrap();
            }
        });
        let error = order(&place, "127.0.0.1:1", &request, &Secret::default()).unwrap_err().to_string();
        assert!(error.len() < 500 && !error.contains('\n'), "{error}");
        peer.join().unwrap();
    }
}

#[test]
fn the_connection_limit_frees_when_connections_end() {
    let limits = Limits { peers: 2, ..Limits::default() };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits, Secret::default()).unwrap();
    let (address, stop) = (listener.address().unwrap().to_string(), listener.stop());
    let runs = thread::spawn(move || listener.run());
    let greet = || Peer::greet(&address, &Secret::default());
    let connected = [greet().unwrap(), greet().unwrap()];
    assert!(greet().is_err());
    drop(connected);
    // The host soon notices that the peers have disconnected.
    let accepted = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        greet().is_ok()
    });
    assert!(accepted);
    stop.stop();
    runs.join().unwrap();
}

#[test]
fn slow_senders_do_not_hold_connections() {
    let limits = Limits { peers: 1, ..Limits::default() };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits, Secret::default()).unwrap();
    let (address, stop) = (listener.address().unwrap().to_string(), listener.stop());
    let runs = thread::spawn(move || listener.run());
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream.write_all(&1_000_u32.to_be_bytes()).unwrap();
    // Half a minute of single bytes, each within the idle timeout.
    let kept = (0..150).take_while(|_| {
        thread::sleep(Duration::from_millis(200));
        let _ = stream.write_all(b" ");
        let read = stream.read(&mut [0; 64]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    });
    assert!((15..75).contains(&kept.count()));
    let accepted = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        Peer::greet(&address, &Secret::default()).is_ok()
    });
    assert!(accepted, "the connection limit is free again");
    stop.stop();
    runs.join().unwrap();
}

#[test]
fn a_refused_connection_is_reported_with_its_address() {
    let gone = Host::start(None).address.clone();
    let error = order(&Place::Here, &gone, &TRAIN, &Secret::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{gone}: connection refused; is `leeward probe listen` running there?")
    );
    let a = Host::start(None);
    let error = order(&a.place(), &gone, &TRAIN, &Secret::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: {gone}: connection refused", a.address)), "{error}");
}

fn named(hosts: &[Host]) -> Vec<Named> {
    let named =
        |(index, host): (usize, &Host)| Named { name: format!("h{index}"), address: host.address.clone() };
    hosts.iter().enumerate().map(named).collect()
}

const SHORT: Train = Train { bursts: 2, packets: 40, bytes: 1472, gap_ns: 1_000_000 };

#[test]
fn a_mesh_is_measured_completely_with_progress() {
    let hosts = [Host::start(None), Host::start(None), Host::start(None)];
    let mut steps = Vec::new();
    let mut progress = |done, total| {
        steps.push((done, total));
        Ok(())
    };
    let meshed = survey::mesh(&named(&hosts), &SHORT, 2, &Secret::default(), &mut progress).unwrap();
    let pairs: Vec<_> = meshed.paths.iter().map(|path| path.pair).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    assert_eq!(steps.last(), Some(&(6, 6)));
    let text = meshed.mesh().cluster("loopback", Shape::Pipe, &Parts::default()).unwrap();
    assert_eq!(text.matches("rate:").count(), 6, "{text}");
    let placed = survey::topology(&named(&hosts), &Secret::default(), &mut |_, _| Ok(())).unwrap();
    assert_eq!(placed.topology.racks, [[0, 1, 2]]);
}

#[test]
fn an_unavailable_host_leaves_gaps_in_a_mesh_and_no_cluster() {
    let mut hosts = named(&[Host::start(None)]);
    let there = [Host::start(None), Host::start(None)];
    hosts.extend(named(&there));
    (hosts[1].name, hosts[2].name) = ("h1".to_owned(), "h2".to_owned());
    let meshed = survey::mesh(&hosts, &SHORT, 8, &Secret::default(), &mut |_, _| Ok(())).unwrap();
    let failed = |path: &&survey::PathMeasurement| path.error.is_some();
    let failed: Vec<_> = meshed.paths.iter().filter(failed).map(|path| path.pair).collect();
    assert_eq!(failed, [(0, 1), (0, 2), (1, 0), (2, 0)]);
    let error = meshed.mesh().cluster("loopback", Shape::Pipe, &Parts::default()).unwrap_err();
    assert_eq!(error.to_string(), "no rate from h0 to h1");
}

#[test]
fn surveys_stop_on_request() {
    let hosts = [Host::start(None), Host::start(None), Host::start(None)];
    let mut stop = |_, _| Err(ProbeError::Stopped);
    let result = survey::mesh(&named(&hosts), &SHORT, 1, &Secret::default(), &mut stop);
    assert_eq!(result, Err(ProbeError::Stopped));
}

#[test]
fn one_path_is_surveyed_over_time() {
    let b = Host::start(None);
    let secret = Secret::default();
    let schedule = Schedule { every_ns: 20_000_000, times: 4, lags_ns: vec![20_000_000, 10_000_000_000] };
    let steady = survey::steadiness(&Place::Here, &b.address, &SHORT, &schedule, &secret, &mut |_, _| Ok(()));
    let steady = steady.unwrap();
    assert_eq!((steady.samples.len(), steady.lags.len() <= 1), (4, true));
    let path = Some(1e12);
    let cross = survey::cross(
        &Place::Here,
        &b.address,
        300_000_000,
        path,
        Some(Congestion::Reno),
        &secret,
        &mut |_, _| Ok(()),
    )
    .unwrap();
    let equivalent = cross.cross.unwrap();
    assert!(equivalent.connections > 0.0 && cross.advantage.is_some(), "{cross:?}");
    let long =
        survey::cross(&Place::Here, &b.address, 31_000_000_000, path, None, &secret, &mut |_, _| Ok(()));
    assert!(long.unwrap_err().to_string().contains("at most 30 s"));
    let (least, most) = cross.plausible.unwrap();
    assert!(least <= most && cross.over_time.len() == 2, "{cross:?}");
}

#[test]
fn measurements_survive_a_host_that_leaves() {
    let mut b = Some(Host::start(None));
    let to = b.as_ref().unwrap().address.clone();
    let schedule = Schedule { every_ns: 20_000_000, times: 3, lags_ns: vec![20_000_000] };
    let mut gone = |_, _| {
        drop(b.take());
        Ok(())
    };
    let measured =
        survey::steadiness(&Place::Here, &to, &SHORT, &schedule, &Secret::default(), &mut gone).unwrap();
    assert_eq!((measured.samples.len(), measured.errors.len(), measured.lags), (1, 2, vec![]));
    assert!(measured.errors[0].contains("connection refused"), "{:?}", measured.errors);
    let never =
        survey::steadiness(&Place::Here, &to, &SHORT, &schedule, &Secret::default(), &mut |_, _| Ok(()));
    assert!(never.is_err());
}

#[test]
fn trains_are_calibrated_against_a_transfer() {
    let hosts = [Host::start(None), Host::start(None)];
    let named = named(&hosts);
    let grid = [Train { packets: 20, ..SHORT }, SHORT];
    let bulk = Transfer { duration_ns: 200_000_000, connections: 1, congestion: None };
    let paths = [(named[0].clone(), named[1].clone())];
    let calibration =
        survey::calibrate(&paths, &grid, &bulk, &Secret::default(), &mut |_, _| Ok(())).unwrap();
    assert_eq!((calibration.scores.len(), calibration.bulk_bps.len()), (2, 1));
    assert!(grid.contains(&calibration.best));
}

#[test]
fn experiments_survive_a_host_that_leaves() {
    let (a, b) = (Host::start(None), Host::start(None));
    let mut gone = Some(Host::start(None));
    let hosts: Vec<_> = [("a", &a), ("b", &b), ("c", gone.as_ref().unwrap())]
        .map(|(name, host)| Named { name: name.to_owned(), address: host.address.clone() })
        .into();
    let each = Transfer { duration_ns: 1_500_000_000, connections: 1, congestion: None };
    let secret = Secret::default();
    // Four steps: two transfers alone, then two experiments with pairs. The host leaves after the third step.
    let result = survey::bottlenecks(&hosts, None, &each, 2, 1, &secret, &mut |done, steps| {
        assert_eq!(steps, 4);
        if done == 3 {
            gone.take();
        }
        Ok(())
    });
    let survey = result.unwrap();
    assert_eq!((survey.from_one.len(), survey.between_four.len(), survey.protocol.from_one.0), (1, 0, 1));
    assert_eq!(survey.errors.len(), 1, "{:?}", survey.errors);
}

#[test]
fn invalid_surveys_are_rejected_before_anything_is_sent() {
    let one = Named { name: "a".to_owned(), address: "127.0.0.1:1".to_owned() };
    let secret = Secret::default();
    let error = |hosts: &[Named]| {
        survey::mesh(hosts, &SHORT, 1, &secret, &mut |_, _| Ok(())).unwrap_err().to_string()
    };
    assert_eq!(error(std::slice::from_ref(&one)), "hosts: 1 given: expected at least 2");
    assert_eq!(error(&[one.clone(), one.clone()]), "hosts: duplicate name `a`");
    let other = Named { name: "b".to_owned(), ..one.clone() };
    assert_eq!(error(&[one.clone(), other.clone()]), "hosts: `a` and `b` have the same address 127.0.0.1:1");
    let short = Transfer { duration_ns: 1_000_000_000, connections: 1, congestion: None };
    let third = Named { name: "c".to_owned(), address: "127.0.0.1:2".to_owned() };
    let fourth = Named { name: "d".to_owned(), address: "127.0.0.1:3".to_owned() };
    let result = survey::bottlenecks(&[one, third, fourth], None, &short, 20, 1, &secret, &mut |_, _| Ok(()));
    assert_eq!(result.unwrap_err().to_string(), "duration_ns: 1 s: expected at least 1.5 s");
}

/// A frame of arbitrary content, a frame of the protocol, or arbitrary bytes.
fn sent() -> impl Strategy<Value = Vec<u8>> {
    let framed = |text: Vec<u8>| [&(text.len() as u32).to_be_bytes()[..], &text].concat();
    let small = || 0_u32..20;
    let train = (small(), small(), 0_u32..2_000).prop_map(|(bursts, packets, bytes)| {
        json!({ "ask": "receive_train", "train": { "bursts": bursts, "packets": packets, "bytes": bytes } })
    });
    let measure = any::<u16>().prop_map(
        |port| json!({ "ask": "measure", "to": format!("127.0.0.1:{port}"), "order": { "what": "hops" } }),
    );
    let hello = (0_u32..3, prop::option::of("[a-z]{0,8}"))
        .prop_map(|(version, secret)| json!({ "ask": "hello", "version": version, "secret": secret }));
    let data = any::<u64>().prop_map(|session| json!({ "ask": "data", "session": session }));
    let known = prop_oneof![train, measure, hello, data].prop_map(|message| message.to_string().into_bytes());
    prop_oneof![
        any::<Vec<u8>>(),
        any::<Vec<u8>>().prop_map(framed),
        known.prop_map(framed),
        Just(MOST_BYTES.to_be_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn arbitrary_unauthenticated_messages_are_rejected_without_harm(
        messages in prop::collection::vec(sent(), 0..6),
    ) {
        static HOST: LazyLock<Host> = LazyLock::new(|| Host::start(Some("a secret of ours")));
        let mut stream = TcpStream::connect(&HOST.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The host may close the connection before everything is sent.
        let _ = messages.iter().try_for_each(|message| stream.write_all(message));
        let _ = stream.shutdown(Shutdown::Write);
        let mut replies = Vec::new();
        let _ = stream.read_to_end(&mut replies);
        let mut from = &replies[..];
        while let Ok(reply) = read::<Reply>(&mut from) {
            prop_assert!(matches!(reply, Reply::Refused { .. }), "{reply:?}");
        }
        let secret = Secret(Some("a secret of ours".to_owned()));
        let peer = Peer::greet(&HOST.address, &secret);
        prop_assert!(peer.is_ok(), "{:?}", peer.err());
    }
}
