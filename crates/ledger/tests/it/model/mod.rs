//! A plain model of the ledger's semantics: a log of facts, and every number recomputed from the whole log on each
//! read. The model follows each entry separately; it sums up, stores and updates nothing.

mod entries;

use std::sync::Arc;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, ResourceId};
use leeward_ledger::{Entry, Initial, LedgerSettings, Missing, Sample};

pub use entries::Numbers;

/// The log of events, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// Samples over one window, each of another resource.
    Report(Vec<Sample>),
    Commit(Entry),
    /// The entry of the event with this number starts.
    Started(usize, u64),
    Release(usize),
    SetCapacity(ResourceId, i64),
    Health(HostId, bool),
}

pub struct Model {
    pub fabric: Arc<Fabric>,
    pub capacities: Capacities,
    pub settings: LedgerSettings,
    pub log: Vec<(u64, Event)>,
    /// By event: rate of its entry in bytes per second, determined at commit.
    pub faces: Vec<f64>,
}

/// A position in the log: the number of events before it, and a time.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Place {
    pub events: usize,
    pub time: u64,
}

/// An accepted window.
#[derive(Clone, Copy, Debug)]
struct Window {
    place: Place,
    from: u64,
    until: u64,
    weight: f64,
    /// Mean load; for a sum, the last reported loads below it.
    load: f64,
    /// True if a report was missing and counted as full.
    missed: bool,
}

/// Telemetry of a resource.
#[derive(Clone, Default, Debug)]
struct History {
    windows: Vec<Window>,
    measured: f64,
    guaranteed: Option<f64>,
    from: u64,
    until: u64,
    direct: bool,
    /// True for a sum with at least one part.
    derived: bool,
    down: bool,
    /// Times at which its host went down.
    downs: Vec<Place>,
}

impl Model {
    fn capacity(&self, resource: ResourceId, events: usize) -> f64 {
        let assumed = self.log[..events].iter().rev().find_map(|(_, event)| match event {
            Event::SetCapacity(r, capacity) if *r == resource => Some(*capacity),
            _ => None,
        });
        assumed.unwrap_or(self.capacities.get(resource).0) as f64
    }

    /// Assumed load of a silent resource: at least the rate of the cluster file.
    fn full(&self, resource: ResourceId, events: usize) -> f64 {
        self.capacity(resource, events).max(self.capacities.get(resource).0 as f64)
    }

    fn weight(&self, time: u64) -> f64 {
        1.0 - (1.0 - self.settings.alpha).powf(time as f64 / self.settings.interval.0 as f64)
    }

    fn grace(&self) -> u64 {
        self.settings.grace.map_or(self.settings.interval.0 / 2, |grace| grace.0)
    }

    fn sinbad(&self) -> bool {
        self.settings.missing == Missing::Sinbad
    }

    // ---- telemetry ------------------------------------------------------------------------------------

    fn history(&self, resource: ResourceId, place: Place) -> History {
        let mut history = History::default();
        let mut before = 0;
        let domain = self.fabric.domain_of_link(resource);
        if let Some(domain) = domain {
            self.sum_up(&mut history, domain, resource, Place { events: 0, time: 0 });
        }
        for (number, (time, event)) in self.log[..place.events].iter().enumerate() {
            self.silence(&mut history, resource, number, (before, *time));
            let here = Place { events: number + 1, time: *time };
            match event {
                Event::Report(samples) => {
                    let own = samples.iter().find(|sample| sample.resource == resource);
                    own.into_iter().for_each(|sample| self.accept(&mut history, sample, here));
                }
                Event::Health(host, up) if self.fabric.host_of(resource) == Some(*host) => {
                    if !up {
                        history =
                            History { down: true, measured: 0.0, guaranteed: None, direct: false, ..history };
                        history.downs.push(here);
                    } else if history.down {
                        history = History { down: false, until: *time, ..history };
                    }
                }
                _ => {}
            }
            if let Some(domain) = domain.filter(|_| !history.direct) {
                self.sum_up(&mut history, domain, resource, here);
            }
            before = *time;
        }
        self.silence(&mut history, resource, place.events, (before, place.time));
        history
    }

    /// A sample of a resource itself.
    fn accept(&self, history: &mut History, sample: &Sample, place: Place) {
        let (from, until) = (sample.window.0.0, sample.window.1.0);
        if history.down || (until <= history.until && !history.derived) {
            return;
        }
        let first = !history.direct;
        if history.derived || (first && !self.sinbad()) {
            history.until = from;
        } else if self.sinbad() {
            let interval = self.settings.interval.0;
            let gap = from.saturating_sub(history.until);
            let count = (gap as f64 / interval as f64).round() as u64;
            if count > 0 {
                let load = self.capacity(sample.resource, place.events);
                self.miss(history, load, (count, gap / count), place);
                history.until = from;
            }
        }
        let weight = match self.settings.initial {
            Initial::First if first => 1.0,
            _ => self.weight(until - history.until),
        };
        let load = sample.load.0 as f64;
        history.measured += weight * (load - history.measured);
        history.guaranteed =
            sample.guaranteed.map(|part| match (history.guaranteed, self.settings.initial) {
                (None, Initial::First) => part.0 as f64,
                (before, _) => {
                    let before = before.unwrap_or(0.0);
                    before + weight * (part.0 as f64 - before)
                }
            });
        (history.from, history.until, history.direct, history.derived) = (from, until, true, false);
        history.windows.push(Window { place, from, until, weight, load, missed: false });
    }

