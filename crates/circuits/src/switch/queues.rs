//! Packet queues in one shared store. A queue holds only its two ends and its length. The store allocates only when it
//! holds more packets than ever before, for any number of queues.

use super::Packet;
use super::packet_trace::PacketTrace;

const NONE: u32 = u32::MAX;

/// Packets of all queues.
#[derive(Clone, Debug)]
pub(super) struct Store<P> {
    slots: Vec<Slot<P>>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot<P> {
    packet: Packet<P>,
    /// Time at which the packet leaves its link.
    out: u64,
    next: u32,
    /// Racks that forwarded the packet.
    trace: PacketTrace,
}

/// A first-in first-out queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
    length: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { head: NONE, tail: NONE, length: 0 }
    }
}

impl Queue {
    /// Number of packets in the queue.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.length
    }

    /// Returns true if the queue has no packets.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl<P: Copy> Store<P> {
    /// Creates an empty store.
    pub(super) fn new() -> Store<P> {
        Store { slots: Vec::new(), free: NONE }
    }

    /// Appends a packet to a queue.
    #[inline]
    pub(super) fn push(&mut self, queue: &mut Queue, packet: Packet<P>, out: u64) {
        let slot = Slot { packet, out, next: NONE, trace: PacketTrace::default() };
        let at = self.free;
        let at = if at == NONE {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        } else {
            self.free = self.slots[at as usize].next;
            self.slots[at as usize] = slot;
            at
        };
        self.append(queue, at);
    }

    /// Moves the first packet of a queue to the end of another, which it leaves at `out`.
    #[inline]
    pub(super) fn shift(&mut self, from: &mut Queue, to: &mut Queue, out: u64) {
        let at = from.head;
        if at == NONE {
            return;
        }
        let slot = &mut self.slots[at as usize];
        from.head = slot.next;
        from.length -= 1;
        if from.head == NONE {
            from.tail = NONE;
        }
        slot.next = NONE;
        slot.out = out;
        self.append(to, at);
    }

    #[inline]
    fn append(&mut self, queue: &mut Queue, at: u32) {
        match queue.tail {
            NONE => queue.head = at,
            tail => self.slots[tail as usize].next = at,
        }
        queue.tail = at;
        queue.length += 1;
    }

    /// Removes the first packet of a queue.
    #[inline]
    pub(super) fn pop(&mut self, queue: &mut Queue) -> Option<Packet<P>> {
        let at = queue.head;
        if at == NONE {
            return None;
        }
        let slot = &mut self.slots[at as usize];
        queue.head = slot.next;
        queue.length -= 1;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        slot.next = self.free;
        self.free = at;
        Some(slot.packet)
    }

    /// First packet of a queue and the time at which it leaves its link.
    #[inline]
    pub(super) fn first(&self, queue: &Queue) -> Option<(&Packet<P>, u64)> {
        if queue.head == NONE {
            return None;
        }
        let slot = &self.slots[queue.head as usize];
        Some((&slot.packet, slot.out))
    }

    /// Racks that forwarded the first packet of a queue.
    #[inline]
    pub(super) fn trace(&self, queue: &Queue) -> PacketTrace {
        self.slots.get(queue.head as usize).map_or(PacketTrace::default(), |slot| slot.trace)
    }

    /// Records that a rack forwards the first packet of a queue.
    #[inline]
    pub(super) fn pass(&mut self, queue: &Queue, rack: usize) {
        if let Some(slot) = self.slots.get_mut(queue.head as usize) {
            slot.trace = slot.trace.with(rack);
        }
    }

    /// Packets of a queue, in order.
    pub(super) fn iter(&self, queue: &Queue) -> impl Iterator<Item = &Packet<P>> + '_ {
        let mut at = queue.head;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.next;
            Some(&slot.packet)
        })
    }
}
