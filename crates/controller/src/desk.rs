//! The desk: one engine, and what a service keeps beside it. Messages in, replies out, time as an argument; it reads no
//! clock and knows no socket.
//!
//! A block that its policy lets wait for others is answered later: whoever asked is kept with it as an `R`, which
//! means nothing to the desk. So a report, a release or time alone may bring replies to earlier asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Answer, Ask, Engine, Input, Output, Placed};
use leeward_fabric::{Nanos, ResourceKind};
use leeward_ledger::{Discarded, EntryId, Sample, Scratch};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::{Constraints, Refusal};

use crate::clients::{Clients, Fate, Sequence};
use crate::decisions::{Decisions, Record};
use crate::hosts::Hosts;
use crate::message::{LinkState, Message, Part, Placement, Refused, Reply, Report, Skipped, Snapshot, Wrong};
use crate::unkept::Unkept;

/// So many may wait for one block, all of them sending the same request again.
const ASKERS: usize = 16;

/// How much the desk keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Decisions that are kept. Default 10,000.
    pub decisions: usize,
    /// Decisions that are not kept any more and count until telemetry shows them; what is older is released. Default
    /// 300,000.
    pub unkept: usize,
    /// Clients whose sequences are known. Default 10,000.
    pub clients: usize,
    /// Blocks that wait to be decided. Default 10,000.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { decisions: 10_000, unkept: 300_000, clients: 10_000, waiting: 10_000 }
    }
}

/// Who asked, and what they are told.
pub type Replies<R> = Vec<(R, Result<Reply, Refused>)>;

