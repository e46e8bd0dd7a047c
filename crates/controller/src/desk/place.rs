//! Placements: asked, decided at once or later, ended.

use std::sync::Arc;

use leeward_engine::{Ask, Input, Placed};
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::Refusal;

use super::clients::{Fate, Sequence};
use super::message::{Caller, Placement, Refused, Reply, Request};
use super::record::{Record, Shown};
use super::unkept::{Left, Over};
use super::wish::Wish;
use super::{Desk, Replies, Waiting};
use crate::store::Change;

/// So many may wait for one decision, all of them sending the same request again.
const ASKERS: usize = 16;

impl<R> Desk<R> {
    pub(super) fn place(&mut self, mut placement: Placement, asker: R, out: &mut Replies<R>) {
        let sequence = placement.caller.as_ref().map_or(Sequence::New, |caller| self.clients.hear(caller));
        let refused = match sequence {
            Sequence::New | Sequence::Last(Fate::Refused) if self.waiting.len() < self.limits.waiting => None,
            Sequence::New | Sequence::Last(Fate::Refused) => Some(Refused::Busy),
            Sequence::Older(last) => Some(Refused::Superseded { last }),
            Sequence::Last(Fate::Waits(ask)) => match self.waiting.get_mut(&ask) {
                Some(waiting) if waiting.placement.wish.kind() != placement.wish.kind() => {
                    let kind = waiting.placement.wish.kind();
                    let reused = placement.caller.map(|caller| Refused::Reused(caller, kind));
                    return out.push((asker, Err(reused.unwrap_or(Refused::Busy))));
                }
                Some(waiting) => {
                    waiting.askers.retain(self.listens);
                    if waiting.askers.len() < ASKERS {
                        return waiting.askers.push(asker);
                    }
                    Some(Refused::Busy)
                }
                None => Some(Refused::Forgotten(ask)),
            },
            Sequence::Last(Fate::Decided(id)) => match self.records.get(id) {
                Some(record) => {
                    let record = record.clone();
                    return out.push((asker, Ok(Reply::Placed { record, repeated: true })));
                }
                None => return out.push((asker, Ok(Reply::Left(Left::Placed(id))))),
            },
        };
        if let Some(refused) = refused {
            return out.push((asker, Err(refused)));
        }
        let id = self.next;
        self.next += 1;
        let job = self.hold_job(&placement.wish, id);
        match &mut placement.request {
            Request::Replicas(request) => (request.id, request.file) = (id, id),
            Request::Tasks(request) => (request.id, request.job) = (id, job),
            Request::Workload => {}
        }
        if let Some(caller) = &placement.caller {
            self.clients.ask(caller, id);
        }
        let now = match &placement.request {
            Request::Replicas(request) => Some(Ask::Replicas(request.clone())),
            Request::Tasks(request) if self.takes_long(request) => None,
            Request::Tasks(request) => Some(Ask::Tasks(request.clone())),
            Request::Workload => None,
        };
        let is_workload = placement.request == Request::Workload;
        self.waiting.insert(id, Waiting { placement, askers: vec![asker] });
        match now {
            Some(ask) => drop(self.tell(Input::Ask(id, ask), out)),
            None if is_workload => self.look_into(id, out),
            None => self.decide_later(id, out),
        }
    }

    /// What waited is decided. Returns what does not count any more for it.
    pub(super) fn settle<C>(
        &mut self,
        ask: u64,
        answer: Result<(Vec<HostId>, Placed<C>), Refusal>,
        out: &mut Replies<R>,
    ) -> Vec<Over> {
        let (hosts, Placed { decision, entries }) = match answer {
            Ok(placed) => placed,
            Err(refusal) => {
                self.refuse(ask, &Refused::Placement(refusal), out);
                return Vec::new();
            }
        };
        let Some(Waiting { placement, askers }) = self.waiting.remove(&ask) else { return Vec::new() };
        let Placement { request, wish, caller, lasts } = placement;
        let fabric = self.engine.ledger().fabric().clone();
        if let Request::Replicas(request) = &request {
            for &host in hosts.iter().filter(|&&host| fabric.storage(host).is_some()) {
                self.hosts.placed(host, self.now, request.size);
            }
        }
        let policy = match &wish {
            Wish::Replicas(_) => &self.labels.replicas,
            _ => &self.labels.tasks,
        };
        let shown = Shown::of(&fabric, policy, wish, &hosts, &decision);
        self.decided(ask, caller, lasts, shown, entries, askers, out)
    }

