//! Water-filling from zero, used if a cascade takes too long.
//!
//! All levels rise together from zero. The resource that fills first fixes its members at that level. An entry that
//! reaches its ceiling stays there, and the others continue to rise. This is the textbook algorithm (Bertsekas and
//! Gallager, Data Networks, section 6.5.2), run on the connected components of the affected resources. Filling ignores
//! the previous solution, so it costs as much as a solution of the whole component.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::maxmin::MaxMin;

/// A connected component of resources and entries.
struct Component {
    resources: Vec<u32>,
    entries: Vec<u32>,
}

impl MaxMin {
    /// Fills the components of all resources that are queued, or that got a level in this solution.
    #[cold]
    pub(super) fn fill(&mut self) {
        let mut seeds = self.changes[..self.changed].to_vec();
        seeds.extend(std::iter::from_fn(|| self.queue.pop(&mut self.resources)));
        let Component { resources, entries } = self.component(seeds);
        for &id in &entries {
            self.note_move(id);
            self.leave(id);
        }
        for (&r, level) in resources.iter().zip(self.compute_levels(&resources, &entries)) {
            if level != self.resources[r as usize].level {
                self.assign(r, level);
            }
        }
        for &id in &entries {
            self.enter(id);
        }
        // Saturated resources are full now, up to rounding. Watched resources share out their free capacity again.
        while self.queue.pop(&mut self.resources).is_some() {}
        for &r in &resources {
            if self.resources[r as usize].level == f64::INFINITY {
                self.review(r);
            }
        }
    }

    /// Returns the component that is connected to some resources by paths.
    fn component(&self, seeds: Vec<u32>) -> Component {
        let mut visited_resources = vec![false; self.capacities.len()];
        let mut visited_entries = vec![false; self.entries.len()];
        let mut component = Component { resources: Vec::new(), entries: Vec::new() };
        let mut open = seeds;
        while let Some(r) = open.pop() {
            if std::mem::replace(&mut visited_resources[r as usize], true) {
                continue;
            }
            component.resources.push(r);
            for tie in self.members.ties(&self.resources[r as usize]) {
                if !std::mem::replace(&mut visited_entries[tie.entry as usize], true) {
                    component.entries.push(tie.entry);
                    open.extend(self.path(tie.entry).map(|(r, _)| r));
                }
            }
        }
        component.resources.sort_unstable();
        component.entries.sort_unstable();
        component
    }

    /// Computes the level of each resource; infinite if it does not fill up.
    fn compute_levels(&self, resources: &[u32], entries: &[u32]) -> Vec<f64> {
        let mut crossing: Vec<Vec<(usize, f64)>> = vec![Vec::new(); resources.len()];
        for (index, &id) in entries.iter().enumerate() {
            let each = self.entries[id as usize].each();
            for (r, work) in self.path(id) {
                let place =
                    resources.binary_search(&r).expect("a component has all resources of its entries");
                crossing[place].push((index, each * work));
            }
        }
        let mut fixed: Vec<Option<f64>> = vec![None; entries.len()];
        let mut levels = vec![f64::INFINITY; resources.len()];
        let ceiling = |index: usize| self.entries[entries[index] as usize].ceiling;
        let mut rising: Vec<usize> = (0..entries.len()).collect();
        rising.sort_by(|&one, &other| ceiling(other).total_cmp(&ceiling(one)));
        // Level at which a resource would fill if all its rising entries continued to rise together.
        let fill_level = |place: usize, fixed: &[Option<f64>]| {
            let (mut left, mut gain) = (self.capacities[resources[place] as usize], 0.0);
            for &(index, each) in &crossing[place] {
                match fixed[index] {
                    Some(level) => left -= each * level,
                    None => gain += each,
                }
            }
            (gain > 0.0).then(|| (left / gain).max(0.0))
        };
        // Positive floats have the same order as their bits.
        let key = |place: usize, level: f64| Reverse((level.to_bits(), place));
        let mut next: BinaryHeap<_> = (0..resources.len())
            .filter_map(|place| fill_level(place, &fixed).map(|level| key(place, level)))
            .collect();
        while let Some(Reverse((bits, place))) = next.pop() {
            let Some(level) = fill_level(place, &fixed) else { continue };
            // Entries fixed meanwhile were fixed at lower levels, so this level cannot have fallen.
            if level.to_bits() > bits {
                next.push(key(place, level));
                continue;
            }
            let lowest = rising.last().copied().filter(|&index| ceiling(index) <= level);
            if let Some(index) = lowest {
                rising.pop();
                fixed[index].get_or_insert(ceiling(index));
                next.push(key(place, level));
                continue;
            }
            levels[place] = level;
            for &(index, _) in &crossing[place] {
                fixed[index].get_or_insert(level);
            }
        }
        levels
    }
}
