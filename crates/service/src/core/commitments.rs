//! Placements that the caller decided itself. They are facts: hosts that a policy would refuse are recorded with the
//! reason, and not refused.

use std::borrow::Cow;
use std::sync::Arc;

use leeward_engine::{Decider, Given, GivenTerms, Input};
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::JobId;
use leeward_records::{Beside, DecisionDetails, DecisionId, DecisionRecord, Mode, PlacementSpec};

use super::completion::PlaceTo;
use super::error::PlaceError;
use super::other_choices::choices;
use super::request::{Commitment, Placement};
use super::{Addresses, Coordinator};

/// Policy in the records of decisions that the caller made.
const CALLER: &str = "caller";

impl<A: Addresses> Coordinator<A> {
    /// Commits a placement that the caller decided. A request that was already sent is not committed again. The reply is
    /// a completion.
    pub fn commit_given(&mut self, now: Nanos, commitment: Commitment, to: PlaceTo<A>) {
        self.wake(now);
        let Commitment { placement, hosts, chosen } = commitment;
        let Some((placement, to)) = self.deduplicate(placement, to) else { return };
        let id = self.next;
        let commitment = Commitment { placement, hosts, chosen };
        let (hosts, terms, lasts) = match self.resolve(&commitment) {
            Ok(resolved) => resolved,
            Err(error) => return self.reply_to_place(to, Err(error)),
        };
        let Placement { spec, caller, reference, digest, .. } = commitment.placement;
        let job = self.hold_job(&spec, id);
        let committed = self.give(id, &spec, job, &hosts, terms, true);
        let (details, entries) = match committed {
            Ok(committed) => committed,
            Err(error) => {
                self.release_job(&spec, id);
                return self.reply_to_place(to, Err(error));
            }
        };
        self.next = id.next();
        if let Some(caller) = &caller {
            self.clients.note_waiting(caller, id);
        }
        if let PlacementSpec::Replicas(spec) = &spec {
            hosts.iter().for_each(|&host| self.hosts.add_copy(host, self.now, spec.piece()));
        }
        let details = DecisionDetails { reference, digest, ..details };
        self.record(id, caller, lasts, details, entries, vec![to]);
        self.apply(Input::Wake);
    }

    /// Record of a placement that the caller decided, without a commit. It has the id that the next decision would have.
    ///
    /// # Errors
    /// A field is invalid.
    pub fn check_given(
        &mut self,
        now: Nanos,
        commitment: Commitment,
    ) -> Result<Arc<DecisionRecord>, PlaceError> {
        self.wake(now);
        let (id, at) = (self.next, self.now);
        let (hosts, terms, lasts) = self.resolve(&commitment)?;
        let Placement { spec, caller, reference, .. } = commitment.placement;
        let job = self.job_number(&spec, id).unwrap_or(JobId::NONE);
        let (details, entries) = self.give(id, &spec, job, &hosts, terms, false)?;
        let details = DecisionDetails { reference, ..details };
        let expires = lasts.map(|lasts| self.now.plus(lasts));
        Ok(Arc::new(DecisionRecord { id, at, caller, details, entries, expires, released: None }))
    }

    /// Ids of the hosts, terms of the commit, and the rest of the decision's duration.
    fn resolve(
        &self,
        Commitment { placement, hosts, chosen }: &Commitment,
    ) -> Result<(Vec<HostId>, GivenTerms, Option<Nanos>), PlaceError> {
        let (count, copies) = match &placement.spec {
            PlacementSpec::Replicas(spec) => (usize::from(spec.replicas), true),
            PlacementSpec::Tasks(spec) => (spec.tasks.len(), false),
            PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => {
                return Err(guarantee());
            }
        };
        if hosts.len() != count {
            let what = if copies { "copy" } else { "task" };
            let detail = format!("{}: expected {count}, one for each {what}", hosts.len());
            return Err(invalid(Some("hosts"), detail));
        }
        let started = chosen.unwrap_or(self.now);
        if started > self.now {
            return Err(invalid(Some("chosen"), "it is in the future".to_owned()));
        }
        let age = self.now.since(started);
        if placement.lasts.is_some_and(|lasts| lasts <= age) {
            return Err(invalid(Some("lasts"), "the decision has already expired".to_owned()));
        }
        let fabric = self.fabric();
        let mut ids = Vec::with_capacity(hosts.len());
        for name in hosts {
            let unknown = || invalid(Some("hosts"), fabric.no_host(name));
            let host = fabric.host(name).ok_or_else(unknown)?;
            if copies && ids.contains(&host) {
                return Err(invalid(Some("hosts"), format!("`{name}` has two copies")));
            }
            ids.push(host);
        }
        let seen = age > self.evicted.lifetime();
        let modes = self.modes_in_force();
        let mode = if copies { modes.replicas } else { modes.tasks };
        let lasts = placement.lasts.map(|lasts| lasts.since(age));
        Ok((ids, GivenTerms { started, seen, compare: mode != Mode::Off }, lasts))
    }

    /// Details of the decision, and its entries if it is committed.
    fn give(
        &mut self,
        id: DecisionId,
        spec: &PlacementSpec,
        job: JobId,
        hosts: &[HostId],
        terms: GivenTerms,
        commit: bool,
    ) -> Result<(DecisionDetails, Vec<EntryId>), PlaceError> {
        let chain =
            self.request_of(id, spec).map_err(|error| PlaceError::Invalid(error.field, error.message))?;
        let (given, app) = match (chain, spec) {
            (Some(request), _) => (self.engine.check_given_replicas(self.now, &request, hosts, terms), None),
            (None, PlacementSpec::Tasks(tasks)) => {
                let request = self.tasks_request(tasks, id, job, &[]);
                // A comparison that takes long would delay the other requests.
                let compare = terms.compare && !self.takes_long(Decider::Own, &request);
                let terms = GivenTerms { compare, ..terms };
                (self.engine.check_given_app(self.now, &request, hosts, terms), Some(request))
            }
            (None, _) => return Err(guarantee()),
        };
        let Given { mut decision, objections, comparison } = given;
        let fabric = self.engine.ledger().fabric().clone();
        let policy = CALLER.into();
        let mut details = DecisionDetails::of(&fabric, &policy, spec.clone().for_storage(), hosts, &decision);
        for (reason, objection) in details.why.iter_mut().zip(objections) {
            reason.because = objection.map(|constraint| Cow::from(constraint.text()));
        }
        let modes = self.modes_in_force();
        let (mode, other) = match spec {
            PlacementSpec::Tasks(_) => (modes.tasks, self.labels.tasks.clone()),
            _ => (modes.replicas, self.labels.replicas.clone()),
        };
        Self::mark(&mut details, mode, Decider::Default);
        if commit {
            self.follow_choices(id, spec, true, choices(hosts, comparison.as_ref()));
        }
        details.beside = comparison.map(|comparison| Beside::of(&fabric, &other, &comparison));
        let entries = match (commit, app, spec) {
            (false, ..) => Vec::new(),
            (true, Some(request), _) => self.engine.commit_given_app(&request, decision),
            (true, None, PlacementSpec::Replicas(spec)) => {
                self.engine.commit_given_replicas(&mut decision, spec.piece())
            }
            (true, None, _) => Vec::new(),
        };
        Ok((details, entries))
    }
}

/// Workloads and volumes: their SLOs are guaranteed only by a decision of the service.
fn guarantee() -> PlaceError {
    invalid(None, "only replicas and tasks can be committed without a decision of the service".to_owned())
}

fn invalid(field: Option<&str>, detail: String) -> PlaceError {
    PlaceError::Invalid(field.map(str::to_owned), detail)
}
