//! Links without a counter of their own: their load is the sum of those below (Sinbad section 6.2).
//!
//! The sum includes traffic that stays inside the rack, so a link with a counter never uses it. A host known to be
//! down adds nothing; a silent one adds the rate of its interface, because nobody can say that it is quiet. A new
//! window of the sum is complete when every host that is seen has one that reaches its end.

use leeward_fabric::{DomainId, Nanos, ResourceId, Shape};

use crate::Ledger;
use crate::settings::{Initial, Missing};
use crate::state::Source;

#[derive(Clone, Copy)]
enum Direction {
    OutOf,
    Into,
}

impl Ledger {
    /// Notes the domains whose sum a resource belongs to.
    pub(crate) fn touch(&self, resource: ResourceId, touched: &mut Vec<DomainId>) {
        let domain = match self.fabric.host_of(resource) {
            Some(host) => Some(self.fabric.rack_of(host)),
            None => self.fabric.domain_of_link(resource).and_then(|domain| self.fabric.parent(domain)),
        };
        if let Some(domain) = domain.filter(|domain| touched.last() != Some(domain)) {
            touched.push(domain);
        }
    }

    pub(crate) fn derive_all(&mut self, now: Nanos) {
        for rack in self.fabric.clone().all_racks() {
            self.derive(rack, now);
        }
    }

    /// Brings the links of `domain`, and of what it is in, up to date with what is below.
    pub(crate) fn derive(&mut self, domain: DomainId, now: Nanos) {
        if self.fabric.shape() != Shape::Tree {
            return;
        }
        let mut next = Some(domain);
        while let Some(domain) = next {
            let out = self.derive_link(domain, Direction::OutOf, now);
            let into = self.derive_link(domain, Direction::Into, now);
            self.derived_due[domain.index()] = out.min(into);
            next = self.fabric.parent(domain);
        }
    }

    /// Sums up one link. Returns when the sum changes without a report.
    fn derive_link(&mut self, domain: DomainId, direction: Direction, now: Nanos) -> Nanos {
        let never = Nanos(u64::MAX);
        let link = match direction {
            Direction::OutOf => self.fabric.out_of_domain(domain),
            Direction::Into => self.fabric.into_domain(domain),
        };
        let Some(link) = link else { return never };
        if self.gauges[link.index()].source == Source::Direct {
            return never;
        }
        let mut sum = Sum { load: 0.0, latest: 0, from: Nanos(0), until: never, due: never, seen: false };
        self.add_below(domain, direction, now, &mut sum);
        let gauge = &mut self.gauges[link.index()];
        if !sum.seen {
            gauge.source = Source::None;
            return sum.due;
        }
        let first = std::mem::replace(&mut gauge.source, Source::Derived) == Source::None;
        gauge.measured = sum.load.min(gauge.capacity as f64);
        if sum.until != never && sum.until > gauge.until {
            let before = std::mem::replace(&mut gauge.until, sum.until);
            let from = if sum.from < sum.until { sum.from } else { before };
            let weight = match (first, self.settings.initial) {
                (true, Initial::First) => 1.0,
                (true, Initial::Zero) => self.settings.weight(sum.until.since(from)),
                (false, _) => self.settings.weight(sum.until.since(before)),
            };
            self.window_passed(link, (from, sum.until), weight, sum.latest);
        }
        sum.due
    }

    fn add_below(&self, domain: DomainId, direction: Direction, now: Nanos, sum: &mut Sum) {
        let fabric = &self.fabric;
        for child in fabric.children(Some(domain)) {
            let link = match direction {
                Direction::OutOf => fabric.out_of_domain(child),
                Direction::Into => fabric.into_domain(child),
            };
            match link {
                Some(link) if self.gauges[link.index()].source == Source::Direct => self.add(link, now, sum),
                _ => self.add_below(child, direction, now, sum),
            }
        }
        if fabric.children(Some(domain)).len() == 0 {
            for host in fabric.hosts(domain).map(leeward_fabric::HostId) {
                let link = match direction {
                    Direction::OutOf => fabric.egress(host),
                    Direction::Into => fabric.ingress(host),
                };
                if let Some(link) = link {
                    self.add(link, now, sum);
                }
            }
        }
    }

    fn add(&self, resource: ResourceId, now: Nanos, sum: &mut Sum) {
        let gauge = &self.gauges[resource.index()];
        if gauge.source == Source::Down {
            return;
        }
        sum.due = sum.due.min(self.changes_at(resource, now).unwrap_or(sum.due));
        match self.measured(resource, now) {
            Some(measured) => {
                let reported = gauge.source == Source::Direct || self.settings.missing == Missing::Sinbad;
                sum.seen |= reported;
                sum.load += measured;
                sum.latest += self.commitments[resource.index()].latest;
                sum.from = sum.from.max(self.commitments[resource.index()].from);
                sum.until = sum.until.min(self.accounted_until(resource, now));
            }
            None => sum.load += gauge.capacity as f64,
        }
    }
}

/// What the resources below a link add up to.
struct Sum {
    load: f64,
    latest: i64,
    from: Nanos,
    until: Nanos,
    due: Nanos,
    seen: bool,
}
