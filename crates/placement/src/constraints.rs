//! Constraints on the hosts of a decision, in one place for all policies.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, DomainId, Fabric, FaultDomainId, HostId, label_tag};
use serde::Serialize;

use crate::{Apart, ApartGroup, LatencyBound, Pool};

/// Longest list to search linearly, in any order.
const MAX_LINEAR_SEARCH: usize = 64;

/// Constraints of a request on its hosts. Lists of more than 64 items must be sorted by id, because each host
/// is looked up by binary search; [`Constraints::sort`] sorts them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Constraints {
    /// Excluded hosts; sorted by id if more than 64.
    pub excluded_hosts: Vec<HostId>,
    /// Excluded racks and pods; sorted by id if more than 64.
    pub excluded_domains: Vec<DomainId>,
    /// All tags that a host must have, as a [`Fabric::tag_mask`].
    pub tags: u64,
    /// Hosts of related files; if not empty, no other host is eligible. Sorted by id if more than 64.
    pub collocated: Vec<HostId>,
    /// Largest excess of a host's fill over the cluster's average, as a share of its storage.
    pub max_imbalance: Option<f64>,
    /// Hosts that hold a copy of the block already, the first copy first.
    pub existing: Vec<HostId>,
    /// Hosts to try first, in this order.
    pub preferred: Vec<HostId>,
    /// Type of storage that holds the copies; `None` for any.
    pub storage: Option<Box<str>>,
    /// For each label of the request, the tags of which a host must have at least one, as masks.
    pub labels: Vec<u64>,
    /// Level at which the tasks of the request are apart; `None` if they may share hosts and racks.
    pub apart: Option<Apart>,
    /// Groups of tasks that stay apart from each other; at most [`MOST_GROUPED`](crate::MOST_GROUPED) tasks in all.
    pub apart_groups: Vec<ApartGroup>,
    /// Bounds on round-trip times between tasks, sorted; at most [`MOST_BOUNDS`](crate::MOST_BOUNDS).
    pub latency: Vec<LatencyBound>,
    /// Hosts with tasks from which the request stays apart; sorted by id if more than 64.
    pub occupied_hosts: Vec<HostId>,
    /// Racks with such tasks; sorted by id if more than 64.
    pub occupied_racks: Vec<DomainId>,
    /// True if the request stays apart from the tasks of other jobs, whether any of them runs or not.
    pub avoids_jobs: bool,
}

/// Accepted values of labels, by key.
pub type LabelValues = BTreeMap<String, Vec<String>>;

impl Constraints {
    /// Constraints from names of hosts, racks, pods and tags.
    ///
    /// # Errors
    /// [`InputError`] with the field of the request that has an unknown name.
    pub fn named(fabric: &Fabric, exclude: &[String], tags: &[String]) -> Result<Constraints, InputError> {
        let invalid = |field: &str, message: String| InputError::new("request", message).in_field(field);
        let mut constraints = Constraints::default();
        for name in exclude {
            match (fabric.host(name), fabric.domain(name)) {
                (Some(host), _) => constraints.excluded_hosts.push(host),
                (None, Some(domain)) => constraints.excluded_domains.push(domain),
                (None, None) => {
                    return Err(invalid("exclude", fabric.no_place(name)));
                }
            }
        }
        for tag in tags {
            let unknown = || invalid("tags", format!("no host has the tag `{}`", excerpt(tag)));
            constraints.tags |= fabric.tag_mask(tag).ok_or_else(unknown)?;
        }
        constraints.sort();
        Ok(constraints)
    }

    /// Requires a label of each key with one of its values.
    ///
    /// # Errors
    /// [`InputError`] with the key if no host has one of its values.
    pub fn require_labels(&mut self, fabric: &Fabric, labels: &LabelValues) -> Result<(), InputError> {
        for (key, values) in labels {
            let mask = |value: &String| fabric.tag_mask(&label_tag(key, value));
            let masks: Vec<u64> = values.iter().filter_map(mask).collect();
            match masks[..] {
                [] => {
                    let message = format!("no host has the label `{}` with such a value", excerpt(key));
                    let field = format!("labels.{}", excerpt(key));
                    return Err(InputError::new("request", message).in_field(&field));
                }
                // A label with one value is a tag, which costs the least to check.
                [mask] if values.len() == 1 => self.tags |= mask,
                _ => self.labels.push(masks.into_iter().fold(0, |all, mask| all | mask)),
            }
        }
        Ok(())
    }

