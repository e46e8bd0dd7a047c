//! A binary heap of numbered things whose keys change: limiters with their times, requests with their deadlines.

use crate::pool::NONE;

/// Numbers with a key each, the least key first; of equal keys, the lower number. Setting and removing a key takes
/// logarithmic time, and does not allocate once the heap has been as large before.
#[derive(Clone, Debug)]
pub(crate) struct Heap<K> {
    /// Each node is at most its children, at 2 i + 1 and 2 i + 2.
    nodes: Vec<(K, u32)>,
    /// Position of each number among the nodes, or [`NONE`].
    positions: Vec<u32>,
}

impl<K: Copy + Ord> Heap<K> {
    pub fn new() -> Heap<K> {
        Heap { nodes: Vec::new(), positions: Vec::new() }
    }

    /// The least key, and its number.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.nodes.first().copied()
    }

    /// Key of a number.
    pub fn key(&self, number: u32) -> Option<K> {
        let position = *self.positions.get(number as usize)?;
        (position != NONE).then(|| self.nodes[position as usize].0)
    }

    /// Sets the key of a number, which is added if it is not there.
    pub fn set(&mut self, number: u32, key: K) {
        if number as usize >= self.positions.len() {
            self.positions.resize(number as usize + 1, NONE);
        }
        let position = match self.positions[number as usize] {
            NONE => {
                self.nodes.push((key, number));
                self.nodes.len() - 1
            }
            position => {
                self.nodes[position as usize].0 = key;
                position as usize
            }
        };
        self.settle(position);
    }

    /// Removes a number, if it is there.
    pub fn remove(&mut self, number: u32) {
        let Some(position) = self.positions.get_mut(number as usize) else { return };
        let position = std::mem::replace(position, NONE);
        if position == NONE {
            return;
        }
        self.nodes.swap_remove(position as usize);
        if (position as usize) < self.nodes.len() {
            self.settle(position as usize);
        }
    }

    /// Moves the node at `at` up or down to its place.
    fn settle(&mut self, mut at: usize) {
        let node = self.nodes[at];
        while at > 0 && node < self.nodes[(at - 1) / 2] {
            self.put(at, self.nodes[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < self.nodes.len() && self.nodes[child + 1] < self.nodes[child] {
                child += 1;
            }
            if child >= self.nodes.len() || node <= self.nodes[child] {
                break;
            }
            self.put(at, self.nodes[child]);
            at = child;
        }
        self.put(at, node);
    }

    #[inline]
    fn put(&mut self, at: usize, node: (K, u32)) {
        self.nodes[at] = node;
        self.positions[node.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_heap_matches_a_scan(
            changes in prop::collection::vec((0u32..12, prop::option::weighted(0.7, 0u64..6)), 0..200),
        ) {
            let (mut heap, mut keys) = (Heap::new(), BTreeMap::new());
            for (number, key) in changes {
                match key {
                    Some(key) => {
                        heap.set(number, key);
                        keys.insert(number, key);
                    }
                    None => {
                        heap.remove(number);
                        keys.remove(&number);
                    }
                }
                let least = keys.iter().map(|(&number, &key)| (key, number)).min();
                prop_assert_eq!(heap.first(), least);
                for number in 0..12 {
                    prop_assert_eq!(heap.key(number), keys.get(&number).copied());
                }
            }
        }
    }
}
