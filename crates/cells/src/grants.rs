//! Requests of other cells, on the side that decides: one decision for each key, however often it is asked.
//!
//! A grant ends when the asking cell says so, or with its lease. Until the lease is over, the key stays known, so that
//! a late or repeated request is not decided a second time.

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::HostId;
use leeward_ledger::EntryId;

/// Decision on a request of another cell.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Grant {
    /// Hosts of the copies, by their numbers in this cell.
    Hosts(Vec<HostId>),
    /// No host takes them.
    Refused,
}

#[derive(Debug)]
struct Held {
    grant: Grant,
    /// Entries of the ledger; empty once they are released.
    entries: Vec<EntryId>,
}

/// Decisions on requests of other cells, by key. Only for look-ups, never iterated.
#[derive(Debug)]
pub(crate) struct Grants {
    held: HashMap<u64, Held>,
}

impl Grants {
    /// Creates a state without decisions.
    pub fn new() -> Grants {
        Grants { held: HashMap::new() }
    }

    /// The decision on a request; `None` for a new one.
    pub fn get(&self, key: u64) -> Option<&Grant> {
        self.held.get(&key).map(|held| &held.grant)
    }

    /// Adds the decision on a new request, with its entries.
    pub fn insert(&mut self, key: u64, grant: Grant, entries: Vec<EntryId>) {
        self.held.insert(key, Held { grant, entries });
    }

    /// The work of a request is over, or never began. Returns the entries to release, and the hosts of the copies;
    /// none if there is nothing to do. The decision stays known.
    pub fn end(&mut self, key: u64) -> (Vec<EntryId>, &[HostId]) {
        let Some(held) = self.held.get_mut(&key).filter(|held| !held.entries.is_empty()) else {
            return (Vec::new(), &[]);
        };
        let hosts: &[HostId] = match &held.grant {
            Grant::Hosts(hosts) => hosts,
            Grant::Refused => &[],
        };
        (std::mem::take(&mut held.entries), hosts)
    }

    /// The lease of a request is over. Returns the entries to release, which are none if the work ended before.
    pub fn expire(&mut self, key: u64) -> Vec<EntryId> {
        self.held.remove(&key).map_or_else(Vec::new, |held| held.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_decided_once_and_known_until_its_lease_is_over() {
        let mut grants = Grants::new();
        let hosts = Grant::Hosts(vec![HostId(3), HostId(5)]);
        assert_eq!(grants.get(7), None);
        grants.insert(7, hosts.clone(), vec![EntryId(1)]);
        assert_eq!(grants.get(7), Some(&hosts));
        assert_eq!(grants.end(7), (vec![EntryId(1)], [HostId(3), HostId(5)].as_slice()));
        // A cancellation may be repeated.
        assert_eq!(grants.end(7), (Vec::new(), [].as_slice()));
        assert_eq!(grants.get(7), Some(&hosts));
        assert!(grants.expire(7).is_empty());
        assert_eq!(grants.get(7), None);
    }

    #[test]
    fn a_lease_releases_the_entries_of_a_silent_writer() {
        let mut grants = Grants::new();
        grants.insert(7, Grant::Hosts(vec![HostId(3)]), vec![EntryId(1), EntryId(2)]);
        assert_eq!(grants.expire(7), [EntryId(1), EntryId(2)]);
        grants.insert(8, Grant::Refused, Vec::new());
        assert_eq!(grants.end(8), (Vec::new(), [].as_slice()));
        assert_eq!(grants.get(8), Some(&Grant::Refused));
    }
}
