//! Networks of namespaces on this machine, with link rates limited by `tc`.
//!
//! ```text
//! hosts of rack 0 -- tor0 --\           each a namespace with its own interfaces;
//!                            core       tor and core forward packets, so that each is a hop
//! hosts of rack 1 -- tor1 --/
//! ```

use std::fs::File;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use leeward_probe::control::{Listener, Order, Outcome, Place, Secret, Stop, order};
use leeward_probe::{Estimate, Limits, Train, Transfer, TransferReport};

/// Distinct names for the networks of one process.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Only one network at a time, because simultaneous trains of two tests would measure this machine.
static ALONE: Mutex<()> = Mutex::new(());
const PORT: u16 = 7601;

/// Hosts in racks under a core.
pub struct Network {
    /// Common prefix of the names of all its namespaces.
    prefix: String,
    namespaces: Vec<String>,
    racks: Vec<usize>,
    listeners: Vec<(Stop, thread::JoinHandle<()>)>,
    _alone: MutexGuard<'static, ()>,
}

/// Checks if networks can be created here; returns the reason if not. The result is determined once for all tests of a
/// process.
pub fn available() -> Result<(), String> {
    static AVAILABLE: OnceLock<Result<(), String>> = OnceLock::new();
    AVAILABLE.get_or_init(try_namespace).clone()
}

fn try_namespace() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("root is needed".to_owned());
    }
    // The name has the process id, because another process may try at the same time.
    let name = format!("lwprobe-{}-try", std::process::id());
    let result = run("ip", &["netns", "add", &name])
        .and_then(|()| run("ip", &["-n", &name, "link", "set", "lo", "up"]))
        .and_then(|()| {
            run(
                "tc",
                &[
                    "-n", &name, "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst",
                    "16kb", "latency", "1s",
                ],
            )
        });
    let _ = run("ip", &["netns", "del", &name]);
    result
}

/// Checks if a program is installed.
pub fn installed(program: &str) -> Result<(), &'static str> {
    let run = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.map(drop).map_err(|_| "it is not installed")
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program} {arguments:?}: {}", text.trim())) }
}

impl Network {
    /// Creates a network without limits, with the given number of hosts in each rack.
    pub fn racks(racks: &[usize]) -> Network {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("lwprobe-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut network = Network {
            prefix,
            namespaces: Vec::new(),
            racks: racks.to_vec(),
            listeners: Vec::new(),
            _alone: alone,
        };
        network.add("core");
        for (rack, &hosts) in racks.iter().enumerate() {
            let tor = format!("tor{rack}");
            network.add(&tor);
            network.cable(
                &tor,
                "up0",
                &format!("10.255.{rack}.2"),
                "core",
                &format!("down{rack}"),
                &format!("10.255.{rack}.1"),
            );
            network.ip(&tor, &["route", "add", "default", "via", &format!("10.255.{rack}.1")]);
            network.ip(
                "core",
                &["route", "add", &format!("10.{rack}.0.0/16"), "via", &format!("10.255.{rack}.2")],
            );
            for host in 0..hosts {
                let name = format!("h{rack}-{host}");
                network.add(&name);
                network.cable(
                    &name,
                    "eth0",
                    &format!("10.{rack}.{host}.2"),
                    &tor,
                    &format!("h{host}"),
                    &format!("10.{rack}.{host}.1"),
                );
                network.ip(&name, &["route", "add", "default", "via", &format!("10.{rack}.{host}.1")]);
            }
        }
        network
    }

    fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn ip(&self, namespace: &str, arguments: &[&str]) {
        run("ip", &[&["-n", &self.full(namespace)], arguments].concat()).unwrap();
    }

    fn add(&mut self, name: &str) {
        run("ip", &["netns", "add", &self.full(name)]).unwrap();
        self.namespaces.push(self.full(name));
        self.ip(name, &["link", "set", "lo", "up"]);
        self.inside(name, || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            // Cubic takes longer than a test to share a link evenly.
            let _ = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
            // Routers that limit ICMP replies would hide hops.
            let _ = std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0");
        });
    }

    fn cable(&self, a: &str, a_end: &str, a_address: &str, b: &str, b_end: &str, b_address: &str) {
        let (a_full, b_full) = (self.full(a), self.full(b));
        let ends = [
            &["link", "add", a_end, "netns", &a_full, "type", "veth", "peer", "name"][..],
            &[b_end, "netns", &b_full],
        ];
        run("ip", &ends.concat()).unwrap();
        for (namespace, end, address) in [(a, a_end, a_address), (b, b_end, b_address)] {
            self.ip(namespace, &["addr", "add", &format!("{address}/30"), "dev", end]);
            // Segmentation offload is off: a queue drops all or none of a large packet that the interface splits, so
            // connections would not share a link evenly.
            self.ip(namespace, &["link", "set", end, "gso_max_segs", "1", "up"]);
        }
    }

    /// Limits the rate of an interface in the sending direction.
    fn limit(&self, namespace: &str, end: &str, mbit: u32) {
        let (full, rate) = (self.full(namespace), format!("{mbit}mbit"));
        let queue = ["rate", &rate, "burst", "16kb", "latency", "20ms"];
        run("tc", &[&["-n", &full, "qdisc", "replace", "dev", end, "root", "tbf"][..], &queue].concat())
            .unwrap();
    }

    /// Limits a host's sending rate.
    pub fn limit_host(&self, host: (usize, usize), mbit: u32) {
        self.limit(&format!("h{}-{}", host.0, host.1), "eth0", mbit);
    }

    /// Limits the rate out of a rack.
    pub fn limit_rack(&self, rack: usize, mbit: u32) {
        self.limit(&format!("tor{rack}"), "up0", mbit);
    }

    /// Runs a function in a namespace; sockets opened there stay there.
    pub fn inside<T: Send>(&self, name: &str, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.full(name));
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let namespace = File::open(&path).unwrap();
                nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs a function at a host.
    pub fn at<T: Send>(&self, host: (usize, usize), work: impl FnOnce() -> T + Send) -> T {
        self.inside(&format!("h{}-{}", host.0, host.1), work)
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
        for name in &self.namespaces {
            let _ = run("ip", &["netns", "del", name]);
        }
    }
}

/// Median of several measurements.
pub fn median(times: usize, measure: impl FnMut(usize) -> f64) -> f64 {
    let mut all: Vec<f64> = (0..times).map(measure).collect();
    all.sort_by(f64::total_cmp);
    all[times / 2]
}
