//! The form of an operation: a command to the coordinator with its own reply and its own error. The table of all
//! operations is in [`super::operations`].

use std::sync::Arc;

use leeward_fabric::{Fabric, Nanos};
use leeward_records::{DecisionId, DecisionRecord};
use tokio::sync::oneshot;

use super::replies::{EvictedLookup, Pending, Persisted};
use crate::core::{
    Addresses, Answer, CallError, Completion, Coordinator, DecisionLookup, PlaceError, Placed, Unavailable,
};

/// Channels as reply addresses.
pub enum Channels {}

impl Addresses for Channels {
    type To<T> = oneshot::Sender<T>;

    fn is_open<T>(to: &oneshot::Sender<T>) -> bool {
        !to.is_closed()
    }
}

/// Channel for the reply to an operation.
pub type ReplyTo<O> = oneshot::Sender<Answer<<O as Operation>::Reply, <O as Operation>::Error>>;

/// Relation of an operation to decisions and their durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Takes in telemetry: always possible.
    Telemetry,
    /// Computes from the ledger: needs current decisions.
    Compute,
    /// Shows decisions: needs current decisions. The leader's reply waits until they are durable.
    Read,
    /// Changes decisions: only on the leader. The reply waits until the changes are durable.
    Write,
}

/// Operation on the coordinator.
pub trait Operation: Sized + Send + 'static {
    /// Reply if it succeeds.
    type Reply: Send + 'static;
    /// Error if it fails.
    type Error: Send + 'static;

    /// Relation to decisions and their durability.
    const ACCESS: Access;
    /// Method of the coordinator that runs the operation.
    const METHOD: Method<Self>;
}

/// Method of the coordinator, by the way of its reply.
pub enum Method<O: Operation> {
    /// The method returns the reply.
    Now(NowMethod<O>),
    /// The reply is a completion of the coordinator, now or later.
    Completed(CompletedMethod<O>),
    /// The method returns a decision, or its id if the decision left memory and is only in the store.
    Lookup(LookupMethod<O>, StoreLookup<O>),
}

type NowMethod<O> =
    fn(&mut Coordinator<Channels>, Nanos, O) -> Result<<O as Operation>::Reply, <O as Operation>::Error>;
type CompletedMethod<O> = fn(&mut Coordinator<Channels>, Nanos, O, ReplyTo<O>);
type LookupMethod<O> = fn(
    &mut Coordinator<Channels>,
    Nanos,
    O,
) -> Result<DecisionLookup<<O as Operation>::Reply>, <O as Operation>::Error>;

/// Replies to a lookup in the store.
pub struct StoreLookup<O: Operation> {
    /// Reply with the decision.
    pub found: fn(Arc<DecisionRecord>) -> O::Reply,
    /// The store has no such decision.
    pub missing: fn(DecisionId) -> O::Error,
    /// The store could not be read, with the reason.
    pub unread: fn(String) -> O::Error,
}

/// One iteration of the actor's loop: the coordinator at the time of the iteration, and the replies that wait for
/// durability.
pub(super) struct Turn<'a> {
    pub now: Nanos,
    pub coordinator: &'a mut Coordinator<Channels>,
    pub pending: &'a mut Vec<Box<dyn Pending>>,
    pub is_leader: bool,
}

impl Turn<'_> {
    /// Replies to an operation, or queues the reply until the changes are durable.
    fn reply<O: Operation>(&mut self, to: ReplyTo<O>, result: Result<O::Reply, O::Error>) {
        match result {
            Ok(reply) if self.is_leader && matches!(O::ACCESS, Access::Read | Access::Write) => {
                self.pending.push(Box::new(Persisted { to, reply }));
            }
            // The client may have disconnected.
            result => drop(to.send(result.map_err(CallError::Failed))),
        }
    }

    /// Sends the completions of the coordinator, or queues them until the changes are durable.
    pub fn complete(&mut self) {
        for completion in self.coordinator.completions() {
            match completion {
                Completion::Place(to, Ok(DecisionLookup::InMemory(reply))) if self.is_leader => {
                    self.pending.push(Box::new(Persisted { to, reply }));
                }
                Completion::WhatIf(to, Ok(reply)) if self.is_leader && reply.is_stored => {
                    self.pending.push(Box::new(Persisted { to, reply }));
                }
                Completion::Place(to, Ok(DecisionLookup::InMemory(reply))) => drop(to.send(Ok(reply))),
                Completion::Place(to, Ok(DecisionLookup::Evicted(id))) => {
                    self.pending.push(Box::new(EvictedLookup {
                        to,
                        id,
                        commits: false,
                        found: |record| Placed { record, repeated: true },
                        missing: PlaceError::Forgotten,
                        unread: PlaceError::StoreReadFailed,
                    }));
                }
                Completion::Place(to, Err(error)) => drop(to.send(Err(error))),
                Completion::WhatIf(to, answer) => drop(to.send(answer)),
                Completion::Score(to, answer) => drop(to.send(answer)),
            }
        }
    }
}

/// Operation in the channel to the actor, without its type.
pub(super) struct Call {
    pub access: Access,
    /// Fabric that the ids in the operation refer to.
    pub fabric: Arc<Fabric>,
    /// Runs the operation in a turn, or rejects it. Its reply is sent, queued, or becomes a completion of the
    /// coordinator.
    pub run: RunCall,
}

type RunCall = Box<dyn FnOnce(Result<&mut Turn<'_>, Unavailable>) + Send>;

impl Call {
    pub fn new<O: Operation>(operation: O, fabric: Arc<Fabric>, to: ReplyTo<O>) -> Call {
        let run: RunCall = Box::new(move |turn| match turn.map(|turn| (turn, O::METHOD)) {
            Ok((turn, Method::Now(method))) => {
                let result = method(turn.coordinator, turn.now, operation);
                turn.reply::<O>(to, result);
            }
            Ok((turn, Method::Completed(method))) => method(turn.coordinator, turn.now, operation, to),
            Ok((turn, Method::Lookup(method, StoreLookup { found, missing, unread }))) => {
                match method(turn.coordinator, turn.now, operation) {
                    Ok(DecisionLookup::InMemory(reply)) => turn.reply::<O>(to, Ok(reply)),
                    Ok(DecisionLookup::Evicted(id)) => {
                        let commits = O::ACCESS == Access::Write;
                        turn.pending.push(Box::new(EvictedLookup {
                            to,
                            id,
                            commits,
                            found,
                            missing,
                            unread,
                        }));
                    }
                    Err(error) => turn.reply::<O>(to, Err(error)),
                }
            }
            // The client may have disconnected.
            Err(reason) => drop(to.send(Err(CallError::Unavailable(reason)))),
        });
        Call { access: O::ACCESS, fabric, run }
    }
}
