//! Addresses of hosts and workloads: from a file, and by the machine's resolver for hosts that it does not name.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

use leeward_capture::places::{Mapping, Prefix};
use leeward_fabric::input::{InputError, excerpt, read_text};

/// Addresses by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Addresses {
    by_name: BTreeMap<String, Vec<Prefix>>,
    /// Places of lines with a loopback address, by their names.
    loopback: BTreeMap<String, String>,
}

impl Addresses {
    /// Reads the text of a file with the addresses of hosts, in the forms of `leeward matrix capture --addresses`: YAML,
    /// CSV (address,host) or lines as in `/etc/hosts`. A name may also be that of a workload whose client has an address
    /// of its own, and a prefix names all of its addresses.
    ///
    /// # Errors
    /// An [`InputError`] with the line.
    pub fn of(name: &str, text: &str) -> Result<Addresses, InputError> {
        let mapping = Mapping::of(name, text)?;
        let mut by_name: BTreeMap<String, Vec<Prefix>> = BTreeMap::new();
        for (prefix, owner) in mapping.addresses() {
            by_name.entry(owner.to_owned()).or_default().push(prefix);
        }
        let loopback = mapping.loopback().map(|(owner, line)| (owner.to_owned(), format!("{name}:{line}")));
        Ok(Addresses { by_name, loopback: loopback.collect() })
    }

    /// Reads a file; without one, all addresses are the resolver's.
    ///
    /// # Errors
    /// As [`Addresses::of`], or if the file cannot be read.
    pub fn read(file: Option<&str>) -> Result<Addresses, InputError> {
        let read = file.map(|name| Addresses::of(name, &read_text(name)?));
        Ok(read.transpose()?.unwrap_or_default())
    }

    /// The same addresses, if all of them are single ones.
    ///
    /// # Errors
    /// An [`InputError`] that names the owner of a prefix in this file.
    pub fn singles(self, file: &str) -> Result<Addresses, InputError> {
        let owner = self.by_name.iter().find(|(_, listed)| listed.iter().any(|one| one.single().is_none()));
        if let Some((owner, _)) = owner {
            let message = format!("`{}` has a prefix; expected single addresses", excerpt(owner));
            return Err(InputError::new(file, message));
        }
        Ok(self)
    }

    /// Addresses of a name in the file.
    pub fn listed(&self, name: &str) -> Option<&[Prefix]> {
        self.by_name.get(name).map(Vec::as_slice)
    }

    /// Addresses of a host: those of the file, or else those that the machine's resolver knows (`/etc/hosts`, DNS).
    /// Loopback addresses of the resolver are left out, because every machine has them.
    ///
    /// # Errors
    /// A message if there is no address.
    pub fn of_host(&self, name: &str) -> Result<Vec<Prefix>, String> {
        if let Some(listed) = self.listed(name) {
            return Ok(listed.to_vec());
        }
        let resolved = (name, 0).to_socket_addrs().map_err(|error| {
            format!("host `{}` has no address: {error}; {}", excerpt(name), self.remedy(name))
        })?;
        let known = resolved.map(|address| address.ip().to_canonical()).filter(|ip| !ip.is_loopback());
        let mut prefixes: Vec<Prefix> = known.map(Prefix::whole).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        if prefixes.is_empty() {
            return Err(format!(
                "host `{}` has loopback addresses only; {}",
                excerpt(name),
                self.remedy(name)
            ));
        }
        Ok(prefixes)
    }

    /// What gives a host an address.
    fn remedy(&self, name: &str) -> String {
        match self.loopback.get(name) {
            None => "--addresses names it".to_owned(),
            Some(place) => {
                format!(
                    "the loopback address of {place} does not count, because every machine has it; in a CSV file, it does"
                )
            }
        }
    }

    /// Addresses of the client of a workload: those of the workload's name in the file, or else those of the host.
    ///
    /// # Errors
    /// As [`Addresses::of_host`].
    pub fn of_client(&self, workload: &str, host: &str) -> Result<Vec<Prefix>, String> {
        self.listed(workload).map_or_else(|| self.of_host(host), |listed| Ok(listed.to_vec()))
    }
}

/// The single addresses among prefixes.
pub fn singles(prefixes: &[Prefix]) -> Vec<IpAddr> {
    prefixes.iter().filter_map(|prefix| prefix.single()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| text.parse().expect("valid")).collect()
    }

    #[test]
    fn names_have_the_addresses_of_the_file_in_order() {
        let text = "10.0.0.2 r0h0\nfd00::2 r0h0\n10.0.1.7 mail0 # a virtual machine\n";
        let addresses =
            Addresses::of("hosts", text).expect("a valid file").singles("hosts").expect("singles");
        assert_eq!(addresses.of_host("r0h0"), Ok(prefixes(&["10.0.0.2", "fd00::2"])));
        assert_eq!(addresses.listed("mail0").map(<[Prefix]>::len), Some(1));
        assert_eq!(addresses.listed("r0h1"), None);
        let expected: Vec<IpAddr> =
            vec!["10.0.0.2".parse().expect("valid"), "fd00::2".parse().expect("valid")];
        assert_eq!(singles(&addresses.of_host("r0h0").expect("listed")), expected);
    }

    #[test]
    fn a_workload_has_its_own_addresses_before_those_of_its_client() {
        let text = "address,host\n10.0.0.1,r0h0\n10.1.0.0/16,r1\n2001:db8::1,r0h0\n10.0.0.9,mail\n";
        let addresses = Addresses::of("names.csv", text).expect("a valid file");
        let of = |workload, host| addresses.of_client(workload, host).expect("listed");
        assert_eq!(of("web", "r0h0"), prefixes(&["10.0.0.1", "2001:db8::1"]));
        assert_eq!(of("web", "r1"), prefixes(&["10.1.0.0/16"]));
        assert_eq!(of("mail", "r0h0"), prefixes(&["10.0.0.9"]));
    }

    #[test]
    fn a_prefix_and_a_host_of_loopback_addresses_are_errors_that_name_them() {
        let addresses = Addresses::of("hosts", "10.0.0.0/24 r0\n").expect("a valid file");
        let error = addresses.singles("hosts").expect_err("a prefix").to_string();
        assert_eq!(error, "hosts: `r0` has a prefix; expected single addresses");
        // No name contains the character 0, so nobody is asked for it.
        for host in ["localhost", "a\0b"] {
            let error = Addresses::default().of_host(host).expect_err("no address");
            assert!(error.starts_with("host `") && error.ends_with("; --addresses names it"), "{error}");
        }
    }

    #[test]
    fn a_host_of_a_loopback_line_is_an_error_with_the_line() {
        let addresses = Addresses::of("hosts", "10.0.0.2 r0h0\n127.0.0.1 localhost\n").expect("a valid file");
        let error = addresses.of_host("localhost").expect_err("no address");
        let reason = "the loopback address of hosts:2 does not count, because every machine has it";
        assert!(error.contains(reason), "{error}");
        let named = Addresses::of("hosts.csv", "address,host\n127.0.0.1,localhost\n").expect("a valid file");
        assert_eq!(named.of_host("localhost"), Ok(prefixes(&["127.0.0.1"])));
    }
}
