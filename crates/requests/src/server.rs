//! State of a running server: waiting requests and requests in service.

use std::collections::VecDeque;

use leeward_fabric::Nanos;
use leeward_shaping as shaping;

use super::live::{DEMOTED, NONE, Pool};
use super::setup::{Device, Server};

/// A running link or device.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    /// Nanoseconds per unit of work.
    nanos: f64,
    /// Requests at the server, with its order, the limits in front of it, and its caps.
    pub(super) queue: shaping::Server<u32>,
    /// Passages of workloads: each is a workload of its own for the queue.
    passages: Vec<(shaping::WorkloadId, u32)>,
    /// True if there are limits in front of the server.
    pub(super) is_limited: bool,
    /// Request in service; [`NONE`] if there is none.
    pub(super) in_service: u32,
    /// Rounding carry: the fraction of a nanosecond by which the current service starts too late, because earlier ends
    /// were rounded up.
    rounding_carry: f64,
    /// Work that the current service does.
    pub(super) service_work: f64,
    pub(super) slot: u32,
    /// Slot of the first request that passes its limits.
    pub(super) pass_slot: u32,
    pub(super) is_dirty: bool,
    pub(super) device: Option<DeviceState>,
    /// Latency in nanoseconds.
    pub(super) latency: u64,
    /// Requests and packets in their latency, in order of its end; and the slot of the first.
    pub(super) leaving: VecDeque<(u64, u32)>,
    pub(super) leave_slot: u32,
    /// Nanoseconds of service.
    pub(super) busy: u64,
    /// Nanoseconds without service although requests waited, because of a device's caps.
    pub(super) starved: u64,
    starved_since: Option<u64>,
    pub(super) served: u64,
}

/// State inside a device.
#[derive(Clone, Debug)]
pub(super) struct DeviceState {
    pub(super) settings: Device,
    /// Requests started and not yet served.
    started: VecDeque<u32>,
    /// Served requests in their latency, in order of its end: reads, writes.
    pub(super) returning: [VecDeque<(u64, u32)>; 2],
    pub(super) return_slots: [u32; 2],
    /// Workload served last.
    last: u32,
}

impl DeviceState {
    fn new(settings: Device) -> DeviceState {
        DeviceState {
            settings,
            started: VecDeque::new(),
            returning: [VecDeque::new(), VecDeque::new()],
            return_slots: [NONE; 2],
            last: NONE,
        }
    }
}

impl Serving {
    /// Creates the state of a checked server.
    pub(super) fn new(server: &Server) -> Serving {
        Serving {
            nanos: 1e9 / server.capacity,
            queue: shaping::Server::new(server.order.order(), server.caps()).expect("checked caps"),
            passages: Vec::new(),
            is_limited: false,
            in_service: NONE,
            rounding_carry: 0.0,
            service_work: 0.0,
            slot: NONE,
            pass_slot: NONE,
            is_dirty: false,
            device: server.device.map(DeviceState::new),
            latency: server.latency.0,
            leaving: VecDeque::new(),
            leave_slot: NONE,
            busy: 0,
            starved: 0,
            starved_since: None,
            served: 0,
        }
    }

    /// Adds a passage of a workload, with checked settings.
    pub(super) fn add(&mut self, settings: &shaping::Workload, workload: u32) -> shaping::WorkloadId {
        let id = self.queue.add(settings).expect("checked settings");
        self.passages.push((id, workload));
        self.is_limited |= !settings.limits.is_empty();
        id
    }

    /// Sets the weights of workloads, which are above 0.
    pub(super) fn set_weights(&mut self, weights: &[f64]) {
        for &(id, workload) in &self.passages {
            self.queue.set_weight(id, weights[workload as usize]).expect("checked weights");
        }
    }

    /// Starts the next request, if the caps allow it. Returns the request, and true if it was over its limits until now.
    #[inline]
    fn start(&mut self, now: u64, pool: &mut Pool) -> Option<(u32, bool)> {
        let shaping::Start { payload: id, was_over, .. } = self.queue.start(Nanos(now))?;
        if was_over {
            let live = pool.get_mut(id);
            (live.level, live.was_demoted) = (DEMOTED, true);
        }
        Some((id, was_over))
    }

    /// A link starts to send the next request, or a packet of it. Returns the request, and true if it was
    /// over its limits until now.
    pub(super) fn start_link(
        &mut self,
        now: u64,
        pool: &mut Pool,
        packet: Option<f64>,
    ) -> Option<(u32, bool)> {
        if self.in_service != NONE {
            return None;
        }
        let (id, was_over) = self.start(now, pool)?;
        let left = pool.get(id).left;
        self.service_work = packet.map_or(left, |packet| left.min(packet));
        self.in_service = id;
        Some((id, was_over))
    }

    /// Passes the next request to the device if its caps allow. Returns the request, and true if it was over its
    /// limits until now.
    pub(super) fn start_device(&mut self, now: u64, pool: &mut Pool) -> Option<(u32, bool)> {
        let (id, was_over) = self.start(now, pool)?;
        if let Some(device) = &mut self.device {
            device.started.push_back(id);
        }
        Some((id, was_over))
    }

    /// Puts a request back as the next of its level, after one of its packets was sent.
    pub(super) fn put_back(&mut self, pool: &Pool, id: u32) {
        let live = pool.get(id);
        let ticket = live.ticket.expect("a request in service has a ticket");
        self.queue.put_back(ticket, live.left, id).expect("the request is in service");
    }

    /// A request in service leaves a link, or frees the caps of a device.
    #[inline]
    pub(super) fn complete(&mut self, ticket: Option<shaping::Ticket>) {
        let is_done = ticket.is_some_and(|ticket| self.queue.complete(ticket));
        debug_assert!(is_done, "the request is in service");
    }

    /// An idle device starts to serve its first started request. Returns true if there is one.
    pub(super) fn begin(&mut self, pool: &Pool) -> bool {
        let Some(device) = &mut self.device else { return false };
        if self.in_service != NONE {
            return false;
        }
        let Some(id) = device.started.pop_front() else { return false };
        let live = pool.get(id);
        self.service_work = live.left;
        // Turn time as work, in seconds of service like the work of requests.
        if device.last != live.workload && device.last != NONE {
            self.service_work += device.settings.turn.0 as f64 / self.nanos;
        }
        device.last = live.workload;
        self.in_service = id;
        true
    }

    /// Returns the end of the service that starts now, rounded up to a whole nanosecond. If the next service follows
    /// without a pause, that service is shortened by the rounding, so that rounding does not accumulate.
    #[inline]
    pub(super) fn service_end(&mut self, now: u64) -> u64 {
        let exact = self.service_work * self.nanos - self.rounding_carry;
        let whole = exact.ceil().max(0.0);
        self.rounding_carry = whole - exact;
        self.busy = self.busy.saturating_add(whole as u64);
        if let Some(since) = self.starved_since.take() {
            self.starved += now - since;
        }
        now.saturating_add(whole as u64)
    }

    /// Records that no more request can start at this moment. An idle server drops its rounding carry. The starved time
    /// of an idle device begins if requests wait, and ends if none do.
    #[inline]
    pub(super) fn note_idle(&mut self, now: u64) {
        if self.in_service != NONE {
            return;
        }
        self.rounding_carry = 0.0;
        if self.device.is_some() {
            let waits = self.queue.waits();
            match self.starved_since {
                None if waits => self.starved_since = Some(now),
                Some(since) if !waits => {
                    self.starved += now - since;
                    self.starved_since = None;
                }
                _ => {}
            }
        }
    }
}
