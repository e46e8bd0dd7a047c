//! Replies that wait until the changes of their batch are durable, each with its own type.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_records::{DecisionId, DecisionRecord};
use leeward_store::StoreError;
use tokio::sync::oneshot;

use crate::core::{Answer, CallError, Unavailable};

/// Decisions that were read from the store, by id.
pub(super) type Decisions = BTreeMap<DecisionId, Arc<DecisionRecord>>;

/// Reply that waits for durability.
pub(super) trait Pending: Send {
    /// Id of the decision that the reply needs from the store, if the client still waits.
    fn evicted(&self) -> Option<DecisionId> {
        None
    }

    /// Sends the reply, because the changes are durable. `decisions` has the evicted decisions, or the error of their
    /// read.
    fn persisted(self: Box<Self>, decisions: &Result<Decisions, StoreError>);

    /// Sends the error: the changes are not durable, or their state is unknown.
    fn failed(self: Box<Self>, error: &StoreError);
}

/// A complete reply.
pub(super) struct Persisted<T, E> {
    pub to: oneshot::Sender<Answer<T, E>>,
    pub reply: T,
}

impl<T: Send, E: Send> Pending for Persisted<T, E> {
    fn persisted(self: Box<Self>, _: &Result<Decisions, StoreError>) {
        // The client may have disconnected; a client that numbers its requests sends the request again.
        let _ = self.to.send(Ok(self.reply));
    }

    fn failed(self: Box<Self>, error: &StoreError) {
        let _ = self.to.send(Err(CallError::Unavailable(error.into())));
    }
}

/// A reply that needs an evicted decision.
pub(super) struct EvictedLookup<T, E> {
    pub to: oneshot::Sender<Answer<T, E>>,
    pub id: DecisionId,
    /// True if the operation changed state that must be durable.
    pub commits: bool,
    pub found: fn(Arc<DecisionRecord>) -> T,
    pub missing: fn(DecisionId) -> E,
    pub unread: fn(String) -> E,
}

impl<T: Send, E: Send> Pending for EvictedLookup<T, E> {
    fn evicted(&self) -> Option<DecisionId> {
        (!self.to.is_closed()).then_some(self.id)
    }

    fn persisted(self: Box<Self>, decisions: &Result<Decisions, StoreError>) {
        let answer = match decisions.as_ref().map(|decisions| decisions.get(&self.id)) {
            Ok(Some(record)) => Ok((self.found)(record.clone())),
            Ok(None) => Err((self.missing)(self.id)),
            Err(error) => Err((self.unread)(error.to_string())),
        };
        let _ = self.to.send(answer.map_err(CallError::Failed));
    }

    fn failed(self: Box<Self>, error: &StoreError) {
        let _ = self.to.send(Err(if self.commits {
            CallError::Unavailable(error.into())
        } else {
            CallError::Failed((self.unread)(error.to_string()))
        }));
    }
}

/// Change that the actor itself waits for.
pub(super) struct Confirmation(pub oneshot::Sender<Result<(), Unavailable>>);

impl Pending for Confirmation {
    fn persisted(self: Box<Self>, _: &Result<Decisions, StoreError>) {
        let _ = self.0.send(Ok(()));
    }

    fn failed(self: Box<Self>, error: &StoreError) {
        let _ = self.0.send(Err(error.into()));
    }
}

impl From<&StoreError> for Unavailable {
    fn from(error: &StoreError) -> Unavailable {
        match error {
            StoreError::Unknown(problem) => Unavailable::OutcomeUnknown(problem.clone()),
            error => Unavailable::StoreFailed(error.to_string()),
        }
    }
}
