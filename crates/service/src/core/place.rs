//! Placement requests, their decisions (at once or later), and the ends of decisions.

use std::sync::Arc;

use leeward_engine::{CommittedDecision, Input, Ruling, SnapshotScope};
use leeward_fabric::input::InputError;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::Refusal;
use leeward_placement::replicas::ReplicaRequest;
use leeward_placement::tasks::AppRequest;
use leeward_records::{
    Beside, Caller, Change, DecisionDetails, DecisionId, DecisionRecord, Lookup, PlacementSpec, RequestState,
};

use super::completion::{Completion, PlaceTo};
use super::error::{CallError, PlaceError, ReleaseError};
use super::evicted::ExpiredEntries;
use super::other_choices::choices;
use super::reply::{DecisionLookup, Placed};
use super::request::{Placement, Reservation};
use super::{Addresses, Coordinator, Waiting};

/// Largest number of callers that wait for one request; retries add callers.
const MAX_CALLERS: usize = 16;

impl<A: Addresses> Coordinator<A> {
    /// Places a request, at once or later: the reply is a completion. A request that was already sent is not decided
    /// again. The coordinator treats each block as a file of its own.
    pub fn place(&mut self, now: Nanos, placement: Placement, to: PlaceTo<A>) {
        self.place_reserved(now, Reservation { placement, reserve: None }, to);
    }

    /// Places a request, as [`Coordinator::place`] does. With a reservation, the decision ends unless it is confirmed in
    /// time.
    pub fn place_reserved(&mut self, now: Nanos, reservation: Reservation, to: PlaceTo<A>) {
        let Reservation { placement, reserve } = reservation;
        self.wake(now);
        let Some((placement, to)) = self.deduplicate(placement, to) else { return };
        let id = self.next;
        // An invalid request takes no id, and its key may be used again.
        let block = match self.request_of(id, &placement.spec) {
            Ok(block) => block,
            Err(error) => {
                return self.reply_to_place(to, Err(PlaceError::Invalid(error.field, error.message)));
            }
        };
        self.next = id.next();
        self.hold_job(&placement.spec, id);
        let (mode, ruling) = self.ruling(id, &placement);
        let policies = self.policy_labels(ruling.by, &placement.spec);
        if let Some(caller) = &placement.caller {
            self.clients.note_waiting(caller, id);
        }
        self.waiting.insert(id, Waiting { placement, reserve, mode, ruling, policies, callers: vec![to] });
        if let Some(block) = block {
            let result = self.engine.place_replicas(self.now, id.0, block, ruling, &mut self.outputs);
            if let Some(result) = result {
                self.finish_placement(id, result);
            }
            self.handle_outputs();
        } else if let Some(request) = self.app_request(id) {
            self.place_app(id, request, ruling);
        } else {
            self.queue_admission(id);
        }
    }

    /// Checks a request. Returns the engine's request for a block, with its source.
    ///
    /// # Errors
    /// Returns the error with its field.
    pub(super) fn request_of(
        &mut self,
        id: DecisionId,
        spec: &PlacementSpec,
    ) -> Result<Option<ReplicaRequest>, InputError> {
        let fabric = self.fabric();
        match spec {
            PlacementSpec::Replicas(spec) => {
                let request = spec.request(fabric, id.0)?;
                Ok(Some(self.engine.with_source(self.now, request)))
            }
            PlacementSpec::Tasks(spec) => spec.check(fabric).map(|()| None),
            PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => Ok(None),
        }
    }

    /// Places an app at once, or as a job if its decision takes long. A comparison that takes long follows the decision.
    fn place_app(&mut self, id: DecisionId, request: AppRequest, Ruling { by, compare }: Ruling) {
        if self.takes_long(by, &request) {
            return self.queue_app(id);
        }
        let later = compare && self.takes_long(by.other(), &request);
        let scope = SnapshotScope { job: Some(request.job), without: None };
        let input =
            (later && self.has_room_for_comparison()).then(|| (self.engine.snapshot(scope), request.clone()));
        let input = input.map(|(snapshot, request)| (snapshot, self.engine.with_history(request)));
        let ruling = Ruling { by, compare: compare && !later };
        let result = self.engine.place_app(self.now, request, ruling, &mut self.outputs);
        self.finish_placement(id, result);
        self.handle_outputs();
        if let Some((snapshot, request)) = input {
            self.queue_comparison(id, by, snapshot, request);
        } else if compare {
            self.follow_none_unless_compared(id);
        }
    }

