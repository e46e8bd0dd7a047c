//! Hosts of a lab: one namespace each, with one TUN device behind a queue that has the rate of the host's NIC.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::thread;

use leeward_fabric::Bandwidth;
use leeward_packets::Settings;
use leeward_packets::workload::Place;

use crate::cgroup::PROCESSES;
use crate::clock::TIMER_LATENESS_US;
use crate::drops::{DropReader, Drops};
use crate::error::LabError;
use crate::inside::Inside;
use crate::kernel::{KernelSettings, write_sysctls};
use crate::machine::Machine;
use crate::names::{Address, DEVICE, LabName, MOST_HOSTS};
use crate::part::Part;
use crate::programs::batch;
use crate::state::{State, files_of};
use crate::tun;

/// Frames that a device may hold for the switch. The switch takes frames at once; a queue of this length is lost only
/// if the switch stands still.
const DEVICE_QUEUE: u32 = 10_000;
/// Counters of the kernel's TCP in the namespace of a thread.
const COUNTERS: &str = "/proc/thread-self/net/netstat";
/// Bytes that may wait for the NIC: senders that do not slow down are dropped beyond it.
const NIC_QUEUE: u64 = 64 << 20;

/// Send rates of hosts, in real bits per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nics {
    /// Rate of every host.
    pub rate: u64,
    /// Hosts with another rate, and the bytes that they may send at once.
    pub limits: Vec<(Place, u64, u64)>,
}

impl Nics {
    /// Rates of the NICs of a scenario under a dilation.
    pub fn of(settings: &Settings, dilation: u32) -> Nics {
        let real = |rate: Bandwidth| (rate.0 / u64::from(dilation)).max(1);
        let limits = settings.limits.iter().map(|limit| (limit.host, real(limit.rate), limit.bucket));
        Nics { rate: real(settings.nic), limits: limits.collect() }
    }
}

/// Control group, environment and files of the programs at the hosts. The caller makes the group and the files; the
/// removal of the hosts removes them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Programs {
    /// Control group of all programs.
    pub group: Option<PathBuf>,
    /// Variables of their environment.
    pub environment: Vec<(String, String)>,
    /// Folder of the files.
    pub folder: Option<PathBuf>,
    /// Files that the lab makes while it runs.
    pub files: Vec<PathBuf>,
}

/// Hosts that exist as namespaces. Dropping the value removes them.
#[derive(Debug)]
pub struct Hosts {
    state: State,
    namespaces: Vec<String>,
    places: Vec<Place>,
    devices: Vec<File>,
    drops: Vec<DropReader>,
}

impl Hosts {
    /// Makes the namespaces of hosts. `progress` receives the completed share and returns false to stop.
    ///
    /// # Errors
    /// Returns an error without root, without TUN devices, or if a lab of this name is up. Nothing is left behind.
    pub fn make(
        name: &LabName,
        places: Vec<Place>,
        nics: &Nics,
        kernel: &KernelSettings,
        programs: Programs,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<Hosts, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        for (field, most) in [
            ("network.racks", places.iter().map(|place| place.rack).max()),
            ("network.hosts_per_rack", places.iter().map(|place| place.host).max()),
        ] {
            let count = most.map_or(0, |most| most as usize + 1);
            if count > Address::MOST {
                let problem = format!("{count}: a lab has addresses for at most {}", Address::MOST);
                return Err(LabError::Unsupported { field, problem });
            }
        }
        if places.len() > MOST_HOSTS {
            let problem = format!("{} hosts in all: a lab has at most {MOST_HOSTS}", places.len());
            return Err(LabError::Unsupported { field: "network.hosts_per_rack", problem });
        }
        let namespaces: Vec<String> = places.iter().map(|place| name.namespace(&place.to_string())).collect();
        let machine = |(place, namespace): (&Place, &String)| Machine {
            place: place.to_string(),
            name: place.to_string(),
            namespace: namespace.clone(),
            address: Address(*place).ip(),
            is_host: true,
            disks: Vec::new(),
            cgroups: programs.group.iter().map(|group| group.join(PROCESSES)).collect(),
            environment: programs.environment.clone(),
        };
        let machines = places.iter().zip(&namespaces).map(machine).collect();
        let mut parts: Vec<Part> = programs.folder.clone().map(Part::Folder).into_iter().collect();
        parts.extend(namespaces.iter().flat_map(|namespace| files_of(namespace)));
        parts.extend(namespaces.iter().cloned().map(Part::Namespace));
        parts.extend(programs.group.clone().map(Part::Cgroup));
        parts.extend(programs.files.iter().map(|file| Part::File(file.clone())));
        let state = State::begin(name, parts, machines)?;
        let mut hosts = Hosts { state, namespaces, places, devices: Vec::new(), drops: Vec::new() };
        hosts.make_namespaces()?;
        hosts.make_devices(kernel)?;
        hosts.connect(nics, kernel, progress)?;
        hosts.name_addresses()?;
        Ok(hosts)
    }

    /// Namespaces, in the order of hosts.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Places of hosts, in their order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Devices, in the order of hosts.
    pub(crate) fn devices(&self) -> &[File] {
        &self.devices
    }

