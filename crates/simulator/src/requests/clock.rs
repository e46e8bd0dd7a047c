//! What happens next: tournaments over a fixed number of slots, each with one time.
//!
//! Every source of events (a server, a limiter, a workload) has a slot of its own, so nothing is ever looked for or
//! allocated, and a source that changes its mind only writes its slot again. Of equal times the lower slot is first.
//!
//! Slots come in groups, one after another, each with a tournament of its own. The few servers change their minds many times a
//! request and limiters hardly ever, so that a tournament over all would be climbed for nothing.

/// The time of a slot in which nothing will happen.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    time: u64,
    slot: u32,
}

/// Where a slot is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its leaf, among all nodes.
    leaf: u32,
    group: u32,
}

/// A tournament.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Before its first node. Its root is 1 from here, the children of i are 2 i and 2 i + 1, the leaves are the last half: each the
    /// winner of its children.
    base: u32,
}

/// Times by slot, and the least of them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    nodes: Vec<Node>,
    places: Vec<Place>,
    groups: Vec<Group>,
    first: Node,
}

impl Clock {
    /// A clock of groups of so many slots, in which nothing will happen.
    pub(super) fn new(sizes: &[usize]) -> Clock {
        let idle = Node { time: NEVER, slot: 0 };
        let mut clock = Clock { nodes: Vec::new(), places: Vec::new(), groups: Vec::new(), first: idle };
        for &size in sizes.iter().filter(|&&size| size > 0) {
            let (base, leaves) = (clock.nodes.len(), size.next_power_of_two());
            clock.nodes.resize(base + 2 * leaves, idle);
            for at in 0..leaves {
                let leaf = base + leaves + at;
                clock.nodes[leaf].slot = clock.places.len() as u32;
                if at < size {
                    clock.places.push(Place { leaf: leaf as u32, group: clock.groups.len() as u32 });
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

    /// The least time and its slot; [`NEVER`] if nothing will happen.
    #[inline]
    pub(super) fn first(&self) -> (u64, u32) {
        (self.first.time, self.first.slot)
    }

    /// Whether no slot but this one has a time up to `now`.
    #[inline]
    pub(super) fn is_alone(&self, slot: u32, now: u64) -> bool {
        let Place { leaf, group } = self.places[slot as usize];
        let base = self.groups[group as usize].base as usize;
        let mut node = leaf as usize - base;
        // Each is the winner of its part, and together the parts are all other slots.
        while node > 1 {
            if self.nodes[base + (node ^ 1)].time <= now {
                return false;
            }
            node /= 2;
        }
        let others = self.groups.iter().enumerate().filter(|&(at, _)| at != group as usize);
        others.into_iter().all(|(_, other)| self.nodes[other.base as usize + 1].time > now)
    }

    /// Writes a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, time: u64) {
        let Place { leaf, group } = self.places[slot as usize];
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

    /// The winner of all groups.
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
        fn the_first_is_the_least_time_of_the_lowest_slot(
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
