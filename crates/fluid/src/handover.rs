//! Limits of members: members change their limiting resource, and resources become saturated or unsaturated.
//!
//! The *offer* to a member of a resource is the level at which the member would run if only the rest of its path
//! limited it. This is the smallest of the member's ceiling and the levels of its other saturated resources. The fair
//! level of a resource is the level at which it is full if each member runs at the smaller of its offer and that level.
//! A member with a lower offer is limited elsewhere; all others are limited here.

use super::level::{SAME, least};
use super::maxmin::MaxMin;
use super::members::{Hold, Tie};

impl MaxMin {
    /// Returns the offer to a member of `r`: its level if only the rest of its path limited it.
    #[inline(always)]
    fn offer(&self, r: u32, tie: &Tie, hold: &Hold) -> f64 {
        if tie.peer == self.several() {
            return self.offer_of_path(r, tie.entry);
        }
        least(hold.ceiling, self.resources[tie.peer as usize].level)
    }

    #[cold]
    #[inline(never)]
    fn offer_of_path(&self, r: u32, id: u32) -> f64 {
        let entry = &self.entries[id as usize];
        self.paths[entry.live_steps()]
            .iter()
            .filter(|step| step.resource != r)
            .fold(entry.ceiling, |offer, step| least(offer, self.resources[step.resource as usize].level))
    }

    /// Raises the allowances of the members limited by `r`, which rose to `level`. Returns false if a member now has a
    /// lower offer.
    pub(super) fn allow(&mut self, r: u32, level: f64) -> bool {
        let mut wake = f64::INFINITY;
        for position in 0..self.resources[r as usize].limited {
            let resource = &self.resources[r as usize];
            let (tie, hold) = (self.members.tie(resource, position), self.members.hold(resource, position));
            if self.offer(r, tie, hold) < level {
                return false;
            }
            let mut allowance = hold.allowance;
            if allowance < level {
                allowance = self.raise(tie.entry, level);
                self.members.hold_mut(&self.resources[r as usize], position).allowance = allowance;
            }
            wake = least(wake, allowance);
        }
        self.resources[r as usize].wake = wake;
        true
    }

    /// Recomputes the bound `below` of `r`, which fell to `level`. Returns false if a member limited elsewhere runs
    /// above the new level.
    pub(super) fn clear(&mut self, r: u32, level: f64) -> bool {
        let resource = &self.resources[r as usize];
        let members = self.members.ties(resource).iter().zip(self.members.holds(resource));
        let others = members.skip(resource.limited as usize);
        let below = others.map(|(tie, hold)| self.offer(r, tie, hold)).fold(0.0, f64::max);
        self.resources[r as usize].below = below;
        below <= level
    }

    /// Assigns saturated `r` its fair level, and changes the limits of members accordingly. `guess` must not exceed
    /// that level.
    #[inline(never)]
    pub(super) fn refit(&mut self, r: u32, guess: f64) {
        let resource = &self.resources[r as usize];
        let old = resource.level;
        let (ties, holds) = (self.members.ties(resource), self.members.holds(resource));
        let (mut running, mut leaving) =
            (std::mem::take(&mut self.running), std::mem::take(&mut self.leaving));
        running.clear();
        running.extend(ties.iter().zip(holds).map(|(tie, hold)| self.offer(r, tie, hold)));
        let level = fair_level(self.capacities[r as usize], holds, &running, guess);
        let (mut wake, mut below) = (f64::INFINITY, 0.0);
        for (position, &offer) in (0..).zip(&running) {
            let resource = &self.resources[r as usize];
            let tie = *self.members.tie(resource, position);
            if position >= resource.limited {
                if offer > level {
                    leaving.push((tie.entry, r, level));
                } else if offer > below {
                    below = offer;
                }
                continue;
            }
            if offer < level {
                leaving.push((tie.entry, self.limit_at(r, tie.entry, offer), offer));
                continue;
            }
            let mut allowance = self.members.hold(resource, position).allowance;
            if tie.peer != self.nowhere() {
                self.update_peers(r, tie.entry, level - old, level);
            }
            if allowance < level {
                allowance = self.raise(tie.entry, level);
                self.members.hold_mut(&self.resources[r as usize], position).allowance = allowance;
            }
            wake = least(wake, allowance);
        }
        let resource = &mut self.resources[r as usize];
        (resource.wake, resource.below) = (wake, below);
        for (id, limit, level) in leaving.drain(..) {
            self.transfer(id, limit, level);
        }
        (self.running, self.leaving) = (running, leaving);
        if level == f64::INFINITY {
            self.desaturate(r);
        } else {
            self.assign(r, level);
            self.queue.push(&mut self.resources[r as usize], r);
        }
    }

