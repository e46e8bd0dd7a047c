//! Comparison of the sender with Linux's sender over the same bottleneck: a token bucket filter in a lab
//! for Linux, the toy link for this crate.
//!
//! Without permission for namespaces, or without `ip`, `tc` or `ss`, the test is skipped; under CI it fails.

// This file is a separate test program, because it starts itself again with the names of its tests and measures times.
#[path = "it/support/mod.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use leeward_fabric::{Bandwidth, Bytes, Cluster, Nanos};
use leeward_lab::{LabError, LabName, Network, NetworkOptions};
use leeward_tcp::control::Control;
use leeward_tcp::{Ack, Segment, Settings};
use leeward_testing::require;

use support::{Fate, Link, Run};

/// A frame of 1500 bytes with its Ethernet header.
const FRAME: u64 = 1514;
/// Capacity of the bottleneck's queue in frames.
const QUEUE: u64 = 32;
/// Payload of a segment at an MTU of 1500.
const MSS: u64 = 1448;

/// Attempts with the kernel; one of them must be close.
const ATTEMPTS: usize = 3;

/// Two hosts of a rack, `r0h0` and `r0h1`, with the bottleneck in the rack.
fn network(control: &str) -> Result<Network, String> {
    let text = "racks: 1\nhosts_per_rack: 2\nnic: 1Tbps\nrack_link: 1Tbps\n";
    let cluster = Cluster::from_text("kernel", text).map_err(|error| error.to_string())?;
    let options = NetworkOptions {
        queue: Bytes(QUEUE * FRAME),
        burst: Some(Bytes(2 * FRAME)),
        ..NetworkOptions::default()
    };
    let up = || {
        let network = Network::up(&LabName::of_process(), &cluster, options, &|_| true)?;
        network.limit("r0h1:ingress", Bandwidth(20_000_000), None, None)?;
        Ok::<_, LabError>(network)
    };
    let network = up().map_err(|error| error.to_string())?;
    run(&network, "r0h0", &["ip", "route", "change", "default", "via", "10.0.0.1", "congctl", control])?;
    Ok(network)
}

/// Output of a program at a host.
fn run(network: &Network, host: &str, words: &[&str]) -> Result<String, String> {
    let mut command = network.command(host, words[0]).map_err(|error| error.to_string())?;
    let output = command.args(&words[1..]).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts this program again, at a host, as one end of a connection.
fn end(network: &Network, host: &str, name: &str) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command =
        network.command(host, &program.display().to_string()).map_err(|error| error.to_string())?;
    command
        .args(["--exact", name, "--ignored"])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())
}

#[test]
#[ignore = "one end of a connection, started by another test"]
fn receives() {
    let (mut connection, _) = TcpListener::bind("10.0.1.2:5001").unwrap().accept().unwrap();
    let mut buffer = vec![0; 1 << 16];
    while connection.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

#[test]
#[ignore = "other end of a connection, started by another test"]
fn sends() {
    for _ in 0..100 {
        if let Ok(mut connection) = TcpStream::connect("10.0.1.2:5001") {
            let buffer = vec![0; 1 << 16];
            while connection.write_all(&buffer).is_ok() {}
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Steady state of a sender: mean and largest window and mean threshold, in segments.
struct Steady([f64; 3]);

impl Steady {
    fn of(samples: &[[f64; 2]]) -> Steady {
        let mean =
            |column: usize| samples.iter().map(|sample| sample[column]).sum::<f64>() / samples.len() as f64;
        Steady([mean(0), samples.iter().map(|sample| sample[0]).fold(0.0, f64::max), mean(1)])
    }
}

/// Output of `ss`: window and threshold.
fn sample(text: &str, control: &str) -> Option<[f64; 2]> {
    let field = |name: &str| {
        let at = text.find(name)? + name.len();
        text[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse::<f64>().ok()
    };
    text.contains(&format!(" {control} ")).then_some([field(" cwnd:")?, field(" ssthresh:")?])
}

fn kernel(control: &str) -> Result<Steady, String> {
    let network = network(control)?;
    let mut ends = [end(&network, "r0h1", "receives")?, end(&network, "r0h0", "sends")?];
    std::thread::sleep(Duration::from_millis(2500));
    let mut samples = Vec::new();
    for _ in 0..200 {
        let text = run(&network, "r0h0", &["ss", "-tinH", "dst", "10.0.1.2"])?;
        samples.extend(sample(&text, control));
        std::thread::sleep(Duration::from_millis(15));
    }
    for end in &mut ends {
        let _ = end.kill();
        let _ = end.wait();
    }
    if samples.len() < 150 {
        return Err(format!("`ss` reported a {control} window in {} of 200 samples", samples.len()));
    }
    Ok(Steady::of(&samples))
}

fn simulated(control: Control) -> Steady {
    let settings = Settings { control, mss: MSS as u32, ..Settings::default() };
    let link = Link {
        // The filter sends whole frames at 20 Mbit/s; this link counts only the packet in a frame.
        ns_per_byte: 400 * FRAME / (FRAME - 14),
        delay: Nanos(20_000),
        // The filter counts the frame that it is about to send; this link does not.
        queue: QUEUE as usize - 1,
        segments: |_: u64, _: &Segment| Fate::Arrives,
        acks: |_: u64, _: &mut Ack| Fate::Arrives,
    };
    let mut run = Run::new(settings, link);
    run.sender.write(1 << 40);
    run.until(Nanos(2_500_000_000));
    let mut samples = Vec::new();
    for number in 0..200 {
        run.until(Nanos(2_500_000_000 + number * 20_000_000));
        let windows = [run.sender.window(), run.sender.threshold()];
        samples.push(windows.map(|bytes| bytes as f64 / MSS as f64));
    }
    Steady::of(&samples)
}

#[test]
fn mean_and_largest_windows_are_within_a_tenth_of_those_of_linux() {
    for (name, control) in [("reno", Control::Reno), ("cubic", Control::Cubic)] {
        let ours = simulated(control);
        // Other load on the machine may disturb one run with the kernel, but hardly every run.
        let (mut far, mut failures) = (Vec::new(), 0);
        while far.len() < ATTEMPTS {
            let theirs = match kernel(name) {
                Ok(steady) => steady,
                Err(_) if failures + 1 < ATTEMPTS => {
                    failures += 1;
                    continue;
                }
                Err(reason) => {
                    let _: Option<()> = require(&format!("TCP {name} in the kernel"), Err(reason));
                    break;
                }
            };
            println!(
                "{name}: mean and largest window, mean threshold: {:.1?} segments, Linux {:.1?}",
                ours.0, theirs.0
            );
            if ours.0.iter().zip(theirs.0).all(|(ours, theirs)| (ours / theirs - 1.0).abs() < 0.1) {
                break;
            }
            far.push(theirs.0);
        }
        assert!(far.len() < ATTEMPTS, "{name}: {:?}, Linux has {far:?}", ours.0);
    }
}
