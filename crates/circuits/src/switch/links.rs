//! What a switch's links do: which packet begins on each when it is free, and where the packet goes from there.

use leeward_fabric::Nanos;

use super::{CIRCUIT_FREE, CIRCUIT_OUT, DOWN_FREE, DOWN_OUT, Full, Output, Switch, UP_FREE, UP_OUT, Via};
use crate::timers::NEVER;

impl<P: Copy> Switch<P> {
    /// A pair's queue has packets: the links that may take them do, now or when they are free.
    #[inline]
    pub(super) fn offer(&mut self, source: usize, destination: usize, now: u64) {
        if self.racks[destination].circuit_from == Some(source as u32)
            && !self.is_set(CIRCUIT_FREE, destination)
        {
            let free = self.racks[destination].circuit.free_at();
            if free > now {
                self.set(CIRCUIT_FREE, destination, free)
            } else {
                self.begin_circuit(destination, now)
            }
        }
        if !self.off.has(source, destination) && !self.is_set(UP_FREE, source) {
            let free = self.racks[source].up.free_at();
            if free > now { self.set(UP_FREE, source, free) } else { self.begin_up(source, now) }
        }
    }

    /// The length of the next packet of a pair's queue.
    #[inline]
    pub(super) fn next_bytes(&self, pair: usize) -> Option<u32> {
        let voq = &self.voqs[pair];
        let from = if voq.loss.is_empty() { &voq.main } else { &voq.loss };
        self.store.first(from).map(|(packet, _)| packet.bytes)
    }

    /// The next packet of a pair's queue, of so many bytes, goes on a link, which it leaves at `out`.
    #[inline]
    pub(super) fn launch(&mut self, source: usize, destination: usize, via: Via, bytes: u32, out: u64) {
        let pair = self.pair(source, destination);
        let (kind, rack, to) = match via {
            Via::Packet => (UP_OUT, source, &mut self.racks[source].on_up),
            Via::Circuit => (CIRCUIT_OUT, destination, &mut self.racks[destination].on_circuit),
        };
        let voq = &mut self.voqs[pair];
        let from = if voq.loss.is_empty() { &mut voq.main } else { &mut voq.loss };
        let first = to.is_empty();
        self.store.shift(from, to, out);
        voq.bytes -= u64::from(bytes);
        if voq.loss.is_empty() && voq.main.is_empty() {
            self.waiting.put(source, destination, false);
        }
        if first {
            self.set(kind, rack, out);
        }
    }

    /// The uplink of a rack is free: the next destination's turn.
    pub(super) fn begin_up(&mut self, source: usize, now: u64) {
        let turn = self.racks[source].up_turn as usize;
        let next = self.waiting.next(source, turn, Some(&self.off));
        let next = next.and_then(|to| Some((to, self.next_bytes(self.pair(source, to))?)));
        let Some((destination, bytes)) = next else {
            self.set(UP_FREE, source, NEVER);
            return;
        };
        let racks = self.racks.len();
        let rack = &mut self.racks[source];
        rack.up_turn = if destination + 1 == racks { 0 } else { destination as u32 + 1 };
        rack.up = rack.up.after(now, bytes);
        let free = rack.up.free_at();
        let out = free.saturating_add(self.settings.uplink_delay.0);
        self.launch(source, destination, Via::Packet, bytes, out);
        let more = self.waiting.next(source, 0, Some(&self.off)).is_some();
        self.set(UP_FREE, source, if more { free } else { NEVER });
    }

    /// A packet reaches the packet switch, or goes back.
    pub(super) fn leave_up(&mut self, source: usize, now: u64, out: &mut Vec<Output<P>>) {
        let Some((packet, _)) = self.store.first(&self.racks[source].on_up) else { return };
        let destination = packet.destination as usize;
        let bytes = u64::from(packet.bytes);
        let pair = self.pair(source, destination);
        let on_up = &mut self.racks[source].on_up;
        if self.inner[pair].len() < self.settings.inner_capacity {
            self.store.shift(on_up, &mut self.inner[pair], 0);
            self.inside.put(destination, source, true);
            self.next_out(UP_OUT, source);
            if !self.is_set(DOWN_FREE, destination) {
                let free = self.racks[destination].down.free_at();
                if free > now {
                    self.set(DOWN_FREE, destination, free)
                } else {
                    self.begin_down(destination, now)
                }
            }
        } else if self.voqs[pair].loss.len() < self.settings.loss_capacity {
            self.store.shift(on_up, &mut self.voqs[pair].loss, 0);
            self.voqs[pair].bytes += bytes;
            self.waiting.put(source, destination, true);
            self.next_out(UP_OUT, source);
            self.offer(source, destination, now);
        } else {
            if let Some(packet) = self.store.pop(on_up) {
                self.drop(packet, now, Full::Loss, out);
            }
            self.next_out(UP_OUT, source);
        }
    }

