//! Detours: packets on circuits that lead to other racks, as [`Routes`] permit, and racks that forward them.

use std::sync::Arc;

use super::{CIRCUIT_OUT, Full, Output, Part, Switch, SwitchError};
use crate::routing::{Routes, Rule};

/// State of packets that travel over other racks.
#[derive(Clone, Debug)]
pub(super) struct Detours {
    routes: Arc<Routes>,
    /// Number of packets from each rack's hosts so far.
    sent: Vec<u64>,
    /// For each rack, the next destination to serve, among the destinations that its circuit does not lead to.
    turns: Vec<u32>,
    /// Traffic in flight to each rack, by rack and then by the packets' destination. Used only if racks offer capacity.
    reserved: Vec<Reservation>,
}

/// Packets and bytes that a rack has accepted and that have not arrived yet.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    packets: u32,
    bytes: u64,
}

impl Detours {
    /// Queue for the next packet of a rack's hosts.
    #[inline]
    pub(super) fn queue(&mut self, source: usize, destination: usize) -> usize {
        let number = self.sent[source];
        self.sent[source] += 1;
        self.routes.queue(source, destination, number)
    }

    /// Records that a packet of a rack's queue has started on the circuit to a rack.
    #[inline]
    pub(super) fn start(&mut self, source: usize, queue: usize, to: usize, bytes: u32) {
        if queue == to {
            return;
        }
        let racks = self.turns.len();
        self.turns[source] = if queue + 1 == racks { 0 } else { queue as u32 + 1 };
        if let Rule::Offered { .. } = self.routes.rule() {
            let reserved = &mut self.reserved[to * racks + queue];
            reserved.packets += 1;
            reserved.bytes += u64::from(bytes);
        }
    }

    /// Records that a packet for `destination` has arrived at a rack that forwards it.
    #[inline]
    fn arrive(&mut self, rack: usize, destination: usize, bytes: u32) {
        let reserved = &mut self.reserved[rack * self.turns.len() + destination];
        reserved.packets = reserved.packets.saturating_sub(1);
        reserved.bytes = reserved.bytes.saturating_sub(u64::from(bytes));
    }
}

impl<P: Copy> Switch<P> {
    pub(super) fn set_routes(&mut self, routes: Arc<Routes>) -> Result<(), SwitchError> {
        let racks = self.racks.len();
        let (found, expected) = ((routes.racks(), routes.days()), (racks, self.calendar.days()));
        if found != expected {
            return Err(SwitchError::Routes { found, expected });
        }
        let reserved = vec![Reservation::default(); racks * racks];
        self.detours = match routes.rule() {
            Rule::Direct => None,
            _ => Some(Box::new(Detours { routes, sent: vec![0; racks], turns: vec![0; racks], reserved })),
        };
        Ok(())
    }

    /// Next packet on the circuit between two racks: packets of the pair come first, then packets that the other rack
    /// forwards.
    #[inline]
    pub(super) fn next_for_circuit(&self, source: usize, to: usize) -> Option<(usize, Part)> {
        let own = &self.voqs[self.pair(source, to)];
        if !own.is_empty() {
            return Some((to, own.first()));
        }
        let detours = self.detours.as_ref()?;
        match detours.routes.rule() {
            Rule::Direct | Rule::Spread { .. } => None,
            Rule::Offered { carries } => self.next_in_turn(detours, source, |destination| {
                let pair = self.pair(source, destination);
                let bytes = self.next_bytes(pair, Part::Main)?;
                let onward = self.pair(to, destination);
                // A rack whose circuit to the destination is up offers nothing: its own packets come first, and less
                // than a full day is left.
                let runs = self.racks[to].circuit_to == Some(destination as u32);
                (to != source && !runs && self.has_room(detours, onward, bytes, carries[onward]))
                    .then_some(Part::Main)
            }),
            Rule::Planned { .. } => self.next_in_turn(detours, source, |destination| {
                let voq = &self.voqs[self.pair(source, destination)];
                [Part::Loss, Part::Relay, Part::Main].into_iter().find(|&part| {
                    let (queue, day) = (voq.part(part), self.day as usize);
                    let Some((packet, _)) = self.store.first(queue) else { return false };
                    let trace = self.store.trace(queue);
                    let left = detours.routes.most_hops().saturating_sub(trace.len());
                    detours.routes.admits(left, day, source, destination)
                        && packet.source as usize != to
                        && !trace.has(to)
                })
            }),
        }
    }

    /// Next destination to serve with a packet at the rack that may take the circuit, and the part of the queue that
    /// holds the packet.
    fn next_in_turn(
        &self,
        detours: &Detours,
        source: usize,
        part: impl Fn(usize) -> Option<Part>,
    ) -> Option<(usize, Part)> {
        let racks = self.racks.len();
        let first = self.waiting.next(source, detours.turns[source] as usize, None)?;
        let mut at = first;
        loop {
            if let Some(part) = part(at) {
                return Some((at, part));
            }
            at = self.waiting.next(source, (at + 1) % racks, None)?;
            if at == first {
                return None;
            }
        }
    }

    /// Returns true if a rack can forward `bytes` more to a destination on the next day of its circuit there.
    fn has_room(&self, detours: &Detours, pair: usize, bytes: u32, carries: u64) -> bool {
        let (voq, reserved) = (&self.voqs[pair], detours.reserved[pair]);
        voq.bytes + reserved.bytes + u64::from(bytes) <= carries
            && voq.relay.len() + reserved.packets < self.settings.relay_capacity
    }

    /// Moves the packet at the end of a circuit into that rack's queue for the packet's destination.
    pub(super) fn forward(&mut self, rack: usize, now: u64, out: &mut Vec<Output<P>>) {
        let on = self.racks[rack].on_circuit;
        let Some((&packet, _)) = self.store.first(&on) else { return };
        let destination = packet.destination as usize;
        if let Some(detours) = &mut self.detours {
            detours.arrive(rack, destination, packet.bytes);
        }
        self.store.pass(&on, rack);
        let pair = self.pair(rack, destination);
        let on = &mut self.racks[rack].on_circuit;
        if self.voqs[pair].relay.len() < self.settings.relay_capacity {
            self.store.shift(on, &mut self.voqs[pair].relay, 0);
            self.voqs[pair].bytes += u64::from(packet.bytes);
            self.waiting.put(rack, destination, true);
            self.next_out(CIRCUIT_OUT, rack);
            self.offer(rack, destination, now);
        } else {
            self.store.pop(on);
            self.drop(packet, now, Full::Relay, out);
            self.next_out(CIRCUIT_OUT, rack);
        }
    }
}
