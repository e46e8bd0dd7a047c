//! Counters of pods from real network namespaces. Processes in these have the files of a real `/proc`, beside cgroups of
//! this test. Without root, the tests are skipped with a printed reason; in CI they fail.

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use leeward_agent::{
    Count, Disks, Interface, LeftOut, Machine, Meter, PodTraffic, Reading, ReportSchedule, Reporter,
};
use leeward_fabric::Nanos;
use leeward_testing::require;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Datagrams of a transfer, and bytes of each on the link.
const DATAGRAMS: u64 = 2_000;
const PAYLOAD: usize = 1_000;
const HEADERS: u64 = 42;

/// Network namespaces that end with the test.
struct Namespaces(String, Vec<&'static str>);

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("`ip` is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Namespaces {
    fn new(names: &[&'static str]) -> Namespaces {
        let prefix = format!("leeward-pods-{}-{:?}", std::process::id(), thread::current().id());
        let prefix = prefix.replace(['(', ')'], "");
        let namespaces = Namespaces(prefix, names.to_vec());
        names.iter().for_each(|name| ip(&format!("netns add {}", namespaces.name(name))));
        namespaces
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.0)
    }

    /// Connects two namespaces. Each end is an interface with an address.
    fn connect(&self, [from, to]: [&str; 2], interface: &str, addresses: [&str; 2]) {
        let (one, other) = (self.name(from), self.name(to));
        ip(&format!("link add {interface} netns {one} type veth peer name {interface} netns {other}"));
        for (namespace, address) in [&one, &other].into_iter().zip(addresses) {
            ip(&format!("-n {namespace} address add {address}/24 dev {interface}"));
            ip(&format!("-n {namespace} link set {interface} up"));
        }
    }

    /// Runs a function in a namespace.
    fn at<T: Send>(&self, name: &str, run: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.name(name))).expect("the namespace exists");
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
                run()
            });
            inside.join().expect("the function returns")
        })
    }

    /// Sends datagrams from a namespace to an address of another one.
    fn send(&self, [from, to]: [&str; 2], address: Ipv4Addr) {
        let receiver = self.at(to, || UdpSocket::bind((address, 0)).expect("a port"));
        let target = receiver.local_addr().expect("an address");
        let sender = self.at(from, || UdpSocket::bind("0.0.0.0:0").expect("a port"));
        for _ in 0..DATAGRAMS {
            assert_eq!(sender.send_to(&[7; PAYLOAD], target).expect("the peer exists"), PAYLOAD);
            receiver.recv(&mut [0; 2 * PAYLOAD]).expect("a datagram");
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.1 {
            let _ = Command::new("ip").args(["netns", "del", &self.name(name)]).status();
        }
    }
}

/// A folder of processes, which end with the test.
struct Processes(tempfile::TempDir, Vec<Child>);

impl Processes {
    /// A folder with this process as the first one of the machine.
    fn new() -> Processes {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("1")).expect("a folder");
        symlink("/proc/self/net", folder.path().join("1/net")).expect("a link");
        Processes(folder, Vec::new())
    }

    /// Starts a process in a namespace, or else in that of the machine, with a cgroup.
    fn start(&mut self, namespaces: &Namespaces, name: Option<&str>, cgroup: &str) {
        let mut command = match name {
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &namespaces.name(name), "sleep", "600"]);
                command
            }
            None => Command::new("sleep"),
        };
        if name.is_none() {
            command.arg("600");
        }
        let child = command.process_group(0).spawn().expect("`ip` and `sleep` are installed");
        let (number, root) = (child.id(), self.0.path().to_owned());
        self.1.push(child);
        // `ip` becomes `sleep` once it is in the namespace.
        while fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name != "sleep\n") {
            thread::yield_now();
        }
        // The kernel counts the starts of processes in ticks of 10 ms.
        thread::sleep(std::time::Duration::from_millis(20));
        let process = root.join(number.to_string());
        fs::create_dir(&process).expect("a folder");
        fs::write(process.join("cgroup"), format!("0::{cgroup}\n")).expect("a file");
        for file in ["stat", "net"] {
            symlink(format!("/proc/{number}/{file}"), process.join(file)).expect("a link");
        }
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.1 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const SENDER: &str = "5f0c9b9e1d3a4f439a539b0c2f1b7d50";
const RECEIVER: &str = "5f0c9b9e1d3a4f439a539b0c2f1b7d51";
const HOST: &str = "5f0c9b9e1d3a4f439a539b0c2f1b7d52";
const OTHER: &str = "5f0c9b9e1d3a4f439a539b0c2f1b7d53";

fn cgroup(uid: &str) -> String {
    format!(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice/cri-containerd-0.scope"
    )
}

/// An agent that reads pods, with a clock of the test.
struct Agent {
    machine: Machine,
    reporter: Reporter,
}

impl Agent {
    fn new(processes: &Processes) -> Agent {
        let machine = Machine::default().with_pods(Some(processes.folder().to_owned()));
        let schedule = ReportSchedule::new(Nanos::SECOND, Nanos(0), 0.0);
        let reporter = Reporter::new("r0h1".to_owned(), Meter::new([]), Disks::default(), schedule);
        Agent { machine, reporter }
    }