    /// Returns the limit of an entry at `offer` if `r` does not limit it.
    fn limit_at(&self, r: u32, id: u32, offer: f64) -> u32 {
        let mut steps = self.paths[self.entries[id as usize].live_steps()].iter();
        let step =
            steps.find(|step| step.resource != r && self.resources[step.resource as usize].level == offer);
        step.map_or(self.nowhere(), |step| step.resource)
    }

    /// Sets the limit of an entry to `limit`, a resource or `nowhere`; the entry then runs at `level`.
    fn transfer(&mut self, id: u32, limit: u32, level: f64) {
        self.effort.transfers += 1;
        self.note_move(id);
        let old = self.level_of(id);
        let entry = &mut self.entries[id as usize];
        let from = std::mem::replace(&mut entry.limit, limit);
        let entry = *entry;
        let mut allowance = entry.ceiling;
        let mut to = None;
        for index in entry.live_steps() {
            let step = self.paths[index];
            let resource = &mut self.resources[step.resource as usize];
            let hold = self.members.hold(resource, step.position);
            self.queue.push(resource, step.resource);
            resource.updates += 1;
            if step.resource == limit {
                resource.left += hold.gain * old;
                resource.gain += hold.gain;
                to = Some(step);
                continue;
            }
            resource.below = resource.below.max(level);
            if step.resource == from {
                allowance = hold.allowance;
                resource.gain -= hold.gain;
                resource.left -= hold.gain * level;
                self.members.move_to_others(resource, step.position, &mut self.paths);
            } else {
                resource.left -= hold.gain * (level - old);
            }
        }
        if level > allowance {
            allowance = self.raise(id, level);
        }
        if let Some(step) = to {
            let nowhere = self.nowhere();
            let resource = &mut self.resources[limit as usize];
            resource.wake = least(resource.wake, allowance);
            self.members.hold_mut(resource, step.position).allowance = allowance;
            self.members.move_to_limited(resource, step.position, nowhere, &mut self.paths);
        }
    }

    /// Makes the overloaded, watched `r` saturated: it gets a level.
    #[inline(never)]
    pub(super) fn saturate(&mut self, r: u32, load: f64) {
        for position in 0..self.resources[r as usize].crossing {
            let resource = &self.resources[r as usize];
            let id = self.members.tie(resource, position).entry;
            let step = self.members.hold(resource, position).step;
            let entry = &mut self.entries[id as usize];
            let end = entry.first + entry.live;
            entry.live += 1;
            self.swap_steps(step, end);
            self.refresh(id);
        }
        let resource = &mut self.resources[r as usize];
        resource.left = self.capacities[r as usize] - load;
        self.refit(r, 0.0);
        self.queue.cover(self.resources[r as usize].level);
    }

    /// Makes `r` watched again: it limits no entry and has free capacity.
    #[inline(never)]
    pub(super) fn desaturate(&mut self, r: u32) {
        self.assign(r, f64::INFINITY);
        for position in 0..self.resources[r as usize].crossing {
            let resource = &self.resources[r as usize];
            let id = self.members.tie(resource, position).entry;
            let step = self.members.hold(resource, position).step;
            let entry = &mut self.entries[id as usize];
            entry.live -= 1;
            let end = entry.first + entry.live;
            self.swap_steps(step, end);
            self.refresh(id);
        }
        self.review(r);
    }
}

/// Returns the level at which members fill a resource, if each runs at the smaller of that level and its offer.
/// Infinite if they do not fill it.
fn fair_level(capacity: f64, holds: &[Hold], offers: &[f64], guess: f64) -> f64 {
    let (mut load, mut gain) = (0.0, 0.0);
    for (hold, &offer) in holds.iter().zip(offers) {
        load += hold.gain * offer;
        gain += hold.gain;
    }
    if load <= capacity * (1.0 + SAME) {
        return f64::INFINITY;
    }
    let floor = capacity / gain;
    let mut level = if guess > floor { guess } else { floor };
    // Members with lower offers keep them, and the others share the rest. The load is a concave function of the level,
    // so these steps rise to the fair level and never above it.
    loop {
        let (mut left, mut gain) = (capacity, 0.0);
        for (hold, &offer) in holds.iter().zip(offers) {
            left -= if offer <= level { hold.gain * offer } else { 0.0 };
            gain += if offer <= level { 0.0 } else { hold.gain };
        }
        let next = left / gain;
        if gain == 0.0 || next <= level * (1.0 + SAME) {
            return level;
        }
        level = next;
    }
}
