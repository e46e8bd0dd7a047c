//! Reads of decisions, task moves and workloads.

use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_records::{DecisionId, DecisionRecord, Migration};

use super::{
    Addresses, Coordinator, DecisionError, DecisionLookup, DecisionQuery, MigrationQuery, NoWorkload,
    WorkloadList, WorkloadState,
};

impl<A: Addresses> Coordinator<A> {
    /// Returns the decision of an id.
    ///
    /// # Errors
    /// No decision has this id.
    pub fn decision(
        &mut self,
        now: Nanos,
        id: DecisionId,
    ) -> Result<DecisionLookup<Arc<DecisionRecord>>, DecisionError> {
        self.wake(now);
        match self.records.get(id) {
            Some(record) => Ok(DecisionLookup::InMemory(record.clone())),
            None if self.is_evicted(id) => Ok(DecisionLookup::Evicted(id)),
            None => Err(DecisionError::NotFound(id)),
        }
    }

    /// Returns a page of the decisions in memory.
    pub fn decisions(&mut self, now: Nanos, query: &DecisionQuery) -> Vec<Arc<DecisionRecord>> {
        self.wake(now);
        let &DecisionQuery { kind, before, limit, holding } = query;
        let matches = |record: &&Arc<DecisionRecord>| {
            kind.is_none_or(|kind| kind == record.details.spec.kind())
                && !(holding && record.released.is_some())
        };
        self.records.last(before).filter(matches).take(limit).cloned().collect()
    }

    /// Returns a page of the task moves.
    pub fn migrations(&mut self, now: Nanos, query: MigrationQuery) -> Vec<Migration> {
        self.wake(now);
        let MigrationQuery { state, before, limit } = query;
        let matches = |migration: &&Migration| {
            state.is_none_or(|state| state == migration.state)
                && before.is_none_or(|before| migration.id < before)
        };
        self.migrations.last().filter(matches).take(limit).cloned().collect()
    }

    /// Returns workloads with a guaranteed SLO, with decision ids below `before`, in descending order.
    pub fn workloads(&mut self, now: Nanos, before: Option<DecisionId>, limit: usize) -> WorkloadList {
        self.wake(now);
        let mut ids: Vec<DecisionId> = self.promises.active.values().copied().collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let ids = ids.into_iter().filter(|&id| before.is_none_or(|before| id < before));
        let records = ids.filter_map(|id| self.records.get(id)).take(limit);
        let workloads = records.map(|record| self.workload_state(record)).collect();
        WorkloadList { workloads, version: self.promises_version() }
    }

    /// Returns the workload of a name: the one with a guaranteed SLO, or else the last one.
    ///
    /// # Errors
    /// No workload has this name.
    pub fn workload(&mut self, now: Nanos, name: &str) -> Result<WorkloadState, NoWorkload> {
        self.wake(now);
        let named = |record: &&Arc<DecisionRecord>| {
            record.details.spec.workload().is_some_and(|spec| spec.name() == name)
        };
        let active = self.promises.active.get(name).and_then(|&id| self.records.get(id));
        let record = active.or_else(|| self.records.last(None).find(named));
        record.map(|record| self.workload_state(record)).ok_or_else(|| NoWorkload(name.to_owned()))
    }

    fn workload_state(&self, record: &Arc<DecisionRecord>) -> WorkloadState {
        let name = record.details.spec.workload().map(|spec| spec.name()).unwrap_or_default();
        let latency = self.promises.latencies.get(name).filter(|_| record.released.is_none());
        let (latency_s, status) = (latency.map(|&(_, latency)| latency), self.promise_status(record));
        WorkloadState { record: record.clone(), latency_s, status }
    }
}
