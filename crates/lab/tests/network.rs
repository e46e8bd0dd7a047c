//! Networks of namespaces with real packets. Without root, these tests are skipped with a printed reason; in CI they
//! fail.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use leeward_fabric::Bandwidth;
use leeward_lab::{LabError, LabName, Network, NetworkOptions, Part, State};
use leeward_testing::clusters::cluster;
use leeward_testing::require;

const RACKS: &str = "racks: 2\nhosts_per_rack: 2\nnic: 100Mbps\nrack_link: 50Mbps\n";

/// Brings up a network; `None` without root.
fn up(text: &str) -> Option<(LabName, Network)> {
    let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
    require("network namespaces", root)?;
    let name = LabName::of_process();
    let network = Network::up(&name, &cluster(text), NetworkOptions::default(), &|_| true);
    Some((name, network.expect("a network")))
}

fn now() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic)).expect("it is positive")
}

/// Rate of a TCP connection in bits per second, over the last part of a transfer.
fn rate(network: &Network, from: &str, to: &str) -> f64 {
    let address = (network.machine(to).expect("a host").address, 5001);
    let listener = network.at(to, || TcpListener::bind(address)).expect("a host").expect("a socket");
    let sender = network.at(from, || TcpStream::connect(address)).expect("a host").expect("a connection");
    let (mut receiver, _) = listener.accept().expect("a connection");
    let sending = std::thread::spawn(move || {
        let mut sender = sender;
        while sender.write_all(&[0; 1 << 14]).is_ok() {}
    });
    let (mut buffer, mut read) = (vec![0; 1 << 16], 0);
    let mut take = |least: usize| {
        let start = now();
        read = 0;
        while read < least {
            read += receiver.read(&mut buffer).expect("data");
        }
        8.0 * read as f64 / (now() - start).as_secs_f64()
    };
    take(1 << 20);
    let rate = take(4 << 20);
    drop(receiver);
    sending.join().expect("the sender ends");
    rate
}

fn namespaces(name: &LabName) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|namespace| name.machine(namespace).is_some()).collect()
}

/// Parts of a lab that are on the machine. Files of control groups that no lab made are no part of it.
fn left(state: &State) -> Vec<Part> {
    let is_left = |part: &&Part| part.exists() && !matches!(part, Part::Throttle { .. });
    state.parts.iter().filter(is_left).cloned().collect()
}

#[test]
fn tcp_gets_the_rates_of_links_and_a_change_of_a_rate_takes_effect() {
    let Some((_, network)) = up(RACKS) else { return };
    // TCP's share of the wire is 1448 of 1514 bytes. Other load on the machine may disturb a transfer.
    let is_near = |from: &str, to: &str, expected: f64| {
        (0..3).any(|_| (rate(&network, from, to) / (expected * 1448.0 / 1514.0) - 1.0).abs() < 0.1)
    };
    assert!(is_near("r0h0", "r0h1", 100e6), "within a rack");
    assert!(is_near("r0h0", "r1h0", 50e6), "between racks");
    network.limit("r0h0:egress", Bandwidth(20_000_000), None, None).expect("a link");
    assert!(is_near("r0h0", "r1h0", 20e6), "a slower host");
    network.limit("r0:uplink", Bandwidth(1_000_000_000_000), None, None).expect("a link");
    network.limit("r0h0:egress", Bandwidth(80_000_000), None, None).expect("a link");
    network.limit("r1:downlink", Bandwidth(60_000_000), None, None).expect("a link");
    assert!(is_near("r0h0", "r1h0", 60e6), "a downlink");
}

#[test]
fn paths_have_their_own_rates_and_share_that_of_their_source() {
    let text = "shape: hose\nnic: 60Mbps\nracks: [{hosts: [{name: a}, {name: b}, {name: c}]}]\npairs:
  - {from: a, to: b, rate: 20Mbps, same_machine: true}\n  - {from: b, to: a, rate: 90Mbps, same_machine: true}\n";
    let Some((_, network)) = up(text) else { return };
    for (from, to, expected) in [("a", "b", 20e6), ("a", "c", 60e6), ("b", "a", 90e6), ("c", "b", 60e6)] {
        let is_near = || (rate(&network, from, to) / (expected * 1448.0 / 1514.0) - 1.0).abs() < 0.1;
        assert!((0..3).any(|_| is_near()), "{from} to {to}");
    }
}

#[test]
fn names_resolve_inside_and_the_machine_itself_has_nothing_new() {
    let interfaces = || fs::read_to_string("/proc/net/dev").map(|text| text.lines().count()).expect("a file");
    let routes = || fs::read_to_string("/proc/net/route").expect("a file");
    let before = (interfaces(), routes());
    let Some((name, network)) =
        up("racks: [{name: shelf, hosts: [{name: web}, {name: db}]}]\nnic: 1Gbps\nrack_link: 1Gbps\n")
    else {
        return;
    };
    assert_eq!((interfaces(), routes()), before);
    for (from, to, address) in [
        ("web", "db", "10.0.1.2"),
        ("db", "r0h0", "10.0.0.2"),
        ("core", "web", "10.0.0.2"),
        ("web", "core", "172.31.0.1"),
        ("db", "shelf", "172.16.0.2"),
    ] {
        let output = network.command(from, "getent").expect("a machine").args(["hosts", to]).output();
        let output = String::from_utf8(output.expect("getent").stdout).expect("text");
        assert!(output.starts_with(address), "{to} is {output}");
    }
    let error = network.command("wep", "true").expect_err("no such host").to_string();
    assert!(error.ends_with("similar names: web, db"), "{error}");
    assert_eq!(namespaces(&name).len(), 4);
    drop(network);
    assert!(namespaces(&name).is_empty());
}