    /// Missing reports, each over some time and counted as one of a full link.
    fn miss(&self, history: &mut History, load: f64, (count, interval): (u64, u64), place: Place) {
        for _ in 0..count {
            let (from, until) = (history.until, history.until + interval);
            history.measured += self.settings.alpha * (load - history.measured);
            let weight = self.settings.alpha;
            history.windows.push(Window { place, from, until, weight, load, missed: true });
            (history.from, history.until) = (from, until);
        }
    }

    /// Measured load of a resource with its own counter, from its reports. Reports missing by then count as `full`, if
    /// given.
    fn seen(&self, resource: ResourceId, full: Option<f64>, place: Place) -> (History, Option<f64>) {
        let mut history = self.history(resource, place);
        if history.down || history.derived {
            let measured = history.measured;
            return (history, Some(measured));
        }
        if self.sinbad() {
            let late = place.time.saturating_sub(history.until + self.grace());
            let interval = self.settings.interval.0;
            let load = full.unwrap_or_else(|| self.capacity(resource, place.events));
            self.miss(&mut history, load, (late / interval, interval), place);
            let measured = history.measured;
            return (history, Some(measured));
        }
        let silent = (self.settings.unknown_after * self.settings.interval.0 as f64) as u64;
        let measured = (history.direct && place.time <= history.until + silent).then_some(history.measured);
        (history, measured)
    }

    // ---- sums -----------------------------------------------------------------------------------------

    /// The resources with a counter whose loads add up to the load of a domain's link.
    fn below(&self, domain: DomainId, out: bool, place: Place) -> Vec<ResourceId> {
        let link =
            |domain| if out { self.fabric.out_of_domain(domain) } else { self.fabric.into_domain(domain) };
        let host = |host| if out { self.fabric.egress(host) } else { self.fabric.ingress(host) };
        let children: Vec<_> = self.fabric.children(Some(domain)).collect();
        if children.is_empty() {
            return self.fabric.hosts(domain).filter_map(|h| host(HostId(h))).collect();
        }
        let of_child = |child: DomainId| {
            let link = link(child).expect("a tree");
            let direct = self.log[..place.events].iter().any(|(_, event)| {
                matches!(event, Event::Report(samples) if samples.iter().any(|sample| sample.resource == link))
            });
            if direct { vec![link] } else { self.below(child, out, place) }
        };
        children.into_iter().flat_map(of_child).collect()
    }

    fn sum_up(&self, history: &mut History, domain: DomainId, resource: ResourceId, place: Place) {
        let out = self.fabric.out_of_domain(domain) == Some(resource);
        let (mut load, mut latest, mut seen) = (0.0, 0.0, false);
        let (mut from, mut until) = (0, u64::MAX);
        for part in self.below(domain, out, place) {
            let full = self.full(part, place.events);
            match self.seen(part, Some(full), place) {
                (own, _) if own.down => seen = true,
                (own, Some(measured)) => {
                    load += measured;
                    latest += own.windows.iter().rev().find(|w| !w.missed).map_or(0.0, |window| window.load);
                    (from, until) = (from.max(own.from), until.min(own.until));
                    seen = true;
                }
                (_, None) => load += full,
            }
        }
        history.derived = seen;
        if !seen {
            history.measured = 0.0;
            return;
        }
        history.measured = load.min(self.capacity(resource, place.events));
        if until != u64::MAX && until > history.until {
            let first = history.until == 0 && !self.sinbad();
            let from = if from < until { from } else { history.until };
            let weight = match self.settings.initial {
                Initial::First if first => 1.0,
                Initial::Zero if first => self.weight(until - from),
                _ => self.weight(until - history.until),
            };
            history.windows.push(Window { place, from, until, weight, load: latest, missed: false });
            (history.from, history.until) = (from, until);
        }
    }

    /// Effect of silence between two events on a sum: its parts become unknown, or rise towards full.
    fn silence(
        &self,
        history: &mut History,
        resource: ResourceId,
        events: usize,
        (since, until): (u64, u64),
    ) {
        let Some(domain) = self.fabric.domain_of_link(resource).filter(|_| !history.direct) else { return };
        let out = self.fabric.out_of_domain(domain) == Some(resource);
        let mut changes = Vec::new();
        let interval = self.settings.interval.0;
        for part in self.below(domain, out, Place { events, time: since }) {
            let own = self.history(part, Place { events, time: since });
            if self.sinbad() {
                let first = own.until + self.grace() + interval;
                let past = since.saturating_sub(own.until + self.grace()) / interval;
                changes.extend((past..).map(|n| first + n * interval).take_while(|&at| at <= until));
            } else {
                let silent = (self.settings.unknown_after * interval as f64) as u64;
                changes.push(own.until + silent + 1);
            }
        }
        changes.retain(|&at| since < at && at <= until);
        changes.sort_unstable();
        for time in changes {
            self.sum_up(history, domain, resource, Place { events, time });
        }
    }
}
