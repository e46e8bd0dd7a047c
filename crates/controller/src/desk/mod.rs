//! The desk: one engine, and what a service keeps beside it. Messages in, replies and changes out, time as an argument;
//! it reads no clock and knows no socket and no disk.
//!
//! What its policy lets wait for others is answered later: whoever asked is kept with it as an `R`, which means nothing
//! to the desk. So a report, a release or time alone may bring replies to earlier asks. What takes longer than a turn is
//! handed out as a study, and its finding handed in.

mod apps;
mod clients;
mod disks;
mod follow;
mod hosts;
mod jobs;
mod message;
mod migrations;
mod place;
mod promised;
mod promises;
mod questions;
mod readings;
mod record;
mod records;
mod report;
mod resume;
mod seen;
#[cfg(test)]
mod sequences;
mod study;
mod turns;
mod unkept;
mod wish;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Answer, Engine, Input, Output};
use leeward_fabric::{Fabric, Nanos};
use leeward_ledger::{DiscardedSamples, Scratch};

use self::apps::App;
use self::clients::{Clients, Fate};
pub use self::disks::Called;
use self::disks::Disks;
use self::hosts::Hosts;
use self::jobs::Jobs;
pub use self::message::{
    Caller, HostReport, Message, Part, Placement, RackContent, Rated, Refused, Reply, Report, Request,
    ReservationState, Score, Skipped, TaskState, UNKNOWN, Wrong,
};
use self::migrations::Migrations;
pub use self::migrations::{Migration, MigrationAnswer, MigrationState};
use self::promises::Promises;
pub use self::promises::Promising;
use self::questions::{Asking, WhatIf};
use self::readings::Readings;
pub use self::readings::{Reading, Requests};
pub use self::record::{Limit, Record, Shown};
use self::records::Records;
pub use self::seen::Seen;
pub use self::study::{Finding, Lane, Study};
use self::turns::Turns;
pub use self::unkept::Left;
use self::unkept::{AT_ONCE, Unkept};
pub use self::wish::{Classes, Rate, ReplicasWish, TaskWish, TasksWish, TransferWish, Wish, WorkloadWish};
pub use self::world::{Counts, DeviceState, HostState, LinkState, World};
use crate::store::Change;

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
    /// Keys of requests that are known. Default 100,000.
    pub keys: usize,
    /// Requests that wait to be decided. Default 10,000.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { decisions: 10_000, unkept: 300_000, clients: 10_000, keys: 100_000, waiting: 10_000 }
    }
}

/// What the policies of the desk's engine are called, settings included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Labels {
    /// That for copies of blocks.
    pub replicas: Arc<str>,
    /// That for tasks.
    pub tasks: Arc<str>,
    /// That for moves, where there is one.
    pub moves: Option<Arc<str>>,
}

/// Who asked, and what they are told.
pub type Replies<R> = Vec<(R, Result<Reply, Refused>)>;

/// An engine, the decisions it made, and the clients that asked.
pub struct Desk<R> {
    engine: Engine,
    labels: Labels,
    records: Records,
    migrations: Migrations,
    promises: Promises,
    unkept: Unkept,
    hosts: Hosts,
    readings: Readings,
    disks: Disks,
    clients: Clients,
    jobs: Jobs,
    /// Decisions that end by themselves, by when.
    expiries: BTreeSet<(Nanos, u64)>,
    /// Copies on each host that kept decisions put there, and nobody said the end of.
    replicas: Vec<u32>,
    /// Decisions that were made, and samples that were taken in.
    decided: u64,
    samples: u64,
    /// Whether somebody still waits for an answer.
    listens: fn(&R) -> bool,
    /// What waits to be decided, by number.
    waiting: BTreeMap<u64, Waiting<R>>,
    /// Those of it that take longer than a turn to place, and how much they are.
    apps: Turns<App>,
    apps_bytes: usize,
    /// Who asks what another policy would do, and how good hosts are.
    what_ifs: Turns<WhatIf<R>>,
    scores: Turns<Asking<R>>,
    limits: Limits,
    /// The version of the cluster.
    version: u64,
    /// The number of the next decision.
    next: u64,
    now: Nanos,
    wake: Option<Nanos>,
    outputs: Vec<Output>,
    changes: Vec<Change>,
    scratch: Scratch,
}

/// Something that waits to be decided, and all who asked for it.
struct Waiting<R> {
    placement: Placement,
    askers: Vec<R>,
}

