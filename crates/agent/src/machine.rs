//! Machine adapter: reads interfaces and disks from `/sys/class/net`, netlink, `/proc/diskstats` and `/sys/block`, the
//! storage of volumes, and pods from the folder of processes.
//!
//! The mounted sysfs determines the network namespace: `ip netns exec` mounts its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use leeward_fabric::Nanos;

use crate::count::Count;
use crate::disks::{self, Disk};
use crate::pods;
use crate::queues::Queues;
use crate::reading::{Interface, Reading};
use crate::volumes;

/// Shortest time between two readings of pods. The peaks of workloads are percentiles of means over this time (Hotspots,
/// section 5.1: reports of 30 s).
const POD_INTERVAL: Nanos = Nanos(30 * Nanos::SECOND.0);

/// A machine to read.
pub struct Machine {
    root: PathBuf,
    /// Reader of queue lengths, or the error that prevents it.
    queues: io::Result<Queues>,
    /// Speed of each present interface, with the number of link changes when the speed was read.
    speeds: BTreeMap<u32, (u64, u64)>,
    /// For each present disk: true if it is a drive of the machine.
    physical: BTreeMap<String, bool>,
    /// Folders whose file systems store the host's data.
    volumes: Vec<PathBuf>,
    /// Folder of processes, from which pods are read, and time from which the next reading has them; `None` without pods.
    pods: Option<(PathBuf, Nanos)>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new("/", Queues::open())
    }
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// Returns true if an interface has no link; `None` if the interface does not report its state.
fn has_no_link(folder: &Path) -> Option<bool> {
    let state = fs::read_to_string(folder.join("operstate")).ok()?;
    Some(matches!(state.trim(), "down" | "lowerlayerdown" | "notpresent"))
}

/// Returns true for a fixed drive of the machine, not for removable media or for a second path to the same drive.
fn is_drive(folder: &Path) -> bool {
    folder.join("device").exists()
        && ["hidden", "removable"].iter().all(|flag| number(folder, flag) != Some(1))
}

impl Machine {
    /// Reads files below `root`, a folder laid out like `/`.
    pub(crate) fn new(root: impl Into<PathBuf>, queues: io::Result<Queues>) -> Machine {
        let (speeds, physical, volumes) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Machine { root: root.into(), queues, speeds, physical, volumes, pods: None }
    }

    /// Sets the folders whose file systems store the host's data.
    #[must_use]
    pub fn with_volumes(self, volumes: Vec<PathBuf>) -> Machine {
        Machine { volumes, ..self }
    }

    /// Sets the folder of processes, from which pods are read.
    #[must_use]
    pub fn with_pods(self, folder: Option<PathBuf>) -> Machine {
        Machine { pods: folder.map(|folder| (folder, Nanos(0))), ..self }
    }

