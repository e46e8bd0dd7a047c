//! A server: the requests that wait for it, and those that it has.

mod ends;
mod workloads;

use leeward_fabric::Nanos;

use crate::caps::Caps;
use crate::error::ShapingError;
use crate::heap::Heap;
use crate::in_service::{DEMOTED, InService};
use crate::limiter::Limiter;
use crate::order::{Order, Queue};
use crate::pool::{List, NONE, OVER, Place, Pool, WAITING};
use crate::request::{Request, Ticket};
use crate::workload::{OverLimit, WorkloadId};

/// Requests that wait for a device or link, with the limits, the order and the caps that decide when each starts. A
/// request has an opaque payload, which the server hands out at the start of the request.
///
/// All times are on one clock, which the caller reads. A time before an earlier one counts as the earlier one.
#[derive(Clone, Debug)]
pub struct Server<P> {
    order: Order,
    flows: Vec<Flow>,
    /// Indices of workloads that have left.
    free_flows: Vec<u32>,
    /// Sorted priorities of workloads and of requests in service.
    priorities: Vec<u32>,
    pool: Pool,
    /// Payloads of waiting requests, by slot of the pool.
    payloads: Vec<Option<P>>,
    /// Requests within their limits.
    queue: Queue,
    /// Requests that were demoted before: at another server, or when a part of them was served.
    demoted: List<WAITING>,
    /// Requests over their limits that start if no others wait, in order of arrival.
    over: List<OVER>,
    in_service: InService,
    /// Times at which workloads have tokens for their first request behind their limits.
    timers: Heap<u64>,
    /// Number of the last stamp.
    stamps: u64,
}

/// A workload at the server.
#[derive(Clone, Debug)]
struct Flow {
    /// Number of workloads that had this index before.
    generation: u32,
    state: FlowState,
    priority: u32,
    /// Index of its priority.
    rank: u32,
    over: OverLimit,
    limiter: Limiter,
    /// Requests that wait for tokens, in order.
    limited: List<WAITING>,
    /// Number of requests that wait or are in service.
    requests: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlowState {
    Active,
    /// Takes no more requests, and leaves with its last one.
    Leaving,
    Free,
}

/// Arrival of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Name of the request.
    pub ticket: Ticket,
    /// True if the request waits for tokens.
    pub waits: bool,
}

/// Start of a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Start<P> {
    /// Name of the request, for [`Server::complete`].
    pub ticket: Ticket,
    /// Workload of the request.
    pub workload: WorkloadId,
    /// Its payload.
    pub payload: P,
    /// True if the request was over its limits until now.
    pub was_over: bool,
    /// True if the request is part of the batch of the previous start.
    pub joins: bool,
}

impl<P> Server<P> {
    /// Creates a server without workloads.
    ///
    /// # Errors
    /// Returns an error for a cap of 0 requests.
    pub fn new(order: Order, caps: Caps) -> Result<Server<P>, ShapingError> {
        caps.check()?;
        Ok(Server {
            order,
            flows: Vec::new(),
            free_flows: Vec::new(),
            priorities: Vec::new(),
            pool: Pool::default(),
            payloads: Vec::new(),
            queue: Queue::new(order),
            demoted: List::EMPTY,
            over: List::EMPTY,
            in_service: InService::new(caps),
            timers: Heap::new(),
            stamps: 0,
        })
    }

    /// A request of a workload arrives. If it is within the limits, it takes its tokens; otherwise it waits for them.
    ///
    /// # Errors
    /// Returns the payload if the workload was removed.
    pub fn arrive(
        &mut self,
        now: Nanos,
        workload: WorkloadId,
        request: Request,
        payload: P,
    ) -> Result<Arrival, P> {
        let Some(index) = self.find(workload) else { return Err(payload) };
        let request = request.with_finite_work();
        let id = self.add_request(now, index, request, payload);
        let flow = &mut self.flows[index as usize];
        let waits = !flow.limited.is_empty() || !flow.limiter.passes(now.0, request.work);
        if waits {
            flow.limited.push_back(&mut self.pool, id);
            if flow.over == OverLimit::Demoted {
                self.over.push_back(&mut self.pool, id);
            }
            // A request behind other requests leaves the time of the first one unchanged.
            if flow.limited.head() == id {
                self.set_timer(index, now);
            }
        } else {
            self.enqueue(id);
        }
        Ok(Arrival { ticket: self.pool.ticket(id), waits })
    }

    /// A request arrives that was demoted at an earlier server. It takes no tokens, and starts after all requests
    /// within their limits.
    ///
    /// # Errors
    /// Returns the payload if the workload was removed.
    pub fn arrive_demoted(
        &mut self,
        now: Nanos,
        workload: WorkloadId,
        request: Request,
        payload: P,
    ) -> Result<Ticket, P> {
        let Some(index) = self.find(workload) else { return Err(payload) };
        let id = self.add_request(now, index, request.with_finite_work(), payload);
        self.pool.get_mut(id).place = Place::Demoted;
        self.demoted.push_back(&mut self.pool, id);
        Ok(self.pool.ticket(id))
    }

    /// The next request for whose tokens the time has come takes them and is within its limits from now on. Returns its
    /// payload.
    pub fn pass(&mut self, now: Nanos) -> Option<&P> {
        let (_, index) = self.timers.first().filter(|&(time, _)| time <= now.0)?;
        let flow = &mut self.flows[index as usize];
        let id = flow.limited.head();
        let work = self.pool.get(id).request.work;
        flow.limited.remove(&mut self.pool, id);
        if flow.over == OverLimit::Demoted {
            self.over.remove(&mut self.pool, id);
        }
        flow.limiter.pass(now.0, work);
        self.enqueue(id);
        self.set_timer(index, now);
        self.payloads[id as usize].as_ref()
    }

