//! Names and addresses of a lab's hosts.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use leeward_packets::workload::Place;

use crate::error::LabError;

/// Prefix of everything that labs make on a machine.
const PREFIX: &str = "leeward-";
/// Largest number of hosts of a lab.
pub(crate) const MOST_HOSTS: usize = 1024;
/// Device of a host.
pub(crate) const DEVICE: &str = "eth0";

/// Name of a lab: 1 to 24 lowercase letters, digits or hyphens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabName(String);

impl FromStr for LabName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<LabName, LabError> {
        let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
        if text.len() > 24 || !begins || !text.chars().all(is_valid) {
            return Err(LabError::Name(text.chars().take(40).collect()));
        }
        Ok(LabName(text.to_owned()))
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LabName {
    /// Name of a new lab of this process.
    pub fn of_process() -> LabName {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        LabName(format!("run-{}-{number}", std::process::id()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of the namespace of a machine in the lab.
    pub fn namespace(&self, machine: &str) -> String {
        format!("{PREFIX}{}-{machine}", self.0)
    }

    /// Machine of a namespace of this lab; `None` for any other namespace. Names of machines have no hyphen, so a lab
    /// whose name begins with that of this one is another lab.
    pub fn machine<'a>(&self, namespace: &'a str) -> Option<&'a str> {
        let machine = namespace.strip_prefix(PREFIX)?.strip_prefix(self.as_str())?.strip_prefix('-')?;
        (!machine.contains('-')).then_some(machine)
    }
}

/// Name of a new congestion control of this process. These names are global to the machine, and have at most 15
/// characters.
pub(crate) fn congestion_control(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{kind}{:x}_{:x}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Address of a host: `10.RACK.HOST.2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(pub Place);

impl Address {
    /// Number of racks, and of hosts in a rack, that addresses can name.
    pub const MOST: usize = 256;

    /// The address.
    pub fn ip(self) -> Ipv4Addr {
        let Place { rack, host } = self.0;
        Ipv4Addr::new(10, rack as u8, host as u8, 2)
    }

    /// Host of an address of the lab.
    #[inline]
    pub fn place(ip: Ipv4Addr) -> Option<Place> {
        match ip.octets() {
            [10, rack, host, 2] => Some(Place { rack: u32::from(rack), host: u32::from(host) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_of_names_of_namespaces() {
        for good in ["lab", "a", "run-1234567", "x1"] {
            assert_eq!(good.parse::<LabName>().expect("valid").to_string(), good);
        }
        for bad in ["", "Lab", "1a", "-a", "a/b", "a b", "abcdefghijklmnopqrstuvwxy", "../x"] {
            assert!(bad.parse::<LabName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_namespace_belongs_to_one_lab() {
        let [lab, other]: [LabName; 2] = ["run", "run-1"].map(|name| name.parse().expect("valid"));
        assert_eq!(lab.machine(&lab.namespace("r0h0")), Some("r0h0"));
        assert_eq!(lab.machine(&other.namespace("r0h0")), None);
        assert_eq!(lab.machine("leeward-runs-r0h0"), None);
    }

    #[test]
    fn an_address_names_its_host() {
        for place in [Place { rack: 0, host: 0 }, Place { rack: 255, host: 7 }] {
            assert_eq!(Address::place(Address(place).ip()), Some(place));
        }
        assert_eq!(Address::place(Ipv4Addr::new(10, 0, 0, 1)), None);
        assert_eq!(Address::place(Ipv4Addr::new(192, 168, 0, 2)), None);
    }
}
