//! Addresses of the clients of workloads: from a file, and from the system's names (`/etc/hosts`, DNS) for hosts that the
//! file leaves out.

use std::net::ToSocketAddrs;

use leeward_capture::places::{Mapping, Prefix};
use leeward_fabric::input::{InputError, excerpt};

/// Addresses by name.
#[derive(Debug, Default)]
pub struct Addresses {
    file: Option<Mapping>,
}

impl Addresses {
    /// Reads a file in the forms of `leeward matrix capture --addresses`: YAML, CSV (address,host) or lines as in
    /// `/etc/hosts`. A name may also be that of a workload whose client has an address of its own, and a prefix names
    /// all of its addresses. Without a file, all addresses are the system's.
    ///
    /// # Errors
    /// Fails if the file cannot be read, with the line.
    pub fn read(file: Option<&str>) -> Result<Addresses, InputError> {
        Ok(Addresses { file: file.map(Mapping::read).transpose()? })
    }

    /// Addresses of the client of a workload: those of the workload's name in the file, or else those of the host.
    ///
    /// # Errors
    /// Fails for a host without an address. Loopback addresses of the system do not count, because every machine has
    /// them.
    pub fn of(&self, workload: &str, host: &str) -> Result<Vec<Prefix>, InputError> {
        let listed = [workload, host].map(|name| self.listed(name));
        if let Some(listed) = listed.into_iter().find(|listed| !listed.is_empty()) {
            return Ok(listed);
        }
        let missing = |reason: &dyn std::fmt::Display| {
            let message = format!("host `{}` has no address: {reason}; --addresses names it", excerpt(host));
            InputError::new("--addresses", message)
        };
        let known = (host, 0).to_socket_addrs().map_err(|error| missing(&error))?;
        let known = known.map(|address| address.ip().to_canonical()).filter(|address| !address.is_loopback());
        let mut prefixes: Vec<Prefix> = known.map(Prefix::whole).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        if prefixes.is_empty() { Err(missing(&"only loopback addresses")) } else { Ok(prefixes) }
    }

    /// Addresses of a name in the file.
    fn listed(&self, name: &str) -> Vec<Prefix> {
        let addresses = self.file.iter().flat_map(Mapping::addresses);
        addresses.filter(|(_, other)| *other == name).map(|(prefix, _)| prefix).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_and_a_host_have_the_addresses_of_the_file() {
        let text = "address,host\n10.0.0.1,r0h0\n10.1.0.0/16,r1\n2001:db8::1,r0h0\n10.0.0.9,mail\n";
        let addresses = Addresses { file: Some(Mapping::of("names.csv", text).unwrap()) };
        let of = |workload, host| addresses.of(workload, host).unwrap();
        let prefixes =
            |texts: &[&str]| -> Vec<Prefix> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        assert_eq!(of("web", "r0h0"), prefixes(&["10.0.0.1", "2001:db8::1"]));
        assert_eq!(of("web", "r1"), prefixes(&["10.1.0.0/16"]));
        assert_eq!(of("mail", "r0h0"), prefixes(&["10.0.0.9"]));
    }

    #[test]
    fn a_host_without_an_address_is_an_error_with_the_remedy() {
        // No name contains the character 0, so nobody is asked for it.
        for (host, reason) in [("localhost", "only loopback addresses"), ("a\0b", "")] {
            let error = Addresses::default().of("web", host).unwrap_err().to_string();
            assert!(error.starts_with("--addresses: host `") && error.contains(reason), "{error}");
            assert!(error.ends_with("; --addresses names it"), "{error}");
        }
    }
}