    fn make_namespaces(&self) -> Result<(), LabError> {
        let script: String = self.namespaces.iter().map(|name| format!("netns add {name}\n")).collect();
        batch("ip", &["-batch", "-"], &script).map(drop)
    }

    fn make_devices(&mut self, kernel: &KernelSettings) -> Result<(), LabError> {
        let namespaces = &self.namespaces;
        let make = || {
            let inside = Inside::new()?;
            let mut devices = Vec::with_capacity(namespaces.len());
            let mut drops = Vec::with_capacity(namespaces.len());
            for namespace in namespaces {
                inside.enter(namespace)?;
                write_sysctls(kernel.sysctls.iter().map(|(setting, value)| (*setting, value.as_str())))?;
                devices.push(tun::open(DEVICE)?);
                drops.push(DropReader::open()?);
            }
            Ok::<_, LabError>((devices, drops))
        };
        // A thread of its own visits the namespaces, so that the caller's thread never leaves its own.
        (self.devices, self.drops) =
            thread::scope(|scope| scope.spawn(make).join().expect("the thread does not panic"))?;
        Ok(())
    }

    fn connect(
        &self,
        nics: &Nics,
        kernel: &KernelSettings,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<(), LabError> {
        let mtu = kernel.mtu;
        for (number, (namespace, &place)) in self.namespaces.iter().zip(&self.places).enumerate() {
            if !progress(number as f64 / self.places.len() as f64) {
                return Err(LabError::Stopped);
            }
            let address = Address(place).ip();
            let script = format!(
                "link set lo up\n\
                 link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE}\n\
                 link set {DEVICE} gso_max_segs 1\n\
                 addr add {address}/32 dev {DEVICE}\n\
                 link set {DEVICE} up\n\
                 route add {}\n",
                route(address, kernel)
            );
            batch("ip", &["-n", namespace, "-batch", "-"], &script)?;
            let limit = nics.limits.iter().find(|(limited, ..)| *limited == place);
            let (rate, bucket) =
                limit.map_or((nics.rate, 0), |&(_, rate, bucket)| (rate.min(nics.rate), bucket));
            let slack = u64::from(mtu) + rate / 8 * TIMER_LATENESS_US / 1_000_000;
            let queue = format!(
                "qdisc add dev {DEVICE} root tbf rate {}bit burst {} limit {NIC_QUEUE}\n",
                rate.max(8),
                bucket.max(slack)
            );
            batch("tc", &["-n", namespace, "-batch", "-"], &queue)?;
        }
        Ok(())
    }

    /// Gives connections of programs at all hosts the congestion control of the lab. Its BPF program must be loaded.
    pub(crate) fn use_control(&self, kernel: &KernelSettings) -> Result<(), LabError> {
        for (namespace, &place) in self.namespaces.iter().zip(&self.places) {
            let route = route(Address(place).ip(), kernel);
            let script = format!("route change {route} congctl {}\n", kernel.control);
            batch("ip", &["-n", namespace, "-batch", "-"], &script)?;
        }
        Ok(())
    }

    /// Writes the names of all hosts where `ip netns exec` looks for them: `r3h1` is host 1 of rack 3.
    fn name_addresses(&self) -> Result<(), LabError> {
        let mut text = String::from("127.0.0.1 localhost\n");
        for &place in &self.places {
            let _ = writeln!(text, "{} {place}", Address(place).ip());
        }
        self.state.write_files(&text)
    }

    /// Number of times at which the kernel was short of memory for TCP at a host. It then closes the windows of receivers.
    ///
    /// # Errors
    /// Returns an error if the counters of a namespace cannot be read.
    pub(crate) fn memory_shortages(&self) -> Result<u64, LabError> {
        let read = || {
            let inside = Inside::new()?;
            let mut shortages = 0;
            for namespace in &self.namespaces {
                inside.enter(namespace)?;
                let text = fs::read_to_string(COUNTERS).map_err(LabError::system(COUNTERS))?;
                shortages += counter(&text, "TCPMemoryPressures").unwrap_or(0);
            }
            Ok(shortages)
        };
        thread::scope(|scope| scope.spawn(read).join().expect("the thread does not panic"))
    }

    /// Frames that the kernels of all hosts have dropped.
    pub(crate) fn drops(&self) -> Result<Drops, LabError> {
        self.drops.iter().map(DropReader::read).sum()
    }
}

/// Counter of a name in the kernel's table: a line of names before each line of values.
fn counter(table: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let mut pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        if let Some((_, value)) = pairs.find(|(known, _)| *known == name) {
            return value.parse().ok();
        }
    }
    None
}

/// Route of a host to all others, in the words of `ip route`.
fn route(address: Ipv4Addr, kernel: &KernelSettings) -> String {
    format!("10.0.0.0/8 dev {DEVICE} src {address} {}", kernel.route)
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.devices.clear();
        self.state.remove_on_drop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let table = "TcpExt: SyncookiesSent TCPMemoryPressures\nTcpExt: 3 7\nIpExt: InOctets\nIpExt: 9\n";
        assert_eq!(counter(table, "TCPMemoryPressures"), Some(7));
        assert_eq!(counter(table, "InOctets"), Some(9));
        assert_eq!(counter(table, "OutOctets"), None);
        assert_eq!(counter("TcpExt: A", "A"), None);
    }
}
