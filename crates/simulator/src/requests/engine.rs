//! The run itself: what happens when, in whole nanoseconds.
//!
//! All that happens at one moment is taken in before anything is started at that moment, so that a server chooses among all who are
//! there. Of what happens at one moment, servers come first, then devices' latencies, then limiters, then the controllers
//! of weights, then arrivals, each by index.

use leeward_fabric::Nanos;
use leeward_traces::Stage;

use super::arrival::{Arrival, Source};
use super::clock::{Clock, NEVER};
use super::error::{LATEST, RequestsError};
use super::limiter::work_at;
use super::live::{DEMOTED, Live, NONE, Pool};
use super::order::{Control, Order};
use super::plan::{LONGEST, Plan};
use super::report::{Recorder, Report, ServerReport};
use super::setup::Setup;
use super::watch::{Of, Watch};

/// What a slot of the clock is of.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// A server ends a service.
    Served(u32),
    /// A read (0) or write (1) of a device is done.
    Returned(u32, u8),
    /// The first behind a limiter passes.
    Passes(u32),
    /// A controller acts.
    Acts(u32),
    /// A workload sends.
    Sends(u32),
}

/// A workload that sends.
struct Sender<'a> {
    requests: Box<dyn Iterator<Item = Arrival> + 'a>,
    /// What comes next; none at the end.
    next: Option<Arrival>,
    /// Closed loops: requests that may be sent at once.
    closed: Option<u32>,
    /// Requests seen, with the next.
    seen: u64,
    slot: u32,
}

/// A run under way.
pub(super) struct Engine<'a, W> {
    setup: &'a Setup,
    now: u64,
    clock: Clock,
    happens: Vec<Happens>,
    plan: Plan,
    senders: Vec<Sender<'a>>,
    pool: Pool,
    controls: Vec<Control>,
    /// The controller that watches each workload, or [`NONE`].
    controlled: Vec<u32>,
    /// Servers at which something may begin.
    dirty: Vec<u32>,
    numbers: u64,
    /// Requests under way, and the integral of that over time.
    under_way: u64,
    area: u128,
    recorder: Recorder,
    watch: &'a mut W,
}

