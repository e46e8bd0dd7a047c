//! Virtual time: order and times of completions.
//!
//! All entries limited by one resource get the same service. The bytes of each flow, per unit of weight, are the
//! integral of the resource's level over time. So the resource has a clock that runs at its level. An entry has a tag:
//! the value of that clock at which its next flow finishes. While the entry stays there, its tag is constant, even if
//! the level changes. A change of level costs one new prediction for the resource, instead of one for each flow. The
//! method is the virtual time of fair queueing (Demers, Keshav and Shenker, SIGCOMM 1989), with one clock per
//! bottleneck of a network.
//!
//! An entry with a new limit keeps its remaining bytes. The difference between its tag and the old clock, times its
//! weight, determines its tag on the next clock. Entries limited by their ceilings have constant rates and their own
//! predictions.
//!
//! An entry of several flows has a second virtual time: the service of each flow since the entry began. Only
//! the first flow to finish has a tag on the clock; the others wait in a heap.

use super::completions::Completions;
use super::flow_class::FlowClasses;
use super::flows::{FlowId, Flows};
use super::maxmin::MaxMin;

const NONE: u32 = u32::MAX;
/// Offset of an entry's number as the owner of a prediction. A resource owns predictions under its own number.
const ENTRY: u32 = 1 << 31;

/// Tolerance within which completions are one event: a few units in the last place of the time.
pub(super) fn window(now: f64) -> f64 {
    now * 2e-15
}

/// Returns the time at which `bytes` are transferred at a constant rate, which may be zero.
fn finish(since: f64, bytes: f64, rate: f64) -> f64 {
    if bytes > 0.0 { since + bytes / rate } else { since }
}

/// Virtual time of a saturated resource.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Clock {
    /// Service since the resource became saturated, in bytes per unit of weight, as of `at`.
    value: f64,
    at: f64,
    /// The level of the resource; 0 while it is not saturated.
    level: f64,
    /// Smallest tag of the entries limited here, and its entry; `NONE` if a search is needed.
    earliest: f64,
    first: u32,
    /// Slot of its prediction.
    place: u32,
    /// True if the prediction must be recomputed.
    stale: bool,
}

impl Clock {
    const STOPPED: Clock = Clock {
        value: 0.0,
        at: 0.0,
        level: 0.0,
        earliest: f64::INFINITY,
        first: NONE,
        place: NONE,
        stale: false,
    };

    /// Returns the value at a time with an unchanged level.
    fn read(&self, now: f64) -> f64 {
        self.value + (now - self.at) * self.level
    }

    /// Updates the value, before the level changes.
    fn settle(&mut self, now: f64) {
        self.value = self.read(now);
        self.at = now;
    }

    /// Returns the time at which the first entry limited here finishes.
    fn prediction(&self) -> f64 {
        let ahead = (self.earliest - self.value) / self.level;
        self.at + if ahead > 0.0 { ahead } else { 0.0 }
    }

    /// Returns the value up to which tags count as reached, so that rounding errors never delay a completion.
    fn due(&self, now: f64) -> f64 {
        (self.value + self.level * window(now)).max(self.earliest)
    }
}

/// Service of an entry; each of its flows gets the same.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// Resource whose clock its tag refers to; `NONE` while its ceiling limits it.
    limit: u32,
    /// Flow that finishes first.
    head: u32,
    /// Heap of the other flows; `NONE` if there never was one.
    class: u32,
    /// Slot of its prediction, if the ceiling limits it. `NONE` before the first solution.
    place: u32,
    /// For a limit by the ceiling: its start, and the rate of each flow since then.
    since: f64,
    rate: f64,
    weight: f64,
    key: Option<u64>,
}

/// All clocks.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    clocks: Vec<Clock>,
    services: Vec<Service>,
    /// By entry: the value of its limit's clock at which its first flow finishes. For a limit by the ceiling: the bytes
    /// left of that flow at `since`.
    tags: Vec<f64>,
    classes: FlowClasses,
    completions: Completions,
    stale: Vec<u32>,
    due: Vec<u32>,
}

