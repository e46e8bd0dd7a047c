//! Event queue: tournament trees over a fixed number of slots, with one time per slot.
//!
//! Every source of events (a server, a limiter, a workload) owns a slot, so the clock never searches or allocates. To
//! change its time, a source overwrites its slot. At equal times, the lower slot is first.
//!
//! Consecutive slots form groups, and each group has its own tree. The few servers change their slots several times per
//! request, and limiters rarely change theirs. A small tree for the servers costs less than one tree over all slots.

/// Time of a slot without an event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    time: u64,
    slot: u32,
}

/// Location of a slot in the trees.
#[derive(Clone, Copy, Debug)]
struct Location {
    /// Leaf of the slot, as an index into all nodes.
    leaf: u32,
    group: u32,
}

/// A tournament tree.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Index just before the root. Relative to this index, the root is at 1, and the children of i are at 2 i and
    /// 2 i + 1. The leaves are the last half of the nodes; each inner node is the winner of its children.
    base: u32,
}

/// Event times of all slots, and the earliest of them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    nodes: Vec<Node>,
    locations: Vec<Location>,
    groups: Vec<Group>,
    first: Node,
}

impl Clock {
    /// Creates a clock with one group per size and no events.
    pub(super) fn new(sizes: &[usize]) -> Clock {
        let idle = Node { time: NEVER, slot: 0 };
        let mut clock = Clock { nodes: Vec::new(), locations: Vec::new(), groups: Vec::new(), first: idle };
        for &size in sizes.iter().filter(|&&size| size > 0) {
            let (base, leaves) = (clock.nodes.len(), size.next_power_of_two());
            clock.nodes.resize(base + 2 * leaves, idle);
            for at in 0..leaves {
                let leaf = base + leaves + at;
                clock.nodes[leaf].slot = clock.locations.len() as u32;
                if at < size {
                    clock.locations.push(Location { leaf: leaf as u32, group: clock.groups.len() as u32 });
                }
            }
            for node in (1..leaves).rev() {
                clock.nodes[base + node] = clock.nodes[base + 2 * node];
            }
            clock.groups.push(Group { base: base as u32 });
        }
        clock.first = clock.least();
        clock
    }

    /// Returns the earliest time and its slot; [`NEVER`] if there is no event.
    #[inline]
    pub(super) fn first(&self) -> (u64, u32) {
        (self.first.time, self.first.slot)
    }

    /// Returns true if no other slot has a time of at most `now`.
    #[inline]
    pub(super) fn is_alone(&self, slot: u32, now: u64) -> bool {
        let Location { leaf, group } = self.locations[slot as usize];
        let base = self.groups[group as usize].base as usize;
        let mut node = leaf as usize - base;
        // Each sibling on the path is the winner of its subtree; together, these subtrees contain all other slots of
        // the group.
        while node > 1 {
            if self.nodes[base + (node ^ 1)].time <= now {
                return false;
            }
            node /= 2;
        }
        let others = self.groups.iter().enumerate().filter(|&(at, _)| at != group as usize);
        others.into_iter().all(|(_, other)| self.nodes[other.base as usize + 1].time > now)
    }

    /// Sets the time of a slot, and updates the winners above it.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, time: u64) {
        let Location { leaf, group } = self.locations[slot as usize];
        let base = self.groups[group as usize].base as usize;
        let mut node = leaf as usize - base;
        self.nodes[base + node].time = time;
        while node > 1 {
            node /= 2;
            let (left, right) = (self.nodes[base + 2 * node], self.nodes[base + 2 * node + 1]);
            let winner = if right.time < left.time { right } else { left };
            if self.nodes[base + node] == winner {
                return;
            }
            self.nodes[base + node] = winner;
        }
        self.first = self.least();
    }

    /// Returns the earliest winner of all groups.
    #[inline]
    fn least(&self) -> Node {
        let mut least = Node { time: NEVER, slot: 0 };
        for group in &self.groups {
            let root = self.nodes[group.base as usize + 1];
            if root.time < least.time {
                least = root;
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_clock_returns_the_least_time_at_the_lowest_slot(
            sizes in prop::collection::vec(0usize..14, 1..5).prop_filter("a slot", |sizes| sizes.iter().sum::<usize>() > 0),
            writes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0u64..6, Just(NEVER)]), 0..200),
        ) {
            let slots = sizes.iter().sum::<usize>();
            let mut clock = Clock::new(&sizes);
            let mut times = vec![NEVER; slots];
            for (slot, time) in writes {
                let slot = slot.index(slots);
                times[slot] = time;
                clock.set(slot as u32, time);
                let least = (0..slots).min_by_key(|&slot| times[slot]).unwrap();
                prop_assert_eq!(clock.first().0, times[least]);
                if times[least] != NEVER {
                    prop_assert_eq!(clock.first().1 as usize, least);
                }
                for now in 0..6 {
                    let others = (0..slots).filter(|&other| other != slot);
                    let is_alone = others.into_iter().all(|other| times[other] > now);
                    prop_assert_eq!(clock.is_alone(slot as u32, now), is_alone);
                }
            }
        }
    }
}
