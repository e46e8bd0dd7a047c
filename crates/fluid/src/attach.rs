//! Connects entries to the resources of their paths, and disconnects them.
//!
//! Nearly all paths have at most two live steps. Two live steps refer to each other, and the cascade follows such a tie
//! without reading the entry or its path.

use super::level::least;
use super::maxmin::MaxMin;
use super::members::{Hold, Tie};
use super::paths::Step;

impl MaxMin {
    /// Adds an entry to the list of moved entries.
    pub(super) fn note_move(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        if !entry.moved {
            entry.moved = true;
            self.moving.push(id);
        }
    }

    /// Inserts an entry into the resources of its path, at the level that they offer.
    pub(super) fn enter(&mut self, id: u32) {
        let mut entry = self.entries[id as usize];
        let nowhere = self.nowhere();
        let (mut level, mut limit) = (entry.ceiling, nowhere);
        for index in entry.steps() {
            let here = self.resources[self.paths[index].resource as usize].level;
            if here < f64::INFINITY {
                self.paths.swap(index, (entry.first + entry.live) as usize);
                entry.live += 1;
            }
        }
        for step in &self.paths[entry.live_steps()] {
            let here = self.resources[step.resource as usize].level;
            if here < level {
                (level, limit) = (here, step.resource);
            }
        }
        entry.limit = limit;
        self.entries[id as usize] = entry;
        let each = entry.each();
        let mut allowance = entry.ceiling;
        for index in entry.steps().rev() {
            let step = &mut self.paths[index];
            let r = step.resource;
            let gain = each * step.work;
            let resource = &mut self.resources[r as usize];
            let tie = Tie { peer_gain: 0.0, peer: nowhere, entry: id };
            let hold = Hold { ceiling: entry.ceiling, gain, allowance, step: index as u32 };
            let watched = resource.level == f64::INFINITY;
            if watched {
                step.allowance = resource.grant(gain, 0.0, level, entry.ceiling);
                allowance = least(allowance, step.allowance);
                if resource.left < 0.0 || resource.needs_recount() {
                    self.queue.push(resource, r);
                }
                step.position = self.members.push(resource, tie, hold);
            } else {
                resource.updates += 1;
                let position = self.members.push(resource, tie, hold);
                step.position = position;
                if r == limit {
                    resource.gain += gain;
                    resource.wake = least(resource.wake, allowance);
                    self.members.move_to_limited(resource, position, nowhere, &mut self.paths);
                } else {
                    resource.left -= gain * level;
                    resource.below = resource.below.max(level);
                }
                self.queue.push(resource, r);
            }
        }
        if entry.live > 0 {
            self.refresh(id);
        }
    }

    /// Removes an entry from the resources of its path.
    pub(super) fn leave(&mut self, id: u32) {
        let entry = self.entries[id as usize];
        let level = self.level_of(id);
        for index in entry.steps() {
            let Step { resource: r, mut position, allowance, .. } = self.paths[index];
            let resource = &mut self.resources[r as usize];
            let gain = self.members.hold(resource, position).gain;
            resource.updates += 1;
            if index >= entry.live_steps().end {
                resource.left += gain * allowance;
            } else {
                if r == entry.limit {
                    resource.gain -= gain;
                    position = self.members.move_to_others(resource, position, &mut self.paths);
                } else {
                    resource.left += gain * level;
                }
                self.queue.push(resource, r);
            }
            self.members.remove(resource, position, &mut self.paths);
            if resource.crossing == 0 {
                (resource.gain, resource.below, resource.updates) = (0.0, 0.0, 0);
                resource.left = self.capacities[r as usize];
            }
        }
        self.entries[id as usize].live = 0;
    }

    /// Swaps two steps of a path.
    pub(super) fn swap_steps(&mut self, one: u32, other: u32) {
        if one != other {
            self.paths.swap(one as usize, other as usize);
            for index in [one, other] {
                let step = self.paths[index as usize];
                self.members.hold_mut(&self.resources[step.resource as usize], step.position).step = index;
            }
        }
    }

    /// Writes the ties between the live steps of an entry.
    pub(super) fn refresh(&mut self, id: u32) {
        let entry = &self.entries[id as usize];
        match self.paths[entry.live_steps()] {
            [] => {}
            [only] => self.tie(entry.limit, only, self.nowhere(), 0.0),
            [one, other] => {
                let (limit, each) = (entry.limit, entry.each());
                self.tie(limit, one, other.resource, each * other.work);
                self.tie(limit, other, one.resource, each * one.work);
            }
            _ => {
                let (limit, several) = (entry.limit, self.several());
                for index in entry.live_steps() {
                    self.tie(limit, self.paths[index], several, 0.0);
                }
            }
        }
    }

    #[inline]
    fn tie(&mut self, limit: u32, step: Step, peer: u32, peer_gain: f64) {
        let nowhere = self.nowhere();
        let resource = &mut self.resources[step.resource as usize];
        let tie = self.members.tie_mut(resource, step.position);
        tie.peer = peer;
        tie.peer_gain = peer_gain;
        if step.resource == limit {
            self.members.sort(resource, step.position, nowhere, &mut self.paths);
        }
    }

    /// Returns the current level of an entry.
    #[inline]
    pub(super) fn level_of(&self, id: u32) -> f64 {
        let entry = &self.entries[id as usize];
        let level = self.resources[entry.limit as usize].level;
        if level < f64::INFINITY { level } else { entry.ceiling }
    }
}