impl Clocks {
    pub fn new(resources: usize) -> Clocks {
        Clocks {
            clocks: vec![Clock::STOPPED; resources],
            services: Vec::new(),
            tags: Vec::new(),
            classes: FlowClasses::default(),
            completions: Completions::default(),
            stale: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Returns the earliest completion; infinity if there is none.
    pub fn earliest(&self) -> f64 {
        self.completions.earliest()
    }

    /// Adds an entry with one flow.
    pub fn begin(&mut self, entry: u32, flow: u32, bytes: f64, weight: f64, key: Option<u64>) {
        let service =
            Service { limit: NONE, head: flow, class: NONE, place: NONE, since: 0.0, rate: 0.0, weight, key };
        let e = entry as usize;
        if e == self.services.len() {
            self.services.push(service);
            self.tags.push(bytes);
        } else {
            self.services[e] = service;
            self.tags[e] = bytes;
        }
    }

    /// Adds a flow to an entry.
    pub fn join(&mut self, flows: &mut Flows, entry: u32, bytes: f64, now: f64) -> FlowId {
        let Service { head, mut class, .. } = self.services[entry as usize];
        let first = flows.at(head).tag;
        let tag = first - self.left(entry, now) + bytes;
        let flow = flows.add(entry, tag, bytes);
        if class == NONE {
            class = self.classes.claim();
            self.services[entry as usize].class = class;
        }
        if tag < first {
            self.classes.push(class, first, head, flows.at(head).bytes);
            self.services[entry as usize].head = flow.slot();
            self.shift(entry, tag - first);
        } else {
            self.classes.push(class, tag, flow.slot(), bytes);
        }
        flow
    }

    /// Removes a flow from an entry. If it was the last one, removes the entry and returns its key.
    pub fn leave(&mut self, flows: &Flows, entry: u32, flow: u32) -> Option<Option<u64>> {
        let Service { limit, head, class, place, key, .. } = self.services[entry as usize];
        if flow != head {
            self.classes.remove(class, flow);
            return None;
        }
        if class != NONE {
            if let Some((tag, next)) = self.classes.pop(class) {
                self.services[entry as usize].head = next;
                self.shift(entry, tag - flows.at(head).tag);
                return None;
            }
            self.classes.release(class);
        }
        if limit == NONE {
            if place != NONE {
                self.completions.release(place);
            }
        } else {
            self.forget(limit, entry);
        }
        Some(key)
    }

    /// Delays the first completion of an entry by `bytes`.
    fn shift(&mut self, entry: u32, bytes: f64) {
        let Service { limit, place, since, rate, weight, .. } = self.services[entry as usize];
        if limit == NONE {
            let tag = &mut self.tags[entry as usize];
            *tag += bytes;
            if place != NONE {
                self.completions.set(place, finish(since, *tag, rate));
            }
        } else {
            self.forget(limit, entry);
            let tag = self.tags[entry as usize] + bytes / weight;
            self.register(limit, entry, tag);
        }
    }

    /// Registers the tag of an entry on the clock of `r`.
    fn register(&mut self, r: u32, entry: u32, tag: f64) {
        self.tags[entry as usize] = tag;
        let clock = &mut self.clocks[r as usize];
        if tag < clock.earliest {
            (clock.earliest, clock.first) = (tag, entry);
        }
        self.mark(r);
    }

    /// Removes the tag of an entry from the clock of `r`.
    fn forget(&mut self, r: u32, entry: u32) {
        let clock = &mut self.clocks[r as usize];
        if clock.first == entry {
            clock.first = NONE;
        }
        self.mark(r);
    }

    fn mark(&mut self, r: u32) {
        let clock = &mut self.clocks[r as usize];
        if !clock.stale {
            clock.stale = true;
            self.stale.push(r);
        }
    }

    /// Returns the first flow of an entry.
    pub fn head(&self, entry: u32) -> u32 {
        self.services[entry as usize].head
    }

    /// Returns the bytes served to the flows of an entry so far.
    pub fn served(&self, flows: &Flows, entry: u32, now: f64) -> f64 {
        let Service { head, class, .. } = self.services[entry as usize];
        let (left, first) = (self.left(entry, now), flows.at(head));
        let head_served = first.bytes - left;
        if class == NONE {
            return head_served;
        }
        // The tags give the differences of served bytes.
        let (count, lead) = self.classes.lead(class);
        head_served + (lead + count as f64 * (first.tag - left))
    }

    /// Returns the bytes left of the first flow of an entry.
    pub fn left(&self, entry: u32, now: f64) -> f64 {
        let Service { limit, since, rate, weight, .. } = self.services[entry as usize];
        let tag = self.tags[entry as usize];
        let left = if limit == NONE {
            tag - (now - since) * rate
        } else {
            (tag - self.clocks[limit as usize].read(now)) * weight
        };
        left.max(0.0)
    }

    /// Applies a solution of the allocation.
    pub fn follow(&mut self, maxmin: &MaxMin, now: f64) {
        for &r in maxmin.changes() {
            let level = maxmin.level_at(r);
            let clock = &mut self.clocks[r as usize];
            clock.settle(now);
            if level < f64::INFINITY && clock.first != NONE && clock.place != NONE {
                clock.level = level;
                self.completions.set(clock.place, clock.prediction());
            } else {
                clock.level = if level < f64::INFINITY { level } else { 0.0 };
                self.mark(r);
            }
        }
        for &entry in maxmin.moves() {
            // Entries that were removed before the solution do not exist any more.
            if let Some((limit, rate)) = maxmin.limit_and_rate(entry) {
                self.transfer(entry, limit, rate, now);
            }
        }
        while let Some(r) = self.stale.pop() {
            self.predict(maxmin, r);
        }
    }

    /// Changes the limit of an entry to the resource `limit`, or to its ceiling (`None`), at `rate`.
    fn transfer(&mut self, entry: u32, limit: Option<u32>, rate: f64, now: f64) {
        let left = self.left(entry, now);
        let Service { limit: from, mut place, weight, .. } = self.services[entry as usize];
        if from != NONE {
            self.forget(from, entry);
        }
        let service = &mut self.services[entry as usize];
        service.limit = limit.unwrap_or(NONE);
        if let Some(r) = limit {
            if place != NONE {
                service.place = NONE;
                self.completions.release(place);
            }
            let tag = self.clocks[r as usize].read(now) + left / weight;
            self.register(r, entry, tag);
        } else {
            if place == NONE {
                place = self.completions.claim(ENTRY + entry);
                service.place = place;
            }
            (service.since, service.rate) = (now, rate);
            self.tags[entry as usize] = left;
            self.completions.set(place, finish(now, left, rate));
        }
    }

    /// Predicts the next completion among the entries limited by `r`.
    fn predict(&mut self, maxmin: &MaxMin, r: u32) {
        let clock = &mut self.clocks[r as usize];
        clock.stale = false;
        if clock.level == 0.0 {
            if clock.place != NONE {
                self.completions.release(clock.place);
            }
            *clock = Clock::STOPPED;
            return;
        }
        if clock.first == NONE {
            clock.earliest = f64::INFINITY;
            for entry in maxmin.limited_by(r) {
                let tag = self.tags[entry as usize];
                if tag < clock.earliest {
                    (clock.earliest, clock.first) = (tag, entry);
                }
            }
        }
        if clock.place == NONE {
            clock.place = self.completions.claim(r);
        }
        self.completions.set(clock.place, clock.prediction());
    }

    /// Appends the entries whose first flow finishes now.
    pub fn due(&mut self, maxmin: &MaxMin, now: f64, entries: &mut Vec<u32>) {
        let mut owners = std::mem::take(&mut self.due);
        self.completions.due(now + window(now), &mut owners);
        for owner in owners.drain(..) {
            if owner >= ENTRY {
                entries.push(owner - ENTRY);
                continue;
            }
            self.clocks[owner as usize].settle(now);
            let limit = self.clocks[owner as usize].due(now);
            entries.extend(maxmin.limited_by(owner).filter(|&entry| self.tags[entry as usize] <= limit));
        }
        self.due = owners;
    }

    /// Returns true if, after one flow of an entry finished, the next one also finishes now.
    pub fn is_due(&self, entry: u32, now: f64) -> bool {
        let Service { limit, rate, .. } = self.services[entry as usize];
        if limit == NONE {
            self.left(entry, now) <= rate * window(now)
        } else {
            self.tags[entry as usize] <= self.clocks[limit as usize].due(now)
        }
    }
}
