//! Idempotency of requests, by clients with sequence numbers and by single keys. A repeated request is not placed
//! again. Memory is bounded: beyond the limits, the least recent client or the oldest key is forgotten.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::{Caller, DecisionId};

/// The most recent clients and keys.
#[derive(Debug)]
pub struct IdempotencyCache {
    by_name: BTreeMap<Arc<str>, Client>,
    /// Names of clients by last use.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    keys: BTreeMap<Arc<str>, RequestState>,
    /// Keys in order of arrival.
    keys_by_age: VecDeque<Arc<str>>,
    max_clients: usize,
    max_keys: usize,
}

#[derive(Debug)]
struct Client {
    /// Last sequence number, and the state of its request.
    last: u64,
    state: RequestState,
    /// Sequence numbers without a decision.
    waiting: BTreeSet<u64>,
    used: u64,
}

/// State of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestState {
    /// The request waits for its decision, under this id.
    Waits(DecisionId),
    /// The request was decided, under this id.
    Decided(DecisionId),
    /// The request was rejected. Nothing was committed, so the client may repeat it.
    Rejected,
}

/// Relation of a request to earlier ones of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// A new request.
    New,
    /// The last request of the client, or one with a known key.
    Last(RequestState),
    /// A request older than the client's last one, which has this number.
    Older(u64),
}

impl IdempotencyCache {
    /// Creates a cache with limits on clients and keys.
    pub fn new(max_clients: usize, max_keys: usize) -> IdempotencyCache {
        let (by_name, by_use, keys) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        IdempotencyCache {
            by_name,
            by_use,
            uses: 0,
            keys,
            keys_by_age: VecDeque::new(),
            max_clients,
            max_keys,
        }
    }

    /// Looks up a request, and marks its client as recently used.
    pub fn look_up(&mut self, caller: &Caller) -> Lookup {
        let (name, sequence) = match caller {
            Caller::Key(key) => {
                return self.keys.get(key).map_or(Lookup::New, |&state| Lookup::Last(state));
            }
            Caller::Client { client, sequence } => (client, *sequence),
        };
        if let Some(client) = self.by_name.get_mut(name) {
            self.uses += 1;
            self.by_use.remove(&client.used);
            client.used = self.uses;
            self.by_use.insert(self.uses, name.clone());
        }
        match self.by_name.get(name) {
            Some(client) if sequence < client.last => Lookup::Older(client.last),
            Some(client) if sequence == client.last => Lookup::Last(client.state),
            _ => Lookup::New,
        }
    }

    /// Records that a request waits for its decision under this id.
    pub fn note_waiting(&mut self, caller: &Caller, id: DecisionId) {
        self.note(caller, RequestState::Waits(id));
        if let Caller::Client { client, sequence } = caller
            && let Some(client) = self.by_name.get_mut(client)
        {
            client.waiting.insert(*sequence);
        }
    }

    /// Records the state of a request; the request may be from before the start of this service.
    pub fn note(&mut self, caller: &Caller, state: RequestState) {
        match caller {
            Caller::Key(key) => {
                if self.keys.insert(key.clone(), state).is_none() {
                    self.keys_by_age.push_back(key.clone());
                }
                if self.keys.len() > self.max_keys
                    && let Some(oldest) = self.keys_by_age.pop_front()
                {
                    self.keys.remove(&oldest);
                }
            }
            Caller::Client { client: name, sequence } => {
                self.uses += 1;
                let (last, used) = (*sequence, self.uses);
                let new = || Client { last, state, waiting: BTreeSet::new(), used: 0 };
                let client = self.by_name.entry(name.clone()).or_insert_with(new);
                self.by_use.remove(&client.used);
                client.used = used;
                if last >= client.last {
                    (client.last, client.state) = (last, state);
                }
                self.by_use.insert(used, name.clone());
                if self.by_name.len() > self.max_clients
                    && let Some((_, least_recent)) = self.by_use.pop_first()
                {
                    self.by_name.remove(&least_recent);
                }
            }
        }
    }

    /// Updates the state of a request.
    pub fn settle(&mut self, caller: &Caller, state: RequestState) {
        match caller {
            Caller::Key(key) => {
                if let Some(known) = self.keys.get_mut(key) {
                    *known = state;
                }
            }
            Caller::Client { client, sequence } => {
                let Some(client) = self.by_name.get_mut(client) else { return };
                client.waiting.remove(sequence);
                if client.last == *sequence {
                    client.state = state;
                }
            }
        }
    }

    /// For each client, the highest sequence number up to which no request waits. A client whose first request still
    /// waits is left out.
    pub fn completed_sequences(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        self.by_name.iter().filter_map(|(name, client)| {
            let completed = match client.waiting.first() {
                None => client.last,
                Some(first) => first.checked_sub(1)?,
            };
            Some((name.clone(), completed))
        })
    }
}
