//! A literal model of the documentation that examines everything in each nanosecond. The simulator must match it.
//! Amounts of work are whole nanoseconds, and rates are quarters of a unit per nanosecond.

use leeward_requests::{Arrival, Device, OverLimit, Scheduling, Server, Setup};
use leeward_traces::Kind;

const DEMOTED: u32 = u32::MAX;

/// (workload, arrival, latency, stages, demoted)
pub type Row = (u32, u64, u64, [u64; 3], bool);

#[derive(Clone, Copy, Debug)]
struct Item {
    number: u64,
    workload: usize,
    arrival: Arrival,
    sent: u64,
    stage: usize,
    /// Index into the stage's route.
    step: usize,
    since: u64,
    spent: [u64; 3],
    left: u64,
    is_packet: bool,
    was_demoted: bool,
    level: u32,
    entered: u64,
    stamp: u64,
    batch: u64,
}

#[derive(Default)]
struct Place {
    /// Requests in `over` are behind a limiter; requests of a workload that demotes may also be taken.
    waiting: Vec<Item>,
    over: Vec<Item>,
    demoted: Vec<Item>,
    serves: Option<(u64, u64, Item)>,
    started: Vec<Item>,
    returning: [Vec<(u64, Item)>; 2],
    leaving: Vec<(u64, Item)>,
    /// Started and not finished requests, in order of start: the item, and the number of requests and bytes started so
    /// far, including it.
    under_way: Vec<(Item, u64, u64)>,
    ever: (u64, u64),
    last: Option<usize>,
    busy: u64,
    starved: u64,
}

pub struct Literal<'a> {
    setup: &'a Setup,
    now: u64,
    places: Vec<Place>,
    /// Contents in quarters of a unit, by workload, stage and bucket.
    contents: Vec<[Vec<u64>; 3]>,
    /// (remaining requests, requests that a closed loop may send), by workload.
    sends: Vec<(Vec<Arrival>, Option<u32>)>,
    numbers: u64,
    stamps: u64,
    pub rows: Vec<Row>,
}

