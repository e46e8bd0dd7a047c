//! What the kernel says of its interfaces: `/sys/class/net`.
//!
//! The mount of sysfs decides of which network namespace: `ip netns exec` brings its own along.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use leeward_fabric::Nanos;

use crate::counters::{Count, Interface, Reading};

/// Where interfaces are read.
pub struct Machine {
    interfaces: PathBuf,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { interfaces: PathBuf::from("/sys/class/net") }
    }
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// An interface; `None` if it goes while it is read.
fn interface(folder: &Path, name: String) -> Option<Interface> {
    let counters = folder.join("statistics");
    let count = |way: &str| {
        Some(Count {
            bytes: number(&counters, &format!("{way}_bytes"))?,
            packets: number(&counters, &format!("{way}_packets"))?,
        })
    };
    // What a virtual function carries, its card counts too.
    let physical = folder.join("device").exists() && !folder.join("device/physfn").exists();
    Some(Interface {
        index: u32::try_from(number(folder, "ifindex")?).ok()?,
        name,
        physical,
        received: count("rx")?,
        sent: count("tx")?,
    })
}

impl Machine {
    /// Reads a folder that is like `/sys/class/net`.
    pub fn new(interfaces: impl Into<PathBuf>) -> Machine {
        Machine { interfaces: interfaces.into() }
    }

    /// Reads all interfaces at a time of both clocks.
    ///
    /// # Errors
    /// What the system says; an interface that goes meanwhile is left out.
    pub fn read(&self, at: Nanos, wall: Nanos) -> io::Result<Reading> {
        let mut interfaces = Vec::new();
        for entry in fs::read_dir(&self.interfaces)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            interfaces.extend(interface(&entry.path(), name));
        }
        Ok(Reading { at, wall, interfaces })
    }

    /// What the machine calls itself.
    ///
    /// # Errors
    /// What the system says.
    pub fn name() -> io::Result<String> {
        Ok(fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_read_and_what_is_no_interface_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("it is in the folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        };
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
        let read = Machine::new(folder.path()).read(Nanos(1), Nanos(2)).expect("it is there");
        let mut found: Vec<_> =
            read.interfaces.iter().map(|one| (one.name.as_str(), one.index, one.physical)).collect();
        found.sort_unstable();
        assert_eq!(found, [("bond0", 3, false), ("eth0", 2, true), ("vf0", 4, false)]);
        assert_eq!(read.interfaces[0].received, Count { bytes: u64::MAX, packets: u64::MAX });
        assert!(Machine::new(folder.path().join("none")).read(Nanos(1), Nanos(2)).is_err());
    }
}
