//! Facts of interfaces that a plan needs: speed, addresses, and the kernel's default qdisc.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;

use crate::error::EnforceError;
use crate::plan::Facts;
use crate::settings::is_interface_name;

const INTERFACES: &str = "/sys/class/net";
/// Qdisc that the kernel gives to interfaces.
const DEFAULT_QDISC: &str = "/proc/sys/net/core/default_qdisc";
/// Default qdiscs that are FIFOs, as HTB's own, or that cannot be in a class.
const FIFOS: [&str; 6] = ["pfifo", "bfifo", "pfifo_fast", "noqueue", "mq", ""];

/// Names of all physical interfaces, in order. A part of a bond or bridge is left out: its packets pass the bond.
pub(crate) fn physical() -> Vec<String> {
    let entries = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let is_physical = |name: &String| {
        let folder = Path::new(INTERFACES).join(name);
        folder.join("device").exists() && !folder.join("master").exists() && is_interface_name(name)
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_physical).collect();
    names.sort();
    names
}

/// Reads the facts of an interface. `rate` replaces its speed, in bytes per second.
///
/// # Errors
/// An error if its speed is unknown, or if it has no queue.
pub(crate) fn read(name: &str, rate: Option<u64>) -> Result<Facts, EnforceError> {
    let value = |file: &str| {
        let text = fs::read_to_string(Path::new(INTERFACES).join(name).join(file)).ok();
        text.and_then(|text| text.trim().parse::<i64>().ok())
    };
    // Queues of classes are as long as that of the interface.
    if value("tx_queue_len") == Some(0) {
        return Err(EnforceError::NoQueue(name.to_owned()));
    }
    // In Mbit/s; -1 for an interface that does not know it.
    let speed = value("speed").and_then(|speed| u64::try_from(speed).ok()).filter(|&speed| speed > 0);
    let link = rate.or(speed.map(|speed| speed.saturating_mul(125_000)));
    let link = link.ok_or_else(|| EnforceError::NoRate(name.to_owned()))?;
    Ok(Facts { link, addresses: addresses(name)?, leaf: default_qdisc() })
}

/// Addresses of an interface, in order. Link-local ones are left out: routed packets do not have them.
pub(crate) fn addresses(name: &str) -> Result<Vec<IpAddr>, EnforceError> {
    let all = getifaddrs().map_err(|error| EnforceError::system("getifaddrs")(error.into()))?;
    let own = all.filter(|entry| entry.interface_name == name).filter_map(|entry| entry.address);
    let addresses = own.filter_map(|address| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let is_routed = |address: &Ipv6Addr| !address.is_unicast_link_local();
        let v6 = || address.as_sockaddr_in6().map(|address| address.ip()).filter(is_routed).map(IpAddr::V6);
        v4.or_else(v6)
    });
    let mut addresses: Vec<IpAddr> = addresses.collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// Kind of the kernel's default qdisc; `None` for a FIFO, or inside a namespace, which does not show it.
fn default_qdisc() -> Option<String> {
    let text = fs::read_to_string(DEFAULT_QDISC).ok()?;
    let kind = text.trim();
    let is_kind = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_kind && !FIFOS.contains(&kind)).then(|| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_addresses_and_no_speed() {
        assert!(addresses("lo").expect("getifaddrs works").contains(&IpAddr::from([127, 0, 0, 1])));
        assert!(matches!(read("lo", None), Err(EnforceError::NoRate(name)) if name == "lo"));
        assert_eq!(read("lo", Some(1000)).expect("a rate").link, 1000);
        assert!(!physical().contains(&"lo".to_owned()));
    }
}
