//! Addresses of enforcers that were removed. Peers keep them for the length of a lease, so an enforcer that starts again
//! changes no filter of other hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use leeward_fabric::Nanos;

/// Addresses by host and name of the enforcer, each with its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormerAddresses {
    by_host: BTreeMap<String, BTreeMap<String, (Nanos, Vec<IpAddr>)>>,
    ends: BTreeSet<(Nanos, String, String)>,
}

impl FormerAddresses {
    /// Keeps the addresses that an enforcer stated until a time.
    pub fn keep(&mut self, host: &str, name: &str, addresses: &[IpAddr], until: Nanos) {
        self.forget(host, name);
        if !addresses.is_empty() {
            let names = self.by_host.entry(host.to_owned()).or_default();
            names.insert(name.to_owned(), (until, addresses.to_vec()));
            self.ends.insert((until, host.to_owned(), name.to_owned()));
        }
    }

    /// Forgets the addresses of an enforcer, which has registered again, and returns them.
    pub fn forget(&mut self, host: &str, name: &str) -> Option<Vec<IpAddr>> {
        let names = self.by_host.get_mut(host)?;
        let (until, addresses) = names.remove(name)?;
        self.ends.remove(&(until, host.to_owned(), name.to_owned()));
        if names.is_empty() {
            self.by_host.remove(host);
        }
        Some(addresses)
    }

    /// Addresses of a host.
    pub fn of(&self, host: &str) -> impl Iterator<Item = IpAddr> + use<'_> {
        self.by_host.get(host).into_iter().flat_map(|names| names.values()).flat_map(|(_, all)| all).copied()
    }

    /// Time at which the next addresses end.
    pub fn due(&self) -> Option<Nanos> {
        self.ends.first().map(|(at, ..)| *at)
    }

    /// Forgets addresses that have ended, and returns them by host.
    pub fn expire(&mut self, now: Nanos) -> BTreeMap<String, BTreeSet<IpAddr>> {
        let mut ended: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
        while let Some((_, host, name)) = self.ends.first().filter(|(at, ..)| *at <= now).cloned() {
            if let Some(addresses) = self.forget(&host, &name) {
                ended.entry(host).or_default().extend(addresses);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_until_their_end_or_until_the_enforcer_registers_again() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut former = FormerAddresses::default();
        former.keep("s", "net@s", &[address(1)], Nanos(10));
        former.keep("s", "nfs@s", &[address(2)], Nanos(5));
        former.keep("c", "nfs@c", &[], Nanos(1));
        let of = |former: &FormerAddresses| former.of("s").collect::<Vec<_>>();
        assert_eq!((of(&former), former.due()), (vec![address(1), address(2)], Some(Nanos(5))));
        let ended = BTreeMap::from([("s".to_owned(), BTreeSet::from([address(2)]))]);
        assert_eq!(former.expire(Nanos(5)), ended);
        assert_eq!((of(&former), former.due()), (vec![address(1)], Some(Nanos(10))));
        former.keep("s", "net@s", &[address(3)], Nanos(20));
        assert_eq!((of(&former), former.expire(Nanos(19))), (vec![address(3)], BTreeMap::new()));
        assert_eq!(former.forget("s", "net@s"), Some(vec![address(3)]));
        assert_eq!((of(&former), former.due()), (Vec::new(), None));
    }
}
