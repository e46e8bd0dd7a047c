//! Links without a counter of their own: their load is the sum of the loads below (Sinbad section 6.2).
//!
//! The sum includes traffic that stays inside the rack, so a link with a counter never uses it. A host that is known to
//! be down adds nothing. A silent host adds the rate of its interface from the cluster file, because it may be busy. A
//! lower capacity set later does not change this rate. A new window of the sum is complete when every visible host has
//! a window that ends at the same time or later.
//!
//! A pod's sum adds the sums of its racks. The capacity of a rack's own link does not limit the rack's part.

use leeward_fabric::{DomainId, HostId, Nanos, ResourceId, Shape};

use crate::Ledger;
use crate::domain_sums::Sum;
use crate::ledger::Due;
use crate::settings::{Initial, Missing};
use crate::state::Source;
use crate::telemetry::after_full_reports;

#[derive(Clone, Copy)]
enum Direction {
    OutOf,
    Into,
}

impl Ledger {
    pub(crate) fn derive_all(&mut self, now: Nanos) {
        self.touched = self.fabric.all_racks().collect();
        self.derive_touched(now);
    }

    /// Updates the sums that new samples affect, from the racks up.
    pub(crate) fn derive_touched(&mut self, now: Nanos) {
        let mut domains = std::mem::take(&mut self.touched);
        let parents: Vec<_> = domains.iter().filter_map(|&domain| self.fabric.parent(domain)).collect();
        domains.extend(parents);
        // Pods have higher ids than racks.
        domains.sort_unstable();
        domains.dedup();
        for domain in domains.drain(..) {
            self.below[domain.index()].touched = None;
            self.derive(domain, now);
        }
        self.touched = domains;
    }

    /// Updates the links of `domain`, and of the domain above, from the resources below.
    pub(crate) fn derive_upwards(&mut self, domain: DomainId, now: Nanos) {
        self.touched.push(domain);
        self.derive_touched(now);
    }

    fn derive(&mut self, domain: DomainId, now: Nanos) {
        if self.fabric.shape() != Shape::Tree {
            return;
        }
        let out = self.derive_link(domain, Direction::OutOf, now);
        let into = self.derive_link(domain, Direction::Into, now);
        let due = [out, into].into_iter().flatten().min();
        let before = std::mem::replace(&mut self.below[domain.index()].due, due);
        if let Some(at) = before.filter(|_| before != due) {
            self.agenda.remove(&(at, Due::Domain(domain)));
        }
        if let Some(at) = due.filter(|_| before != due) {
            self.agenda.insert((at, Due::Domain(domain)));
        }
    }

    /// Updates the sum of one link. Returns the time of its next change without a report.
    fn derive_link(&mut self, domain: DomainId, direction: Direction, now: Nanos) -> Option<Nanos> {
        let link = self.link(domain, direction)?;
        if self.gauges[link.index()].source == Source::Direct {
            return None;
        }
        let mut due = None;
        let sum = self.sum_below(domain, direction, now, &mut due);
        self.below[domain.index()].sums[direction as usize] = sum;
        let gauge = &mut self.gauges[link.index()];
        if !sum.seen {
            (gauge.source, gauge.measured) = (Source::None, 0.0);
            return due;
        }
        gauge.source = Source::Derived;
        gauge.measured = sum.load.min(gauge.capacity as f64);
        if let Some((from, until)) = sum.window
            && until > gauge.until
        {
            let before = std::mem::replace(&mut gauge.until, until);
            let from = if from < until { from } else { before };
            // The first window changes the sum by the whole change of the parts.
            let first = before == Nanos(0) && self.settings.missing == Missing::Strict;
            let weight = match (first, self.settings.initial) {
                (true, Initial::First) => 1.0,
                (true, Initial::Zero) => self.settings.weight(until.since(from)),
                (false, _) => self.settings.weight(until.since(before)),
            };
            let latest = sum.latest.min(gauge.capacity);
            self.window_passed(link, (from, until), weight, latest);
        }
        due
    }

    fn link(&self, domain: DomainId, direction: Direction) -> Option<ResourceId> {
        match direction {
            Direction::OutOf => self.fabric.out_of_domain(domain),
            Direction::Into => self.fabric.into_domain(domain),
        }
    }

    fn sum_below(&self, domain: DomainId, direction: Direction, now: Nanos, due: &mut Option<Nanos>) -> Sum {
        let mut sum = Sum::default();
        for child in self.fabric.children(Some(domain)) {
            match self.link(child, direction) {
                Some(link) if self.gauges[link.index()].source == Source::Direct => {
                    sum.add(self.part(link, now, due));
                }
                _ => sum.add(self.below[child.index()].sums[direction as usize]),
            }
        }
        if self.fabric.children(Some(domain)).len() == 0 {
            for host in self.fabric.hosts(domain).map(HostId) {
                let link = match direction {
                    Direction::OutOf => self.fabric.egress(host),
                    Direction::Into => self.fabric.ingress(host),
                };
                if let Some(link) = link {
                    sum.add(self.part(link, now, due));
                }
            }
        }
        sum
    }

    /// Contribution of a measured resource to a sum.
    fn part(&self, resource: ResourceId, now: Nanos, due: &mut Option<Nanos>) -> Sum {
        let gauge = &self.gauges[resource.index()];
        if gauge.source == Source::Down {
            return Sum { seen: true, ..Sum::default() };
        }
        let most = || gauge.capacity.max(self.full.get(resource).0) as f64;
        let changes = self.changes_at(resource, now).filter(|&at| at != Nanos(u64::MAX));
        *due = [*due, changes].into_iter().flatten().min();
        match self.measured(resource, now) {
            Some(load) => Sum {
                load: self
                    .missed(gauge, now)
                    .map_or(load, |missed| after_full_reports(gauge.measured, most(), &missed)),
                latest: self.commitments[resource.index()].latest,
                window: Some(self.last_window(resource, now)),
                seen: gauge.source == Source::Direct || self.settings.missing == Missing::Sinbad,
            },
            None => Sum { load: most(), ..Sum::default() },
        }
    }
}