/// An engine, the decisions it made, and the clients that asked.
pub struct Desk<R> {
    engine: Engine,
    decisions: Decisions,
    unkept: Unkept,
    hosts: Hosts,
    clients: Clients,
    /// Whether somebody still waits for an answer.
    listens: fn(&R) -> bool,
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
    /// A desk with a new engine. Askers are taken to wait until they are answered.
    pub fn new(engine: Engine, limits: Limits) -> Desk<R> {
        Desk {
            unkept: Unkept::new(engine.ledger().settings(), limits.unkept),
            engine,
            decisions: Decisions::new(limits.decisions),
            hosts: Hosts::default(),
            listens: |_| true,
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

    /// The same desk, for askers that may leave before they are answered.
    pub fn with_listening(self, listens: fn(&R) -> bool) -> Desk<R> {
        Desk { listens, ..self }
    }

    /// When to call [`Desk::wake`], if nothing is asked before.
    pub fn wakes_at(&self) -> Option<Nanos> {
        self.wake
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Nanos, out: &mut Replies<R>) {
        self.now = self.now.max(now);
        let over = self.unkept.over(self.now);
        if !over.is_empty() {
            self.tell(Input::Release(&over), out);
        }
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
                released_early: self.unkept.early(),
            }),
        };
        out.push((asker, reply));
    }

    // ---- reports --------------------------------------------------------------------------------------

    fn report(&mut self, report: &Report, out: &mut Replies<R>) -> Result<Reply, Refused> {
        self.check(report).map_err(|(part, wrong)| Refused::Report(part, wrong))?;
        let (window, mut skipped) = (report.window, Skipped::default());
        for said in &report.hosts {
            let (news, stale) = self.hosts.news(said, window.1);
            skipped.stale += stale;
            let up = news.up.map(|up| Input::Health(news.host, up));
            let draining = news.draining.map(|draining| Input::Drain(news.host, draining));
            let stored = news.stored.map(|stored| Input::Stored(news.host, stored));
            for input in [up, draining, stored].into_iter().flatten() {
                self.tell(input, out);
            }
        }
        let sample = |&(resource, load)| Sample { resource, window, load, guaranteed: None };
        let samples: Vec<Sample> = report.loads.iter().map(sample).collect();
        let discarded = self.tell(Input::Report(&samples), out);
        skipped.stale += discarded.stale;
        skipped.down += discarded.down;
        let links = samples.len() as u64 - discarded.all();
        Ok(Reply::Reported { links, skipped, epoch: self.engine.ledger().epoch() })
    }

    /// Refuses a report in which anything is wrong: who wrote it did not mean what it says.
    fn check(&self, report: &Report) -> Result<(), (Part, Wrong)> {
        let (from, until) = report.window;
        if from >= until {
            return Err((Part::Window, Wrong::Empty));
        }
        if until > self.now.plus(self.engine.ledger().settings().interval) {
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
        let mut links = BTreeSet::new();
        for (at, &(link, load)) in report.loads.iter().enumerate() {
            if load.0 < 0 {
                return Err((Part::Load(at), Wrong::Negative));
            }
            if !links.insert(link) {
                return Err((Part::Load(at), Wrong::Twice));
            }
        }
        Ok(())
    }

    // ---- placements -----------------------------------------------------------------------------------

    fn place(&mut self, mut placement: Placement, asker: R, out: &mut Replies<R>) {
        let sequence = placement.caller.as_ref().map_or(Sequence::New, |caller| self.clients.hear(caller));
        let refused = match sequence {
            Sequence::New | Sequence::Last(Fate::Refused) if self.waiting.len() < self.limits.waiting => None,
            Sequence::New | Sequence::Last(Fate::Refused) => Some(Refused::Busy),
            Sequence::Older(last) => Some(Refused::Superseded { last }),
            Sequence::Last(Fate::Waits(ask)) => match self.waiting.get_mut(&ask) {
                Some(waiting) => {
                    waiting.askers.retain(self.listens);
                    if waiting.askers.len() < ASKERS {
                        return waiting.askers.push(asker);
                    }
                    Some(Refused::Busy)
                }
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

    /// Hands the engine an input and carries out what follows. Returns what of a report the ledger did not take in.
    fn tell(&mut self, input: Input<'_>, out: &mut Replies<R>) -> Discarded {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.engine.handle(self.now, input, &mut outputs);
        self.wake = None;
        let (mut discarded, mut leaving) = (Discarded::default(), Vec::new());
        for output in outputs.drain(..) {
            match output {
                Output::Answer(ask, Answer::Replicas(answer)) => {
                    leaving.extend(self.settle(ask, answer, out));
                }
                Output::WakeAt(at) => self.wake = Some(at),
                Output::Discarded(samples) => discarded = samples,
                // The desk has a policy for replicas alone, and asks about nothing else.
                Output::Answer(_, Answer::Tasks(_) | Answer::Again(_)) | Output::Advise(_) => {}
            }
        }
        self.outputs = outputs;
        if !leaving.is_empty() {
            self.tell(Input::Release(&leaving), out);
        }
        discarded
    }

    /// A block that waited is decided. Returns the entries that do not count any more for it.
    fn settle(
        &mut self,
        ask: u64,
        answer: Result<Placed<Chain>, Refusal>,
        out: &mut Replies<R>,
    ) -> Vec<EntryId> {
        let Some(Waiting { placement, askers }) = self.waiting.remove(&ask) else { return Vec::new() };
        let Placement { request, caller } = placement;
        let settle = |clients: &mut Clients, fate| {
            caller.iter().for_each(|caller| clients.settle(caller, fate));
        };
        match answer {
            Ok(Placed { decision, entries }) => {
                settle(&mut self.clients, Fate::Decided(ask));
                let (at, fabric) = (self.now, self.engine.ledger().fabric());
                for &host in decision.choice.iter().filter(|&&host| fabric.storage(host).is_some()) {
                    self.hosts.placed(host, at, request.size);
                }
                let request = ReplicaRequest { constraints: Constraints::default(), ..request };
                let record = Arc::new(Record { request, caller, at, decision, entries, released: None });
                for (before, asker) in askers.into_iter().enumerate() {
                    let (record, repeated) = (record.clone(), before > 0);
                    out.push((asker, Ok(Reply::Placed { record, repeated })));
                }
                match self.decisions.keep(record) {
                    Some(leaving) => self.unkept.hold(leaving.at, leaving.entries.clone()),
                    None => Vec::new(),
                }
            }
            Err(refusal) => {
                settle(&mut self.clients, Fate::Refused);
                let refused = |asker| (asker, Err(Refused::Placement(refusal.clone())));
                out.extend(askers.into_iter().map(refused));
                Vec::new()
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
