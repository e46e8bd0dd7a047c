//! Hosts whose promises changed in the last versions, for those that wait for a change.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use leeward_records::PromisesVersion;

/// Number of versions whose hosts are kept. A waiter that is further behind asks.
const MOST_VERSIONS: usize = 64;

/// Version of the set of promises, and the hosts that the last versions concern.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecentChanges {
    /// Present version.
    pub version: PromisesVersion,
    /// Hosts by number of the version, the earliest first, without gaps up to the present version.
    hosts: VecDeque<(u64, Arc<BTreeSet<String>>)>,
}

impl RecentChanges {
    /// Takes the next version, in which the promises of these hosts have changed.
    pub(crate) fn advance(&mut self, version: PromisesVersion, hosts: BTreeSet<String>) {
        if self.hosts.len() == MOST_VERSIONS {
            self.hosts.pop_front();
        }
        self.hosts.push_back((version.number, Arc::new(hosts)));
        self.version = version;
    }

    /// Takes a version whose hosts are unknown.
    pub(crate) fn follow(&mut self, version: PromisesVersion) {
        self.hosts.clear();
        self.version = version;
    }

    /// False if a host has the promises that it had at an earlier version.
    pub fn concern(&self, host: &str, earlier: PromisesVersion) -> bool {
        if self.version == earlier {
            return false;
        }
        let next = earlier.number.saturating_add(1);
        let is_known =
            self.version.set == earlier.set && self.hosts.front().is_some_and(|(first, _)| *first <= next);
        let later = self.hosts.iter().filter(|(number, _)| *number >= next);
        !is_known || later.into_iter().any(|(_, hosts)| hosts.contains(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_its_hosts_and_everybody_who_is_too_far_behind() {
        let version = |number| PromisesVersion { set: 7, number };
        let mut changes = RecentChanges::default();
        changes.follow(version(3));
        assert!(!changes.concern("a", version(3)) && changes.concern("a", version(2)), "unknown hosts");
        changes.advance(version(4), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        changes.advance(version(5), BTreeSet::from(["b".to_owned()]));
        let concern = |host: &str| [3, 4, 5].map(|earlier| changes.concern(host, version(earlier)));
        assert_eq!(concern("a"), [true, false, false]);
        assert_eq!(concern("b"), [true, true, false]);
        assert_eq!(concern("c"), [false; 3]);
        assert!(changes.concern("c", version(2)), "what happened between 2 and 3 is unknown");
        assert!(changes.concern("c", PromisesVersion { set: 8, number: 5 }), "another set");
        for number in 6..100 {
            changes.advance(version(number), BTreeSet::new());
        }
        assert!(changes.concern("c", version(5)) && !changes.concern("c", version(40)));
        assert_eq!(changes.hosts.len(), MOST_VERSIONS);
    }
}
