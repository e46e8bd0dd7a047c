//! Facts of interfaces that a plan needs: speed, addresses, and the kernel's default qdisc.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use leeward_fabric::input::InputError;
use nix::ifaddrs::getifaddrs;

use crate::error::EnforceError;
use crate::plan::Facts;
use crate::settings::is_interface_name;

const INTERFACES: &str = "/sys/class/net";
/// Qdisc that the kernel gives to interfaces.
const DEFAULT_QDISC: &str = "/proc/sys/net/core/default_qdisc";
/// Share of an interface's speed that its link gets, in percent. HTB counts a packet with its Ethernet header; preamble,
/// checksum and gap are 24 bytes more on the wire, and HTB counts a train of segments as one packet. At the full speed, the
/// queue would build in the driver, where nothing is before anything else.
const SHARE: u64 = 95;
/// Default qdiscs that are FIFOs, as HTB's own, or that cannot be in a class.
const FIFOS: [&str; 6] = ["pfifo", "bfifo", "pfifo_fast", "noqueue", "mq", ""];

/// Names of all physical interfaces, in order. A part of a bond or bridge is left out: its packets pass the bond.
pub(crate) fn physical() -> Vec<String> {
    let is_physical = |name: &String| {
        let folder = Path::new(INTERFACES).join(name);
        folder.join("device").exists() && !folder.join("master").exists()
    };
    names().into_iter().filter(is_physical).collect()
}

/// Names of all interfaces that the enforcer can program, in order.
fn names() -> Vec<String> {
    let entries = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_interface_name(name)).collect();
    names.sort();
    names
}

/// Interfaces of an enforcer: the named ones, or all physical ones.
///
/// # Errors
/// An [`InputError`] if none is named, and the machine has no physical one.
pub(crate) fn interfaces(named: &[String]) -> Result<Vec<String>, InputError> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let has_addresses = |name: &String| {
        let routed = |address: &IpAddr| !address.is_loopback();
        addresses(name).is_ok_and(|addresses| addresses.iter().any(routed))
    };
    choose(physical(), || names().into_iter().filter(has_addresses).collect())
}

/// The physical interfaces, or an error with the candidates to name.
fn choose(physical: Vec<String>, candidates: impl Fn() -> Vec<String>) -> Result<Vec<String>, InputError> {
    if !physical.is_empty() {
        return Ok(physical);
    }
    let candidates = candidates();
    let have = if candidates.len() == 1 { "has" } else { "have" };
    let known = match candidates.is_empty() {
        true => String::new(),
        false => format!("; {} {have} addresses", candidates.join(", ")),
    };
    let message =
        format!("this machine has no physical interface outside of bonds and bridges: name one{known}");
    Err(InputError::new("--interface", message))
}

/// Reads the facts of an interface. `rate` replaces its speed, in bytes per second, and `last` is the rate of its link when
/// it was programmed: a link without a carrier does not know its speed.
///
/// # Errors
/// An error if its speed is unknown, or if it has no queue.
pub(crate) fn read(name: &str, rate: Option<u64>, last: Option<u64>) -> Result<Facts, EnforceError> {
    let folder = Path::new(INTERFACES).join(name);
    let value = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).ok();
        text.and_then(|text| text.trim().parse::<i64>().ok())
    };
    // Queues of classes are as long as that of the interface.
    if value("tx_queue_len") == Some(0) {
        return Err(EnforceError::NoQueue(name.to_owned()));
    }
    let link = rate.or(value("speed").and_then(link_rate)).or(last);
    let link = link.ok_or_else(|| match (folder.exists(), value("carrier")) {
        (false, _) => EnforceError::NoInterface(name.to_owned()),
        (true, Some(1)) => EnforceError::NoRate(name.to_owned()),
        // An interface that is down has no carrier to read.
        (true, _) => EnforceError::NoCarrier(name.to_owned()),
    })?;
    Ok(Facts { link, addresses: addresses(name)?, leaf: default_qdisc() })
}

/// Rate of the link of an interface with this speed in Mbit/s, in bytes per second; `None` for -1, which is the speed of an
/// interface that does not know it.
fn link_rate(speed: i64) -> Option<u64> {
    let speed = u64::try_from(speed).ok().filter(|&speed| speed > 0)?;
    Some(speed.saturating_mul(125_000 / 100 * SHARE))
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
        assert!(matches!(read("lo", None, None), Err(EnforceError::NoRate(name)) if name == "lo"));
        assert_eq!(read("lo", Some(1000), Some(7)).expect("a rate").link, 1000);
        assert_eq!(read("lo", None, Some(7)).expect("the last rate").link, 7);
        assert!(!physical().contains(&"lo".to_owned()));
        assert!(names().contains(&"lo".to_owned()));
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error_of_its_own() {
        assert!(matches!(read("nosuch0", None, None), Err(EnforceError::NoInterface(_))));
        // A dry run needs no interface.
        assert_eq!(read("nosuch0", Some(1000), None).expect("a rate").link, 1000);
    }

    #[test]
    fn a_link_has_95_percent_of_the_speed_of_its_interface() {
        assert_eq!([10_000, 1, 0, -1].map(link_rate), [Some(1_187_500_000), Some(118_750), None, None]);
    }

    #[test]
    fn a_machine_without_a_physical_interface_names_those_with_addresses() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(choose(names(&["eth0"]), || names(&["bond0"])), Ok(names(&["eth0"])));
        for (candidates, end) in [
            (&[][..], ": name one"),
            (&["bond0"], ": name one; bond0 has addresses"),
            (&["bond0", "br0"], ": name one; bond0, br0 have addresses"),
        ] {
            let error = choose(Vec::new(), || names(candidates)).expect_err("none is physical");
            assert_eq!(error.file, "--interface");
            assert!(error.to_string().ends_with(end), "{error}");
        }
    }
}
