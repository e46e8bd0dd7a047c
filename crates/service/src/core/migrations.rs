//! Task moves that the policy advises, and their states. The ledger counts an advised move as done. An executor takes the
//! move, carries it out and says how it went: advised, taken, then done or failed. The coordinator undoes a rejected or
//! failed move, and a move without an answer in time. An answer may be repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Advice, Input};
use leeward_fabric::Nanos;
use leeward_placement::tasks::TaskId;
use leeward_records::{Change, DecisionId, DecisionRecord, Migration, MigrationState, PlacementSpec};

use super::error::AnswerError;
use super::{Addresses, Coordinator};

/// Largest number of moves in memory, unless more moves wait for an answer.
const MAX_MOVES: usize = 1_000;

/// Answer to an advised move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MigrationAnswer {
    /// The executor of this name carries the move out.
    Taken(String),
    /// The task runs at the destination.
    Done,
    /// The task stays, for this reason.
    Refused(Option<String>),
    /// The executor could not move the task, for this reason.
    Failed(Option<String>),
}

impl MigrationAnswer {
    /// State of the answered move, and its reason or executor.
    fn outcome(self) -> (MigrationState, Option<String>) {
        match self {
            MigrationAnswer::Taken(executor) => (MigrationState::Taken, Some(executor)),
            MigrationAnswer::Done => (MigrationState::Done, None),
            MigrationAnswer::Refused(reason) => (MigrationState::Refused, reason),
            MigrationAnswer::Failed(reason) => (MigrationState::Failed, reason),
        }
    }
}

/// Advised moves: all open ones, and the last closed ones.
#[derive(Debug, Default)]
pub(super) struct Migrations {
    all: BTreeMap<u64, Migration>,
    /// Ids of the open moves.
    open: BTreeSet<u64>,
    next: u64,
    /// True on a follower: the leader's coordinator handles answers and timeouts.
    is_follower: bool,
}

impl Migrations {
    /// All moves, newest first.
    pub fn last(&self) -> impl Iterator<Item = &Migration> {
        self.all.values().rev()
    }

    /// The first deadline of an open move.
    pub fn due(&self, timeout: Nanos) -> Option<Nanos> {
        self.next_due(timeout).map(|(due, _)| due)
    }

    /// The first deadline of an open move, and the move. An executor has the time limit twice from the advice on: to take
    /// the move, and to carry it out.
    fn next_due(&self, timeout: Nanos) -> Option<(Nanos, u64)> {
        let open = self.open.iter().filter_map(|id| self.all.get(id));
        let due = open.map(|migration| {
            let limits = if migration.state == MigrationState::Taken { 2 } else { 1 };
            (migration.at.plus(Nanos(timeout.0.saturating_mul(limits))), migration.id)
        });
        due.min().filter(|_| !self.is_follower)
    }

    /// Adds a move from the store or from the leader.
    pub fn note(&mut self, migration: Migration) {
        self.next = self.next.max(migration.id + 1);
        if migration.state.is_open() {
            self.open.insert(migration.id);
        } else {
            self.open.remove(&migration.id);
        }
        self.all.insert(migration.id, migration);
        if self.all.len() > MAX_MOVES {
            let oldest = self.all.keys().copied().find(|id| !self.open.contains(id));
            oldest.into_iter().for_each(|oldest| drop(self.all.remove(&oldest)));
        }
    }
}

impl<A: Addresses> Coordinator<A> {
    /// The same coordinator as a follower. The leader handles answers and timeouts of moves.
    pub fn into_follower(mut self) -> Coordinator<A> {
        self.migrations.is_follower = true;
        self
    }

    /// True on a follower.
    pub(super) fn is_follower(&self) -> bool {
        self.migrations.is_follower
    }

    /// Records moves that the engine advises.
    pub(super) fn record_advice(&mut self, advice: Vec<Advice>) {
        for advice in advice {
            let Some(migration) = self.migration(&advice, MigrationState::Advised) else { continue };
            self.set_task_host(advice.task, &migration.to.clone());
            self.note_migration(migration);
        }
    }

    /// Records moves that the policy chose in shadow mode.
    pub(super) fn record_considered(&mut self, moves: Vec<Advice>) {
        for advice in moves {
            if let Some(migration) = self.migration(&advice, MigrationState::Considered) {
                self.note_migration(migration);
            }
        }
    }