    /// Sorts the lists without an order of their own by id, and removes duplicates.
    pub fn sort(&mut self) {
        fn sort<T: Ord>(list: &mut Vec<T>) {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        sort(&mut self.excluded_hosts);
        sort(&mut self.excluded_domains);
        sort(&mut self.collocated);
        sort(&mut self.occupied_hosts);
        sort(&mut self.occupied_racks);
    }

    /// The constraints without the hosts to try first; `None` if nothing but tags is left.
    pub fn beside_tags(&self) -> Option<Constraints> {
        let rest = Constraints { preferred: Vec::new(), ..self.clone() };
        (rest != Constraints { tags: self.tags, ..Constraints::default() }).then_some(rest)
    }

    /// Constraint that `host` violates, apart from those on its free space and its rack.
    pub(crate) fn refuse(&self, fabric: &Fabric, host: HostId) -> Option<Constraint> {
        if lists(&self.excluded_hosts, &host) {
            Some(Constraint::Excluded)
        } else if !self.collocated.is_empty() && !lists(&self.collocated, &host) {
            Some(Constraint::Collocation)
        } else if self.tags != 0 && fabric.tags(host) & self.tags != self.tags {
            Some(Constraint::Tags)
        } else if self.labels.iter().any(|&tags| fabric.tags(host) & tags == 0) {
            Some(Constraint::Labels)
        } else if lists(&self.occupied_hosts, &host) || lists(&self.occupied_racks, &fabric.rack_of(host)) {
            Some(Constraint::Apart)
        } else if self.storage.is_some() && !self.has_storage(fabric, host) {
            Some(Constraint::Storage)
        } else {
            None
        }
    }

    /// True if a host has a device of the required type of storage.
    fn has_storage(&self, fabric: &Fabric, host: HostId) -> bool {
        fabric.devices(host).iter().any(|device| device.is_of(self.storage.as_deref()))
    }

    /// True if a whole rack is excluded.
    pub(crate) fn exclude(&self, fabric: &Fabric, rack: DomainId) -> bool {
        let excluded = |domain| lists(&self.excluded_domains, &domain);
        !self.excluded_domains.is_empty() && (excluded(rack) || fabric.parent(rack).is_some_and(excluded))
    }
}

/// True if a list of constraints has `item`.
fn lists<T: Ord>(list: &[T], item: &T) -> bool {
    if list.len() <= MAX_LINEAR_SEARCH { list.contains(item) } else { list.binary_search(item).is_ok() }
}

/// Reason for which a candidate cannot take a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The host is down.
    Down,
    /// The host is draining.
    Draining,
    /// The block does not fit on the host.
    Full,
    /// The task needs more processors than the host has left.
    Cpus,
    /// The task needs more memory than the host has left.
    Memory,
    /// The host's fill would exceed the average by more than the request allows.
    Imbalance,
    /// The request excludes the candidate.
    Excluded,
    /// The host has none of the related files.
    Collocation,
    /// The host lacks a required tag.
    Tags,
    /// The host lacks a required label.
    Labels,
    /// The host or its rack has a task from which the request stays apart.
    Apart,
    /// The round-trip time to a task of the request exceeds its bound, or is unknown.
    Latency,
    /// The host has no device of the required type of storage.
    Storage,
    /// The host has a copy already.
    Used,
    /// The host shares a fault domain with another copy, and the request does not allow this.
    FaultDomain,
    /// Too few hosts of the domain can take a copy.
    TooFew,
    /// The load of the candidate is unknown.
    Unknown,
}