impl<'a, W: Watch> Engine<'a, W> {
    pub(super) fn new(
        setup: &'a Setup,
        sources: Vec<Source<'a>>,
        watch: &'a mut W,
    ) -> Result<Engine<'a, W>, RequestsError> {
        if sources.len() != setup.workloads.len() {
            let (sources, workloads) = (sources.len(), setup.workloads.len());
            return Err(RequestsError::Sources { sources, workloads });
        }
        let plan = Plan::new(setup)?;
        let mut engine = Engine {
            now: 0,
            clock: Clock::new(&[]),
            happens: Vec::new(),
            senders: Vec::with_capacity(sources.len()),
            pool: Pool::default(),
            controls: Vec::new(),
            controlled: vec![NONE; sources.len()],
            dirty: Vec::new(),
            numbers: 0,
            under_way: 0,
            area: 0,
            recorder: Recorder::new(setup),
            watch,
            plan,
            setup,
        };
        engine.lay_out_slots();
        for (workload, source) in sources.into_iter().enumerate() {
            engine.add_sender(workload, source)?;
        }
        for control in &engine.controls {
            engine.clock.set(control.slot, control.settings.interval.0.min(LATEST));
        }
        Ok(engine)
    }

    /// Gives every source of events its slot, in the order in which they come at one moment.
    fn lay_out_slots(&mut self) {
        let happens = &mut self.happens;
        let mut slot = |what| {
            happens.push(what);
            (happens.len() - 1) as u32
        };
        for (index, server) in self.plan.servers.iter_mut().enumerate() {
            server.slot = slot(Happens::Served(index as u32));
        }
        for (index, server) in self.plan.servers.iter_mut().enumerate() {
            if let Some(device) = &mut server.device {
                device.return_slots = [0, 1].map(|way| slot(Happens::Returned(index as u32, way)));
            }
        }
        for (index, limiter) in self.plan.limiters.iter_mut().enumerate() {
            limiter.slot = slot(Happens::Passes(index as u32));
        }
        for (index, server) in self.setup.servers.iter().enumerate() {
            let Order::Cake(settings) = server.order else { continue };
            let number = self.controls.len() as u32;
            let mut objectives = vec![None; self.setup.workloads.len()];
            for (workload, enforced) in self.setup.workloads.iter().enumerate() {
                let comes_here = enforced.stages.iter().any(|limits| limits.route.contains(&index));
                if comes_here && self.controlled[workload] == NONE {
                    self.controlled[workload] = number;
                    objectives[workload] = enforced.slo.map(|slo| (slo.percentile, slo.latency * 1e9));
                }
            }
            let slot = slot(Happens::Acts(number));
            self.controls.push(Control::new(settings, objectives, index as u32, slot));
        }
        for workload in 0..self.setup.workloads.len() {
            slot(Happens::Sends(workload as u32));
        }
        // Servers with their latencies, limiters, and the rest: those that act by themselves.
        let limiters = self.plan.limiters.len();
        let is_served = |what: &&Happens| matches!(what, Happens::Served(_) | Happens::Returned(..));
        let servers = self.happens.iter().filter(is_served).count();
        self.clock = Clock::new(&[servers, limiters, self.happens.len() - servers - limiters]);
    }

    fn add_sender(&mut self, workload: usize, source: Source<'a>) -> Result<(), RequestsError> {
        let slot = (self.happens.len() - self.setup.workloads.len() + workload) as u32;
        let (requests, closed, from) = match source {
            Source::Open(requests) => (requests, None, 0),
            Source::Closed { outstanding: 0, .. } => {
                let problem = "0 requests outstanding in a closed loop: expected at least 1".into();
                return Err(RequestsError::Workload {
                    workload: self.setup.workloads[workload].name.clone(),
                    problem,
                });
            }
            Source::Closed { outstanding, from, requests } => (requests, Some(outstanding), from.0),
        };
        self.senders.push(Sender { requests, next: None, closed, seen: 0, slot });
        self.fetch(workload)?;
        if closed.is_some() && self.senders[workload].next.is_some() {
            self.clock.set(slot, from.min(LATEST + 1));
        }
        Ok(())
    }

    /// Takes the next request of a workload's source, and, of an open loop, writes its time.
    fn fetch(&mut self, workload: usize) -> Result<(), RequestsError> {
        let sender = &mut self.senders[workload];
        let before = sender.next.map(|arrival| arrival.at);
        sender.next = sender.requests.next();
        let index = sender.seen;
        let Some(next) = sender.next else {
            if sender.closed.is_none() {
                self.clock.set(sender.slot, NEVER);
            }
            return Ok(());
        };
        sender.seen += 1;
        let refuse = |problem: String| {
            let workload = self.setup.workloads[workload].name.clone();
            Err(RequestsError::Request { workload, index, problem })
        };
        for (work, stage) in next.work.iter().zip(Stage::ALL) {
            if !(0.0..=1e15).contains(work) {
                return refuse(format!("work {work} at {stage}: expected from 0 to 1e15"));
            }
        }
        if next.size > 1 << 53 {
            return refuse(format!("{} bytes: expected at most {}", next.size, 1u64 << 53));
        }
        if sender.closed.is_some() {
            // Requests of no work would be sent without end at one moment.
            let (from, to) = self.plan.ways[workload];
            let hops = &self.plan.hops[from as usize..to as usize];
            if hops.iter().all(|hop| next.work[hop.stage as usize] <= 0.0) {
                return refuse("no work anywhere on its way: expected some in a closed loop".into());
            }
            return Ok(());
        }
        if before.is_some_and(|before| next.at < before) {
            let before = before.unwrap_or_default();
            return refuse(format!(
                "at {}, before the one before it at {before}: expected in order of time",
                next.at
            ));
        }
        if next.at.0 > LATEST {
            return refuse(format!("at {}: expected within 146 years", next.at));
        }
        let is_over = self.setup.until.is_some_and(|until| next.at >= until);
        self.clock.set(sender.slot, if is_over { NEVER } else { next.at.0 });
        Ok(())
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> Result<Report, RequestsError> {
        loop {
            let (now, _) = self.clock.first();
            // Controllers act as long as anything else is left to happen.
            if now == NEVER || (self.under_way == 0 && !self.anyone_sends()) {
                break;
            }
            self.area += u128::from(self.under_way) * u128::from(now - self.now);
            self.now = now;
            self.recorder.until(now);
            // The server that ended a service, if nothing else happens now: its slot is written when it begins the next.
            let mut last = None;
            loop {
                let (time, slot) = self.clock.first();
                if time != now {
                    break;
                }
                let Some(server) = self.happens(slot)? else { continue };
                if self.clock.is_alone(slot, now) {
                    last = Some((server as usize, slot));
                    break;
                }
                self.clock.set(slot, NEVER);
            }
            while let Some(server) = self.dirty.pop() {
                self.begin(server as usize)?;
            }
            if let Some((_, slot)) = last.filter(|&(server, _)| self.plan.servers[server].serves == NONE) {
                self.clock.set(slot, NEVER);
            }
        }
        let servers = self.plan.servers.iter().zip(&self.setup.servers);
        let servers = servers.map(|(server, setup)| ServerReport {
            name: setup.name.clone(),
            served: server.served,
            busy: Nanos(server.busy),
            starved: Nanos(server.starved),
        });
        Ok(self.recorder.finish(servers.collect(), Nanos(self.now), self.area))
    }

    /// Whether a workload will send something; only controllers would go on without.
    fn anyone_sends(&self) -> bool {
        let until = self.setup.until.unwrap_or(Nanos(NEVER));
        let sends = |sender: &Sender<'_>| match (sender.next, sender.closed) {
            (Some(next), None) => next.at < until,
            (next, _) => next.is_some() && Nanos(self.now) < until,
        };
        self.controls.is_empty() || self.senders.iter().any(sends)
    }

    /// Lets happen what a slot is of. The server, if it ended a service: its slot is still to be written.
    fn happens(&mut self, slot: u32) -> Result<Option<u32>, RequestsError> {
        match self.happens[slot as usize] {
            Happens::Served(server) => {
                self.served(server as usize)?;
                return Ok(Some(server));
            }
            Happens::Returned(server, way) => self.returned(server as usize, way as usize)?,
            Happens::Passes(limiter) => self.passes(limiter as usize)?,
            Happens::Acts(control) => {
                let control = &mut self.controls[control as usize];
                if let Some(weights) = self.plan.servers[control.queue as usize].waiting.weights() {
                    control.act(weights);
                }
                self.clock.set(control.slot, self.now + control.settings.interval.0.min(LATEST));
            }
            Happens::Sends(workload) => self.sends(workload as usize)?,
        }
        Ok(None)
    }

    /// A workload sends its next request.
    fn sends(&mut self, workload: usize) -> Result<(), RequestsError> {
        if self.now > LATEST {
            return self.too_long(format!("workload {}", self.setup.workloads[workload].name));
        }
        let sender = &mut self.senders[workload];
        let is_over = self.setup.until.is_some_and(|until| self.now >= until.0);
        let Some(arrival) = sender.next.filter(|_| !is_over) else {
            self.clock.set(sender.slot, NEVER);
            return Ok(());
        };
        if let Some(left) = &mut sender.closed {
            *left -= 1;
            let again = if *left > 0 { self.now } else { NEVER };
            self.clock.set(sender.slot, again);
        }
        let (hop, _) = self.plan.ways[workload];
        // The request that is sent was the last one seen.
        let tails = self.setup.tails.get(workload).filter(|tails| !tails.is_empty());
        let tail = tails.map_or(0, |tails| tails[((sender.seen - 1) % tails.len() as u64) as usize].0);
        let id = self.pool.add(Live {
            next: NONE,
            workload: workload as u32,
            hop,
            level: 0,
            kind: arrival.kind,
            is_packet: false,
            is_over: false,
            was_demoted: false,
            frees: false,
            number: self.numbers,
            arrived: self.now,
            entered: self.now,
            since: self.now,
            left: 0.0,
            work: arrival.work,
            size: arrival.size,
            offset: arrival.offset,
            tail,
            spent: [0; 3],
        });
        self.numbers += 1;
        self.under_way += 1;
        self.enter(id)?;
        self.fetch(workload)
    }

    /// A request or packet comes to the server of its hop.
    fn enter(&mut self, id: u32) -> Result<(), RequestsError> {
        let live = self.pool.get_mut(id);
        let hop = self.plan.hops[live.hop as usize];
        live.entered = self.now;
        if hop.is_first {
            live.since = self.now;
            live.left = live.work[hop.stage as usize];
            live.level = hop.level;
        } else if live.level != DEMOTED {
            live.level = hop.level;
        }
        let (left, workload) = (live.left, live.workload);
        self.watch.came(Nanos(self.now), hop.server as usize, of(live, left));
        if hop.limiter != NONE {
            let limiter = &mut self.plan.limiters[hop.limiter as usize];
            if !limiter.waiting.is_empty() || !limiter.passes(self.now, left) {
                live.is_over = true;
                limiter.waiting.push(&mut self.pool, id);
                if limiter.demotes {
                    self.plan.servers[hop.server as usize].push_over(&self.pool, id);
                    self.wake(hop.server);
                }
                // Behind others it is not the first, and their time is known.
                if self.plan.limiters[hop.limiter as usize].waiting.head == id {
                    self.expect(hop.limiter as usize);
                }
                return Ok(());
            }
        }
        if hop.is_first {
            self.watch.passed(Nanos(self.now), workload as usize, Stage::ALL[hop.stage as usize], left);
        }
        self.plan.servers[hop.server as usize].push(&mut self.pool, id);
        self.wake(hop.server);
        Ok(())
    }

    /// Writes when the first behind a limiter will pass.
    fn expect(&mut self, limiter: usize) {
        let limiter = &mut self.plan.limiters[limiter];
        let time = limiter.next(self.now, &self.pool).map_or(NEVER, |time| time.min(LATEST + 1));
        self.clock.set(limiter.slot, time);
    }

    /// The first behind a limiter passes.
    fn passes(&mut self, index: usize) -> Result<(), RequestsError> {
        let (workload, stage) = self.plan.limited[index];
        if self.now > LATEST {
            let workload = &self.setup.workloads[workload as usize].name;
            return self.too_long(format!("a request of workload {workload} behind its limits at {stage}"));
        }
        let limiter = &mut self.plan.limiters[index];
        let id = limiter.waiting.pop(&self.pool);
        let live = self.pool.get_mut(id);
        live.is_over = false;
        let work = work_at(live);
        limiter.pass(self.now, work);
        self.watch.passed(Nanos(self.now), workload as usize, stage, work);
        let server = limiter.queue;
        self.plan.servers[server as usize].push(&mut self.pool, id);
        self.wake(server);
        self.expect(index);
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

    /// Begins what can begin at a server.
    fn begin(&mut self, index: usize) -> Result<(), RequestsError> {
        self.plan.servers[index].is_dirty = false;
        if self.plan.servers[index].device.is_none() {
            if let Some((id, was_over)) =
                self.plan.servers[index].start_link(&mut self.pool, self.setup.packet)
            {
                self.started(index, id, was_over, self.plan.servers[index].sends);
                self.serve(index)?;
            }
        } else {
            while let Some((mut id, was_over)) = self.plan.servers[index].start_device(&mut self.pool) {
                // It leaves its limiter first: a request is in one list at a time.
                self.started(index, id, was_over, self.pool.get(id).left);
                self.plan.servers[index].hand(&mut self.pool, id);
                let mut bytes = self.pool.get(id).size;
                while let Some(next) = self.plan.servers[index].join(&mut self.pool, id, &mut bytes) {
                    self.started(index, next, false, self.pool.get(next).left);
                    id = next;
                }
            }
            if self.plan.servers[index].begin(&mut self.pool) {
                self.serve(index)?;
            }
        }
        self.plan.servers[index].rests(self.now, &self.pool);
        Ok(())
    }

    /// A request was handed to a server; if it was over its limits, it leaves its limiter.
    fn started(&mut self, index: usize, id: u32, was_over: bool, work: f64) {
        let live = self.pool.get(id);
        self.watch.started(Nanos(self.now), index, of(live, work));
        if was_over {
            let limiter = self.plan.hops[live.hop as usize].limiter as usize;
            let left = work_at(live);
            // It is the first of its workload: earlier ones are in front of it in order of arrival.
            let first = self.plan.limiters[limiter].waiting.pop(&self.pool);
            debug_assert_eq!(first, id);
            self.plan.limiters[limiter].demote(self.now, left);
            self.expect(limiter);
        }
    }

    /// A server begins to serve.
    fn serve(&mut self, index: usize) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        let ends = server.ends(self.now);
        if ends - self.now > LONGEST || ends > LATEST {
            let name = &self.setup.servers[index].name;
            return self.too_long(format!("a request at server {name}"));
        }
        self.clock.set(server.slot, ends);
        Ok(())
    }

    /// A server ends a service.
    fn served(&mut self, index: usize) -> Result<(), RequestsError> {
        let server = &mut self.plan.servers[index];
        let id = std::mem::replace(&mut server.serves, NONE);
        let sent = server.sends;
        let live = self.pool.get_mut(id);
        self.watch.served(Nanos(self.now), index, of(live, sent));
        if let Some(device) = &mut server.device {
            server.served += 1;
            let way = live.kind as usize;
            let latency = [device.settings.read_latency, device.settings.write_latency][way].0;
            let time = self.now + latency + live.tail;
            // Those of one time in order of service; without tails that is the end.
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
        // A link divides requests by the packet; where they come whole there is one packet of all.
        if live.left > 0.0 {
            if hop.packets && !hop.is_last {
                let packet = Live { is_packet: true, left: sent, hop: live.hop + 1, ..*live };
                let packet = self.pool.add(packet);
                self.enter(packet)?;
            }
            self.plan.servers[index].again(&mut self.pool, id);
            self.wake(index as u32);
            return Ok(());
        }
        server.served += u64::from(!live.is_packet);
        live.left = if hop.packets { sent } else { live.work[hop.stage as usize] };
        self.wake(index as u32);
        self.leave(id)
    }

    /// The first of a device's reads or writes in their latency is done.
    fn returned(&mut self, index: usize, way: usize) -> Result<(), RequestsError> {
        let device = self.plan.servers[index].device.as_mut().expect("only devices have a latency");
        let Some((_, id)) = device.returning[way].pop_front() else { return Ok(()) };
        let next = device.returning[way].front().map_or(NEVER, |&(time, _)| time);
        self.clock.set(device.return_slots[way], next);
        device.done(&self.pool, id);
        self.wake(index as u32);
        self.leave(id)
    }

    /// A request or packet goes on from its hop.
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
        if live.hop < self.plan.ways[workload].1 {
            return self.enter(id);
        }
        let latency = self.now - live.arrived;
        self.recorder.record(live, latency);
        let control = self.controlled[workload];
        if control != NONE {
            self.controls[control as usize].measure(workload, latency);
        }
        self.pool.remove(id);
        self.under_way -= 1;
        let sender = &mut self.senders[workload];
        if let Some(left) = &mut sender.closed {
            *left += 1;
            self.clock.set(sender.slot, self.now);
        }
        Ok(())
    }

    fn too_long(&self, what: String) -> Result<(), RequestsError> {
        Err(RequestsError::TooLong { what })
    }
}

/// What a watcher is told of a request.
#[inline]
fn of(live: &Live, work: f64) -> Of {
    Of { workload: live.workload as usize, number: live.number, kind: live.kind, rank: live.level, work }
}
