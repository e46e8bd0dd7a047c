//! Addresses of hosts and workloads: from a file, and by DNS for hosts that it does not name.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

use leeward_capture::places::Mapping;
use leeward_fabric::input::{InputError, excerpt};

/// Addresses by name.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    by_name: BTreeMap<String, Vec<IpAddr>>,
}

impl Addresses {
    /// Reads the text of a file with the addresses of hosts, in the forms of `leeward matrix capture --addresses`: YAML,
    /// CSV (address,host) or lines as in `/etc/hosts`. A name may also be that of a workload whose client has an address
    /// of its own.
    ///
    /// # Errors
    /// An [`InputError`] with the line. Prefixes are errors, because single addresses distinguish packets.
    pub fn read(name: &str, text: &str) -> Result<Addresses, InputError> {
        let mapping = Mapping::of(name, text)?;
        let mut by_name: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        for (prefix, owner) in mapping.addresses() {
            let Some(address) = prefix.single() else {
                let message = format!("`{}` has a prefix; expected single addresses", excerpt(owner));
                return Err(InputError::new(name, message));
            };
            by_name.entry(owner.to_owned()).or_default().push(address);
        }
        Ok(Addresses { by_name })
    }

    /// Addresses of a name in the file.
    pub fn listed(&self, name: &str) -> Option<&[IpAddr]> {
        self.by_name.get(name).map(Vec::as_slice)
    }

    /// Addresses of a host: those of the file, or else those that the machine's resolver knows (`/etc/hosts`, DNS).
    /// Loopback addresses are left out.
    ///
    /// # Errors
    /// A message if there is no address.
    pub fn of_host(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        if let Some(listed) = self.listed(name) {
            return Ok(listed.to_vec());
        }
        let resolved = (name, 0).to_socket_addrs().map_err(|error| {
            format!("host `{}` has no address: {error}; --addresses names it", excerpt(name))
        })?;
        let mut addresses: Vec<IpAddr> =
            resolved.map(|address| address.ip().to_canonical()).filter(|ip| !ip.is_loopback()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(format!(
                "host `{}` has loopback addresses only; --addresses names it",
                excerpt(name)
            ));
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_addresses_of_the_file_in_order() {
        let text = "10.0.0.2 r0h0\nfd00::2 r0h0\n10.0.1.7 mail0 # a virtual machine\n";
        let addresses = Addresses::read("hosts", text).expect("a valid file");
        let expected: Vec<IpAddr> = ["10.0.0.2", "fd00::2"].map(|text| text.parse().expect("valid")).into();
        assert_eq!(addresses.of_host("r0h0"), Ok(expected));
        assert_eq!(addresses.listed("mail0").map(<[IpAddr]>::len), Some(1));
        assert_eq!(addresses.listed("r0h1"), None);
    }

    #[test]
    fn a_prefix_and_a_host_of_loopback_addresses_are_errors_that_name_them() {
        let error = Addresses::read("hosts", "10.0.0.0/24 r0\n").expect_err("a prefix").to_string();
        assert_eq!(error, "hosts: `r0` has a prefix; expected single addresses");
        let error = Addresses::default().of_host("localhost").expect_err("loopback only");
        assert!(error.starts_with("host `localhost` has "), "{error}");
    }
}
