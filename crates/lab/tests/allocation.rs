//! Allocation test: the switch of a lab carries real packets without an allocation for each. Without root, the test is
//! skipped with a printed reason; in CI it fails.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use leeward_lab::{
    Address, Clock, Hosts, Inside, KernelParts, KernelSettings, LabName, Nics, Programs, Shared, SwitchLoop,
};
use leeward_packets::Scenario;
use leeward_packets::workload::Place;
use leeward_testing::allocations::{Counting, allocations};
use leeward_testing::require;

#[global_allocator]
static COUNTING: Counting = Counting;

const SCENARIO: &str = "
network: {racks: 2, hosts_per_rack: 1, nic: 100Gbps}
scheduler: {name: strobe}
workload: {long: {from: 0, to: 1, flows: 1}}
horizon: 1s
";
const DILATION: u32 = 40;
const BYTES: usize = 100_000_000;
const PLACES: [Place; 2] = [Place { rack: 0, host: 0 }, Place { rack: 1, host: 0 }];
/// Vectors of the loop double when they are full, so their allocations are the logarithm of their length.
const MOST: u64 = 300;

/// Sends bytes from one host to the other.
fn send(name: &LabName) {
    let inside = Inside::new().expect("namespaces");
    let enter = |place: Place| inside.enter(&name.namespace(&place.to_string())).expect("a namespace");
    enter(PLACES[1]);
    let listener = TcpListener::bind((Address(PLACES[1]).ip(), 5001)).expect("a socket");
    enter(PLACES[0]);
    let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (mut receiver, _) = listener.accept().expect("a connection");
    for stream in [&sender, &receiver] {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.set_write_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    }
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&vec![0; BYTES]).expect("the receiver reads"));
        receiver.read_exact(&mut vec![0; BYTES]).expect("the sender writes");
    });
}

#[test]
fn the_switch_of_a_lab_allocates_nothing_for_a_packet() {
    let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
    if require("network namespaces", root).is_none() {
        return;
    }
    let scenario = Scenario::from_text("scenario", SCENARIO).expect("a scenario");
    let settings = scenario.settings();
    let kernel = KernelSettings::of(settings, DILATION, &KernelParts::default()).expect("a transport");
    let (name, nics) = (LabName::of_process(), Nics::of(settings, DILATION));
    let hosts = Hosts::make(&name, PLACES.to_vec(), &nics, &kernel, Programs::default(), &|_| true);
    let hosts = hosts.expect("hosts");
    let shared = Shared::new(PLACES.len(), None, None);
    let clock = Clock::start(DILATION);
    let switch = SwitchLoop::new(settings, scenario.plan(), &shared, clock, &hosts, kernel.mtu);
    let switch = switch.expect("a switch");
    shared.begin_at(clock.now());
    let (allocated, packets) = thread::scope(|scope| {
        let switching = scope.spawn(|| {
            let mut packets = 0;
            let allocated = allocations(|| {
                let (records, ..) = switch.run().expect("a schedule that repeats");
                packets = records.sent.packets;
            });
            (allocated, packets)
        });
        // The switch stops if the senders fail, so that the test ends.
        let sent = thread::scope(|scope| scope.spawn(|| send(&name)).join());
        shared.stop();
        sent.expect("the hosts send");
        switching.join().expect("the switch runs")
    });
    assert!(packets > (BYTES / kernel.mtu as usize) as u64, "{packets} packets");
    assert!(allocated < MOST, "{allocated} allocations for {packets} packets");
}