#[test]
fn a_stopped_lab_leaves_nothing_and_a_program_in_a_lab_ends_with_it() {
    let Some((name, network)) = up(RACKS) else { return };
    let mut program =
        network.command("r0h0", "sleep").expect("a host").arg("600").spawn().expect("a program");
    let error = Network::up(&name, &cluster(RACKS), NetworkOptions::default(), &|_| true);
    assert!(matches!(error, Err(LabError::InUse { .. })), "{error:?}");
    // The lab waits until the program has entered its namespace.
    std::thread::sleep(Duration::from_millis(300));
    drop(network);
    assert!(!program.wait().expect("it has ended").success());
    for steps in 0..12_u32 {
        let (left, before) = (std::cell::Cell::new(steps), std::cell::Cell::new(0.0));
        let progress = |share: f64| {
            assert!((before.replace(share)..1.0).contains(&share), "{share}");
            left.replace(left.get().saturating_sub(1)) > 0
        };
        let name = LabName::of_process();
        let result = Network::up(&name, &cluster(RACKS), NetworkOptions::default(), &progress);
        assert!(matches!(result, Ok(_) | Err(LabError::Stopped)), "{result:?}");
        drop(result);
        assert!(namespaces(&name).is_empty() && State::read(&name).expect("no broken file").is_none());
    }
}

#[test]
fn a_released_lab_stays_until_down() {
    let Some((name, network)) = up(RACKS) else { return };
    network.release().expect("root may write");
    let state = State::read(&name).expect("a state file").expect("a lab");
    assert!(state.is_up() && state.owner.is_none());
    let prefix = state.machines[0].prefix();
    let output =
        Command::new(&prefix[0]).args(&prefix[1..]).args(["ip", "-br", "addr"]).output().expect("a program");
    assert!(String::from_utf8_lossy(&output.stdout).contains("10.0.0.2/30"));
    State::down(&name).expect("nobody owns it");
    assert!(namespaces(&name).is_empty());
}

#[test]
fn sixty_four_hosts_are_up_in_seconds() {
    let start = now();
    let text =
        "racks: 8\nhosts_per_rack: 8\nnic: 1Gbps\noversubscription: 4\npods: 2\npod_oversubscription: 1\n";
    let Some((_, network)) = up(text) else { return };
    let passed = now() - start;
    println!("up after {passed:?}");
    assert!(passed < Duration::from_secs(20), "{passed:?}");
    let start = now();
    drop(network);
    println!("down after {:?}", now() - start);
}

#[test]
fn a_disk_reads_and_writes_at_its_rates_and_goes_with_the_lab() {
    let text = "racks: 1\nhosts_per_rack: 2\nnic: 100Mbps\nrack_link: 100Mbps\n\
        devices: [{name: ssd, read: 40MB/s, write: 20MB/s, capacity: 200MiB}, {read: 10MB/s, write: 10MB/s}]\n";
    let Some((name, network)) = up(text) else { return };
    assert_eq!(network.notes(), [""; 0]);
    let disks = network.machine("r0h1").expect("a host").disks.clone();
    assert_eq!(disks.len(), 2);
    // Direct input and output, and writes that the kernel carries out later.
    for (arguments, expected) in [
        ("if=/dev/zero of=$LEEWARD_DISK/direct bs=1M count=30 oflag=direct", 20e6),
        ("if=$LEEWARD_DISK/direct of=/dev/null bs=1M iflag=direct", 40e6),
        ("if=/dev/zero of=$LEEWARD_DISK/later bs=64k count=480 conv=fsync", 20e6),
        ("if=/dev/zero of=${LEEWARD_DISKS#*:}/other bs=1M count=30 oflag=direct", 10e6),
    ] {
        let copy = || {
            let start = now();
            let mut command = network.command("r0h1", "sh").expect("a host");
            let status =
                command.arg("-c").arg(format!("dd status=none {arguments}")).status().expect("a shell");
            assert!(status.success(), "{arguments}");
            30.0 * f64::from(1 << 20) / (now() - start).as_secs_f64()
        };
        assert!((0..3).any(|_| (copy() / expected - 1.0).abs() < 0.2), "{arguments}");
    }
    let state = State::read(&name).expect("a state file").expect("a lab");
    drop(network);
    assert_eq!(left(&state), []);
    assert!(!fs::read_to_string("/proc/mounts").expect("mounts").contains(&format!("/{name}/")));
}

#[test]
fn a_lab_with_disks_whose_state_file_is_broken_is_removed_by_its_name() {
    let text = "racks: 1\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1\ndevices: [{read: 1MB/s, write: 1MB/s}]\n";
    let Some((name, network)) = up(text) else { return };
    let state = network.release().expect("root may write");
    fs::write(format!("/run/leeward-labs/{name}.json"), "{}").expect("root may write");
    State::down(&name).expect("everything has its name");
    assert_eq!(left(&state), []);
}