impl Constraint {
    /// Reason as text, as the end of "refused: ...".
    pub fn text(self) -> &'static str {
        match self {
            Constraint::Down => "the host is down",
            Constraint::Draining => "the host is draining",
            Constraint::Full => "the block does not fit",
            Constraint::Cpus => "too few processors are left",
            Constraint::Memory => "too little memory is left",
            Constraint::Imbalance => "its fill exceeds the average by more than the request allows",
            Constraint::Collocation => "it holds no related file",
            Constraint::Excluded => "excluded by the request",
            Constraint::Tags => "a required tag is missing",
            Constraint::Labels => "a required label is missing",
            Constraint::Apart => "a task from which it must stay apart is there",
            Constraint::Latency => "its round-trip time to a task exceeds the bound or is unknown",
            Constraint::Storage => "it has no storage of the required type",
            Constraint::Used => "it holds a copy already",
            Constraint::FaultDomain => "it fails together with another copy",
            Constraint::TooFew => "too few of its hosts can take a copy",
            Constraint::Unknown => "its load is unknown",
        }
    }
}

/// Checks hosts and domains for one request, given the copies placed so far.
pub(crate) struct Filter<'a> {
    pub pool: &'a Pool,
    pub constraints: &'a Constraints,
    pub size: Bytes,
    /// Hosts with a copy.
    pub used: Vec<HostId>,
    /// Fault domains that cannot take another copy.
    pub closed: Vec<FaultDomainId>,
}

impl Filter<'_> {
    fn fabric(&self) -> &Fabric {
        self.pool.fabric()
    }

    /// Reason for which `host` cannot take a copy; `None` if it can.
    pub fn refuses(&self, host: HostId) -> Option<Constraint> {
        let rack = self.fabric().rack_of(host);
        self.refuses_rack(rack).or_else(|| self.refuses_itself(host))
    }

    /// Reason for which `host` cannot take a copy, apart from constraints on its rack.
    fn refuses_itself(&self, host: HostId) -> Option<Constraint> {
        if !self.pool.is_up(host) {
            Some(Constraint::Down)
        } else if self.pool.is_draining(host) {
            Some(Constraint::Draining)
        } else if !self.pool.fits(host, self.size) || !self.pool.is_open(host) {
            Some(Constraint::Full)
        } else if self
            .constraints
            .max_imbalance
            .is_some_and(|most| self.pool.imbalance(host, self.size) > most)
        {
            Some(Constraint::Imbalance)
        } else {
            let used = || self.used.contains(&host).then_some(Constraint::Used);
            self.constraints.refuse(self.fabric(), host).or_else(used)
        }
    }

    fn refuses_rack(&self, rack: DomainId) -> Option<Constraint> {
        if self.constraints.exclude(self.fabric(), rack) {
            Some(Constraint::Excluded)
        } else if self.closed.contains(&self.fabric().fault_domain(rack)) {
            Some(Constraint::FaultDomain)
        } else {
            None
        }
    }

    /// Reason for which `domain` cannot take `copies` on different hosts of one rack; `None` if it can. If its racks
    /// have different reasons, returns the reason of the last rack.
    pub fn refuses_domain(&self, domain: DomainId, copies: usize) -> Option<Constraint> {
        let children = self.fabric().children(Some(domain));
        if children.len() > 0 {
            let mut last = Constraint::TooFew;
            for child in children {
                last = self.refuses_domain(child, copies)?;
            }
            return Some(last);
        }
        if let Some(constraint) = self.refuses_rack(domain) {
            return Some(constraint);
        }
        if (self.pool.open(domain) as usize) < copies {
            return Some(Constraint::TooFew);
        }
        let takers =
            self.fabric().hosts(domain).map(HostId).filter(|&host| self.refuses_itself(host).is_none());
        (takers.take(copies).count() < copies).then_some(Constraint::TooFew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_holds_for_short_unsorted_and_long_sorted_lists() {
        for length in [0, 1, 3, MAX_LINEAR_SEARCH, MAX_LINEAR_SEARCH + 1, 1000] {
            let mut constraints = Constraints {
                excluded_hosts: (0..length as u32).rev().map(|id| HostId(3 * id)).collect(),
                ..Constraints::default()
            };
            if length > MAX_LINEAR_SEARCH {
                constraints.sort();
            }
            for id in 0..3 * length as u32 + 3 {
                let listed = id % 3 == 0 && id < 3 * length as u32;
                assert_eq!(lists(&constraints.excluded_hosts, &HostId(id)), listed, "{id} of {length}");
            }
        }
    }
}
