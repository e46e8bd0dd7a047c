//! Networks of racks in a lab, with a listener on each host.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use leeward_fabric::{Bandwidth, Bytes};
use leeward_lab::{LabName, NetworkOptions};
use leeward_probe::control::{Listener, Order, Outcome, Place, Secret, Stop, order};
use leeward_probe::{Estimate, Limits, Train, Transfer, TransferReport};
use leeward_testing::clusters::cluster;

/// Only one network at a time, because simultaneous trains of two tests would measure this machine.
static ALONE: Mutex<()> = Mutex::new(());
const PORT: u16 = 7601;
/// Rate of links without a limit: no machine carries it.
const UNLIMITED: &str = "1Tbps";
/// Bytes that may cross a limited link at once.
const BURST: Bytes = Bytes(16_000);
/// Time that a full queue takes to send, in milliseconds: short, so that connections soon share a link evenly.
const QUEUE_MS: u64 = 20;

/// Hosts in racks under a core.
pub struct Network {
    lab: leeward_lab::Network,
    racks: Vec<usize>,
    listeners: Vec<(Stop, thread::JoinHandle<()>)>,
    _alone: MutexGuard<'static, ()>,
}

/// Checks if networks can be created here; returns the reason if not.
pub fn available() -> Result<(), &'static str> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err("root is needed") }
}

/// Checks if a program is installed.
pub fn installed(program: &str) -> Result<(), &'static str> {
    let run = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.map(drop).map_err(|_| "it is not installed")
}

/// Name of a host in the lab.
fn name((rack, host): (usize, usize)) -> String {
    format!("r{rack}h{host}")
}

impl Network {
    /// Creates a network without limits, with the given number of hosts in each rack.
    pub fn racks(racks: &[usize]) -> Network {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let list: Vec<String> = racks.iter().map(|hosts| format!("{{hosts: {hosts}}}")).collect();
        let file = format!("racks: [{}]\nnic: {UNLIMITED}\nrack_link: {UNLIMITED}\n", list.join(", "));
        let options = NetworkOptions { burst: Some(BURST), ..NetworkOptions::default() };
        let lab =
            leeward_lab::Network::up(&LabName::of_process(), &cluster(&file), options, &|_| true).unwrap();
        for machine in lab.machines() {
            // Cubic takes longer than a test to share a link evenly.
            let reno = || std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
            let _ = lab.at(&machine.place, reno).unwrap();
        }
        Network { lab, racks: racks.to_vec(), listeners: Vec::new(), _alone: alone }
    }

    /// Limits the rate of a link in one direction.
    fn limit(&self, link: &str, mbit: u32) {
        let rate = u64::from(mbit) * 1_000_000;
        let queue = Bytes(rate / 8 * QUEUE_MS / 1000 + BURST.0);
        self.lab.limit(link, Bandwidth(rate), Some(queue), None).unwrap();
    }

    /// Limits a host's sending rate.
    pub fn limit_host(&self, host: (usize, usize), mbit: u32) {
        self.limit(&format!("{}:egress", name(host)), mbit);
    }

    /// Limits the rate out of a rack.
    pub fn limit_rack(&self, rack: usize, mbit: u32) {
        self.limit(&format!("r{rack}:uplink"), mbit);
    }

    /// Runs a function at a host.
    pub fn at<T: Send>(&self, host: (usize, usize), work: impl FnOnce() -> T + Send) -> T {
        self.lab.at(&name(host), work).unwrap()
    }

    /// Address of a host.
    pub fn address(&self, host: (usize, usize)) -> String {
        format!("10.{}.{}.2", host.0, host.1)
    }

    /// All hosts.
    pub fn hosts(&self) -> Vec<(usize, usize)> {
        self.racks
            .iter()
            .enumerate()
            .flat_map(|(rack, &hosts)| (0..hosts).map(move |host| (rack, host)))
            .collect()
    }

    /// Starts a listener on every host.
    pub fn listen(&mut self) {
        for host in self.hosts() {
            let started = self.at(host, || {
                let any: SocketAddr = ([0, 0, 0, 0], PORT).into();
                let listener = Listener::bind(any, Limits::default(), Secret::default()).unwrap();
                // A thread inherits the namespace of the thread that starts it.
                (listener.stop(), thread::spawn(move || listener.run()))
            });
            self.listeners.push(started);
        }
    }

    /// Requests a host's measurement of the path to another.
    pub fn order(&self, from: (usize, usize), to: (usize, usize), what: &Order) -> Outcome {
        let to = self.address(to);
        self.at(from, || order(&Place::Here, &to, what, &Secret::default()).unwrap())
    }

    /// Requests the measurement of a path with a train.
    pub fn train(&self, from: (usize, usize), to: (usize, usize), train: Train) -> Estimate {
        match self.order(from, to, &Order::Train { train }) {
            Outcome::Train { estimate } => estimate,
            other => panic!("{other:?}"),
        }
    }

    /// Requests a bulk transfer.
    pub fn transfer(
        &self,
        from: (usize, usize),
        to: (usize, usize),
        seconds: f64,
        connections: u32,
    ) -> TransferReport {
        let transfer = Transfer { duration_ns: (seconds * 1e9) as u64, connections, congestion: None };
        match self.order(from, to, &Order::Transfer { transfer }) {
            Outcome::Transfer { transferred } => transferred,
            other => panic!("{other:?}"),
        }
    }

    /// TCP throughput of a path in bits per second, measured by iperf3.
    pub fn iperf3(&self, from: (usize, usize), to: (usize, usize), seconds: u32) -> f64 {
        let address = self.address(to);
        let serving =
            self.at(to, || Command::new("iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap());
        let output = self.at(from, || {
            let arguments = ["-c", &address, "-J", "-t", &seconds.to_string()].map(str::to_owned);
            // The server may need some time before it listens.
            for _ in 0..40 {
                thread::sleep(std::time::Duration::from_millis(50));
                let output = Command::new("iperf3").args(&arguments).output().unwrap();
                if output.status.success() {
                    return output.stdout;
                }
            }
            panic!("iperf3 does not answer");
        });
        let mut serving = serving;
        serving.wait().unwrap();
        let output: serde_json::Value = serde_json::from_slice(&output).unwrap();
        output["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for (stop, _) in &self.listeners {
            stop.stop();
        }
        for (_, runs) in self.listeners.drain(..) {
            let _ = runs.join();
        }
    }
}

/// Median of several measurements.
pub fn median(times: usize, measure: impl FnMut(usize) -> f64) -> f64 {
    let mut all: Vec<f64> = (0..times).map(measure).collect();
    all.sort_by(f64::total_cmp);
    all[times / 2]
}