    /// Returns the request if it must be decided. Otherwise, replies to a request that was already decided or cannot be
    /// decided now, and adds the caller to a request that already waits.
    pub(super) fn deduplicate(
        &mut self,
        placement: Placement,
        to: PlaceTo<A>,
    ) -> Option<(Placement, PlaceTo<A>)> {
        let state = placement.caller.as_ref().map_or(Lookup::New, |caller| self.clients.look_up(caller));
        let answer = match state {
            Lookup::New | Lookup::Last(RequestState::Rejected)
                if self.waiting.len() < self.limits.waiting =>
            {
                return Some((placement, to));
            }
            Lookup::New | Lookup::Last(RequestState::Rejected) => Err(PlaceError::Busy),
            Lookup::Older(last) => Err(PlaceError::Superseded { last }),
            Lookup::Last(RequestState::Waits(id)) => match self.waiting.get_mut(&id) {
                None => Err(PlaceError::Forgotten(id)),
                Some(waiting) => match waiting.may_join(&placement) {
                    Ok(()) => {
                        waiting.callers.push(to);
                        return None;
                    }
                    Err(error) => Err(error),
                },
            },
            Lookup::Last(RequestState::Decided(id)) => Ok(match self.records.get(id) {
                Some(record) => DecisionLookup::InMemory(Placed { record: record.clone(), repeated: true }),
                None => DecisionLookup::Evicted(id),
            }),
        };
        self.reply_to_place(to, answer);
        None
    }

    pub(super) fn reply_to_place(
        &mut self,
        to: PlaceTo<A>,
        answer: Result<DecisionLookup<Placed>, PlaceError>,
    ) {
        self.completions.push(Completion::Place(to, answer.map_err(CallError::Failed)));
    }

    /// Turns the engine's result for a waiting request into a decision or an error.
    pub(super) fn finish_placement(
        &mut self,
        id: DecisionId,
        result: Result<CommittedDecision<Vec<HostId>>, Refusal>,
    ) {
        let CommittedDecision { decision, entries, comparison } = match result {
            Ok(placed) => placed,
            Err(refusal) => return self.reject(id, &PlaceError::Rejected(refusal)),
        };
        let Some(Waiting { placement, reserve, mode, ruling, policies, callers }) = self.waiting.remove(&id)
        else {
            return;
        };
        let Placement { spec, caller, lasts, reference, digest } = placement;
        let fabric = self.engine.ledger().fabric().clone();
        if let PlacementSpec::Replicas(spec) = &spec {
            decision.choice.iter().for_each(|&host| self.hosts.add_copy(host, self.now, spec.piece()));
        }
        let [policy, other] = policies;
        let mut details =
            DecisionDetails::of(&fabric, &policy, spec.for_storage(), &decision.choice, &decision);
        Self::mark(&mut details, mode, ruling.by);
        let choices = choices(&decision.choice, comparison.as_ref());
        let may_come_later = ruling.compare && matches!(details.spec, PlacementSpec::Tasks(_));
        if choices.is_some() || !may_come_later {
            self.follow_choices(id, &details.spec, details.by_default, choices);
        }
        details.beside = comparison.map(|comparison| Beside::of(&fabric, &other, &comparison));
        (details.reference, details.digest) = (reference, digest);
        details.reserved_until = reserve.map(|reserve| self.now.plus(reserve));
        self.record(id, caller, lasts, details, entries, callers);
    }

    /// Records a decision and replies to all callers of its request.
    pub(super) fn record(
        &mut self,
        id: DecisionId,
        caller: Option<Caller>,
        lasts: Option<Nanos>,
        mut details: DecisionDetails,
        entries: Vec<EntryId>,
        callers: Vec<PlaceTo<A>>,
    ) {
        caller.iter().for_each(|caller| self.clients.settle(caller, RequestState::Decided(id)));
        details.set_racks(self.engine.ledger().fabric());
        self.count_decision(&details);
        let stored = self.stored_entries(id, &entries);
        let (at, expires) = (self.now, lasts.map(|lasts| self.now.plus(lasts)));
        let record = Arc::new(DecisionRecord { id, at, caller, details, entries, expires, released: None });
        self.changes.push(Change::Decided(record.clone(), stored));
        self.decided += 1;
        for (index, to) in callers.into_iter().enumerate() {
            let placed = Placed { record: record.clone(), repeated: index > 0 };
            self.reply_to_place(to, Ok(DecisionLookup::InMemory(placed)));
        }
        self.keep(record);
    }

