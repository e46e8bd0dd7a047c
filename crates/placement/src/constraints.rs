//! What keeps a host out of a decision: one place for all policies.

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, DomainId, Fabric, FaultDomainId, HostId};
use serde::Serialize;

use crate::Pool;

/// So many are looked through one by one, in whatever order they are.
const FEW: usize = 64;

/// What a request demands of the hosts that take it. A list of more than 64 is in order of ids, since each host is
/// looked up in it; [`Constraints::sort`] puts lists in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Constraints {
    /// Hosts that must not take it; in order of ids if there are more than 64.
    pub excluded_hosts: Vec<HostId>,
    /// Racks and pods that must not take it; in order of ids if there are more than 64.
    pub excluded_domains: Vec<DomainId>,
    /// Tags that a host must have, all of them, as [`Fabric::tag_mask`] gives them.
    pub tags: u64,
    /// Hosts of related files: if not empty, no other host may take it. In order of ids if there are more than 64.
    pub collocated: Vec<HostId>,
    /// How much more of its room, as a share, a host may fill than the hosts of the cluster do in the mean.
    pub max_imbalance: Option<f64>,
}

impl Constraints {
    /// Those of hosts, racks, pods and tags by name. An error names the field of a request.
    pub fn named(fabric: &Fabric, exclude: &[String], tags: &[String]) -> Result<Constraints, InputError> {
        let wrong = |field: &str, message: String| InputError::new("request", message).in_field(field);
        let mut constraints = Constraints::default();
        for name in exclude {
            match (fabric.host(name), fabric.domain(name)) {
                (Some(host), _) => constraints.excluded_hosts.push(host),
                (None, Some(domain)) => constraints.excluded_domains.push(domain),
                (None, None) => {
                    let name = excerpt(name);
                    let message = format!("`{name}`: no host, rack or pod of the cluster has this name");
                    return Err(wrong("exclude", message));
                }
            }
        }
        for tag in tags {
            let unknown = || wrong("tags", format!("no host has the tag `{}`", excerpt(tag)));
            constraints.tags |= fabric.tag_mask(tag).ok_or_else(unknown)?;
        }
        constraints.sort();
        Ok(constraints)
    }

    /// Puts the lists in order of ids, with each host and domain in them once.
    pub fn sort(&mut self) {
        fn sort<T: Ord>(list: &mut Vec<T>) {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        sort(&mut self.excluded_hosts);
        sort(&mut self.excluded_domains);
        sort(&mut self.collocated);
    }

    /// Whether they demand nothing but tags.
    pub fn only_tags(&self) -> bool {
        *self == Constraints { tags: self.tags, ..Constraints::default() }
    }

    /// Why they keep `host` out, whatever it has room for and its rack aside.
    pub(crate) fn refuse(&self, fabric: &Fabric, host: HostId) -> Option<Constraint> {
        if lists(&self.excluded_hosts, &host) {
            Some(Constraint::Excluded)
        } else if !self.collocated.is_empty() && !lists(&self.collocated, &host) {
            Some(Constraint::Collocation)
        } else if self.tags != 0 && fabric.tags(host) & self.tags != self.tags {
            Some(Constraint::Tags)
        } else {
            None
        }
    }

    /// Whether they keep a whole rack out.
    pub(crate) fn exclude(&self, fabric: &Fabric, rack: DomainId) -> bool {
        let excluded = |domain| lists(&self.excluded_domains, &domain);
        !self.excluded_domains.is_empty() && (excluded(rack) || fabric.parent(rack).is_some_and(excluded))
    }
}

/// Whether a list of constraints has `item`.
fn lists<T: Ord>(list: &[T], item: &T) -> bool {
    if list.len() <= FEW { list.contains(item) } else { list.binary_search(item).is_ok() }
}

/// Why a candidate cannot take a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The host is down.
    Down,
    /// The host is being emptied.
    Draining,
    /// The block does not fit on the host.
    Full,
    /// The task needs more processors than the host has left.
    Cpus,
    /// The task needs more memory than the host has left.
    Memory,
    /// It would be fuller than the mean by more than the request allows.
    Imbalance,
    /// The request excludes it.
    Excluded,
    /// It holds none of the related files.
    Collocation,
    /// It lacks a tag that the request demands.
    Tags,
    /// It holds a copy already.
    Used,
    /// It would fail together with a copy that it must outlive.
    FaultDomain,
    /// Too few of its hosts can take a copy.
    TooFew,
    /// Its load cannot be seen.
    Unknown,
}

impl Constraint {
    /// In words, as the end of "refused: ...".
    pub fn text(self) -> &'static str {
        match self {
            Constraint::Down => "the host is down",
            Constraint::Draining => "the host is draining",
            Constraint::Full => "the block does not fit",
            Constraint::Cpus => "too few processors are left",
            Constraint::Memory => "too little memory is left",
            Constraint::Imbalance => "it is too much fuller than the mean",
            Constraint::Collocation => "it holds no related file",
            Constraint::Excluded => "excluded by the request",
            Constraint::Tags => "a demanded tag is missing",
            Constraint::Used => "it holds a copy already",
            Constraint::FaultDomain => "it fails together with another copy",
            Constraint::TooFew => "too few of its hosts can take a copy",
            Constraint::Unknown => "its load cannot be seen",
        }
    }
}

/// Checks hosts and domains for one request, given the copies placed so far.
pub(crate) struct Filter<'a> {
    pub pool: &'a Pool,
    pub constraints: &'a Constraints,
    pub size: Bytes,
    /// Hosts that hold a copy.
    pub used: Vec<HostId>,
    /// Fault domains that may hold no further copy.
    pub closed: Vec<FaultDomainId>,
}

impl Filter<'_> {
    fn fabric(&self) -> &Fabric {
        self.pool.fabric()
    }

    /// Why `host` cannot take a copy; `None` if it can.
    pub fn refuses(&self, host: HostId) -> Option<Constraint> {
        let rack = self.fabric().rack_of(host);
        self.refuses_rack(rack).or_else(|| self.refuses_itself(host))
    }

    /// Why `host` cannot take a copy, its rack aside.
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

    /// Why `domain` cannot take `copies` on different hosts of one rack; `None` if it can. The constraint named is
    /// the last that stood in the way.
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
    fn a_list_has_what_is_in_it_whether_it_is_short_and_in_any_order_or_long_and_sorted() {
        for length in [0, 1, 3, FEW, FEW + 1, 1000] {
            let mut constraints = Constraints {
                excluded_hosts: (0..length as u32).rev().map(|id| HostId(3 * id)).collect(),
                ..Constraints::default()
            };
            if length > FEW {
                constraints.sort();
            }
            for id in 0..3 * length as u32 + 3 {
                let listed = id % 3 == 0 && id < 3 * length as u32;
                assert_eq!(lists(&constraints.excluded_hosts, &HostId(id)), listed, "{id} of {length}");
            }
        }
    }
}