    /// Sets the alarm for the next packet to come out of a link.
    #[inline]
    pub(super) fn next_out(&mut self, kind: usize, rack: usize) {
        let of = &self.racks[rack];
        let queue = match kind {
            UP_OUT => &of.on_up,
            DOWN_OUT => &of.on_down,
            _ => &of.on_circuit,
        };
        let at = self.store.first(queue).map_or(NEVER, |(_, out)| out);
        self.set(kind, rack, at);
    }

    /// The downlink to a rack is free: the next source's turn.
    pub(super) fn begin_down(&mut self, destination: usize, now: u64) {
        let turn = self.racks[destination].down_turn as usize;
        let Some(source) = self.inside.next(destination, turn, None) else {
            self.set(DOWN_FREE, destination, NEVER);
            return;
        };
        let delay = self.settings.downlink_delay.0;
        let racks = self.racks.len();
        let pair = self.pair(source, destination);
        let bytes = self.store.first(&self.inner[pair]).map_or(0, |(packet, _)| packet.bytes);
        let rack = &mut self.racks[destination];
        rack.down_turn = if source + 1 == racks { 0 } else { source as u32 + 1 };
        rack.down = rack.down.after(now, bytes);
        let free = rack.down.free_at();
        let first = rack.on_down.is_empty();
        self.store.shift(&mut self.inner[pair], &mut rack.on_down, free.saturating_add(delay));
        self.carried[pair][Via::Packet as usize] += u64::from(bytes);
        if self.inner[pair].is_empty() {
            self.inside.put(destination, source, false);
        }
        if first {
            self.set(DOWN_OUT, destination, free.saturating_add(delay));
        }
        let more = self.inside.next(destination, 0, None).is_some();
        self.set(DOWN_FREE, destination, if more { free } else { NEVER });
    }

    /// The circuit to a rack is free: the pair's next packet, if it ends before the day.
    pub(super) fn begin_circuit(&mut self, destination: usize, now: u64) {
        let begun = self.racks[destination].circuit_from.and_then(|source| {
            let source = source as usize;
            let bytes = self.next_bytes(self.pair(source, destination))?;
            let rack = &self.racks[destination];
            let after = rack.circuit.after(now, bytes);
            (after.free_at() <= rack.circuit_until).then_some((source, bytes, after))
        });
        let Some((source, bytes, after)) = begun else {
            self.set(CIRCUIT_FREE, destination, NEVER);
            return;
        };
        self.racks[destination].circuit = after;
        let free = after.free_at();
        let out = free.saturating_add(self.settings.circuit_delay.0);
        self.launch(source, destination, Via::Circuit, bytes, out);
        let pair = self.pair(source, destination);
        self.carried[pair][Via::Circuit as usize] += u64::from(bytes);
        let voq = &self.voqs[pair];
        let more = !voq.main.is_empty() || !voq.loss.is_empty();
        self.set(CIRCUIT_FREE, destination, if more { free } else { NEVER });
    }

    /// A packet comes out.
    pub(super) fn deliver(&mut self, destination: usize, now: u64, via: Via, out: &mut Vec<Output<P>>) {
        let (kind, queue) = match via {
            Via::Packet => (DOWN_OUT, &mut self.racks[destination].on_down),
            Via::Circuit => (CIRCUIT_OUT, &mut self.racks[destination].on_circuit),
        };
        let popped = self.store.pop(queue);
        self.next_out(kind, destination);
        let Some(packet) = popped else { return };
        match via {
            Via::Packet => self.balance.by_packet += u64::from(packet.bytes),
            Via::Circuit => self.balance.by_circuit += u64::from(packet.bytes),
        }
        let circuit_mark = self.announced.has(destination, packet.source as usize);
        out.push(Output::Deliver { packet, at: Nanos(now), via, circuit_mark });
    }
}
