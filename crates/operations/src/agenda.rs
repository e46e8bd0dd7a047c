//! Events in order of time. Adding an event and taking the next take constant time for events of the near future.
//!
//! Hand-written, as a calendar queue (Brown, CACM 1988): a binary heap of all packets in flight costs several times more
//! than everything else that a packet needs. The near future is a ring of slots with a list of events each; a slot is
//! sorted when its time comes. Later events wait in a heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Slots of the ring.
const SLOTS: u64 = 1 << 14;
/// Bits of a word of the map of filled slots.
const WORD: usize = u64::BITS as usize;
/// End of a list.
const NONE: u32 = u32::MAX;
/// Bounds on the binary logarithm of a slot's length, in nanoseconds.
const SHORTEST: u32 = 4;
const LONGEST: u32 = 20;

/// Events in order of time. Events of the same time are in a fixed order.
pub(crate) struct Agenda<E> {
    /// A slot is `1 << shift` nanoseconds long.
    shift: u32,
    /// First node of each slot of the ring.
    heads: Vec<u32>,
    /// One bit for each slot with events.
    filled: Vec<u64>,
    /// Number of events in the ring.
    ringed: usize,
    nodes: Vec<Node<E>>,
    free: u32,
    /// Slot whose events are due. It has left the ring.
    slot: u64,
    /// Events of the due slot, sorted; those before `next` are taken.
    due: Vec<(u64, E)>,
    next: usize,
    later: BinaryHeap<Later<E>>,
    /// Number of events that went to the heap.
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Node<E> {
    at: u64,
    event: E,
    next: u32,
}

/// An event of the far future. The heap has the earliest on top, and events of the same time in order of arrival.
struct Later<E> {
    at: u64,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Later<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Later<E> {}

impl<E> PartialOrd for Later<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Later<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<E: Copy> Agenda<E> {
    /// Creates an empty agenda for events that are `gap` nanoseconds apart on average. The gap affects the speed alone.
    pub fn new(gap: f64) -> Agenda<E> {
        let shift = (2.0 * gap).max(1.0).log2().round() as u32;
        Agenda {
            shift: shift.clamp(SHORTEST, LONGEST),
            heads: vec![NONE; SLOTS as usize],
            filled: vec![0; SLOTS as usize / WORD],
            ringed: 0,
            nodes: Vec::new(),
            free: NONE,
            slot: 0,
            due: Vec::new(),
            next: 0,
            later: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Adds an event. Its time is not before that of the last event taken.
    #[inline]
    pub fn push(&mut self, at: u64, event: E) {
        let slot = at >> self.shift;
        if slot <= self.slot {
            let position = self.next + self.due[self.next..].partition_point(|&(due, _)| due <= at);
            self.due.insert(position, (at, event));
        } else if slot - self.slot < SLOTS {
            self.link(slot, at, event);
        } else {
            self.sequence += 1;
            self.later.push(Later { at, sequence: self.sequence, event });
        }
    }

    /// Time of the next event; `None` without events.
    #[inline]
    pub fn next_at(&mut self) -> Option<u64> {
        while self.next == self.due.len() {
            self.due.clear();
            self.next = 0;
            self.slot = self.next_slot()?;
            self.fill();
        }
        Some(self.due[self.next].0)
    }

    /// Takes the next event; `None` without events.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        self.next_at()?;
        let event = self.due[self.next];
        self.next += 1;
        Some(event)
    }

    /// Adds an event to a slot of the ring.
    #[inline]
    fn link(&mut self, slot: u64, at: u64, event: E) {
        let index = (slot % SLOTS) as usize;
        let node = Node { at, event, next: self.heads[index] };
        let number = self.free;
        self.heads[index] = if number == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            self.free = self.nodes[number as usize].next;
            self.nodes[number as usize] = node;
            number
        };
        self.filled[index / WORD] |= 1 << (index % WORD);
        self.ringed += 1;
    }