    /// A decision is made: it is kept, and all who asked for it are told. Returns what does not count any more for it.
    #[expect(clippy::too_many_arguments, reason = "the parts of a record, and who waits for it")]
    pub(super) fn decided(
        &mut self,
        id: u64,
        caller: Option<Caller>,
        lasts: Option<Nanos>,
        shown: Shown,
        entries: Vec<EntryId>,
        askers: Vec<R>,
        out: &mut Replies<R>,
    ) -> Vec<Over> {
        caller.iter().for_each(|caller| self.clients.settle(caller, Fate::Decided(id)));
        let held = self.held(&entries);
        let (at, expires) = (self.now, lasts.map(|lasts| self.now.plus(lasts)));
        let record = Arc::new(Record { id, at, caller, shown, entries, expires, released: None });
        self.changes.push(Change::Decided(record.clone(), held));
        self.decided += 1;
        for (before, asker) in askers.into_iter().enumerate() {
            let (record, repeated) = (record.clone(), before > 0);
            out.push((asker, Ok(Reply::Placed { record, repeated })));
        }
        self.keep(record)
    }

    /// Keeps a decision. Returns what does not count any more for it.
    pub(super) fn keep(&mut self, record: Arc<Record>) -> Vec<Over> {
        self.expiries.extend(record.expires.map(|at| (at, record.id)));
        if record.released.is_none() {
            self.count(&record, 1);
            self.promises.begin(&record);
        }
        let Some(leaving) = self.records.keep(record) else { return Vec::new() };
        if leaving.released.is_none() {
            self.count(&leaving, -1);
        }
        if let Some(at) = leaving.expires {
            self.expiries.remove(&(at, leaving.id));
        }
        let over = Over { id: leaving.id, entries: leaving.entries.clone() };
        self.unkept.hold(self.began(leaving.at), over).into_iter().collect()
    }

    /// The work of a decision ended; `None` if it is not known. One that ended before stays as it is.
    pub(super) fn end(&mut self, id: u64, out: &mut Replies<R>) -> Option<Arc<Record>> {
        let (record, entries) = self.records.release(id, self.now)?;
        let Some(entries) = entries else { return Some(record) };
        if let Some(at) = record.expires {
            self.expiries.remove(&(at, id));
        }
        self.count(&record, -1);
        self.promises.end(&record);
        self.let_go(&record.shown.wish);
        self.changes.push(Change::Ended { id, released: record.released });
        match record.shown.wish {
            Wish::Tasks(_) => self.tell(Input::Ended(id), out),
            _ => self.tell(Input::Release(&entries), out),
        };
        Some(record)
    }

    /// Counts copies of a block on their hosts.
    fn count(&mut self, record: &Record, by: i32) {
        if !matches!(record.shown.wish, Wish::Replicas(_)) {
            return;
        }
        let fabric = self.engine.ledger().fabric();
        for host in record.shown.hosts.iter().filter_map(|name| fabric.host(name)) {
            let replicas = &mut self.replicas[host.index()];
            *replicas = replicas.saturating_add_signed(by);
        }
    }

    /// What nobody said the end of counts no more.
    pub(super) fn leave(&mut self, over: Vec<Over>, out: &mut Replies<R>) {
        for Over { id, entries } in over {
            self.changes.push(Change::Ended { id, released: None });
            self.tell(Input::Release(&entries), out);
        }
    }
}
