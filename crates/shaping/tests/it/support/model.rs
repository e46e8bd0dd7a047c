//! A model of the server that looks at all requests for each decision. Work is in whole numbers, rates are quarters of
//! a unit per nanosecond, and the content of a bucket is in quarters of a unit.

use leeward_shaping::{Caps, Order, OverLimit, Request, StartCaps, Workload};
use leeward_traces::Kind;

const DEMOTED: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Limited,
    Ordered,
    Demoted,
    Started,
}

#[derive(Clone, Debug)]
struct Item {
    payload: u64,
    flow: usize,
    request: Request,
    place: Place,
    entered: u64,
    stamp: u64,
    priority: u32,
    batch: u64,
    /// Requests and bytes started up to this one.
    ever: (u64, u64),
}

/// Rate, burst and content of each bucket, in quarters.
type Buckets = Vec<(u64, u64, u64)>;

#[derive(Clone, Debug)]
struct Flow {
    settings: Workload,
    buckets: Buckets,
    at: u64,
    /// Buckets of a suspended workload, and their time.
    kept: Option<(Buckets, u64)>,
    /// Time at which the first request behind the limits passes.
    timer: Option<u64>,
    /// End tag of the last request, and the start tag of the first waiting one.
    end: f64,
    tag: f64,
    is_leaving: bool,
    is_free: bool,
}

/// Start of a request: payload, workload, over its limits, part of the previous batch.
pub type Started = (u64, usize, bool, bool);

pub struct Model {
    order: Order,
    caps: Caps,
    flows: Vec<Flow>,
    free: Vec<usize>,
    items: Vec<Item>,
    stamps: u64,
    ever: (u64, u64),
    batches: u64,
    /// Batch, workload, priority, end of the last write, and bytes of the batch that may grow.
    open: Option<(u64, usize, u32, u64, u64)>,
    time: f64,
}

fn quarters(settings: &Workload) -> impl Iterator<Item = (u64, u64)> + '_ {
    settings.limits.iter().map(|limit| ((limit.rate() / 1e9 * 4.0) as u64, (limit.burst() * 4.0) as u64))
}

impl Model {
    pub fn new(order: Order, caps: Caps) -> Model {
        Model {
            order,
            caps,
            flows: Vec::new(),
            free: Vec::new(),
            items: Vec::new(),
            stamps: 0,
            ever: (0, 0),
            batches: 0,
            open: None,
            time: 0.0,
        }
    }

    pub fn add(&mut self, settings: &Workload) -> usize {
        let flow = Flow {
            settings: settings.clone(),
            buckets: quarters(settings).map(|(rate, burst)| (rate, burst, 0)).collect(),
            at: 0,
            kept: None,
            timer: None,
            end: 0.0,
            tag: 0.0,
            is_leaving: false,
            is_free: false,
        };
        match self.free.pop() {
            Some(index) => {
                self.flows[index] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() - 1
            }
        }
    }

    pub fn suspend(&mut self, now: u64, index: usize) {
        self.leak(now, index);
        let flow = &mut self.flows[index];
        if flow.kept.is_none() {
            flow.kept = Some((std::mem::take(&mut flow.buckets), now));
        }
        (flow.settings.priority, flow.settings.over) = (u32::MAX - 1, OverLimit::Held);
        self.set_timer(now, index);
    }

    pub fn change(&mut self, now: u64, index: usize, settings: &Workload) {
        let flow = &mut self.flows[index];
        if let Some(kept) = flow.kept.take() {
            (flow.buckets, flow.at) = kept;
        }
        self.leak(now, index);
        let flow = &mut self.flows[index];
        let most = flow.buckets.iter().map(|bucket| bucket.2).max().unwrap_or(0);
        let old = std::mem::take(&mut flow.buckets);
        let content = |(rate, burst): (u64, u64)| {
            let same = old.iter().find(|bucket| (bucket.0, bucket.1) == (rate, burst));
            (rate, burst, same.map_or(most.min(burst), |bucket| bucket.2))
        };
        flow.buckets = quarters(settings).map(content).collect();
        flow.settings = settings.clone();
        self.set_timer(now, index);
    }

    pub fn remove(&mut self, index: usize) {
        self.flows[index].is_leaving = true;
        self.free_if_done(index);
    }

    fn free_if_done(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let is_done = self.items.iter().all(|item| item.flow != index);
        if flow.is_leaving && is_done && !flow.is_free {
            flow.is_free = true;
            self.free.push(index);
        }
    }

    /// A request arrives; returns true if it waits for tokens.
    pub fn arrive(&mut self, now: u64, flow: usize, request: Request, payload: u64) -> bool {
        let waits = self.first_limited(flow).is_some() || !self.fits(now, flow, request.work);
        self.stamps += 1;
        let (stamp, place) = (self.stamps, Place::Limited);
        let batch = 0;
        let item =
            Item { payload, flow, request, place, entered: now, stamp, priority: 0, batch, ever: (0, 0) };
        self.items.push(item);
        if waits {
            if self.flows[flow].timer.is_none() {
                self.set_timer(now, flow);
            }
        } else {
            self.charge(flow, request.work);
            self.enqueue(self.items.len() - 1);
        }
        waits
    }

