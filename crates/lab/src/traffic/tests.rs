//! Sockets of flows. Without root, tests between hosts are skipped with a printed reason; in CI they fail.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use leeward_packets::Scenario;
use leeward_packets::workload::Place;
use leeward_testing::require;

use super::sockets::{self, Sockets};
use crate::{Clock, Hosts, Inside, KernelParts, KernelSettings, LabName, Nics, Programs, Shared, SwitchLoop};

const SCENARIO: &str = "
network: {racks: 3, hosts_per_rack: 1}
workload: {long: {from: 0, to: 1, flows: 1}}
horizon: 1s
";
const PLACES: [Place; 3] =
    [Place { rack: 0, host: 0 }, Place { rack: 1, host: 0 }, Place { rack: 2, host: 0 }];

#[test]
fn flows_from_one_port_to_two_hosts_are_two_flows() {
    let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
    if require("network namespaces", root).is_none() {
        return;
    }
    let scenario = Scenario::from_text("scenario", SCENARIO).expect("a scenario");
    let settings = scenario.settings();
    let kernel = KernelSettings::of(settings, 10, &KernelParts::default()).expect("a transport");
    let (name, nics) = (LabName::of_process(), Nics::of(settings, 10));
    let hosts = Hosts::make(&name, PLACES.to_vec(), &nics, &kernel, Programs::default(), &|_| true);
    let hosts = hosts.expect("hosts");
    let shared = Shared::new(PLACES.len(), None, None);
    let switch = SwitchLoop::new(settings, scenario.plan(), &shared, Clock::start(10), &hosts, kernel.mtu);
    let switch = switch.expect("a switch");
    thread::scope(|scope| {
        scope.spawn(|| switch.run().map(drop).expect("a switch without a schedule"));
        let connected = thread::scope(|scope| scope.spawn(|| connect(&name)).join());
        shared.stop();
        assert_eq!(connected.expect("the flows connect"), [0, 1]);
    });
}

/// Connects two flows from a host that has only one port. Returns the flows that the two other hosts accept.
fn connect(name: &LabName) -> [u32; 2] {
    let inside = Inside::new().expect("namespaces");
    inside.enter(&name.namespace(&PLACES[0].to_string())).expect("a namespace");
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000").expect("a port");
    let mut sockets = Sockets::new(name, &PLACES, "reno").expect("listeners");
    let flows = [(0, PLACES[1]), (1, PLACES[2])];
    let _streams = flows.map(|(flow, to)| sockets.connect(flow, PLACES[0], to).expect("a connection"));
    [1, 2].map(|host| {
        let accepted = (0..1000).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            sockets.accept(host).expect("a listener")
        });
        accepted.expect("a flow within ten seconds").0
    })
}

#[test]
fn a_closed_flow_sends_nothing_more() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (mut receiver, _) = listener.accept().expect("a connection");
    let mut sent = 0;
    loop {
        match sockets::send(&sender, &[0; 1 << 16]).expect("a connection") {
            0 => break,
            bytes => sent += bytes,
        }
    }
    sockets::discard_at_close(&sender);
    drop(sender);
    let mut received = Vec::new();
    let end = receiver.read_to_end(&mut received).expect_err("a reset");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    assert!(received.len() < sent, "{} of {sent} bytes", received.len());
}
