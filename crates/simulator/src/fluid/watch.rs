//! Resources with room to spare: allowances instead of bookkeeping.

use super::cascade::SAME;
use super::maxmin::MaxMin;
use super::members::Resource;
use super::queue::least;

impl Resource {
    /// Raises an allowance that is less than `level` to that level at least, and on to the ceiling or half of
    /// what is left then. What the resource does not have makes `left` negative.
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
    /// Makes sure that an entry may run at `level`; returns its least allowance.
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
                if resource.left < 0.0 || resource.worn() {
                    self.queue.push(resource, step.resource);
                }
            }
            lowest = least(lowest, step.allowance);
        }
        lowest
    }

    /// Counts a watched resource afresh: shares out its room, or finds it overloaded.
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
        // Rounding alone must not make the room negative.
        resource.left = (capacity - given).max(0.0);
        resource.updates = 0;
    }

    /// An allowance of an entry is now this low.
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
