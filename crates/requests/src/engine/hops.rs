//! Path of a request: into a limiter and a server, through its service, and on to the next hop.

use leeward_fabric::Nanos;
use leeward_shaping::{Arrival, Request};
use leeward_traces::Stage;

use super::Engine;
use crate::clock::NEVER;
use crate::error::{LATEST, RequestsError};
use crate::live::{DEMOTED, Live, NONE};
use crate::observer::{Observer, RequestEvent};
use crate::plan::LONGEST;

impl<W: Observer> Engine<'_, W> {
    /// A request or packet arrives at the server of its hop.
    pub(super) fn enter(&mut self, id: u32) -> Result<(), RequestsError> {
        let live = self.pool.get_mut(id);
        let hop = self.plan.hops[live.hop as usize];
        if hop.is_first {
            live.since = self.now;
            live.left = live.work[hop.stage as usize];
            live.level = hop.level;
        } else if live.level != DEMOTED {
            live.level = hop.level;
        }
        let (left, workload) = (live.left, live.workload as usize);
        self.observer.arrived(Nanos(self.now), hop.server as usize, event_of(live, left));
        let request = Request {
            kind: live.kind,
            size: live.size,
            offset: live.offset,
            work: left,
            deadline: Nanos(live.arrived.saturating_add(self.plan.objectives[workload])),
            number: live.number,
        };
        let queue = &mut self.plan.servers[hop.server as usize].queue;
        // A demoted request was over its limits at an earlier server of its stage.
        let arrival = if live.level == DEMOTED {
            let ticket = queue.arrive_demoted(Nanos(self.now), hop.passage, request, id);
            ticket.map(|ticket| Arrival { ticket, waits: false })
        } else {
            queue.arrive(Nanos(self.now), hop.passage, request, id)
        };
        let Arrival { ticket, waits } = arrival.expect("workloads stay at their servers");
        live.ticket = Some(ticket);
        if waits {
            self.set_pass_time(hop.server as usize);
        } else if hop.is_first {
            self.observer.passed(Nanos(self.now), workload, Stage::ALL[hop.stage as usize], left);
        }
        if !waits || hop.demotes {
            self.wake(hop.server);
        }
        Ok(())
    }

    /// Sets the time at which the first request behind the limits of a server passes.
    fn set_pass_time(&mut self, server: usize) {
        let server = &self.plan.servers[server];
        let time = server.queue.next_pass().map_or(NEVER, |time| time.0.min(LATEST + 1));
        self.clock.set(server.pass_slot, time);
    }

    /// The first request behind the limits of a server passes.
    pub(super) fn passes(&mut self, index: usize) -> Result<(), RequestsError> {
        let is_late = self.now > LATEST;
        // A request that never passes has the latest time.
        let now = if is_late { Nanos(u64::MAX) } else { Nanos(self.now) };
        let Some(&id) = self.plan.servers[index].queue.pass(now) else { return Ok(()) };
        let live = self.pool.get(id);
        let workload = live.workload as usize;
        let stage = Stage::ALL[self.plan.hops[live.hop as usize].stage as usize];
        if is_late {
            let workload = &self.setup.workloads[workload].name;
            return self.too_long(format!("a request of workload {workload} behind its limits at {stage}"));
        }
        self.observer.passed(Nanos(self.now), workload, stage, live.left);
        self.wake(index as u32);
        self.set_pass_time(index);
        Ok(())
    }

    #[inline]
    fn wake(&mut self, server: u32) {
        let serving = &mut self.plan.servers[server as usize];
        if !serving.is_dirty {
            serving.is_dirty = true;
            self.dirty.push(server);
        }
    }

    /// Starts all requests that a server can start now.
    pub(super) fn begin(&mut self, index: usize) -> Result<(), RequestsError> {
        let (now, packet) = (self.now, self.setup.packet);
        let server = &mut self.plan.servers[index];
        server.is_dirty = false;
        let mut demoted = false;
        if server.device.is_none() {
            if let Some((id, was_over)) = server.start_link(now, &mut self.pool, packet) {
                demoted = was_over;
                let work = server.service_work;
                self.observer.started(Nanos(now), index, event_of(self.pool.get(id), work));
                self.serve(index)?;
            }
        } else {
            while let Some((id, was_over)) = server.start_device(now, &mut self.pool) {
                demoted |= was_over;
                let live = self.pool.get(id);
                self.observer.started(Nanos(now), index, event_of(live, live.left));
            }
            if server.begin(&self.pool) {
                self.serve(index)?;
            }
        }
        if demoted {
            // A request over its limits has left them.
            self.set_pass_time(index);
        }
        self.plan.servers[index].note_idle(now);
        Ok(())
    }

    /// A server starts a service.
    fn serve(&mut self, index: usize) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        let end = server.service_end(self.now);
        if end - self.now > LONGEST || end > LATEST {
            let name = &self.setup.servers[index].name;
            return self.too_long(format!("a request at server {name}"));
        }
        self.clock.set(server.slot, end);
        Ok(())
    }

    /// A server ends a service.
    pub(super) fn served(&mut self, index: usize) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        let id = std::mem::replace(&mut server.in_service, NONE);
        let sent = server.service_work;
        let live = self.pool.get_mut(id);
        self.observer.served(Nanos(self.now), index, event_of(live, sent));
        if let Some(device) = &mut server.device {
            server.served += 1;
            let way = live.kind as usize;
            let latency = [device.settings.read_latency, device.settings.write_latency][way].0;
            let time = self.now + latency + live.tail;
            // At equal times, the order of service stays. Without tails, the position is the end.
            let later = device.returning[way].iter().rev().take_while(|&&(other, _)| other > time).count();
            let at = device.returning[way].len() - later;
            device.returning[way].insert(at, (time, id));
            if at == 0 {
                self.clock.set(device.return_slots[way], time);
            }
            self.wake(index as u32);
            return Ok(());
        }
        let hop = self.plan.hops[live.hop as usize];
        live.left -= sent;
        // A link splits requests into packets; without packets, one packet holds the whole request.
        if live.left > 0.0 {
            if hop.packets && !hop.is_last {
                let packet = Live { is_packet: true, left: sent, ..*live };
                let packet = self.pool.add(packet);
                self.leave_later(index, packet)?;
            }
            self.plan.servers[index].put_back(&self.pool, id);
            self.wake(index as u32);
            return Ok(());
        }
        server.served += u64::from(!live.is_packet);
        server.complete(live.ticket);
        live.left = if hop.packets { sent } else { live.work[hop.stage as usize] };
        self.wake(index as u32);
        self.leave_later(index, id)
    }

    /// The first of a device's reads or writes ends its latency.
    pub(super) fn returned(&mut self, index: usize, way: usize) -> Result<(), RequestsError> {
        let device = self.plan.servers[index].device.as_mut().expect("only devices have a latency");
        let Some((_, id)) = device.returning[way].pop_front() else { return Ok(()) };
        let next = device.returning[way].front().map_or(NEVER, |&(time, _)| time);
        self.clock.set(device.return_slots[way], next);
        self.plan.servers[index].complete(self.pool.get(id).ticket);
        self.wake(index as u32);
        self.leave_later(index, id)
    }

    /// A request or packet leaves its hop after the latency of the server.
    fn leave_later(&mut self, index: usize, id: u32) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        if server.latency == 0 {
            return self.leave(id);
        }
        let time = self.now.saturating_add(server.latency);
        if server.leaving.is_empty() {
            self.clock.set(server.leave_slot, time);
        }
        server.leaving.push_back((time, id));
        Ok(())
    }

    /// The first request or packet in the latency of a server leaves.
    pub(super) fn leaves(&mut self, index: usize) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        let Some((_, id)) = server.leaving.pop_front() else { return Ok(()) };
        let next = server.leaving.front().map_or(NEVER, |&(time, _)| time);
        self.clock.set(server.leave_slot, next);
        self.leave(id)
    }

    /// A request or packet leaves its hop for the next one.
    fn leave(&mut self, id: u32) -> Result<(), RequestsError> {
        let live = self.pool.get_mut(id);
        let (hop, workload) = (self.plan.hops[live.hop as usize], live.workload as usize);
        if hop.is_last {
            if live.is_packet {
                self.pool.remove(id);
                return Ok(());
            }
            live.spent[hop.stage as usize] = self.now - live.since;
        }
        live.hop += 1;
        if live.hop < self.plan.hop_ranges[workload].1 {
            return self.enter(id);
        }
        self.done(id);
        Ok(())
    }

    /// A request has passed all its stages.
    pub(super) fn done(&mut self, id: u32) {
        let live = self.pool.get_mut(id);
        let workload = live.workload as usize;
        let latency = self.now - live.arrived;
        self.recorder.record(live, latency);
        let controller = self.controlled[workload];
        if controller != NONE {
            self.controllers[controller as usize].measure(workload, latency);
        }
        self.pool.remove(id);
        self.under_way -= 1;
        let sender = &mut self.senders[workload];
        if let Some(left) = &mut sender.closed {
            *left += 1;
            self.clock.set(sender.slot, self.now);
        }
    }
}

/// Builds the description of a request for the observer.
#[inline]
fn event_of(live: &Live, work: f64) -> RequestEvent {
    RequestEvent {
        workload: live.workload as usize,
        number: live.number,
        kind: live.kind,
        rank: live.level,
        work,
    }
}
