//! The desk: one engine, and what a service keeps beside it. Messages in, replies out, time as an argument; it reads no
//! clock and knows no socket.
//!
//! A block that its policy lets wait for others is answered later: whoever asked is kept with it as an `R`, which
//! means nothing to the desk. So a report, a release or time alone may bring replies to earlier asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Answer, Ask, Engine, Input, Output, Placed};
use leeward_fabric::{HostId, Nanos, ResourceKind};
use leeward_ledger::{Sample, Scratch};
use leeward_placement::Refusal;
use leeward_placement::replicas::Chain;

use crate::clients::{Clients, Fate, Sequence};
use crate::decisions::{Decisions, Record};
use crate::message::{LinkState, Message, Part, Placement, Refused, Reply, Report, Snapshot, Wrong};

/// How much the desk keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Decisions that are kept; what is older is released. Default 10,000.
    pub decisions: usize,
    /// Clients whose sequences are known. Default 10,000.
    pub clients: usize,
    /// Blocks that wait to be decided. Default 10,000.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { decisions: 10_000, clients: 10_000, waiting: 10_000 }
    }
}

/// Who asked, and what they are told.
pub type Replies<R> = Vec<(R, Result<Reply, Refused>)>;

/// An engine, the decisions it made, and the clients that asked.
pub struct Desk<R> {
    engine: Engine,
    decisions: Decisions,
    clients: Clients,
    /// Blocks that wait to be decided, by number.
    waiting: BTreeMap<u64, Waiting<R>>,
    limits: Limits,
    /// The number of the next block.
    next: u64,
    now: Nanos,
    wake: Option<Nanos>,
    outputs: Vec<Output>,
    scratch: Scratch,
}

/// A block that waits to be decided, and all who asked for it.
struct Waiting<R> {
    placement: Placement,
    askers: Vec<R>,
}