    /// Reads the machine, and returns the traffic of pods in the report, with the pods that were left out.
    fn read(&mut self, second: u64) -> (Vec<PodTraffic>, Option<LeftOut>) {
        let at = Nanos(second * Nanos::SECOND.0);
        let reading = self.machine.read(at, at.plus(Nanos::SECOND)).expect("a reading");
        let left_out = reading.pods.as_ref().map(|pods| pods.left_out);
        // Machines of tests may have no physical interface.
        let interface = Interface {
            index: 1,
            name: "eth0".to_owned(),
            master: None,
            physical: true,
            received: Count::default(),
            sent: Count::default(),
            speed_bps: None,
            queued: None,
        };
        self.reporter.read(&Reading { interfaces: vec![interface], ..reading });
        let report = self.reporter.report(at);
        (report.map(|report| report.pods).unwrap_or_default(), left_out)
    }
}

/// True if a rate over half a minute is that of the datagrams, with a few more packets.
fn is_transfer(bps: u64) -> bool {
    let bits = 8 * DATAGRAMS * (PAYLOAD as u64 + HEADERS);
    (bits / 30..bits / 30 * 11 / 10).contains(&bps)
}

fn root() -> Option<()> {
    let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
    require("network namespaces", root)
}

#[test]
fn the_traffic_of_a_pod_is_that_of_its_own_network_and_host_pods_are_left_out() {
    let Some(()) = root() else { return };
    let namespaces = Namespaces::new(&["sender", "receiver", "inner", "outer"]);
    namespaces.connect(["sender", "receiver"], "eth0", ["10.77.0.1", "10.77.0.2"]);
    namespaces.connect(["inner", "outer"], "eth0", ["10.78.0.1", "10.78.0.2"]);
    // The network of this pod has another interface than Kubernetes requires.
    namespaces.connect(["outer", "receiver"], "net1", ["10.79.0.1", "10.79.0.2"]);
    let mut processes = Processes::new();
    processes.start(&namespaces, Some("sender"), &cgroup(SENDER));
    processes.start(&namespaces, Some("receiver"), &cgroup(RECEIVER));
    processes.start(&namespaces, None, &cgroup(HOST));
    // A container inside the pod has a network of its own, and the name of another pod in its cgroup.
    processes.start(&namespaces, Some("inner"), &format!("{}{}", cgroup(SENDER), cgroup(RECEIVER)));
    processes.start(&namespaces, None, "/system.slice/kubelet.service");
    let mut agent = Agent::new(&processes);
    let expected = LeftOut { host_network: 1, ..LeftOut::default() };
    assert_eq!(agent.read(0), (Vec::new(), Some(expected)));
    namespaces.send(["sender", "receiver"], Ipv4Addr::new(10, 77, 0, 2));
    namespaces.send(["outer", "inner"], Ipv4Addr::new(10, 78, 0, 1));
    namespaces.send(["outer", "receiver"], Ipv4Addr::new(10, 79, 0, 2));
    assert_eq!(agent.read(29), (Vec::new(), None), "pods are read twice a minute");
    let (pods, left_out) = agent.read(30);
    assert_eq!(left_out, Some(expected));
    let [sender, receiver] = pods.as_slice() else { panic!("{pods:?}") };
    assert_eq!((sender.pod.as_str(), receiver.pod.as_str()), (SENDER, RECEIVER));
    assert_eq!(sender.host, "r0h1");
    assert!(is_transfer(sender.egress_bps) && sender.ingress_bps < 1_000, "{sender:?}");
    assert!(is_transfer(receiver.ingress_bps) && receiver.egress_bps < 1_000, "{receiver:?}");
}

#[test]
fn a_pod_without_eth0_is_counted_and_one_that_ended_is_not() {
    let Some(()) = root() else { return };
    let namespaces = Namespaces::new(&["pod", "peer", "empty"]);
    namespaces.connect(["pod", "peer"], "eth0", ["10.77.0.1", "10.77.0.2"]);
    let mut processes = Processes::new();
    processes.start(&namespaces, Some("pod"), &cgroup(SENDER));
    processes.start(&namespaces, Some("empty"), &cgroup(OTHER));
    let mut agent = Agent::new(&processes);
    let left_out = LeftOut { no_interface: 1, ..LeftOut::default() };
    assert_eq!(agent.read(0), (Vec::new(), Some(left_out)));
    let (pods, _) = agent.read(30);
    assert_eq!(pods.len(), 1, "{pods:?}");
    for child in &mut processes.1 {
        child.kill().expect("the process runs");
        child.wait().expect("the process ends");
    }
    assert_eq!(agent.read(60), (Vec::new(), Some(LeftOut::default())));
}

#[test]
fn a_user_without_privileges_reads_the_same() {
    let Some(()) = root() else { return };
    let namespaces = Namespaces::new(&["pod", "peer"]);
    namespaces.connect(["pod", "peer"], "eth0", ["10.77.0.1", "10.77.0.2"]);
    let mut processes = Processes::new();
    processes.start(&namespaces, Some("pod"), &cgroup(SENDER));
    let process = processes.1[0].id();
    let read = Command::new("cat")
        .args([format!("/proc/{process}/net/dev"), format!("/proc/{process}/cgroup")])
        .arg(format!("/proc/{process}/stat"))
        .uid(65_534)
        .gid(65_534)
        .output()
        .expect("`cat` is installed");
    let text = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success() && text.contains("eth0:"), "{text}");
}