    /// Time at which [`Server::pass`] has the next request; `None` if no request waits for tokens.
    #[inline]
    pub fn next_pass(&self) -> Option<Nanos> {
        self.timers.first().map(|(time, _)| Nanos(time))
    }

    /// Starts the next request in order, if the caps allow it.
    #[inline]
    pub fn start(&mut self, now: Nanos) -> Option<Start<P>> {
        let next = self.next();
        if next == NONE {
            self.in_service.close_batch();
            return None;
        }
        let entry = self.pool.get(next);
        let (place, index) = (entry.place, entry.flow);
        let Flow { rank, priority, .. } = self.flows[index as usize];
        let priority = if place == Place::Demoted { DEMOTED } else { priority };
        let joins = place == Place::Ordered && self.in_service.joins(entry, priority);
        if !joins && !self.in_service.may_start(&entry.request, priority) {
            self.in_service.close_batch();
            return None;
        }
        match place {
            Place::Ordered => self.queue.take(&mut self.pool, rank, next),
            Place::Demoted => self.demoted.remove(&mut self.pool, next),
            _ => self.demote(now, index, next),
        }
        let was_over = place == Place::Limited;
        let entry = self.pool.get_mut(next);
        entry.place = Place::Started;
        entry.priority = if was_over { DEMOTED } else { priority };
        self.in_service.start(&mut self.pool, next, joins);
        let ticket = self.pool.ticket(next);
        let workload = WorkloadId { index, generation: self.flows[index as usize].generation };
        let payload = self.payloads[next as usize].take().expect("a waiting request has its payload");
        Some(Start { ticket, workload, payload, was_over, joins })
    }

    /// Lets all requests pass for whose tokens the time has come, and starts the next request in order, if the caps
    /// allow it. The caller calls again until the result is `None`, and then when a request arrives or ends, or at
    /// [`Server::next_poll`].
    pub fn poll(&mut self, now: Nanos) -> Option<Start<P>> {
        while self.pass(now).is_some() {}
        self.start(now)
    }

    /// Time of the next [`Server::poll`] if no request arrives or ends before; `None` if there is nothing to wait for.
    pub fn next_poll(&self) -> Option<Nanos> {
        self.next_pass()
    }

    /// Returns true if a request waits that the order allows to start, whether or not the caps do.
    #[inline]
    pub fn waits(&self) -> bool {
        self.next() != NONE
    }

    /// Number of requests in service.
    pub fn in_service(&self) -> usize {
        self.in_service.count()
    }

    /// Number of requests that wait or are in service.
    pub fn len(&self) -> usize {
        self.flows.iter().map(|flow| flow.requests).sum()
    }

    /// Returns true if no request waits or is in service.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of requests of a workload that wait or are in service; 0 if it was removed.
    pub fn len_of(&self, workload: WorkloadId) -> usize {
        self.find(workload).map_or(0, |index| self.flows[index as usize].requests)
    }

    fn find(&self, id: WorkloadId) -> Option<u32> {
        let flow = self.flows.get(id.index as usize)?;
        let is_there = flow.state == FlowState::Active && flow.generation == id.generation;
        is_there.then_some(id.index)
    }

    /// The next request in order, or [`NONE`].
    #[inline]
    fn next(&self) -> u32 {
        match self.queue.peek() {
            NONE => {}
            id => return id,
        }
        let (over, demoted) = (self.over.head(), self.demoted.head());
        // Both lists are in order of arrival. A demoted request has started before, so of equal times it is first.
        let is_over_first =
            over != NONE && (demoted == NONE || self.pool.get(over).entered < self.pool.get(demoted).entered);
        if is_over_first { over } else { demoted }
    }

    #[inline]
    fn add_request(&mut self, now: Nanos, flow: u32, request: Request, payload: P) -> u32 {
        self.flows[flow as usize].requests += 1;
        self.stamps += 1;
        let id = self.pool.add(request, flow, self.stamps, now.0);
        match self.payloads.get_mut(id as usize) {
            Some(slot) => *slot = Some(payload),
            None => self.payloads.push(Some(payload)),
        }
        id
    }

    /// Adds a request within its limits to the order of service.
    #[inline]
    fn enqueue(&mut self, id: u32) {
        self.stamps += 1;
        let entry = self.pool.get_mut(id);
        (entry.place, entry.stamp) = (Place::Ordered, self.stamps);
        let rank = self.flows[entry.flow as usize].rank;
        self.queue.push(&mut self.pool, rank, id);
    }

    /// Takes a request over its limits for its service. It is the first of its workload: earlier ones precede it in
    /// order of arrival.
    fn demote(&mut self, now: Nanos, index: u32, id: u32) {
        let flow = &mut self.flows[index as usize];
        flow.limited.remove(&mut self.pool, id);
        self.over.remove(&mut self.pool, id);
        flow.limiter.demote(now.0, self.pool.get(id).request.work);
        self.set_timer(index, now);
    }

    /// Sets the time at which the first request behind the limits of a workload passes.
    fn set_timer(&mut self, index: u32, now: Nanos) {
        let flow = &mut self.flows[index as usize];
        match flow.limited.head() {
            NONE => self.timers.remove(index),
            id => self.timers.set(index, flow.limiter.next(now.0, self.pool.get(id).request.work)),
        }
    }
}
