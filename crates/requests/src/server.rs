//! State of a running server: waiting requests and requests in service.

use std::collections::VecDeque;

use super::live::{DEMOTED, List, NONE, Pool};
use super::scheduling::RequestQueue;
use super::setup::{Batch, Device, Server, StartCaps};

/// A running link or device.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    /// Nanoseconds per unit of work.
    nanos: f64,
    /// Requests within their limits.
    pub(super) waiting: RequestQueue,
    /// Demoted requests that come from another server, or that have already sent packets.
    demoted: List,
    /// Requests that are over their limits and were not over them before this server, in order of arrival: number, hop
    /// and request. Number and hop identify entries that have passed their limiter meanwhile.
    over: VecDeque<(u64, u32, u32)>,
    /// Request in service; [`NONE`] if there is none.
    pub(super) in_service: u32,
    /// Rounding carry: the fraction of a nanosecond by which the current service starts too late, because earlier ends
    /// were rounded up.
    rounding_carry: f64,
    /// Work that the current service does.
    pub(super) service_work: f64,
    pub(super) slot: u32,
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
    started: List,
    outstanding: u32,
    /// Bytes of started reads, and bytes of started writes.
    bytes: [u64; 2],
    /// Served requests in their latency, in order of its end: reads, writes.
    pub(super) returning: [VecDeque<(u64, u32)>; 2],
    pub(super) return_slots: [u32; 2],
    /// Workload served last.
    last: u32,
    /// Number of requests and bytes started since the beginning.
    started_total: (u64, u64),
    /// With caps behind higher priorities: requests in progress in order of start, each with its level and with the
    /// value of `started_total` after its start.
    under_way: Vec<(u32, u32, (u64, u64))>,
}

impl DeviceState {
    pub(super) fn new(settings: Device) -> DeviceState {
        DeviceState {
            settings,
            started: List::EMPTY,
            outstanding: 0,
            bytes: [0; 2],
            returning: [VecDeque::new(), VecDeque::new()],
            return_slots: [NONE; 2],
            last: NONE,
            started_total: (0, 0),
            under_way: Vec::new(),
        }
    }

    /// Returns true if the caps let a request start.
    fn may_start(&self, pool: &Pool, id: u32) -> bool {
        let live = pool.get(id);
        if self.outstanding >= self.settings.outstanding {
            return false;
        }
        let way = live.kind as usize;
        let cap = [self.settings.read_bytes, self.settings.write_bytes][way];
        if self.bytes[way] > 0 && self.bytes[way] + live.size > cap {
            return false;
        }
        let Some(StartCaps { requests, bytes }) = self.settings.behind else { return true };
        let oldest = self.under_way.iter().find(|&&(_, level, _)| level < live.level);
        oldest.is_none_or(|&(_, _, until)| {
            self.started_total.0 - until.0 < u64::from(requests) && self.started_total.1 - until.1 < bytes
        })
    }

    fn start(&mut self, pool: &mut Pool, id: u32) {
        let live = pool.get(id);
        let (way, size, level) = (live.kind as usize, live.size, live.level);
        self.bytes[way] += size;
        self.started_total = (self.started_total.0 + 1, self.started_total.1 + size);
        if self.settings.behind.is_some() {
            self.under_way.push((id, level, self.started_total));
        }
        self.started.push(pool, id);
    }

    /// Frees the caps of a finished request.
    pub(super) fn done(&mut self, pool: &Pool, id: u32) {
        let live = pool.get(id);
        self.bytes[live.kind as usize] -= live.size;
        self.outstanding -= u32::from(live.frees);
        if self.settings.behind.is_some() {
            let at = self
                .under_way
                .iter()
                .position(|&(started, ..)| started == id)
                .expect("the request is in service");
            self.under_way.remove(at);
        }
    }
}

