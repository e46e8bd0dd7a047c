//! Comparison of the sender with Linux's sender over the same bottleneck: a token bucket filter in network namespaces
//! for Linux, the toy link for this crate.
//!
//! Without permission for namespaces, or without `ip`, `tc` or `ss`, the test is skipped; under CI it fails.

// This file is a separate test program, because it starts itself again with the names of its tests and measures times.
#[path = "it/support/mod.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leeward_fabric::Nanos;
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

/// Three namespaces in a row, `s` to `r` to `d`; deleted on drop.
struct Row(Vec<String>);

impl Drop for Row {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = run(&format!("ip netns del {name}"));
        }
    }
}

fn run(command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{command}`: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn row(control: &str) -> Result<Row, String> {
    let mut row = Row(Vec::new());
    for end in ["s", "r", "d"] {
        let name = format!("leeward-{control}-{}-{end}", std::process::id());
        run(&format!("ip netns add {name}"))?;
        row.0.push(name);
    }
    let [s, r, d] = [&row.0[0], &row.0[1], &row.0[2]];
    run(&format!("ip link add s0 netns {s} type veth peer name rs netns {r}"))?;
    run(&format!("ip link add d0 netns {d} type veth peer name rd netns {r}"))?;
    // Segmentation offload is off, so packets have the size that they have on a wire.
    for (name, device, address) in
        [(s, "s0", "10.9.1.1"), (r, "rs", "10.9.1.2"), (r, "rd", "10.9.2.2"), (d, "d0", "10.9.2.1")]
    {
        run(&format!("ip -n {name} addr add {address}/24 dev {device}"))?;
        run(&format!("ip -n {name} link set {device} gso_max_segs 1 up"))?;
    }
    run(&format!("ip -n {s} route add default via 10.9.1.2 congctl {control}"))?;
    run(&format!("ip -n {d} route add default via 10.9.2.2"))?;
    run(&format!("ip netns exec {r} sysctl -qw net.ipv4.ip_forward=1"))?;
    let [burst, limit] = [2 * FRAME, QUEUE * FRAME];
    run(&format!("ip netns exec {r} tc qdisc add dev rd root tbf rate 20mbit burst {burst} limit {limit}"))?;
    Ok(row)
}

/// Starts this program again, in a namespace, as one end of a connection.
fn end(namespace: &str, name: &str) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Command::new("ip")
        .args(["netns", "exec", namespace])
        .arg(program)
        .args(["--exact", name, "--ignored"])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())
}

#[test]
#[ignore = "one end of a connection, started by another test"]
fn receives() {
    let (mut connection, _) = TcpListener::bind("10.9.2.1:5001").unwrap().accept().unwrap();
    let mut buffer = vec![0; 1 << 16];
    while connection.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

#[test]
#[ignore = "other end of a connection, started by another test"]
fn sends() {
    for _ in 0..100 {
        if let Ok(mut connection) = TcpStream::connect("10.9.2.1:5001") {
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
    let row = row(control)?;
    let mut ends = [end(&row.0[2], "receives")?, end(&row.0[0], "sends")?];
    std::thread::sleep(Duration::from_millis(2500));
    let mut samples = Vec::new();
    for _ in 0..200 {
        let text = run(&format!("ip netns exec {} ss -tinH dst 10.9.2.1", row.0[0]))?;
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