    pub fn arrive_demoted(&mut self, now: u64, flow: usize, request: Request, payload: u64) {
        self.stamps += 1;
        let (stamp, place) = (self.stamps, Place::Demoted);
        let batch = 0;
        let item =
            Item { payload, flow, request, place, entered: now, stamp, priority: 0, batch, ever: (0, 0) };
        self.items.push(item);
    }

    /// Lets all requests pass whose time has come, and starts the next one.
    pub fn poll(&mut self, now: u64) -> Option<Started> {
        loop {
            let timers = self.flows.iter().enumerate();
            let due = timers.filter_map(|(index, flow)| Some((flow.timer?, index))).min();
            let Some((_, flow)) = due.filter(|&(time, _)| time <= now) else { break };
            let at = self.first_limited(flow).unwrap();
            self.leak(now, flow);
            self.charge(flow, self.items[at].request.work);
            self.enqueue(at);
            self.set_timer(now, flow);
        }
        self.start(now)
    }

    pub fn next_poll(&self) -> Option<u64> {
        self.flows.iter().filter_map(|flow| flow.timer).min()
    }

    /// A started request ends.
    pub fn complete(&mut self, payload: u64) {
        let at = self.position(payload);
        let Item { flow, batch, .. } = self.items.remove(at);
        self.end_batch(batch);
        self.free_if_done(flow);
    }

    fn end_batch(&mut self, batch: u64) {
        let is_there = self.items.iter().any(|item| item.place == Place::Started && item.batch == batch);
        self.open = self.open.filter(|open| is_there || open.0 != batch);
    }

    pub fn put_back(&mut self, payload: u64, work: f64) {
        let at = self.position(payload);
        let Item { flow, batch, priority, .. } = self.items[at];
        self.items[at].request.work = work;
        if priority == DEMOTED {
            self.items[at].place = Place::Demoted;
        } else {
            self.flows[flow].tag = self.flows[flow].end.max(self.time);
            self.items[at].place = Place::Ordered;
        }
        self.end_batch(batch);
    }

    /// Removes a waiting request.
    pub fn cancel(&mut self, now: u64, payload: u64) {
        let at = self.position(payload);
        let is_first = self.first_limited(self.items[at].flow) == Some(at);
        let Item { flow, place, .. } = self.items.remove(at);
        if place == Place::Limited && is_first {
            self.set_timer(now, flow);
        }
        self.free_if_done(flow);
    }

    fn position(&self, payload: u64) -> usize {
        self.items.iter().position(|item| item.payload == payload).unwrap()
    }

    fn leak(&mut self, now: u64, index: usize) {
        let flow = &mut self.flows[index];
        let passed = now - flow.at;
        flow.at = now;
        flow.buckets
            .iter_mut()
            .for_each(|(rate, _, content)| *content = content.saturating_sub(*rate * passed));
    }

    fn fits(&mut self, now: u64, index: usize, work: f64) -> bool {
        self.leak(now, index);
        let fits =
            |&(_, burst, content): &(u64, u64, u64)| content == 0 || content + 4 * work as u64 <= burst;
        self.flows[index].buckets.iter().all(fits)
    }

    fn charge(&mut self, index: usize, work: f64) {
        self.flows[index].buckets.iter_mut().for_each(|(_, _, content)| *content += 4 * work as u64);
    }

    fn first_limited(&self, flow: usize) -> Option<usize> {
        let limited = self.items.iter().enumerate();
        let limited = limited.filter(|(_, item)| item.place == Place::Limited && item.flow == flow);
        limited.min_by_key(|(_, item)| item.stamp).map(|(at, _)| at)
    }

    fn set_timer(&mut self, now: u64, index: usize) {
        self.leak(now, index);
        let first = self.first_limited(index).map(|at| self.items[at].request.work);
        let buckets = &self.flows[index].buckets;
        let fits_at = |work: f64| {
            (0..).find(|passed| {
                buckets.iter().all(|&(rate, burst, content)| {
                    let content = content.saturating_sub(rate * passed);
                    content == 0 || content + 4 * work as u64 <= burst
                })
            })
        };
        let timer = first.and_then(fits_at).map(|passed| now + passed);
        self.flows[index].timer = timer;
    }

    fn enqueue(&mut self, at: usize) {
        let flow = self.items[at].flow;
        let is_first = self.items.iter().all(|item| item.flow != flow || item.place != Place::Ordered);
        if is_first {
            self.flows[flow].tag = self.flows[flow].end.max(self.time);
        }
        self.stamps += 1;
        (self.items[at].place, self.items[at].stamp) = (Place::Ordered, self.stamps);
    }