impl<R> Desk<R> {
    /// A desk with a new engine.
    pub fn new(engine: Engine, limits: Limits) -> Desk<R> {
        Desk {
            engine,
            decisions: Decisions::new(limits.decisions),
            clients: Clients::new(limits.clients),
            waiting: BTreeMap::new(),
            limits,
            next: 0,
            now: Nanos(0),
            wake: None,
            outputs: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// When to call [`Desk::wake`], if nothing is asked before.
    pub fn wakes_at(&self) -> Option<Nanos> {
        self.wake
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Nanos, out: &mut Replies<R>) {
        self.now = self.now.max(now);
        self.tell(Input::Wake, out);
    }

    /// Takes a message in and appends what there is to reply, to this asker or to earlier ones. A time before the last
    /// one counts as the last one.
    pub fn handle(&mut self, now: Nanos, message: Message, asker: R, out: &mut Replies<R>) {
        self.wake(now, out);
        let reply = match message {
            Message::Report(report) => self.report(&report, out),
            Message::Place(placement) => return self.place(placement, asker, out),
            Message::Release(id) => self.release(id, out),
            Message::Decision(id) => match self.decisions.get(id) {
                Some(record) => Ok(Reply::Decision(record.clone())),
                None => Err(Refused::NoDecision(id)),
            },
            Message::Snapshot => Ok(Reply::Snapshot(self.snapshot())),
            Message::Health => Ok(Reply::Health {
                epoch: self.engine.ledger().epoch(),
                decisions: self.decisions.len(),
                waiting: self.waiting.len(),
            }),
        };
        out.push((asker, reply));
    }

    // ---- reports --------------------------------------------------------------------------------------

    fn report(&mut self, report: &Report, out: &mut Replies<R>) -> Result<Reply, Refused> {
        self.check(report).map_err(|(part, wrong)| Refused::Report(part, wrong))?;
        for said in &report.hosts {
            let up = said.up.map(|up| Input::Health(said.host, up));
            let draining = said.draining.map(|draining| Input::Drain(said.host, draining));
            let stored = said.stored.map(|stored| Input::Stored(said.host, stored));
            [up, draining, stored].into_iter().flatten().for_each(|input| self.tell(input, out));
        }
        let window = report.window;
        let sample = |&(resource, load)| Sample { resource, window, load, guaranteed: None };
        let samples: Vec<Sample> = report.loads.iter().map(sample).collect();
        self.tell(Input::Report(&samples), out);
        Ok(Reply::Reported { links: samples.len(), epoch: self.engine.ledger().epoch() })
    }

    /// Refuses a report of which the ledger would leave anything out: half a report would be worse than none.
    fn check(&mut self, report: &Report) -> Result<(), (Part, Wrong)> {
        let (from, until) = report.window;
        let ledger = self.engine.ledger();
        if from >= until {
            return Err((Part::Window, Wrong::Empty));
        }
        if until > self.now.plus(ledger.settings().interval) {
            return Err((Part::Window, Wrong::Ahead));
        }
        let mut hosts = BTreeSet::new();
        for (at, said) in report.hosts.iter().enumerate() {
            if !hosts.insert(said.host) {
                return Err((Part::Host(at), Wrong::Twice));
            }
            if said.up.is_some() && !report.loads.is_empty() {
                return Err((Part::Host(at), Wrong::Mixed));
            }
        }
        let down = |host: &HostId| !self.engine.pool().is_up(*host);
        let view = ledger.view(self.now, &mut self.scratch);
        let mut links = BTreeSet::new();
        for (at, &(link, load)) in report.loads.iter().enumerate() {
            let wrong = if load.0 < 0 {
                Some(Wrong::Negative)
            } else if !links.insert(link) {
                Some(Wrong::Twice)
            } else if !view.is_derived(link) && until <= view.measured_until(link) {
                Some(Wrong::Stale(view.measured_until(link)))
            } else {
                ledger.fabric().host_of(link).filter(down).map(Wrong::Down)
            };
            if let Some(wrong) = wrong {
                return Err((Part::Load(at), wrong));
            }
        }
        Ok(())
    }

    // ---- placements -----------------------------------------------------------------------------------

    fn place(&mut self, mut placement: Placement, asker: R, out: &mut Replies<R>) {
        let sequence = placement.caller.as_ref().map_or(Sequence::New, |caller| self.clients.look(caller));
        let refused = match sequence {
            Sequence::New | Sequence::Last(Fate::Refused) if self.waiting.len() < self.limits.waiting => None,
            Sequence::New | Sequence::Last(Fate::Refused) => Some(Refused::Busy),
            Sequence::Older(last) => Some(Refused::Superseded { last }),
            Sequence::Last(Fate::Waits(ask)) => match self.waiting.get_mut(&ask) {
                Some(waiting) => return waiting.askers.push(asker),
                None => Some(Refused::Forgotten),
            },
            Sequence::Last(Fate::Decided(id)) => match self.decisions.get(id) {
                Some(record) => {
                    let record = record.clone();
                    return out.push((asker, Ok(Reply::Placed { record, repeated: true })));
                }
                None => Some(Refused::Forgotten),
            },
        };
        if let Some(refused) = refused {
            return out.push((asker, Err(refused)));
        }
        let id = self.next;
        self.next += 1;
        (placement.request.id, placement.request.file) = (id, id);
        if let Some(caller) = &placement.caller {
            self.clients.ask(caller, id);
        }
        let request = placement.request.clone();
        self.waiting.insert(id, Waiting { placement, askers: vec![asker] });
        self.tell(Input::Ask(id, Ask::Replicas(request)), out);
    }

    fn release(&mut self, id: u64, out: &mut Replies<R>) -> Result<Reply, Refused> {
        let (record, entries) = self.decisions.release(id, self.now).ok_or(Refused::NoDecision(id))?;
        self.tell(Input::Release(&entries), out);
        Ok(Reply::Decision(record))
    }

    /// Hands the engine an input and carries out what follows.
    fn tell(&mut self, input: Input<'_>, out: &mut Replies<R>) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.engine.handle(self.now, input, &mut outputs);
        self.wake = None;
        let mut leaving = Vec::new();
        for output in outputs.drain(..) {
            match output {
                Output::Answer(ask, Answer::Replicas(answer)) => {
                    leaving.extend(self.settle(ask, answer, out));
                }
                Output::WakeAt(at) => self.wake = Some(at),
                Output::Discarded(discarded) => unreachable!("a report is checked first: {discarded:?}"),
            }
        }
        self.outputs = outputs;
        for record in leaving {
            self.tell(Input::Release(&record.entries), out);
        }
    }

    /// A block that waited is decided. Returns the decision that is not kept any more for it.
    fn settle(
        &mut self,
        ask: u64,
        answer: Result<Placed<Chain>, Refusal>,
        out: &mut Replies<R>,
    ) -> Option<Arc<Record>> {
        let Waiting { placement: Placement { request, caller }, askers } = self.waiting.remove(&ask)?;
        let settle = |clients: &mut Clients, fate| {
            caller.iter().for_each(|caller| clients.settle(caller, fate));
        };
        match answer {
            Ok(Placed { decision, entries }) => {
                settle(&mut self.clients, Fate::Decided(ask));
                let at = self.now;
                let record = Arc::new(Record { request, caller, at, decision, entries, released: None });
                for (before, asker) in askers.into_iter().enumerate() {
                    let (record, repeated) = (record.clone(), before > 0);
                    out.push((asker, Ok(Reply::Placed { record, repeated })));
                }
                self.decisions.keep(record)
            }
            Err(refusal) => {
                settle(&mut self.clients, Fate::Refused);
                let refused = |asker| (asker, Err(Refused::Placement(refusal.clone())));
                out.extend(askers.into_iter().map(refused));
                None
            }
        }
    }

    // ---- reading --------------------------------------------------------------------------------------

    fn snapshot(&mut self) -> Snapshot {
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        let fabric = ledger.fabric();
        let links = fabric.all_resources().filter(|&link| fabric.kind(link) != ResourceKind::Device);
        let state = |link| LinkState {
            link,
            capacity: view.capacity(link),
            measured: view.measured(link),
            until: Some(view.measured_until(link)).filter(|&until| until > Nanos(0)),
            derived: view.is_derived(link),
            residual: view.residual(link),
            expected: view.expected_capacity(link),
        };
        Snapshot {
            at: self.now,
            epoch: ledger.epoch(),
            links: links.map(state).collect(),
            clients: self.clients.counted().collect(),
        }
    }
}