    /// Record of a move; `None` if the decision about the task is not in memory.
    fn migration(
        &self,
        &Advice { task, from, to, link }: &Advice,
        state: MigrationState,
    ) -> Option<Migration> {
        let fabric = self.engine.ledger().fabric();
        let PlacementSpec::Tasks(spec) = &self.records.get(DecisionId(task.app))?.details.spec else {
            return None;
        };
        let name = spec.tasks.get(task.index as usize).map(|task| task.name.clone());
        Some(Migration {
            id: self.migrations.next,
            at: self.now,
            decision: DecisionId(task.app),
            index: task.index,
            task: name.unwrap_or_default(),
            job: spec.job.clone(),
            from: fabric.host_name(from).to_owned(),
            to: fabric.host_name(to).to_owned(),
            link: fabric.resource_name(link),
            state,
            reason: None,
        })
    }

    fn note_migration(&mut self, migration: Migration) {
        self.count_move(&migration);
        self.changes.push(Change::Migration(migration.clone()));
        self.migrations.note(migration);
    }

    /// Sets a task's host and the new entries of its app.
    fn set_task_host(&mut self, task: TaskId, host: &str) {
        let entries = self.engine.entries_of(task.app);
        let stored = self.stored_entries(&entries);
        let fabric = self.engine.ledger().fabric().clone();
        let changed = self.records.change(DecisionId(task.app), |record: &mut DecisionRecord| {
            record.entries = entries;
            if let Some(current) = record.details.hosts.get_mut(task.index as usize) {
                host.clone_into(current);
                record.details.set_racks(&fabric);
            }
        });
        if let Some(record) = changed {
            self.changes.push(Change::Moved(Arc::clone(record), stored));
        }
    }

    /// Takes the answer to an advised move.
    ///
    /// # Errors
    /// No move has this id, or it already has another answer.
    pub fn answer(&mut self, now: Nanos, id: u64, answer: MigrationAnswer) -> Result<Migration, AnswerError> {
        let answered = self.answered(now, id, answer)?;
        match self.migrations.all.get(&id).map(|known| known.state) {
            Some(state) if state == answered.state || !state.is_open() => {}
            _ if answered.state == MigrationState::Taken => self.note_migration(answered.clone()),
            _ => self.close(answered.clone()),
        }
        Ok(answered)
    }

    /// A move with its answer, which is not taken yet.
    ///
    /// # Errors
    /// As [`Coordinator::answer`].
    pub fn answered(
        &mut self,
        now: Nanos,
        id: u64,
        answer: MigrationAnswer,
    ) -> Result<Migration, AnswerError> {
        self.wake(now);
        let Some(migration) = self.migrations.all.get(&id).cloned() else {
            return Err(AnswerError::NotFound(id));
        };
        let (state, reason) = answer.outcome();
        match migration.state {
            // Two executors must not move the same task.
            MigrationState::Taken if state == MigrationState::Taken && migration.reason != reason => {
                Err(AnswerError::Answered(migration.state))
            }
            known if known == state => Ok(migration),
            known if known.is_open() => Ok(Migration { state, reason, ..migration }),
            known => Err(AnswerError::Answered(known)),
        }
    }

    /// Finishes an advised move.
    fn close(&mut self, migration: Migration) {
        let task = TaskId { app: migration.decision.0, index: migration.index };
        if migration.state == MigrationState::Done {
            self.apply(Input::TaskRestarted(task));
        } else if let Some(host) = self.engine.ledger().fabric().host(&migration.from)
            && self.engine.host_of(task).is_some()
        {
            self.apply(Input::MoveCancelled(task, host));
            self.set_task_host(task, &migration.from.clone());
        }
        self.note_migration(migration);
    }

    /// Undoes moves without an answer in time.
    pub(super) fn expire_migrations(&mut self) {
        while let Some((due, id)) = self.migrations.next_due(self.limits.move_timeout)
            && due <= self.now
            && let Some(migration) = self.migrations.all.get(&id).cloned()
        {
            self.close(Migration { state: MigrationState::Expired, ..migration });
        }
    }
}
