//! Resources with spare capacity have allowances instead of accounting.
//!
//! Most resources are not saturated, and most changes of rate do not saturate them. A *watched* resource therefore does
//! not count its load. Instead, each member has an allowance: a level up to which it may rise without an update. The
//! allowances, converted to loads, plus `left` equal the capacity. So nothing is updated when rates fall, or when they
//! rise within their allowances. A member that needs more gets it from `left`, at the cost of a few instructions. The
//! members are counted only when nothing is left. Then either there is room to share out again, or the resource is
//! saturated. A member never needs more than its ceiling. A link with one flow, or with few slow ones, grants the
//! ceilings once and is never involved again.

use super::level::{SAME, least};
use super::maxmin::MaxMin;
use super::members::Resource;

impl Resource {
    /// Raises an allowance below `level` to that level, plus half of the free capacity, or to the ceiling. If the free
    /// capacity does not suffice, `left` becomes negative.
    #[inline]
    pub fn grant(&mut self, gain: f64, allowance: f64, level: f64, ceiling: f64) -> f64 {
        let room = allowance + self.left / gain;
        let granted = if room >= ceiling {
            ceiling
        } else if room > level {
            level + 0.5 * (room - level)
        } else {
            level
        };
        self.left -= gain * (granted - allowance);
        self.updates += 1;
        granted
    }
}

impl MaxMin {
    /// Raises the allowances of an entry so that it may run at `level`. Returns its smallest allowance.
    pub(super) fn raise(&mut self, id: u32, level: f64) -> f64 {
        let entry = &self.entries[id as usize];
        let ceiling = entry.ceiling;
        let mut lowest = ceiling;
        for step in &mut self.paths[entry.watched_steps()] {
            if step.allowance < level {
                self.effort.raises += 1;
                let resource = &mut self.resources[step.resource as usize];
                let gain = self.members.hold(resource, step.position).gain;
                step.allowance = resource.grant(gain, step.allowance, level, ceiling);
                if resource.left < 0.0 || resource.needs_recount() {
                    self.queue.push(resource, step.resource);
                }
            }
            lowest = least(lowest, step.allowance);
        }
        lowest
    }

    /// Recounts the members of a watched resource; then shares out its free capacity, or saturates it if it is
    /// overloaded.
    pub(super) fn review(&mut self, r: u32) {
        self.effort.reviews += 1;
        let mut running = std::mem::take(&mut self.running);
        running.clear();
        let resource = &self.resources[r as usize];
        running.extend(self.members.ties(resource).iter().map(|tie| self.level_of(tie.entry)));
        let (mut load, mut gain) = (0.0, 0.0);
        for (hold, &level) in self.members.holds(resource).iter().zip(&running) {
            load += hold.gain * level;
            gain += if level < hold.ceiling { hold.gain } else { 0.0 };
        }
        self.running = running;
        let capacity = self.capacities[r as usize];
        if load > capacity * (1.0 + SAME) {
            self.saturate(r, load);
            return;
        }
        let more = if gain > 0.0 { 0.5 * (capacity - load) / gain } else { 0.0 };
        let mut given = 0.0;
        for position in 0..self.resources[r as usize].crossing {
            let resource = &self.resources[r as usize];
            let hold = self.members.hold(resource, position);
            let allowance = least(self.running[position as usize] + more, hold.ceiling);
            self.paths[hold.step as usize].allowance = allowance;
            given += hold.gain * allowance;
            if allowance < hold.ceiling {
                self.lower(self.members.tie(resource, position).entry, allowance);
            }
        }
        let resource = &mut self.resources[r as usize];
        // Rounding errors alone must not make the free capacity negative.
        resource.left = (capacity - given).max(0.0);
        resource.updates = 0;
    }

    /// Updates the limiting resource of an entry after an allowance was set that may be below the others.
    fn lower(&mut self, id: u32, allowance: f64) {
        let entry = &self.entries[id as usize];
        for index in entry.live_steps() {
            let step = self.paths[index];
            if step.resource == entry.limit {
                let resource = &mut self.resources[step.resource as usize];
                let hold = self.members.hold_mut(resource, step.position);
                hold.allowance = least(hold.allowance, allowance);
                resource.wake = least(resource.wake, allowance);
            }
        }
    }
}