impl<'a> Literal<'a> {
    pub fn new(setup: &'a Setup, sends: Vec<(Vec<Arrival>, Option<u32>)>) -> Literal<'a> {
        let contents =
            setup.workloads.iter().map(|w| [0, 1, 2].map(|stage| vec![0; w.stages[stage].limits.len()]));
        let mut sends = sends;
        sends.iter_mut().for_each(|(arrivals, _)| arrivals.reverse());
        Literal {
            now: 0,
            places: setup.servers.iter().map(|_| Place::default()).collect(),
            contents: contents.collect(),
            sends,
            numbers: 0,
            stamps: 0,
            rows: Vec::new(),
            setup,
        }
    }

    /// Busy and starved nanoseconds of each server.
    pub fn run(&mut self, until: u64) -> Vec<(u64, u64)> {
        while self.now < until {
            loop {
                while self.handle_event() {}
                let mut any = false;
                for server in 0..self.places.len() {
                    while self.start(server) {
                        any = true;
                    }
                }
                if !any {
                    break;
                }
            }
            for (place, server) in self.places.iter_mut().zip(&self.setup.servers) {
                let waits = !place.waiting.is_empty()
                    || !place.demoted.is_empty()
                    || place.over.iter().any(|item| demotes(self.setup, item));
                place.busy += u64::from(place.serves.is_some());
                place.starved += u64::from(server.device.is_some() && place.serves.is_none() && waits);
            }
            self.now += 1;
            for (contents, workload) in self.contents.iter_mut().zip(&self.setup.workloads) {
                for (contents, stage) in contents.iter_mut().zip(&workload.stages) {
                    for (content, bucket) in contents.iter_mut().zip(&stage.limits) {
                        *content = content.saturating_sub((bucket.rate() / 1e9 * 4.0) as u64);
                    }
                }
            }
        }
        self.places.iter().map(|place| (place.busy, place.starved)).collect()
    }

    /// Handles the first due event, in the order of the documentation; returns false if there is none.
    fn handle_event(&mut self) -> bool {
        for server in 0..self.places.len() {
            if let Some((until, sent, item)) = self.places[server].serves
                && until == self.now
            {
                self.places[server].serves = None;
                self.served(server, item, sent);
                return true;
            }
        }
        for server in 0..self.places.len() {
            for way in 0..2 {
                if self.places[server].returning[way].first().is_some_and(|&(time, _)| time <= self.now) {
                    let (_, item) = self.places[server].returning[way].remove(0);
                    self.places[server].under_way.retain(|(started, ..)| started.number != item.number);
                    self.leave_later(server, item);
                    return true;
                }
            }
        }
        for server in 0..self.places.len() {
            if self.places[server].leaving.first().is_some_and(|&(time, _)| time <= self.now) {
                let (_, item) = self.places[server].leaving.remove(0);
                self.leave(item);
                return true;
            }
        }
        for workload in 0..self.setup.workloads.len() {
            for stage in 0..3 {
                let Some(&server) = self.setup.workloads[workload].stages[stage].route.first() else {
                    continue;
                };
                let is = |item: &Item| item.workload == workload && item.stage == stage;
                let Some(at) = self.places[server].over.iter().position(is) else { continue };
                let item = self.places[server].over[at];
                if self.fits(&item) {
                    self.places[server].over.remove(at);
                    self.charge(&item);
                    self.push(server, item);
                    return true;
                }
            }
        }
        for workload in 0..self.sends.len() {
            let (left, closed) = &mut self.sends[workload];
            let due = match closed {
                Some(may) => *may > 0 && !left.is_empty(),
                None => left.last().is_some_and(|arrival| arrival.at.0 <= self.now),
            };
            if due {
                if let Some(may) = closed {
                    *may -= 1;
                }
                let arrival = left.pop().unwrap();
                let item = Item {
                    number: self.numbers,
                    workload,
                    arrival,
                    sent: self.now,
                    stage: 0,
                    step: 0,
                    since: 0,
                    spent: [0; 3],
                    left: 0,
                    is_packet: false,
                    was_demoted: false,
                    level: 0,
                    entered: 0,
                    stamp: 0,
                    batch: 0,
                };
                self.numbers += 1;
                self.enter_stage(item);
                return true;
            }
        }
        false
    }

    /// Enters the first stage with a route, from the item's stage on; or ends the request.
    fn enter_stage(&mut self, mut item: Item) {
        while item.stage < 3 && self.setup.workloads[item.workload].stages[item.stage].route.is_empty() {
            item.stage += 1;
        }
        if item.stage == 3 {
            let latency = self.now - item.sent;
            self.rows.push((item.workload as u32, item.sent, latency, item.spent, item.was_demoted));
            if let Some(may) = &mut self.sends[item.workload].1 {
                *may += 1;
            }
            return;
        }
        (item.step, item.since, item.left) = (0, self.now, item.arrival.work[item.stage] as u64);
        item.level = self.setup.workloads[item.workload].stages[item.stage].priority;
        self.enter(item);
    }

    fn enter(&mut self, mut item: Item) {
        item.entered = self.now;
        let server = self.setup.workloads[item.workload].stages[item.stage].route[item.step];
        if item.step == 0 {
            let is = |other: &Item| other.workload == item.workload && other.stage == item.stage;
            if self.places[server].over.iter().any(is) || !self.fits(&item) {
                self.stamps += 1;
                item.stamp = self.stamps;
                self.places[server].over.push(item);
                return;
            }
            self.charge(&item);
        }
        self.push(server, item);
    }

    fn push(&mut self, server: usize, mut item: Item) {
        self.stamps += 1;
        item.stamp = self.stamps;
        if item.level == DEMOTED {
            self.places[server].demoted.push(item);
        } else {
            self.places[server].waiting.push(item);
        }
    }

    fn fits(&self, item: &Item) -> bool {
        let limits = &self.setup.workloads[item.workload].stages[item.stage].limits;
        self.contents[item.workload][item.stage].iter().zip(limits).all(|(&content, bucket)| {
            content == 0 || content + 4 * item.left <= (4.0 * bucket.burst()) as u64
        })
    }

    fn charge(&mut self, item: &Item) {
        for content in &mut self.contents[item.workload][item.stage] {
            *content += 4 * item.left;
        }
    }

    /// Returns the next request's position in a server's lists: 0 waiting, 1 demoted, 2 over.
    fn next(&self, server: usize) -> Option<(usize, usize, Item)> {
        let place = &self.places[server];
        let order = self.setup.servers[server].order;
        let key = |item: &Item| match order {
            Scheduling::Priority => (u64::from(item.level), item.stamp),
            Scheduling::Deadline => {
                let slo = self.setup.workloads[item.workload].slo;
                (slo.map_or(u64::MAX, |slo| item.sent + (slo.latency * 1e9).round() as u64), item.number)
            }
            _ => (0, item.stamp),
        };
        if let Some((at, &item)) = place.waiting.iter().enumerate().min_by_key(|(_, item)| key(item)) {
            return Some((0, at, item));
        }
        let over = place.over.iter().enumerate().filter(|(_, item)| demotes(self.setup, item));
        let over = over.map(|(at, &item)| ((item.entered, 1, item.stamp), (2, at, item)));
        let demoted = place.demoted.iter().enumerate();
        let demoted = demoted.map(|(at, &item)| ((item.entered, 0, item.stamp), (1, at, item)));
        over.chain(demoted).min_by_key(|(key, _)| *key).map(|(_, entry)| entry)
    }

    fn take(&mut self, server: usize, list: usize, at: usize) -> Item {
        match list {
            0 => self.places[server].waiting.remove(at),
            1 => self.places[server].demoted.remove(at),
            _ => {
                let mut item = self.places[server].over.remove(at);
                let limits = &self.setup.workloads[item.workload].stages[item.stage].limits;
                let contents = &mut self.contents[item.workload][item.stage];
                for (content, bucket) in contents.iter_mut().zip(limits) {
                    *content = (*content).max((*content + 4 * item.left).min((4.0 * bucket.burst()) as u64));
                }
                (item.level, item.was_demoted) = (DEMOTED, true);
                item
            }
        }
    }

    /// Starts one request at a server; returns false if none can start.
    fn start(&mut self, server: usize) -> bool {
        let Server { device, .. } = &self.setup.servers[server];
        let Some(device) = *device else {
            if self.places[server].serves.is_some() {
                return false;
            }
            let Some((list, at, _)) = self.next(server) else { return false };
            let item = self.take(server, list, at);
            let sent = self.setup.packet.map_or(item.left, |packet| item.left.min(packet as u64));
            self.places[server].serves = Some((self.now + sent, sent, item));
            return true;
        };
        if let Some((list, at, item)) = self.next(server)
            && self.may_start(server, &device, &item)
        {
            let mut item = self.take(server, list, at);
            item.batch = item.number;
            self.hand(server, item);
            self.fill_batch(server, &device, item);
            return true;
        }
        let place = &mut self.places[server];
        if place.serves.is_some() || place.started.is_empty() {
            return false;
        }
        let item = place.started.remove(0);
        let turn = if place.last.is_some_and(|last| last != item.workload) { device.turn.0 } else { 0 };
        place.last = Some(item.workload);
        place.serves = Some((self.now + item.left + turn, item.left, item));
        true
    }

    fn may_start(&self, server: usize, device: &Device, item: &Item) -> bool {
        let place = &self.places[server];
        let mut batches: Vec<u64> = place.under_way.iter().map(|(started, ..)| started.batch).collect();
        batches.dedup();
        let of_kind =
            place.under_way.iter().filter(|(started, ..)| started.arrival.kind == item.arrival.kind);
        let bytes: u64 = of_kind.map(|(started, ..)| started.arrival.size).sum();
        let cap = if item.arrival.kind == Kind::Read { device.read_bytes } else { device.write_bytes };
        let is_priority = self.setup.servers[server].order == Scheduling::Priority;
        let level = |item: &Item| if is_priority || item.level == DEMOTED { item.level } else { 0 };
        let behind = device.behind.is_none_or(|behind| {
            let oldest = place.under_way.iter().find(|(started, ..)| level(started) < level(item));
            oldest.is_none_or(|(_, requests, bytes)| {
                place.ever.0 - requests < u64::from(behind.requests) && place.ever.1 - bytes < behind.bytes
            })
        });
        batches.len() < device.outstanding as usize
            && (bytes == 0 || bytes + item.arrival.size <= cap)
            && behind
    }

    fn hand(&mut self, server: usize, item: Item) {
        let place = &mut self.places[server];
        place.ever = (place.ever.0 + 1, place.ever.1 + item.arrival.size);
        place.under_way.push((item, place.ever.0, place.ever.1));
        place.started.push(item);
    }

    fn fill_batch(&mut self, server: usize, device: &Device, first: Item) {
        let (mut last, mut bytes) = (first, first.arrival.size);
        while let (Some(batch), Some((0, at, next))) = (device.batch, self.next(server)) {
            let (Some(from), Some(to)) = (last.arrival.offset, next.arrival.offset) else { return };
            let is_write = |item: &Item| item.arrival.kind == Kind::Write;
            let same = next.workload == first.workload && next.level == first.level;
            let near = to.abs_diff(from + last.arrival.size) <= batch.gap;
            if !is_write(&first)
                || !is_write(&next)
                || !same
                || !near
                || bytes + next.arrival.size > batch.bytes
            {
                return;
            }
            bytes += next.arrival.size;
            last = self.take(server, 0, at);
            last.batch = first.batch;
            self.hand(server, last);
        }
    }

    fn served(&mut self, server: usize, mut item: Item, sent: u64) {
        if let Some(device) = &self.setup.servers[server].device {
            let latency = [device.read_latency, device.write_latency][item.arrival.kind as usize].0;
            self.places[server].returning[item.arrival.kind as usize].push((self.now + latency, item));
            return;
        }
        let route = &self.setup.workloads[item.workload].stages[item.stage].route;
        let packets =
            self.setup.packet.is_some() && route.iter().all(|&at| self.setup.servers[at].device.is_none());
        item.left -= sent;
        if item.left > 0 {
            if packets && item.step + 1 < route.len() {
                self.leave_later(server, Item { is_packet: true, left: sent, ..item });
            }
            if item.level == DEMOTED {
                self.places[server].demoted.push(item);
            } else {
                self.places[server].waiting.push(item);
            }
            return;
        }
        item.left = if packets { sent } else { item.arrival.work[item.stage] as u64 };
        self.leave_later(server, item);
    }

    fn leave_later(&mut self, server: usize, item: Item) {
        match self.setup.servers[server].latency.0 {
            0 => self.leave(item),
            latency => self.places[server].leaving.push((self.now + latency, item)),
        }
    }

    fn leave(&mut self, mut item: Item) {
        item.step += 1;
        if item.step < self.setup.workloads[item.workload].stages[item.stage].route.len() {
            self.enter(item);
        } else if !item.is_packet {
            item.spent[item.stage] = self.now - item.since;
            item.stage += 1;
            self.enter_stage(item);
        }
    }
}

fn demotes(setup: &Setup, item: &Item) -> bool {
    setup.workloads[item.workload].stages[item.stage].over == OverLimit::Demoted
}
