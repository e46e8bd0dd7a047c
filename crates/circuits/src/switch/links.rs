//! Links of a switch: the next packet on each free link, and the packet's next location.

use leeward_fabric::Nanos;

use super::{
    CIRCUIT_FREE, CIRCUIT_OUT, DOWN_FREE, DOWN_OUT, Full, Output, Part, Switch, UP_FREE, UP_OUT, Via,
};
use crate::timers::NEVER;

/// Link on which a packet of a rack's queue starts.
#[derive(Clone, Copy)]
enum On {
    Uplink,
    CircuitTo(usize),
}

impl<P: Copy> Switch<P> {
    /// Offers a pair's packets to the links that may take them, now or when the links become free.
    #[inline]
    pub(super) fn offer(&mut self, source: usize, destination: usize, now: u64) {
        if let Some(to) = self.racks[source].circuit_to.map(|to| to as usize)
            && (to == destination || self.detours.is_some())
            && !self.is_set(CIRCUIT_FREE, to)
        {
            let free = self.racks[to].circuit.free_at();
            if free > now { self.set(CIRCUIT_FREE, to, free) } else { self.begin_circuit(to, now) }
        }
        if self.settings.packet_switch && !self.off.has(source, destination) && !self.is_set(UP_FREE, source)
        {
            let free = self.racks[source].up.free_at();
            if free > now { self.set(UP_FREE, source, free) } else { self.begin_up(source, now) }
        }
    }

    /// Length of the first packet in one part of a pair's queue.
    #[inline]
    pub(super) fn next_bytes(&self, pair: usize, part: Part) -> Option<u32> {
        self.store.first(self.voqs[pair].part(part)).map(|(packet, _)| packet.bytes)
    }

    /// Sends the first packet in one part of a pair's queue, of `bytes` bytes, on the rack's uplink or on the circuit
    /// to a rack. The packet leaves that link at `out`.
    #[inline]
    fn launch(&mut self, (source, queue): (usize, usize), part: Part, on: On, bytes: u32, out: u64) {
        let pair = self.pair(source, queue);
        let (kind, rack, to) = match on {
            On::Uplink => (UP_OUT, source, &mut self.racks[source].on_up),
            On::CircuitTo(rack) => (CIRCUIT_OUT, rack, &mut self.racks[rack].on_circuit),
        };
        let voq = &mut self.voqs[pair];
        let first = to.is_empty();
        self.store.shift(voq.part_mut(part), to, out);
        voq.bytes -= u64::from(bytes);
        if voq.is_empty() {
            self.waiting.put(source, queue, false);
        }
        if first {
            self.set(kind, rack, out);
        }
    }

    /// The uplink of a rack is free: sends a packet to the next destination to serve.
    pub(super) fn begin_up(&mut self, source: usize, now: u64) {
        let turn = self.racks[source].up_turn as usize;
        let next = self.waiting.next(source, turn, Some(&self.off));
        let next = next.and_then(|to| {
            let pair = self.pair(source, to);
            let part = self.voqs[pair].first();
            Some((to, part, self.next_bytes(pair, part)?))
        });
        let Some((destination, part, bytes)) = next else {
            self.set(UP_FREE, source, NEVER);
            return;
        };
        let racks = self.racks.len();
        let rack = &mut self.racks[source];
        rack.up_turn = if destination + 1 == racks { 0 } else { destination as u32 + 1 };
        rack.up = rack.up.after(now, bytes);
        let free = rack.up.free_at();
        self.uplink_bytes += u64::from(bytes);
        let out = free.saturating_add(self.settings.uplink_delay.0);
        self.launch((source, destination), part, On::Uplink, bytes, out);
        let more = self.waiting.next(source, 0, Some(&self.off)).is_some();
        self.set(UP_FREE, source, if more { free } else { NEVER });
    }

    /// Moves a packet from the uplink into the packet switch, or back to its rack if there is no room.
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

    /// Sets the alarm for the next packet to leave a link.
    #[inline]
    pub(super) fn next_out(&mut self, kind: usize, rack: usize) {
        let links = &self.racks[rack];
        let queue = match kind {
            UP_OUT => &links.on_up,
            DOWN_OUT => &links.on_down,
            _ => &links.on_circuit,
        };
        let at = self.store.first(queue).map_or(NEVER, |(_, out)| out);
        self.set(kind, rack, at);
    }

    /// The downlink to a rack is free: sends a packet from the next source to serve.
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
        self.sent_bytes[pair][Via::Packet as usize] += u64::from(bytes);
        if self.inner[pair].is_empty() {
            self.inside.put(destination, source, false);
        }
        if first {
            self.set(DOWN_OUT, destination, free.saturating_add(delay));
        }
        let more = self.inside.next(destination, 0, None).is_some();
        self.set(DOWN_FREE, destination, if more { free } else { NEVER });
    }

    /// The circuit to a rack is free: sends the pair's next packet, or a packet that the rack forwards. The packet's
    /// transmission must end before the day does.
    pub(super) fn begin_circuit(&mut self, to: usize, now: u64) {
        let next = self.racks[to].circuit_from.and_then(|source| {
            let source = source as usize;
            let (queue, part) = self.next_for_circuit(source, to)?;
            let bytes = self.next_bytes(self.pair(source, queue), part)?;
            let rack = &self.racks[to];
            let after = rack.circuit.after(now, bytes);
            (after.free_at() <= rack.circuit_until).then_some((source, queue, part, bytes, after))
        });
        let Some((source, queue, part, bytes, after)) = next else {
            self.set(CIRCUIT_FREE, to, NEVER);
            return;
        };
        self.racks[to].circuit = after;
        let free = after.free_at();
        let out = free.saturating_add(self.settings.circuit_delay.0);
        self.launch((source, queue), part, On::CircuitTo(to), bytes, out);
        let pair = self.pair(source, to);
        self.sent_bytes[pair][Via::Circuit as usize] += u64::from(bytes);
        let more = match &mut self.detours {
            None => !self.voqs[pair].is_empty(),
            Some(detours) => {
                detours.start(source, queue, to, bytes);
                self.waiting.next(source, 0, None).is_some()
            }
        };
        self.set(CIRCUIT_FREE, to, if more { free } else { NEVER });
    }

    /// Delivers a packet, or forwards it if its destination is another rack.
    pub(super) fn deliver(&mut self, destination: usize, now: u64, via: Via, out: &mut Vec<Output<P>>) {
        let (kind, queue) = match via {
            Via::Packet => (DOWN_OUT, &mut self.racks[destination].on_down),
            Via::Circuit => (CIRCUIT_OUT, &mut self.racks[destination].on_circuit),
        };
        if via == Via::Circuit
            && let Some((packet, _)) = self.store.first(queue)
            && packet.destination as usize != destination
        {
            self.forward(destination, now, out);
            return;
        }
        let hops = self.store.trace(queue).len() + 1;
        let popped = self.store.pop(queue);
        self.next_out(kind, destination);
        let Some(packet) = popped else { return };
        match via {
            Via::Packet => self.balance.by_packet += u64::from(packet.bytes),
            Via::Circuit => self.balance.by_circuit += u64::from(packet.bytes),
        }
        let circuit_mark = self.announced.has(destination, packet.source as usize);
        out.push(Output::Deliver { packet, at: Nanos(now), via, hops, circuit_mark });
    }
}
