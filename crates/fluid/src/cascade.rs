//! The solver: levels settle one resource at a time, the lowest first, and only where something changed.
//!
//! A saturated resource is settled if `left = gain * level`: the members limited by it take exactly the capacity that
//! the other members leave. A change of a level, or of a member's limit, updates these sums and queues the affected
//! resources. The cascade takes them out one by one and sets `level = left / gain`. The change affects the rates of the
//! members limited here, and so the `left` of their other resources.
//!
//! The fixed point is the max-min allocation, by two invariants. Between any two visits, for every entry and every
//! saturated resource `r` on its path:
//!
//! * an entry limited by `r` is offered at least the level of `r` by its ceiling and its other resources;
//! * an entry limited elsewhere runs at most at the level of `r`.
//!
//! If a new level breaks neither invariant, the bounds `wake` and `below` show it at once. Otherwise the solver
//! examines the resource member by member (see [`handover`](super::handover)).
//!
//! A change of level can only change higher levels. An entry's rate is the level of its lowest resource, so this level
//! matters only to the entry's other, higher resources. In order of levels, each resource is therefore visited about
//! once. The queue keeps that order only roughly, and levels change while resources wait. So no useful bound on the
//! number of visits is proven. The solver aborts a cascade that takes too long (see [`filling`](super::filling)); no
//! such case is known.

use super::level::{SAME, least};
use super::maxmin::MaxMin;

/// Reason for the end of a cascade.
enum Stop {
    /// All resources are settled.
    Settled,
    /// A resource is watched, limits no entry, or has inexact sums.
    Special(u32),
    /// The level of a resource changed from the first value to the second, and may have passed a member's level.
    Crossed(u32, f64, f64),
    /// The cascade reached its limit of visits.
    VisitLimit,
}

impl MaxMin {
    /// Makes all rates max-min fair again.
    pub fn solve(&mut self) {
        for &r in &self.changes[..self.changed] {
            self.resources[r as usize].touched = false;
        }
        self.changed = 0;
        self.effort.solutions += 1;
        let mut end = self.effort.settled + self.visit_limit;
        let mut filled = false;
        loop {
            match self.run(end) {
                Stop::Settled => break,
                Stop::Special(r) => self.special(r),
                Stop::Crossed(r, old, new) => self.cross(r, old, new),
                Stop::VisitLimit => {
                    self.effort.fillings += 1;
                    self.fill();
                    if std::mem::replace(&mut filled, true) {
                        // Resources that are still queued differ only by rounding errors.
                        while self.queue.pop(&mut self.resources).is_some() {}
                        break;
                    }
                    end = self.effort.settled + self.visit_limit;
                }
            }
        }
        std::mem::swap(&mut self.moves, &mut self.moving);
        self.moving.clear();
        for &id in &self.moves {
            self.entries[id as usize].moved = false;
        }
        self.effort.changed += self.changed as u64;
    }

    /// Settles resources until one needs a closer look. This loop takes most of the time.
    fn run(&mut self, end: u64) -> Stop {
        let resources = self.resources.as_mut_slice();
        let ties = self.members.ties.as_slice();
        let changes = self.changes.as_mut_slice();
        let mut changed = self.changed;
        let mut settled = self.effort.settled;
        let stop = loop {
            if settled == end && !self.queue.is_empty() {
                break Stop::VisitLimit;
            }
            let Some(r) = self.queue.pop(resources) else { break Stop::Settled };
            settled += 1;
            let resource = &mut resources[r as usize];
            let old = resource.level;
            let new = resource.left / resource.gain;
            if !(resource.gain > 0.0 && resource.left > 0.0) || resource.needs_recount() {
                break Stop::Special(r);
            }
            // Each member may have changed the sums once since the last visit.
            resource.updates += resource.crossing;
            let more = new - old;
            if more.abs() <= SAME * old {
                continue;
            }
            resource.level = new;
            changes[changed] = r;
            changed += usize::from(!resource.touched);
            resource.touched = true;
            let (mut lowest, below) = (resource.wake, resource.below);
            let range = resource.tied_range();
            for tie in &ties[range] {
                let peer = &mut resources[tie.peer as usize];
                lowest = least(lowest, peer.level);
                peer.left -= tie.peer_gain * more;
                peer.below = if new > peer.below { new } else { peer.below };
                self.queue.push(peer, tie.peer);
            }
            if (new > lowest) | (new < below) {
                break Stop::Crossed(r, old, new);
            }
        };
        self.changed = changed;
        self.effort.settled = settled;
        stop
    }

    /// Settles `r`, which needs special handling.
    #[inline(never)]
    fn special(&mut self, r: u32) {
        let old = self.resources[r as usize].level;
        if old == f64::INFINITY {
            self.review(r);
            return;
        }
        self.recount(r);
        let resource = &self.resources[r as usize];
        if resource.limited == 0 && resource.left >= -SAME * self.capacities[r as usize] {
            self.desaturate(r);
        } else {
            self.refit(r, 0.0);
        }
    }

    /// Handles a change of the level of `r` from `old` to `new` that may have passed an offer or an allowance of a
    /// member.
    #[inline(never)]
    fn cross(&mut self, r: u32, old: f64, new: f64) {
        self.update_far_peers(r, new - old, new);
        if !(if new > old { self.allow(r, new) } else { self.clear(r, new) }) {
            self.refit(r, new);
        }
    }

    /// Recomputes the sums of a saturated resource.
    fn recount(&mut self, r: u32) {
        let resource = &self.resources[r as usize];
        let (ties, holds) = (self.members.ties(resource), self.members.holds(resource));
        let (front, back) = holds.split_at(resource.limited as usize);
        let ties = &ties[resource.limited as usize..];
        let gain = front.iter().map(|hold| hold.gain).sum();
        let fixed: f64 = back.iter().zip(ties).map(|(hold, tie)| hold.gain * self.level_of(tie.entry)).sum();
        let resource = &mut self.resources[r as usize];
        (resource.gain, resource.left) = (gain, self.capacities[r as usize] - fixed);
        resource.updates = 0;
    }

    /// Updates the other saturated resources of members limited by `r`, for paths with more than one such resource.
    fn update_far_peers(&mut self, r: u32, more: f64, level: f64) {
        for position in 0..self.resources[r as usize].tied {
            let tie = *self.members.tie(&self.resources[r as usize], position);
            if tie.peer == self.several() {
                self.update_peers(r, tie.entry, more, level);
            }
        }
    }

    /// Updates the other saturated resources of an entry, which now runs at `level`, higher by `more`.
    pub(super) fn update_peers(&mut self, r: u32, id: u32, more: f64, level: f64) {
        let entry = self.entries[id as usize];
        for index in entry.live_steps() {
            let step = self.paths[index];
            if step.resource != r {
                let peer = &mut self.resources[step.resource as usize];
                peer.left -= entry.each() * step.work * more;
                peer.below = peer.below.max(level);
                self.queue.push(peer, step.resource);
            }
        }
    }

    /// Assigns a level to a resource.
    #[inline]
    pub(super) fn assign(&mut self, r: u32, level: f64) {
        let resource = &mut self.resources[r as usize];
        resource.level = level;
        self.changes[self.changed] = r;
        self.changed += usize::from(!resource.touched);
        resource.touched = true;
    }
}