    /// The next slot with events.
    fn next_slot(&self) -> Option<u64> {
        let later = self.later.peek().map(|later| later.at >> self.shift);
        match (self.first_filled(), later) {
            (Some(ringed), Some(later)) => Some(ringed.min(later)),
            (ringed, later) => ringed.or(later),
        }
    }

    /// The next slot of the ring with events.
    fn first_filled(&self) -> Option<u64> {
        if self.ringed == 0 {
            return None;
        }
        let first = ((self.slot + 1) % SLOTS) as usize;
        let from = u64::MAX << (first % WORD);
        let words = self.filled.len();
        for step in 0..=words {
            let word = (first / WORD + step) % words;
            // The first word has slots at both ends of the ring.
            let mask = match step {
                0 => from,
                step if step == words => !from,
                _ => u64::MAX,
            };
            let bits = self.filled[word] & mask;
            if bits != 0 {
                let index = (word * WORD) as u64 + u64::from(bits.trailing_zeros());
                return Some(self.slot + 1 + (index + SLOTS - first as u64) % SLOTS);
            }
        }
        None
    }

    /// Takes the events of the due slot out of the ring, moves events of the heap that are near now, and sorts.
    fn fill(&mut self) {
        let index = (self.slot % SLOTS) as usize;
        let mut number = std::mem::replace(&mut self.heads[index], NONE);
        self.filled[index / WORD] &= !(1 << (index % WORD));
        while number != NONE {
            let node = &mut self.nodes[number as usize];
            self.due.push((node.at, node.event));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = number;
            number = next;
            self.ringed -= 1;
        }
        // The list has the last event first.
        self.due.reverse();
        let shift = self.shift;
        let end = self.slot + SLOTS;
        while self.later.peek().is_some_and(|later| later.at >> shift < end) {
            let Some(Later { at, event, .. }) = self.later.pop() else { break };
            if at >> shift == self.slot {
                self.due.push((at, event));
            } else {
                self.link(at >> shift, at, event);
            }
        }
        self.due.sort_by_key(|&(at, _)| at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_each_comes_once(
            gap in 1.0_f64..10_000.0,
            first in prop::collection::vec(0_u64..10_000_000, 1..60),
            steps in prop::collection::vec((0_u64..3, prop_oneof![0_u64..100, 0_u64..100_000, 0_u64..1_000_000_000]), 0..200),
        ) {
            let mut agenda = Agenda::new(gap);
            let mut waiting = std::collections::BTreeSet::new();
            let mut number = 0_u32;
            for at in first {
                agenda.push(at, number);
                waiting.insert((at, number));
                number += 1;
            }
            let mut steps = steps.into_iter();
            let mut last = 0;
            while let Some(at) = agenda.next_at() {
                let (taken, event) = agenda.pop().expect("there is a next event");
                prop_assert_eq!(taken, at);
                prop_assert!(at >= last, "{} after {}", at, last);
                prop_assert!(waiting.remove(&(at, event)), "{} was not waiting at {}", event, at);
                last = at;
                let Some((count, ahead)) = steps.next() else { continue };
                for _ in 0..count {
                    agenda.push(at + ahead, number);
                    waiting.insert((at + ahead, number));
                    number += 1;
                }
            }
            prop_assert!(waiting.is_empty());
            prop_assert_eq!(agenda.pop(), None);
        }
    }

    #[test]
    fn events_of_one_time_come_in_the_order_of_their_addition() {
        let mut agenda = Agenda::new(10.0);
        for event in 0..5 {
            agenda.push(1000, event);
        }
        let taken: Vec<u32> = std::iter::from_fn(|| agenda.pop().map(|(_, event)| event)).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_times_of_heap_and_ring_are_one_order() {
        let mut agenda = Agenda::new(1.0);
        agenda.push(1 << 40, 'd');
        agenda.push(5, 'a');
        agenda.push((1 << 40) + 1, 'e');
        agenda.push(1 << 20, 'b');
        assert_eq!(agenda.pop(), Some((5, 'a')));
        agenda.push(1 << 30, 'c');
        let rest: String = std::iter::from_fn(|| agenda.pop().map(|(_, event)| event)).collect();
        assert_eq!(rest, "bcde");
    }
}
