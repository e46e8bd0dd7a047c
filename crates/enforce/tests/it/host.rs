//! A lab of three hosts, and an enforcer at the first one. Without root or nftables, tests that use it are skipped with a
//! printed reason; in CI they fail.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use leeward_enforce::{
    Arguments, Bucket, Direction, Enforcer, Event, HostPromises, Settings, Status, WorkloadPromise, status,
};
use leeward_lab::{LabName, Network, NetworkOptions};
use leeward_testing::clusters::cluster;
use leeward_testing::require;

/// Hosts without a queue of their own, whose links nothing limits.
const CLUSTER: &str = "racks: 1\nhosts_per_rack: 3\nnic: 1Tbps\nrack_link: 1Tbps\n";
/// The host with the enforcer, its device, and the addresses of all hosts.
pub const HOST: &str = "r0h0";
pub const DEVICE: &str = "eth0";
pub const ADDRESSES: [&str; 3] = ["10.0.0.2", "10.0.1.2", "10.0.2.2"];
/// Link of the host: 200 Mbit/s.
pub const RATE: &str = "200Mbps";

/// Shared by the tests with a lab. One that measures the enforcer's speed takes it alone.
static LABS: RwLock<()> = RwLock::new(());

/// Right of a test to its lab; it ends after the lab.
enum Share {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// A lab, and a folder for the files and the state of the enforcer.
pub struct Host {
    pub network: Network,
    pub folder: tempfile::TempDir,
    interfaces: Vec<String>,
    version: Cell<u64>,
    _share: Share,
}

impl Host {
    /// Brings up the lab; `None` without root or nftables.
    pub fn up() -> Option<Host> {
        Host::with(Share::Shared { _guard: LABS.read().unwrap_or_else(PoisonError::into_inner) })
    }

    /// Brings up the lab when no other test of this program has one, as [`up`](Host::up) does.
    pub fn up_alone() -> Option<Host> {
        Host::with(Share::Alone { _guard: LABS.write().unwrap_or_else(PoisonError::into_inner) })
    }

    fn with(share: Share) -> Option<Host> {
        let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
        require("network namespaces", root)?;
        let nft = Command::new("nft").arg("--version").output();
        require("nftables", nft.map_err(|error| format!("nft: {error}")))?;
        let network =
            Network::up(&LabName::of_process(), &cluster(CLUSTER), NetworkOptions::default(), &|_| true);
        Some(Host {
            network: network.expect("a network"),
            folder: tempfile::tempdir().expect("a folder"),
            interfaces: vec![DEVICE.to_owned()],
            version: Cell::new(0),
            _share: share,
        })
    }

    /// The same host with another interface.
    pub fn with_interface(mut self, name: &str) -> Host {
        self.interfaces.push(name.to_owned());
        self
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("promises.json")
    }

    /// Writes the file of the promises. Each one differs from the one before.
    pub fn write(&self, workloads: Vec<WorkloadPromise>) {
        self.version.set(self.version.get() + 1);
        let (host, version) = (HOST.to_owned(), Some(self.version.get()));
        let promises = HostPromises { host, version, workloads, notes: Vec::new() };
        fs::write(self.file(), serde_json::to_vec(&promises).expect("plain values"))
            .expect("the folder is ours");
    }

    pub fn settings(&self) -> Settings {
        let settings = Settings::new(Arguments {
            workloads: Some(self.file().display().to_string()),
            host: Some(HOST.to_owned()),
            interfaces: self.interfaces.clone(),
            rate: Some(RATE.to_owned()),
            ..Arguments::default()
        });
        Settings { state: self.folder.path().to_path_buf(), ..settings.expect("valid settings") }
    }

    /// Runs a function at the host with the enforcer.
    pub fn at<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.network.at(HOST, work).expect("a host")
    }

    pub fn enforcer(&self) -> Enforcer {
        let settings = self.settings();
        self.at(|| Enforcer::new(settings)).expect("a valid file").0
    }

    /// A turn of an enforcer at the host; its events as lines.
    pub fn turn(&self, enforcer: &mut Enforcer) -> Vec<String> {
        self.at(|| enforcer.turn()).iter().map(Event::to_string).collect()
    }

    pub fn status(&self) -> Status {
        let settings = self.settings();
        self.at(|| status(&settings)).expect("tc and nft are installed")
    }

    /// Output of a shell script at a machine of the lab.
    pub fn shell(&self, machine: &str, script: &str) -> String {
        let mut command = self.network.command(machine, "sh").expect("a machine");
        let output = command.args(["-e", "-c", script]).output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Qdiscs, classes and tables of the host, without statistics.
    pub fn rules(&self) -> String {
        self.shell(HOST, "tc qdisc show; tc class show dev eth0; nft list tables")
    }

    /// A socket at a host.
    pub fn socket(&self, host: usize) -> UdpSocket {
        let address = (ADDRESSES[host], 5000);
        let socket = self.network.at(&format!("r0h{host}"), || UdpSocket::bind(address)).expect("a host");
        let socket = socket.expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
        socket
    }
}

/// A promise of packets from the host to an address.
pub fn promise(name: &str, peer: &str, priority: Option<u32>, buckets: &[(f64, f64)]) -> WorkloadPromise {
    WorkloadPromise {
        name: name.to_owned(),
        direction: Direction::ToServer,
        own: Vec::new(),
        peers: vec![peer.parse().expect("an address")],
        priority,
        buckets: buckets.iter().map(|&(rate, burst)| Bucket { rate, burst }).collect(),
    }
}

/// States of the workloads by their names.
pub fn states(status: &Status) -> BTreeMap<&str, &str> {
    status.workloads.iter().map(|row| (row.workload.as_str(), row.state)).collect()
}

/// The machine's monotonic clock.
pub fn now() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic)).expect("it is positive")
}
