//! What happens next: a tournament over a fixed number of slots, each with one time.
//!
//! Every source of events (a server, a limiter, a workload) has a slot of its own, so nothing is ever looked for or
//! allocated, and a source that changes its mind only writes its slot again. Of equal times the lower slot is first.

/// The time of a slot in which nothing will happen.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    time: u64,
    slot: u32,
}

/// Times by slot, and the least of them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The root is 1, the children of i are 2 i and 2 i + 1, the leaves are the last half: each the winner of its children.
    nodes: Vec<Node>,
    leaves: usize,
}

impl Clock {
    /// A clock of so many slots, in which nothing will happen.
    pub(super) fn new(slots: usize) -> Clock {
        let leaves = slots.max(2).next_power_of_two();
        let mut nodes = vec![Node { time: NEVER, slot: 0 }; 2 * leaves];
        for slot in 0..leaves {
            nodes[leaves + slot].slot = slot as u32;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Clock { nodes, leaves }
    }

    /// The least time and its slot; [`NEVER`] if nothing will happen.
    #[inline]
    pub(super) fn first(&self) -> (u64, u32) {
        (self.nodes[1].time, self.nodes[1].slot)
    }

    /// Whether no slot but this one has a time up to `now`.
    #[inline]
    pub(super) fn is_alone(&self, slot: u32, now: u64) -> bool {
        let mut node = self.leaves + slot as usize;
        // Each is the winner of its part, and together the parts are all other slots.
        while node > 1 {
            if self.nodes[node ^ 1].time <= now {
                return false;
            }
            node /= 2;
        }
        true
    }

    /// Writes a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, time: u64) {
        let mut node = self.leaves + slot as usize;
        self.nodes[node].time = time;
        while node > 1 {
            node /= 2;
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            let winner = if right.time < left.time { right } else { left };
            if self.nodes[node] == winner {
                break;
            }
            self.nodes[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_time_of_the_lowest_slot(
            slots in 1usize..40,
            writes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0u64..6, Just(NEVER)]), 0..200),
        ) {
            let mut clock = Clock::new(slots);
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