    /// Reads all interfaces, disks and volumes, and from time to time the pods, at a given time of both clocks.
    ///
    /// # Errors
    /// Returns the system's error about interfaces; an interface that disappears meanwhile is left out.
    pub fn read(&mut self, at: Nanos, wall: Nanos) -> io::Result<Reading> {
        let mut unread = Vec::new();
        let queues = match &self.queues {
            Ok(queues) => queues.read().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let queues = queues.unwrap_or_else(|why| {
            unread.push(format!("queue lengths of interfaces: {why}"));
            BTreeMap::new()
        });
        let mut interfaces = Vec::new();
        for entry in fs::read_dir(self.root.join("sys/class/net"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            interfaces.extend(self.interface(&entry.path(), name, &queues));
        }
        let disks = self.disks().unwrap_or_else(|error| {
            unread.push(format!("disks: /proc/diskstats: {error}"));
            Vec::new()
        });
        let storage = match volumes::read(&self.volumes) {
            Ok(storage) => Some(storage).filter(|_| !self.volumes.is_empty()),
            Err(why) => {
                unread.push(why);
                None
            }
        };
        let pods = self.pods.as_mut().filter(|(_, due)| at >= *due).and_then(|(folder, due)| {
            *due = at.plus(POD_INTERVAL);
            pods::read(folder).map_err(|why| unread.push(why)).ok()
        });
        // A new interface or disk may reuse the index or name of an earlier interface or disk.
        self.speeds.retain(|index, _| interfaces.iter().any(|one| one.index == *index));
        self.physical.retain(|name, _| disks.iter().any(|disk| disk.name == *name));
        Ok(Reading { at, wall, interfaces, disks, storage, pods, unread })
    }

    /// Reads an interface; `None` if the interface disappears meanwhile.
    fn interface(&mut self, folder: &Path, name: String, queues: &BTreeMap<u32, u64>) -> Option<Interface> {
        let counters = folder.join("statistics");
        let count = |way: &str| {
            Some(Count {
                bytes: number(&counters, &format!("{way}_bytes"))?,
                packets: number(&counters, &format!("{way}_packets"))?,
            })
        };
        // A card's own counters include the traffic of its virtual functions.
        let physical = folder.join("device").exists() && !folder.join("device/physfn").exists();
        let index = u32::try_from(number(folder, "ifindex")?).ok()?;
        let (received, sent) = (count("rx")?, count("tx")?);
        let speed_bps = if physical { self.speed(folder, index) } else { None };
        let queued = queues.get(&index).copied();
        let master = number(&folder.join("master"), "ifindex").and_then(|index| u32::try_from(index).ok());
        Some(Interface { index, name, master, physical, received, sent, speed_bps, queued })
    }

    /// Speed of an interface in each direction, in bits per second: 0 without a link, `None` if the interface does not
    /// report it. Cards report their speed slowly, and the speed changes only when the link comes up again, so it is
    /// cached.
    fn speed(&mut self, folder: &Path, index: u32) -> Option<u64> {
        if has_no_link(folder)? {
            return Some(0);
        }
        let changes = number(folder, "carrier_changes");
        let known = self.speeds.get(&index).filter(|&&(then, _)| changes == Some(then));
        if let Some(&(_, speed)) = known {
            return Some(speed);
        }
        // The unit is Mbit/s. An interface without a known speed reports -1, 0 or nothing.
        let speed = number(folder, "speed").filter(|&speed| speed > 0)?.checked_mul(1_000_000)?;
        if let Some(changes) = changes {
            self.speeds.insert(index, (changes, speed));
        }
        Some(speed)
    }

    fn disks(&mut self) -> io::Result<Vec<Disk>> {
        let text = fs::read_to_string(self.root.join("proc/diskstats"))?;
        let disk = |line| {
            let disk = disks::disk(line)?;
            let folder = self.root.join("sys/block").join(&disk.name);
            let physical = match self.physical.get(&disk.name) {
                Some(&physical) => physical,
                None => {
                    let physical = is_drive(&folder);
                    self.physical.insert(disk.name.clone(), physical);
                    physical
                }
            };
            // A partition has the flag of its disk, whose folder contains the partition's folder.
            let part = self.root.join("sys/class/block").join(&disk.name).join("..");
            let iostats = number(&folder, "queue/iostats").or_else(|| number(&part, "queue/iostats"));
            let counted = iostats != Some(0);
            Some(Disk { physical, counted, ..disk })
        };
        Ok(text.lines().filter_map(disk).collect())
    }

    /// Host name of the machine.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn name() -> io::Result<String> {
        Ok(fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Device;
    use crate::counters::Meter;
    use crate::report::{Disks, Reporter};
    use crate::report_schedule::ReportSchedule;

    /// A machine below a temporary folder, and a function that writes files there.
    fn machine() -> (Machine, impl Fn(&str, &str)) {
        let folder = tempfile::tempdir().expect("a folder");
        let none = io::Error::other("there is no kernel");
        let machine = Machine::new(folder.path(), Err(none));
        let write = move |path: &str, text: &str| {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("a file in the folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        };
        (machine, write)
    }

    #[test]
    fn interfaces_are_read_and_other_entries_are_skipped() {
        let (mut machine, write_below) = machine();
        let write = |path: &str, text: &str| write_below(&format!("sys/class/net/{path}"), text);
        assert!(machine.read(Nanos(1), Nanos(2)).is_err());
        for (at, name) in ["eth0", "bond0", "vf0", "half"].iter().enumerate() {
            write(&format!("{name}/ifindex"), &format!("{}\n", at + 2));
            for counter in ["rx_bytes", "rx_packets", "tx_bytes"] {
                write(&format!("{name}/statistics/{counter}"), "18446744073709551615\n");
            }
            if *name != "half" {
                write(&format!("{name}/statistics/tx_packets"), "7\n");
            }
        }
        write("eth0/device/vendor", "");
        write("vf0/device/physfn/vendor", "");
        write("bonding_masters", "bond0\n");
        write("eth0/master/ifindex", "3\n");
        let read = machine.read(Nanos(1), Nanos(2)).expect("the folder exists");
        let found =
            read.interfaces.iter().map(|one| (one.name.as_str(), one.index, one.master, one.physical));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        let expected = [("bond0", 3, None, false), ("eth0", 2, Some(3), true), ("vf0", 4, None, false)];
        assert_eq!(found, expected);
        assert_eq!(read.interfaces[0].received, Count { bytes: u64::MAX, packets: u64::MAX });
        assert_eq!(read.unread.len(), 2, "{:?}", read.unread);
    }

    #[test]
    fn speeds_are_read_from_cards_and_again_after_link_changes() {
        let (mut machine, write) = machine();
        for file in ["rx_bytes", "rx_packets", "tx_bytes", "tx_packets"] {
            write(&format!("sys/class/net/eth0/statistics/{file}"), "7");
        }
        write("sys/class/net/eth0/ifindex", "2");
        write("sys/class/net/eth0/speed", "10000");
        let mut speed = |files: &[(&str, &str)]| {
            for (file, text) in files {
                write(&format!("sys/class/net/eth0/{file}"), text);
            }
            let read = machine.read(Nanos(1), Nanos(2)).expect("the folder exists");
            read.interfaces[0].speed_bps
        };
        assert_eq!(
            speed(&[("operstate", "up"), ("carrier_changes", "1")]),
            None,
            "the card has no speed yet"
        );
        assert_eq!(speed(&[("device/vendor", "")]), Some(10_000_000_000));
        assert_eq!(speed(&[("speed", "1000")]), Some(10_000_000_000), "the link is the same");
        assert_eq!(speed(&[("carrier_changes", "3")]), Some(1_000_000_000));
        assert_eq!(speed(&[("operstate", "down")]), Some(0), "operstate changes before the counter");
        assert_eq!(speed(&[("operstate", "up")]), Some(1_000_000_000));
        // While the link comes up, the card reports no valid speed, and nothing may be cached.
        for unknown in ["-1", "0", ""] {
            let coming = [("carrier_changes", "5"), ("speed", unknown)];
            assert_eq!(speed(&coming), None, "`{unknown}`");
        }
        assert_eq!(speed(&[("speed", "25000")]), Some(25_000_000_000));
        assert_eq!(speed(&[("speed", "-1")]), Some(25_000_000_000), "the last known speed of this link");
    }

    #[test]
    fn reused_indices_and_names_get_new_values() {
        let (mut machine, write) = machine();
        let line = |name: &str| format!("8 0 {name} 1 0 2 0 3 0 4 0 5 6 7 0 0 0 0 0 0\n");
        let mut read = |index: &str, speed: &str, disk: &str, removable: &str| {
            for file in ["rx_bytes", "rx_packets", "tx_bytes", "tx_packets"] {
                write(&format!("sys/class/net/eth0/statistics/{file}"), "7");
            }
            for (file, text) in [("ifindex", index), ("carrier_changes", "1"), ("operstate", "up")] {
                write(&format!("sys/class/net/eth0/{file}"), text);
            }
            write("sys/class/net/eth0/device/vendor", "");
            write("sys/class/net/eth0/speed", speed);
            write(&format!("sys/block/{disk}/device/vendor"), "");
            write(&format!("sys/block/{disk}/removable"), removable);
            write("proc/diskstats", &line(disk));
            let read = machine.read(Nanos(1), Nanos(2)).expect("the folder exists");
            (read.interfaces[0].speed_bps, read.disks[0].physical)
        };
        assert_eq!(read("2", "1000", "sda", "0"), (Some(1_000_000_000), true));
        assert_eq!(
            read("2", "10000", "sda", "1"),
            (Some(1_000_000_000), true),
            "values of the same index and name are cached"
        );
        assert_eq!(read("3", "10000", "sdb", "0"), (Some(10_000_000_000), true));
        assert_eq!(read("2", "25000", "sda", "1"), (Some(25_000_000_000), false));
    }

    #[test]
    fn physical_disks_are_drives_without_partitions_and_arrays() {
        let (mut machine, write) = machine();
        write("sys/class/net/none", "");
        for (file, text) in
            [("sda/device/vendor", ""), ("sr0/device/vendor", ""), ("sr0/removable", "1"), ("dm-0/dm", "")]
        {
            write(&format!("sys/block/{file}"), text);
        }
        let line = |name: &str| format!("8 0 {name} 1 0 2 0 3 0 4 0 5 6 7 0 0 0 0 0 0\n");
        write("proc/diskstats", &["sda", "sda1", "sr0", "dm-0"].map(line).concat());
        let read = machine.read(Nanos(1), Nanos(2)).expect("the folder exists");
        let found: Vec<_> = read.disks.iter().map(|disk| (disk.name.as_str(), disk.physical)).collect();
        assert_eq!(found, [("sda", true), ("sda1", false), ("sr0", false), ("dm-0", false)]);
    }

    #[test]
    fn uncounted_disks_are_marked_with_their_partitions() {
        let (mut machine, write) = machine();
        write("sys/class/net/none", "");
        let line = |name: &str| format!("8 0 {name} 1 0 2 0 3 0 4 0 5 6 7 0 0 0 0 0 0\n");
        write("proc/diskstats", &["sda", "sda1", "sdb", "sdc"].map(line).concat());
        // The folder of a partition is inside the folder of its disk.
        write("sys/block/sda/sda1/size", "1");
        write("sys/class/block/none", "");
        let folder = machine.root.join("sys/class/block/sda1");
        std::os::unix::fs::symlink("../../block/sda/sda1", folder).expect("a link");
        let mut counted = |iostats: &str| {
            write("sys/block/sda/queue/iostats", iostats);
            write("sys/block/sdb/queue/iostats", "1\n");
            let read = machine.read(Nanos(1), Nanos(2)).expect("the folder exists");
            read.disks.iter().map(|disk| disk.counted).collect::<Vec<_>>()
        };
        assert_eq!(counted("1\n"), [true; 4]);
        assert_eq!(counted("0\n"), [false, false, true, true]);
        assert_eq!(counted("1\n"), [true; 4]);
    }

    #[test]
    fn reports_have_the_content_of_the_files_of_interfaces_and_disks() {
        let (mut machine, write) = machine();
        for (file, text) in
            [("ifindex", "2"), ("operstate", "up"), ("carrier_changes", "1"), ("speed", "10000")]
        {
            write(&format!("sys/class/net/eth0/{file}"), text);
        }
        write("sys/class/net/eth0/device/vendor", "");
        for disk in ["sda", "sdb"] {
            write(&format!("sys/block/{disk}/device/vendor"), "");
            write(&format!("sys/block/{disk}/queue/iostats"), "1");
        }
        let schedule = ReportSchedule::new(Nanos::SECOND, Nanos(0), 0.0);
        let disks = Disks::new([("sdb".to_owned(), "disk0".to_owned())]);
        let mut reporter = Reporter::new("r0h1".to_owned(), Meter::new([]), disks, schedule);
        for second in [0, 2] {
            for file in ["rx_bytes", "rx_packets", "tx_bytes", "tx_packets"] {
                write(&format!("sys/class/net/eth0/statistics/{file}"), &(1_000_000 * second).to_string());
            }
            // sdb: 3 requests read 4 sectors, 5 wrote 8; busy for 500 ms with 1,000 ms of waiting; 2 in the disk now.
            let [reads, read, writes, written, busy, waited] =
                [3, 4, 5, 8, 500, 1_000].map(|count: u64| count * second / 2);
            let line = format!("8 16 sdb {reads} 0 {read} 0 {writes} 0 {written} 0 2 {busy} {waited}\n");
            write("proc/diskstats", &(line + "8 0 sda 9 0 9 9 9 0 9 9 9 9 9\n"));
            let at = Nanos(second * Nanos::SECOND.0);
            let read = machine.read(at, at.plus(Nanos::SECOND)).expect("the folder exists");
            let events = reporter.read(&read);
            assert_eq!(
                events.len(),
                usize::from(second == 0),
                "only queue lengths are unreadable: {events:?}"
            );
        }
        let report = reporter.report(Nanos(2)).expect("a window");
        let [egress, ingress] = &report.links;
        for link in [egress, ingress] {
            assert_eq!((link.load_bps, link.speed_bps, link.queue_bytes), (8e6, Some(10_000_000_000), None));
        }
        let sector = 512.0 * 8.0 / 2.0;
        let (read_bps, write_bps) = (4.0 * sector, 8.0 * sector);
        let expected = Device {
            device: "r0h1:disk0".to_owned(),
            busy: 0.25,
            read_bps,
            write_bps,
            queue: 0.5,
            in_flight: 2,
        };
        assert_eq!(report.devices, [expected]);
    }

    #[test]
    fn this_machine_is_readable_with_queues_and_disks() {
        let read = Machine::default().read(Nanos(1), Nanos(2)).expect("/proc is available on Linux");
        assert!(read.unread.is_empty(), "{:?}", read.unread);
        let loopback = read.interfaces.iter().find(|one| one.name == "lo").expect("a loopback interface");
        assert_eq!(loopback.queued, Some(0), "loopback has no queue");
    }
}