    fn own_priority(&self, flow: usize) -> u32 {
        if self.order == Order::Priority { self.flows[flow].settings.priority } else { 0 }
    }

    /// The next request in order.
    fn next(&self) -> Option<usize> {
        let ordered = || self.items.iter().enumerate().filter(|(_, item)| item.place == Place::Ordered);
        let first = match self.order {
            Order::Priority | Order::Fifo => {
                ordered().min_by_key(|(_, item)| (self.own_priority(item.flow), item.stamp))
            }
            Order::Deadline => ordered().min_by_key(|(_, item)| (item.request.deadline, item.request.number)),
            Order::Shares => {
                let is_head = |item: &Item| {
                    ordered().all(|(_, other)| other.flow != item.flow || other.stamp >= item.stamp)
                };
                let key = |item: &Item| (self.flows[item.flow].tag, item.request.number);
                ordered().filter(|(_, item)| is_head(item)).min_by(|(_, a), (_, b)| {
                    let ((a, first), (b, second)) = (key(a), key(b));
                    a.total_cmp(&b).then(first.cmp(&second))
                })
            }
        };
        let last = |item: &Item| match item.place {
            Place::Demoted => Some((item.entered, 0, item.stamp)),
            Place::Limited if self.flows[item.flow].settings.over == OverLimit::Demoted => {
                Some((item.entered, 1, item.stamp))
            }
            _ => None,
        };
        let others = self.items.iter().enumerate().filter_map(|(at, item)| Some((last(item)?, at)));
        first.map(|(at, _)| at).or_else(|| others.min().map(|(_, at)| at))
    }

    fn may_start(&self, request: &Request, priority: u32) -> bool {
        let started = || self.items.iter().filter(|item| item.place == Place::Started);
        let mut batches: Vec<u64> = started().map(|item| item.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        let kind = request.kind;
        let of_kind = || started().filter(move |item| item.request.kind == kind);
        let bytes: u64 = of_kind().map(|item| item.request.size).sum();
        let (requests, most) = match kind {
            Kind::Read => (self.caps.reads, self.caps.read_bytes),
            Kind::Write => (self.caps.writes, self.caps.write_bytes),
        };
        let behind = self.caps.behind.is_none_or(|StartCaps { requests, bytes }| {
            let oldest = started().filter(|item| item.priority < priority).min_by_key(|item| item.ever);
            oldest.is_none_or(|item| {
                self.ever.0 - item.ever.0 < u64::from(requests) && self.ever.1 - item.ever.1 < bytes
            })
        });
        (batches.len() as u64) < u64::from(self.caps.outstanding)
            && (of_kind().count() as u64) < u64::from(requests)
            && (bytes == 0 || bytes + request.size <= most)
            && behind
    }

    fn start(&mut self, now: u64) -> Option<Started> {
        let Some(at) = self.next() else {
            self.open = None;
            return None;
        };
        let Item { flow, request, place, payload, .. } = self.items[at].clone();
        let priority = if place == Place::Demoted { DEMOTED } else { self.own_priority(flow) };
        let joins = place == Place::Ordered
            && self.caps.batch.zip(self.open).is_some_and(|(batch, (_, of, level, end, bytes))| {
                request.kind == Kind::Write
                    && (flow, priority) == (of, level)
                    && request.offset.is_some_and(|offset| offset.abs_diff(end) <= batch.gap)
                    && bytes + request.size <= batch.bytes
            });
        if !joins && !self.may_start(&request, priority) {
            self.open = None;
            return None;
        }
        let was_over = place == Place::Limited;
        if was_over {
            self.leak(now, flow);
            for (_, burst, content) in &mut self.flows[flow].buckets {
                *content = (*content).max((*content + 4 * request.work as u64).min(*burst));
            }
        }
        self.ever = (self.ever.0 + 1, self.ever.1 + request.size);
        let (batch, bytes) = match self.open.filter(|_| joins) {
            Some((batch, _, _, _, bytes)) => (batch, bytes + request.size),
            None => {
                self.batches += 1;
                (self.batches, request.size)
            }
        };
        let priority = if was_over { DEMOTED } else { priority };
        let item = &mut self.items[at];
        (item.place, item.priority, item.batch, item.ever) = (Place::Started, priority, batch, self.ever);
        let may_open = self.caps.batch.is_some() && request.kind == Kind::Write && priority != DEMOTED;
        let end = request.offset.map(|offset| offset + request.size);
        self.open = end.filter(|_| may_open).map(|end| (batch, flow, priority, end, bytes));
        if place == Place::Ordered {
            let shares = &mut self.flows[flow];
            self.time = shares.tag;
            shares.end = shares.tag + request.work / shares.settings.weight;
            shares.tag = shares.end;
        }
        if was_over {
            self.set_timer(now, flow);
        }
        Some((payload, flow, was_over, joins))
    }
}