    /// Stores a decision in memory. Beyond the limits, entries of an earlier decision are released by the next
    /// [`Coordinator::release_expired`].
    pub(super) fn keep(&mut self, record: Arc<DecisionRecord>) {
        self.expiries.extend(record.ends().map(|at| (at, record.id)));
        if record.released.is_none() {
            self.count_copies(&record, 1);
            self.promises.begin(&record);
        }
        if let Some(evicted) = self.records.keep(record) {
            self.evict(&evicted);
        }
    }

    /// Handles a decision that left memory before its end.
    pub(super) fn evict(&mut self, evicted: &DecisionRecord) {
        if evicted.released.is_none() {
            self.count_copies(evicted, -1);
        }
        if let Some(at) = evicted.ends() {
            self.expiries.remove(&(at, evicted.id));
        }
        let entries = ExpiredEntries { id: evicted.id, entries: evicted.entries.clone() };
        self.expired.extend(self.evicted.hold(self.decided_at(evicted.at), entries));
    }

    /// Ends a decision and releases its entries. A decision that has already ended does not change.
    ///
    /// # Errors
    /// No decision has this id.
    pub fn release(
        &mut self,
        now: Nanos,
        id: DecisionId,
    ) -> Result<DecisionLookup<Arc<DecisionRecord>>, ReleaseError> {
        self.wake(now);
        match self.end(id) {
            Some(record) => Ok(DecisionLookup::InMemory(record)),
            None => self.end_evicted(id).map(|()| DecisionLookup::Evicted(id)),
        }
    }

    /// Ends a decision; `None` if it is not in memory. An ended decision does not change.
    pub(super) fn end(&mut self, id: DecisionId) -> Option<Arc<DecisionRecord>> {
        let (record, entries) = self.records.release(id, self.now)?;
        let Some(entries) = entries else { return Some(record) };
        if let Some(at) = record.ends() {
            self.expiries.remove(&(at, id));
        }
        self.count_copies(&record, -1);
        self.end_choices(id);
        self.promises.end(&record);
        self.end_promise(&record);
        self.release_job(&record.details.spec, id);
        self.changes.push(Change::Ended { id, released: record.released });
        match record.details.spec {
            PlacementSpec::Tasks(_) => self.apply(Input::Ended(id.0)),
            _ => self.apply(Input::Release(&entries)),
        };
        Some(record)
    }

    /// Adds a block's copies to the counts of their hosts, or removes them.
    fn count_copies(&mut self, record: &DecisionRecord, by: i32) {
        if !matches!(record.details.spec, PlacementSpec::Replicas(_)) {
            return;
        }
        let fabric = self.engine.ledger().fabric();
        for host in record.details.hosts.iter().filter_map(|name| fabric.host(name)) {
            let replicas = &mut self.replicas[host.index()];
            *replicas = replicas.saturating_add_signed(by);
        }
    }

    /// Releases the entries of decisions that left memory without a reported end.
    pub(super) fn release_expired(&mut self) {
        for ExpiredEntries { id, entries } in std::mem::take(&mut self.expired) {
            self.changes.push(Change::Ended { id, released: None });
            self.apply(Input::Release(&entries));
        }
    }
}

impl<A: Addresses> Waiting<A> {
    /// Checks that another caller may wait for this request.
    fn may_join(&mut self, placement: &Placement) -> Result<(), PlaceError> {
        let kind = self.placement.spec.kind();
        if kind != placement.spec.kind() || self.placement.digest != placement.digest {
            let reused = placement.caller.clone().map(|caller| PlaceError::KeyReused(caller, kind));
            return Err(reused.unwrap_or(PlaceError::Busy));
        }
        self.callers.retain(A::is_open);
        if self.callers.len() >= MAX_CALLERS { Err(PlaceError::Busy) } else { Ok(()) }
    }
}
