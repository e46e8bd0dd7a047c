//! The allocation: entries are added, removed and changed, and [`MaxMin::solve`] makes the rates weighted
//! max-min fair again.
//!
//! A change only updates the sums of the affected resources and queues these resources. So any number of changes at the
//! same time costs one solution. Module `cascade` has the solver.

use leeward_fabric::{Hop, ResourceId};

use super::FluidError;
use super::effort::Effort;
use super::entry::Entry;
use super::members::{Members, Resource};
use super::paths::{Paths, Step};
use super::queue::Queue;

/// Identifier of an entry of a [`MaxMin`]; reused after the entry is removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u32);

/// Limit of an entry's rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The ceiling: its own rate cap, or the full capacity of the narrowest resource on its path.
    Ceiling,
    /// A saturated resource, on which no entry has a higher rate per weight.
    Resource(ResourceId),
}

/// Weighted max-min fair rates, updated as entries are added, changed and removed.
///
/// An entry can represent several flows over one path. Each of its flows gets `weight * level` bytes per second, or its
/// cap if that is less. Here `level` is the least level of the saturated resources on the path. On each resource the
/// rates, times the work per byte there, add up to at most the capacity.
///
/// ```
/// use leeward_fabric::{Hop, ResourceId};
/// use leeward_fluid::MaxMin;
///
/// // Two links of 1 Gb/s. One entry crosses both, and shares the first one with an entry of double weight.
/// let hop = |link| Hop { resource: ResourceId(link), work: 8.0 };
/// let mut maxmin = MaxMin::new(&[1e9, 1e9])?;
/// let both = maxmin.add(&[hop(0), hop(1)], 1.0, f64::INFINITY, 1)?;
/// let first = maxmin.add(&[hop(0)], 2.0, 60e6, 1)?;
/// maxmin.solve();
/// assert_eq!(maxmin.rate(first), Some(60e6));
/// assert_eq!(maxmin.rate(both), Some(65e6));
/// # Ok::<(), leeward_fluid::FluidError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaxMin {
    pub(super) resources: Vec<Resource>,
    pub(super) members: Members,
    pub(super) capacities: Vec<f64>,
    pub(super) entries: Vec<Entry>,
    free: Vec<u32>,
    pub(super) paths: Paths,
    pub(super) queue: Queue,
    /// The first `changed` elements are the resources whose level was assigned in the last solution. The list always
    /// has room for one more element than there are resources, so that the cascade may write without a check.
    pub(super) changes: Vec<u32>,
    pub(super) changed: usize,
    /// Entries that are new, or that got another limit or ceiling: `moves` up to the last solution, and `moving` since
    /// then. Some may have been removed, or reused for another entry.
    pub(super) moves: Vec<u32>,
    pub(super) moving: Vec<u32>,
    /// Levels of the members of the resource under review, by position.
    pub(super) running: Vec<f64>,
    /// Members of that resource that change their limit: entry, new limit, and level.
    pub(super) leaving: Vec<(u32, u32, f64)>,
    pub(super) effort: Effort,
    scratch: Vec<Step>,
    /// Number of visits after which the solver aborts a cascade.
    pub(super) visit_limit: u64,
}

impl MaxMin {
    /// Creates resources without entries. `capacities[r]` is in native units per second: bit/s for a link, ns
    /// of service per second for a device.
    ///
    /// # Errors
    /// Returns an error for an invalid capacity.
    pub fn new(capacities: &[f64]) -> Result<MaxMin, FluidError> {
        let mut resources = Vec::with_capacity(capacities.len());
        for (index, &capacity) in capacities.iter().enumerate() {
            check_capacity(ResourceId(index as u32), capacity)?;
            resources.push(Resource::new(capacity));
        }
        // The marks `nowhere` and `several`. The cascade handles members marked `several` separately.
        resources.extend([Resource::mark(f64::INFINITY), Resource::mark(f64::NEG_INFINITY)]);
        Ok(MaxMin {
            members: Members::default(),
            capacities: capacities.to_vec(),
            queue: Queue::new(resources.len()),
            changes: vec![0; resources.len()],
            changed: 0,
            resources,
            entries: Vec::new(),
            free: Vec::new(),
            paths: Paths::default(),
            moves: Vec::new(),
            moving: Vec::new(),
            running: Vec::new(),
            leaving: Vec::new(),
            effort: Effort::default(),
            scratch: Vec::new(),
            visit_limit: 64 * capacities.len() as u64 + (1 << 14),
        })
    }

