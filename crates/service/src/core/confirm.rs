//! Reservations: decisions that end unless they are confirmed in time.

use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_records::{Change, DecisionDetails, DecisionId, DecisionRecord};

use super::error::ConfirmError;
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Confirms a reserved decision, which then stays. A decision that needs no confirmation does not change.
    ///
    /// # Errors
    /// No decision has this id, or it has ended, or left memory: reserved decisions stay in memory.
    pub fn confirm(&mut self, now: Nanos, id: DecisionId) -> Result<Arc<DecisionRecord>, ConfirmError> {
        let record = self.confirmable(now, id)?;
        if record.details.reserved_until.is_none() {
            return Ok(record);
        }
        let details = DecisionDetails { reserved_until: None, ..record.details.clone() };
        let Some(record) = self.replace_details(id, details) else { return Ok(record) };
        self.changes.push(Change::Confirmed(record.clone()));
        if let Some(dropped) = self.records.drop_confirmed(id) {
            self.evict(&dropped);
            self.release_expired();
        }
        Ok(record)
    }

    /// The decision that a confirmation would confirm.
    ///
    /// # Errors
    /// As of [`Coordinator::confirm`].
    pub fn confirmable(&mut self, now: Nanos, id: DecisionId) -> Result<Arc<DecisionRecord>, ConfirmError> {
        self.wake(now);
        match self.records.get(id) {
            Some(record) if record.released.is_some() => Err(ConfirmError::Ended(id)),
            Some(record) => Ok(record.clone()),
            None if self.is_evicted(id) => Err(ConfirmError::NotReserved(id)),
            None => Err(ConfirmError::NotFound(id)),
        }
    }

    /// Replaces the details of a decision in memory, and the time of its end.
    pub(super) fn replace_details(
        &mut self,
        id: DecisionId,
        details: DecisionDetails,
    ) -> Option<Arc<DecisionRecord>> {
        let before = self.records.get(id)?.ends();
        let record = self.records.change(id, |record| record.details = details)?.clone();
        if record.released.is_none() {
            if let Some(at) = before {
                self.expiries.remove(&(at, id));
            }
            self.expiries.extend(record.ends().map(|at| (at, id)));
        }
        Some(record)
    }
}