impl Serving {
    pub(super) fn new(server: &Server, waiting: RequestQueue) -> Serving {
        Serving {
            nanos: 1e9 / server.capacity,
            waiting,
            demoted: List::EMPTY,
            over: VecDeque::new(),
            in_service: NONE,
            rounding_carry: 0.0,
            service_work: 0.0,
            slot: NONE,
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

    /// Adds a request or packet that is within its limits, or that was demoted before.
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        if pool.get(id).level == DEMOTED {
            self.demoted.push(pool, id);
        } else {
            self.waiting.push(pool, id);
        }
    }

    /// Adds a request over its limits.
    pub(super) fn push_over(&mut self, pool: &Pool, id: u32) {
        let live = pool.get(id);
        self.over.push_back((live.number, live.hop, id));
    }

    /// Puts a request back as the next of its level, after one of its packets was sent.
    pub(super) fn put_back(&mut self, pool: &mut Pool, id: u32) {
        if pool.get(id).level == DEMOTED {
            self.demoted.push_front(pool, id);
        } else {
            self.waiting.put_back(pool, id);
        }
    }

    /// Returns the next request, and true if it is over its limits and not started; [`NONE`] if no request waits.
    #[inline]
    pub(super) fn next(&mut self, pool: &Pool) -> (u32, bool) {
        let id = self.waiting.peek();
        if id != NONE {
            return (id, false);
        }
        while let Some(&(number, hop, id)) = self.over.front() {
            let live = pool.get(id);
            if live.number != number || live.hop != hop || !live.is_over {
                self.over.pop_front();
                continue;
            }
            // Both lists are in order of arrival. A started request arrived before all requests that have not started.
            let first = self.demoted.head;
            if first != NONE && pool.get(first).entered <= live.entered {
                break;
            }
            return (id, true);
        }
        (self.demoted.head, false)
    }

    /// Removes the next request from its list.
    #[inline]
    fn take(&mut self, pool: &mut Pool, id: u32, is_over: bool) {
        if is_over {
            self.over.pop_front();
            let live = pool.get_mut(id);
            (live.is_over, live.level, live.was_demoted) = (false, DEMOTED, true);
        } else if pool.get(id).level == DEMOTED {
            self.demoted.pop(pool);
        } else {
            self.waiting.pop(pool);
        }
    }

    /// A link starts to send the next request, or a packet of it. Returns the request, and true if it was
    /// over its limits until now.
    pub(super) fn start_link(&mut self, pool: &mut Pool, packet: Option<f64>) -> Option<(u32, bool)> {
        if self.in_service != NONE {
            return None;
        }
        let (id, is_over) = self.next(pool);
        if id == NONE {
            return None;
        }
        self.take(pool, id, is_over);
        let left = pool.get(id).left;
        self.service_work = packet.map_or(left, |packet| left.min(packet));
        self.in_service = id;
        Some((id, is_over))
    }

    /// Takes the next request of a device if its caps allow. Returns the request, and true if it was over its
    /// limits until now.
    pub(super) fn start_device(&mut self, pool: &mut Pool) -> Option<(u32, bool)> {
        let (id, is_over) = self.next(pool);
        let device = self.device.as_ref().expect("a server with a device");
        if id == NONE || !device.may_start(pool, id) {
            return None;
        }
        self.take(pool, id, is_over);
        Some((id, is_over))
    }

    /// Passes a taken request to the device: a single request, or the first of a batch.
    pub(super) fn pass_to_device(&mut self, pool: &mut Pool, id: u32) {
        let Some(device) = &mut self.device else { return };
        device.outstanding += 1;
        device.start(pool, id);
        pool.get_mut(id).frees = true;
    }

    /// Starts the next request as part of the batch of `last` if it fits there, and returns it.
    pub(super) fn join_batch(&mut self, pool: &mut Pool, last: u32, bytes: &mut u64) -> Option<u32> {
        let device = self.device.as_mut()?;
        let Batch { bytes: most, gap } = device.settings.batch?;
        let next = self.waiting.peek();
        if next == NONE {
            return None;
        }
        let (a, b) = (pool.get(last), pool.get(next));
        let end = a.offset?.checked_add(a.size)?;
        let sum = bytes.checked_add(b.size)?;
        let follows = a.kind == leeward_traces::Kind::Write
            && b.kind == a.kind
            && a.workload == b.workload
            && a.level == b.level
            && b.offset?.abs_diff(end) <= gap
            && sum <= most;
        if !follows {
            return None;
        }
        *bytes = sum;
        self.waiting.pop(pool);
        let device = self.device.as_mut()?;
        device.start(pool, next);
        pool.get_mut(last).frees = false;
        pool.get_mut(next).frees = true;
        Some(next)
    }

    /// An idle device starts to serve its first started request. Returns true if there is one.
    pub(super) fn begin(&mut self, pool: &mut Pool) -> bool {
        let Some(device) = &mut self.device else { return false };
        if self.in_service != NONE || device.started.is_empty() {
            return false;
        }
        let id = device.started.pop(pool);
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
    pub(super) fn note_idle(&mut self, now: u64, pool: &Pool) {
        if self.in_service != NONE {
            return;
        }
        self.rounding_carry = 0.0;
        if self.device.is_some() {
            let waits = self.next(pool).0 != NONE;
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