    /// Sets the number of visits after which the solver aborts a cascade and fills resources from zero instead. The
    /// default is 64 visits per resource plus 16,384 visits.
    #[must_use]
    pub fn with_visit_limit(mut self, visits: u64) -> MaxMin {
        self.visit_limit = visits;
        self
    }

    /// Mark of a member whose path has no other saturated resource.
    pub(super) fn nowhere(&self) -> u32 {
        self.resources.len() as u32 - 2
    }

    /// Mark of a member whose path has more than one other saturated resource.
    pub(super) fn several(&self) -> u32 {
        self.resources.len() as u32 - 1
    }

    /// Adds an entry of `flows` flows. `cap` is in bytes per second for each flow; infinity means no cap. A resource
    /// that occurs more than once in `hops` counts with the sum of the work.
    ///
    /// # Errors
    /// Returns an error for an unknown resource, an invalid work, weight or cap, or zero flows.
    pub fn add(&mut self, hops: &[Hop], weight: f64, cap: f64, flows: u32) -> Result<EntryId, FluidError> {
        self.check(hops, weight, cap, flows)?;
        Ok(self.add_checked(hops, weight, cap, flows))
    }

    /// Adds an entry that [`MaxMin::check`] has accepted.
    pub(super) fn add_checked(&mut self, hops: &[Hop], weight: f64, cap: f64, flows: u32) -> EntryId {
        self.scratch.clear();
        let mut fastest = cap;
        for hop in hops.iter().filter(|hop| hop.work > 0.0) {
            match self.scratch.iter_mut().find(|step| step.resource == hop.resource.0) {
                Some(step) => step.work += hop.work,
                None => {
                    self.scratch.push(Step { resource: hop.resource.0, work: hop.work, ..Step::default() })
                }
            }
        }
        for step in &self.scratch {
            fastest = fastest.min(self.capacities[step.resource as usize] / step.work);
        }
        let length = self.scratch.len() as u32;
        let first = self.paths.allocate(length as usize);
        self.paths[first as usize..(first + length) as usize].copy_from_slice(&self.scratch);
        let limit = self.nowhere();
        let ceiling = fastest / weight;
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            self.entries.len() as u32 - 1
        });
        self.entries[id as usize] =
            Entry { first, length, live: 0, flows, limit, moved: false, weight, cap, ceiling };
        self.note_move(id);
        self.enter(id);
        EntryId(id)
    }

    /// Removes an entry. Its id may be reused.
    ///
    /// # Errors
    /// Returns an error if there is no such entry.
    pub fn remove(&mut self, id: EntryId) -> Result<(), FluidError> {
        self.check_entry(id)?;
        self.leave(id.0);
        let Entry { first, length, .. } = self.entries[id.0 as usize];
        self.paths.release(first, length as usize);
        let moved = self.entries[id.0 as usize].moved;
        self.entries[id.0 as usize] = Entry { moved, ..Entry::default() };
        self.free.push(id.0);
        Ok(())
    }

    /// Sets the number of flows of an entry.
    ///
    /// # Errors
    /// Returns an error if there is no such entry, or for zero flows.
    pub fn set_flows(&mut self, id: EntryId, flows: u32) -> Result<(), FluidError> {
        self.check_entry(id)?;
        if flows == 0 {
            return Err(FluidError::Multiplicity);
        }
        let id = id.0;
        let level = self.level_of(id);
        let entry = &mut self.entries[id as usize];
        entry.flows = flows;
        let entry = *entry;
        for index in entry.steps() {
            let Step { resource: r, position, work, allowance } = self.paths[index];
            let resource = &mut self.resources[r as usize];
            let hold = self.members.hold_mut(resource, position);
            let gain = entry.each() * work;
            let more = gain - hold.gain;
            hold.gain = gain;
            resource.updates += 1;
            if index >= entry.live_steps().end {
                resource.left -= more * allowance;
                if resource.left < 0.0 || resource.needs_recount() {
                    self.queue.push(resource, r);
                }
                continue;
            }
            if r == entry.limit {
                resource.gain += more;
            } else {
                resource.left -= more * level;
            }
            self.queue.push(resource, r);
        }
        self.refresh(id);
        Ok(())
    }

    /// Sets the capacity of a resource in native units per second; at zero its entries stall.
    ///
    /// # Errors
    /// Returns an error for an unknown resource or an invalid capacity.
    pub fn set_capacity(&mut self, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.check_capacity(resource, capacity)?;
        let more = capacity - std::mem::replace(&mut self.capacities[resource.index()], capacity);
        if more == 0.0 {
            return Ok(());
        }
        let changed = &mut self.resources[resource.index()];
        changed.left += more;
        self.queue.push(changed, resource.0);
        let crossing: Vec<u32> = self.members.ties(changed).iter().map(|tie| tie.entry).collect();
        for id in crossing {
            let Entry { cap, weight, ceiling, .. } = self.entries[id as usize];
            let fastest = self.paths[self.entries[id as usize].steps()]
                .iter()
                .fold(cap, |fastest, step| fastest.min(self.capacities[step.resource as usize] / step.work));
            if fastest / weight != ceiling {
                self.note_move(id);
                self.leave(id);
                self.entries[id as usize].ceiling = fastest / weight;
                self.enter(id);
            }
        }
        Ok(())
    }

    /// Returns the bytes per second of each flow of an entry, as last solved; infinite without any limit.
    /// `None` if there is no such entry.
    pub fn rate(&self, id: EntryId) -> Option<f64> {
        let entry = self.entries.get(id.0 as usize).filter(|entry| entry.flows > 0)?;
        Some(entry.weight * self.level_of(id.0))
    }

    /// Returns the limit of an entry, as last solved. `None` if there is no such entry.
    pub fn limit(&self, id: EntryId) -> Option<Limit> {
        let entry = self.entries.get(id.0 as usize).filter(|entry| entry.flows > 0)?;
        Some(match entry.limit {
            r if r == self.nowhere() => Limit::Ceiling,
            r => Limit::Resource(ResourceId(r)),
        })
    }

    /// Returns the level of a resource, as last solved: the rate per unit of weight of the entries it limits.
    /// `None` if it limits no entry.
    pub fn level(&self, resource: ResourceId) -> Option<f64> {
        let level = self.resources[..self.capacities.len()].get(resource.index())?.level;
        (level < f64::INFINITY).then_some(level)
    }

    /// Returns the load of a resource, as last solved, in native units per second.
    pub fn load(&self, resource: ResourceId) -> f64 {
        self.resources[..self.capacities.len()].get(resource.index()).map_or(0.0, |resource| {
            let holds = self.members.holds(resource).iter();
            holds
                .zip(self.members.ties(resource))
                .map(|(hold, tie)| hold.gain * self.level_of(tie.entry))
                .sum()
        })
    }

    /// Returns the entries whose rate the last solution changed, new ones included, in ascending order. Some
    /// may have returned to their previous rate.
    pub fn changed(&self) -> Vec<EntryId> {
        let moved = self.moves.iter().copied().filter(|&id| self.entries[id as usize].flows > 0);
        let limited = self.changes().iter().flat_map(|&r| self.limited_by(r));
        let mut ids: Vec<EntryId> = moved.chain(limited).map(EntryId).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the cost of the solutions so far.
    pub fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Number of flows of an entry.
    pub(super) fn flows(&self, id: u32) -> u32 {
        self.entries[id as usize].flows
    }

    /// Path of an entry: resources, and work per byte.
    pub(super) fn path(&self, id: u32) -> impl Iterator<Item = (u32, f64)> {
        self.paths[self.entries[id as usize].steps()].iter().map(|step| (step.resource, step.work))
    }

    /// Entries that cross a resource, and their work per byte there.
    pub(super) fn crossing(&self, resource: ResourceId) -> impl Iterator<Item = (u32, f64)> {
        let resource = &self.resources[resource.index()];
        let steps = self.members.holds(resource).iter().map(|hold| self.paths[hold.step as usize].work);
        self.members.ties(resource).iter().map(|tie| tie.entry).zip(steps)
    }

    /// Entries that a resource limits.
    pub(super) fn limited_by(&self, r: u32) -> impl Iterator<Item = u32> {
        self.members.limited(&self.resources[r as usize]).iter().map(|tie| tie.entry)
    }

    /// Returns the limit of an entry, and its rate; `None` if it was removed.
    pub(super) fn limit_and_rate(&self, id: u32) -> Option<(Option<u32>, f64)> {
        let entry = &self.entries[id as usize];
        let limit = (entry.limit != self.nowhere()).then_some(entry.limit);
        (entry.flows > 0).then(|| (limit, entry.weight * self.level_of(id)))
    }

    /// Resources whose level was assigned in the last solution.
    pub(super) fn changes(&self) -> &[u32] {
        &self.changes[..self.changed]
    }

    /// Entries that are new or got another limit or ceiling. Some may be removed.
    pub(super) fn moves(&self) -> &[u32] {
        &self.moves
    }

    /// Level of a resource, infinite while it is watched.
    pub(super) fn level_at(&self, r: u32) -> f64 {
        self.resources[r as usize].level
    }

    /// Checks a capacity before it is set.
    pub(super) fn check_capacity(&self, resource: ResourceId, value: f64) -> Result<(), FluidError> {
        let last = self.capacities.len() as i64 - 1;
        if i64::from(resource.0) > last {
            return Err(FluidError::UnknownResource { resource, last });
        }
        check_capacity(resource, value)
    }

    fn check_entry(&self, id: EntryId) -> Result<(), FluidError> {
        match self.entries.get(id.0 as usize) {
            Some(entry) if entry.flows > 0 => Ok(()),
            _ => Err(FluidError::UnknownEntry { entry: id.0 }),
        }
    }

    /// Checks an entry before it is added.
    pub(super) fn check(&self, hops: &[Hop], weight: f64, cap: f64, flows: u32) -> Result<(), FluidError> {
        if !in_range(weight) {
            return Err(FluidError::Weight { value: weight });
        }
        if cap.is_nan() || cap < 0.0 {
            return Err(FluidError::Cap { value: cap });
        }
        if flows == 0 {
            return Err(FluidError::Multiplicity);
        }
        let last = self.nowhere() as i64 - 1;
        for &Hop { resource, work } in hops {
            if i64::from(resource.0) > last {
                return Err(FluidError::UnknownResource { resource, last });
            }
            if work != 0.0 && !in_range(work) {
                return Err(FluidError::Work { resource, value: work });
            }
        }
        Ok(())
    }
}

/// Range of numbers: far beyond the needs of networks, and far from overflow of products.
fn in_range(value: f64) -> bool {
    (1e-30..=1e30).contains(&value)
}

fn check_capacity(resource: ResourceId, value: f64) -> Result<(), FluidError> {
    if value == 0.0 || in_range(value) { Ok(()) } else { Err(FluidError::Capacity { resource, value }) }
}
