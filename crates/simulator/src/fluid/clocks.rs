//! Virtual time: who finishes when.
//!
//! All entries limited by one resource are served alike: each flow gets as many bytes, for each unit of
//! weight, as the level of the resource adds up to over time. So the resource keeps a clock that runs at its
//! level, and an entry a tag, the value of that clock at which its next flow finishes. While the entry stays,
//! its tag does not change, whatever the level does; a change of level costs one new prediction for the
//! resource and not one for each flow. (This is the virtual time of fair queueing, Demers, Keshav and
//! Shenker, SIGCOMM 1989, with a clock for each bottleneck of a network.)
//!
//! An entry that goes from one limit to another takes its bytes along: the difference between its tag and the
//! clock it leaves, times its weight, makes its tag on the next clock. Entries limited by their ceilings have
//! constant rates and predictions of their own.
//!
//! Inside an entry of several flows there is virtual time once more: what each of them has been given since
//! the entry came to be. Only the first flow to finish has a tag on the clock, the others wait in a heap.

use super::completions::Completions;
use super::crowd::Crowds;
use super::flows::{FlowId, Flows};
use super::maxmin::MaxMin;

const NONE: u32 = u32::MAX;
/// Owners of predictions are resources by number, and entries by number above this.
const ENTRY: u32 = 1 << 31;

/// Completions closer than this are one event: a few units in the last place of the time.
pub(super) fn window(now: f64) -> f64 {
    now * 2e-15
}

/// When `bytes` are through at a constant rate, zero included.
fn finish(since: f64, bytes: f64, rate: f64) -> f64 {
    if bytes > 0.0 { since + bytes / rate } else { since }
}

/// Virtual time of a saturated resource.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Clock {
    /// Service since the resource became saturated, in bytes for each unit of weight, as of `at`.
    value: f64,
    at: f64,
    /// The level of the resource; 0 while it is not saturated.
    level: f64,
    /// The least tag of the entries limited here, and whose it is; `NONE` when it must be looked up.
    earliest: f64,
    first: u32,
    /// Where its prediction stands.
    place: u32,
    /// The prediction must be made afresh.
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

    /// The value at a time when the level is still what it is.
    fn read(&self, now: f64) -> f64 {
        self.value + (now - self.at) * self.level
    }

    /// Brings the value up to date, before the level changes.
    fn settle(&mut self, now: f64) {
        self.value = self.read(now);
        self.at = now;
    }

    /// When the first entry limited here finishes.
    fn prediction(&self) -> f64 {
        let ahead = (self.earliest - self.value) / self.level;
        self.at + if ahead > 0.0 { ahead } else { 0.0 }
    }

    /// The value that counts as reached: a completion is never put off for a rounding error.
    fn due(&self, now: f64) -> f64 {
        (self.value + self.level * window(now)).max(self.earliest)
    }
}

/// The service that an entry gets: each of its flows the same.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// The resource whose clock its tag refers to; `NONE` while it is limited by its ceiling.
    limit: u32,
    /// The flow that finishes first.
    head: u32,
    /// The heap of the others; `NONE` while there never was another.
    crowd: u32,
    /// Limited by its ceiling: where its prediction stands. `NONE` before the first solution.
    place: u32,
    /// Limited by its ceiling: since when, and at what rate for each flow.
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
    /// By entry: the value of the clock of its limit at which its first flow is done; or, limited by its
    /// ceiling, the bytes that were left of that flow.
    tags: Vec<f64>,
    crowds: Crowds,
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
            crowds: Crowds::default(),
            completions: Completions::default(),
            stale: Vec::new(),
            due: Vec::new(),
        }
    }

    /// The earliest completion; infinity when there is none.
    pub fn earliest(&self) -> f64 {
        self.completions.earliest()
    }

    /// A new entry, with one flow.
    pub fn begin(&mut self, entry: u32, flow: u32, bytes: f64, weight: f64, key: Option<u64>) {
        let service =
            Service { limit: NONE, head: flow, crowd: NONE, place: NONE, since: 0.0, rate: 0.0, weight, key };
        let e = entry as usize;
        if e == self.services.len() {
            self.services.push(service);
            self.tags.push(bytes);
        } else {
            self.services[e] = service;
            self.tags[e] = bytes;
        }
    }

    /// One more flow in an entry.
    pub fn join(&mut self, flows: &mut Flows, entry: u32, bytes: f64, now: f64) -> FlowId {
        let Service { head, mut crowd, .. } = self.services[entry as usize];
        let first = flows.at(head).tag;
        let tag = first - self.left(entry, now) + bytes;
        let flow = flows.add(entry, tag, bytes);
        if crowd == NONE {
            crowd = self.crowds.claim();
            self.services[entry as usize].crowd = crowd;
        }
        if tag < first {
            self.crowds.push(crowd, first, head, flows.at(head).bytes);
            self.services[entry as usize].head = flow.slot();
            self.shift(entry, tag - first);
        } else {
            self.crowds.push(crowd, tag, flow.slot(), bytes);
        }
        flow
    }

    /// Takes a flow out of an entry. If it was the last, returns its key, and the entry is no more.
    pub fn leave(&mut self, flows: &Flows, entry: u32, flow: u32) -> Option<Option<u64>> {
        let Service { limit, head, crowd, place, key, .. } = self.services[entry as usize];
        if flow != head {
            self.crowds.remove(crowd, flow);
            return None;
        }
        if crowd != NONE {
            if let Some((tag, next)) = self.crowds.pop(crowd) {
                self.services[entry as usize].head = next;
                self.shift(entry, tag - flows.at(head).tag);
                return None;
            }
            self.crowds.release(crowd);
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

    /// The first flow of an entry finishes after `bytes` more than thought.
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

    /// An entry is limited by `r` from now on, or has another tag.
    fn register(&mut self, r: u32, entry: u32, tag: f64) {
        self.tags[entry as usize] = tag;
        let clock = &mut self.clocks[r as usize];
        if tag < clock.earliest {
            (clock.earliest, clock.first) = (tag, entry);
        }
        self.mark(r);
    }

    /// An entry is no longer limited by `r`, or its tag no longer holds.
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

    /// The first flow of an entry.
    pub fn head(&self, entry: u32) -> u32 {
        self.services[entry as usize].head
    }

    /// The bytes that the flows of an entry have been served so far.
    pub fn served(&self, flows: &Flows, entry: u32, now: f64) -> f64 {
        let Service { head, crowd, .. } = self.services[entry as usize];
        let (left, first) = (self.left(entry, now), flows.at(head));
        let of_first = first.bytes - left;
        if crowd == NONE {
            return of_first;
        }
        // The others are as far behind the first as their tags are.
        let (count, lead) = self.crowds.lead(crowd);
        of_first + (lead + count as f64 * (first.tag - left))
    }

    /// The bytes left of the first flow of an entry.
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

    /// Takes over a solution.
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
            // Entries that came and went before they were solved are no more.
            if let Some((limit, rate)) = maxmin.terms(entry) {
                self.transfer(entry, limit, rate, now);
            }
        }
        while let Some(r) = self.stale.pop() {
            self.predict(maxmin, r);
        }
    }

    /// An entry is limited by the resource `limit` from now on, or by its ceiling (`NONE`), to `rate`.
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

    /// Whether the first flow of an entry finishes now, too, after another of its flows did.
    pub fn is_due(&self, entry: u32, now: f64) -> bool {
        let Service { limit, rate, .. } = self.services[entry as usize];
        if limit == NONE {
            self.left(entry, now) <= rate * window(now)
        } else {
            self.tags[entry as usize] <= self.clocks[limit as usize].due(now)
        }
    }
}
