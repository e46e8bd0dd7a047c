//! Clients that number their requests, so that one that is sent again is not placed again. Memory is bounded: the
//! client that was silent longest is forgotten when there are too many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::message::Caller;

/// The clients heard last.
#[derive(Debug)]
pub(crate) struct Clients {
    by_name: BTreeMap<Arc<str>, Client>,
    /// Names by when they were last heard.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    most: usize,
}

#[derive(Debug)]
struct Client {
    /// Its last sequence, and what became of it.
    last: u64,
    fate: Fate,
    /// Sequences that are not decided yet.
    waiting: BTreeSet<u64>,
    used: u64,
}

/// What became of a client's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It waits to be decided, under this number.
    Waits(u64),
    /// It was decided, under this number.
    Decided(u64),
    /// It was refused; nothing was committed, so it may be asked again.
    Refused,
}

/// What a sequence is to its client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sequence {
    /// It was not heard before.
    New,
    /// It is the last one.
    Last(Fate),
    /// It is older than this one.
    Older(u64),
}

impl Clients {
    /// Knows at most `most`.
    pub fn new(most: usize) -> Clients {
        Clients { by_name: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, most }
    }

    /// Hears a caller, and says what its sequence is.
    pub fn hear(&mut self, caller: &Caller) -> Sequence {
        if let Some(client) = self.by_name.get_mut(&caller.client) {
            self.uses += 1;
            self.by_use.remove(&client.used);
            client.used = self.uses;
            self.by_use.insert(self.uses, caller.client.clone());
        }
        match self.by_name.get(&caller.client) {
            Some(client) if caller.sequence < client.last => Sequence::Older(client.last),
            Some(client) if caller.sequence == client.last => Sequence::Last(client.fate),
            _ => Sequence::New,
        }
    }

    /// A caller's request waits to be decided under a number.
    pub fn ask(&mut self, caller: &Caller, ask: u64) {
        self.uses += 1;
        let (last, fate, used) = (caller.sequence, Fate::Waits(ask), self.uses);
        let new = || Client { last, fate, waiting: BTreeSet::new(), used: 0 };
        let client = self.by_name.entry(caller.client.clone()).or_insert_with(new);
        self.by_use.remove(&client.used);
        (client.last, client.fate, client.used) = (last, fate, used);
        client.waiting.insert(last);
        self.by_use.insert(used, caller.client.clone());
        if self.by_name.len() > self.most
            && let Some((_, silent)) = self.by_use.pop_first()
        {
            self.by_name.remove(&silent);
        }
    }

    /// A caller's request met its fate.
    pub fn settle(&mut self, caller: &Caller, fate: Fate) {
        let Some(client) = self.by_name.get_mut(&caller.client) else { return };
        client.waiting.remove(&caller.sequence);
        if client.last == caller.sequence {
            client.fate = fate;
        }
    }

    /// For each client, the sequence up to which nothing of it waits any more. A client of which its first request
    /// waits has none.
    pub fn counted(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        self.by_name.iter().filter_map(|(name, client)| {
            let counted = match client.waiting.first() {
                None => client.last,
                Some(first) => first.checked_sub(1)?,
            };
            Some((name.clone(), counted))
        })
    }
}