impl<R> Desk<R> {
    /// A desk with a new engine. Askers are taken to wait until they are answered.
    pub fn new(engine: Engine, labels: Labels, limits: Limits) -> Desk<R> {
        let hosts = engine.ledger().fabric().host_count();
        Desk {
            unkept: Unkept::new(engine.ledger().settings(), limits.unkept),
            engine,
            labels,
            records: Records::new(limits.decisions),
            migrations: Migrations::default(),
            promises: Promises::default(),
            hosts: Hosts::default(),
            readings: Readings::default(),
            disks: Disks::default(),
            listens: |_| true,
            clients: Clients::new(limits.clients, limits.keys),
            jobs: Jobs::default(),
            expiries: BTreeSet::new(),
            replicas: vec![0; hosts],
            decided: 0,
            samples: 0,
            waiting: BTreeMap::new(),
            apps: Turns::default(),
            apps_bytes: 0,
            what_ifs: Turns::default(),
            scores: Turns::default(),
            limits,
            version: 0,
            next: 0,
            now: Nanos(0),
            wake: None,
            outputs: Vec::new(),
            changes: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// The same desk, for askers that may leave before they are answered.
    pub fn with_listening(self, listens: fn(&R) -> bool) -> Desk<R> {
        Desk { listens, ..self }
    }

    /// How much it keeps.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Who waits to be decided on, to ask again later or elsewhere.
    pub fn turn_away(&mut self, out: &mut Replies<R>) {
        for (_, Waiting { placement, askers }) in std::mem::take(&mut self.waiting) {
            self.let_go(&placement.wish);
            placement.caller.iter().for_each(|caller| self.clients.settle(caller, Fate::Refused));
            out.extend(askers.into_iter().map(|asker| (asker, Err(Refused::Moved))));
        }
        let what_ifs = self.what_ifs.take_all().map(WhatIf::into_asker);
        let asking = what_ifs.chain(self.scores.take_all().map(Asking::into_asker));
        out.extend(asking.map(|asker| (asker, Err(Refused::Moved))));
    }

    /// The fabric that it decides on.
    pub fn fabric(&self) -> &Arc<Fabric> {
        self.engine.ledger().fabric()
    }

    /// The state of its ledger.
    pub fn epoch(&self) -> u64 {
        self.engine.ledger().epoch()
    }

    /// When to call [`Desk::wake`], if nothing is asked before.
    pub fn wakes_at(&self) -> Option<Nanos> {
        let expires = self.expiries.first().map(|&(at, _)| at);
        [self.wake, expires, self.migrations.due()].into_iter().flatten().min()
    }

    /// What changed for good since it was last asked, in order. Whoever is told of a reply is told after they are kept.
    pub fn changes(&mut self) -> std::vec::Drain<'_, Change> {
        self.changes.drain(..)
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Nanos, out: &mut Replies<R>) {
        self.now = self.now.max(now);
        // When time leaps, much may end at once; what is left over has its turn next.
        for _ in 0..AT_ONCE {
            let Some((_, id)) = self.expiries.first().copied().filter(|&(at, _)| at <= self.now) else {
                break;
            };
            self.expiries.pop_first();
            self.end(id, out);
        }
        self.expire_migrations(out);
        let over = self.unkept.over(self.now);
        self.leave(over, out);
        self.tell(Input::Wake, out);
    }

    /// Takes a message in and appends what there is to reply, to this asker or to earlier ones. A time before the last
    /// one counts as the last one.
    pub fn handle(&mut self, now: Nanos, message: Message, asker: R, out: &mut Replies<R>) {
        self.wake(now, out);
        let reply = match message {
            Message::Report(report) => self.report(report, out),
            Message::Place(placement) => return self.place(placement, asker, out),
            Message::Release(id) => match self.end(id, out) {
                Some(record) => Ok(Reply::Decision(record)),
                None => self.end_left(id, out),
            },
            Message::Decision(id) => match self.records.get(id) {
                Some(record) => Ok(Reply::Decision(record.clone())),
                None => self.left(Left::Decision(id)),
            },
            Message::Decisions { kind, before, limit, holding } => {
                let wanted = |record: &&Arc<Record>| {
                    kind.as_ref().is_none_or(|kind| kind == record.shown.wish.kind())
                        && !(holding && record.released.is_some())
                };
                let found = self.records.last(before).filter(wanted).take(limit);
                Ok(Reply::Decisions(found.cloned().collect()))
            }
            Message::Holding(link, limit) => Ok(Reply::Decisions(self.holding(link, limit))),
            Message::Rack(rack) => Ok(Reply::Rack(self.content(rack))),
            Message::Migrations { state, before, limit } => {
                let wanted = |migration: &&Migration| {
                    state.is_none_or(|state| state == migration.state)
                        && before.is_none_or(|before| migration.id < before)
                };
                Ok(Reply::Migrations(self.migrations.last().filter(wanted).take(limit).cloned().collect()))
            }
            Message::Migration(id, answer) => self.answer(id, answer, out),
            Message::Score(score) => return self.score(score, asker, out),
            Message::WhatIf(id, policy) => return self.what_if(id, &policy, asker, out),
            Message::Workloads { before, limit } => Ok(Reply::Workloads(self.workloads(before, limit))),
            Message::Workload(name) => match self.workload(&name) {
                Some(found) => Ok(Reply::Workloads(vec![found])),
                None => Err(Refused::NoWorkload(name)),
            },
            Message::Job(name, availability) => self.job(name, availability, out),
        };
        out.push((asker, reply));
    }

    /// Hands the engine an input and carries out what follows. Returns what of a report the ledger did not take in.
    fn tell(&mut self, input: Input<'_>, out: &mut Replies<R>) -> DiscardedSamples {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.engine.handle(self.now, input, &mut outputs);
        self.wake = None;
        let (mut discarded, mut over) = (DiscardedSamples::default(), Vec::new());
        for output in outputs.drain(..) {
            match output {
                Output::Answer(ask, Answer::Replicas(answer)) => {
                    let answer = answer.map(|placed| (placed.decision.choice.clone(), placed));
                    over.extend(self.settle(ask, answer, out));
                }
                Output::Answer(ask, Answer::Tasks(answer)) => {
                    let answer = answer.map(|placed| (placed.decision.choice.clone(), placed));
                    over.extend(self.settle(ask, answer, out));
                }
                Output::Answer(ask, Answer::Found(Some(placed))) => {
                    let answer = Ok((placed.decision.choice.clone(), placed));
                    over.extend(self.settle(ask, answer, out));
                }
                // It waits on, and is decided again.
                Output::Answer(_, Answer::Found(None)) => {}
                Output::Answer(_, Answer::Promise(answer)) => self.promises.answer = Some(answer),
                Output::WakeAt(at) => self.wake = Some(at),
                Output::Discarded(samples) => discarded = samples,
                Output::Advise(advice) => self.advised(advice),
                // The desk asks for none.
                Output::Answer(_, Answer::Again(_)) => {}
            }
        }
        self.outputs = outputs;
        self.leave(over, out);
        discarded
    }
}
