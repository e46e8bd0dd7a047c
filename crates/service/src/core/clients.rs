//! Clients that number their requests, and keys of single ones, so that what is sent again is not placed again. Memory is
//! bounded: the client that was silent longest, or the oldest key, is forgotten when there are too many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use leeward_records::Caller;

/// The clients heard last, and the last keys.
#[derive(Debug)]
pub(crate) struct Clients {
    by_name: BTreeMap<Arc<str>, Client>,
    /// Names by when they were last heard.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    keys: BTreeMap<Arc<str>, Fate>,
    /// Keys in the order in which they were first heard.
    heard: VecDeque<Arc<str>>,
    most: usize,
    most_keys: usize,
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

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It waits to be decided, under this number.
    Waits(u64),
    /// It was decided, under this number.
    Decided(u64),
    /// It was refused; nothing was committed, so it may be asked again.
    Refused,
}

/// What a request is to who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sequence {
    /// It was not heard before.
    New,
    /// It is the last one, or of a key that was heard.
    Last(Fate),
    /// It is older than this one.
    Older(u64),
}

impl Clients {
    /// Knows so many clients and keys at most.
    pub fn new(most: usize, most_keys: usize) -> Clients {
        let (by_name, by_use, keys) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Clients { by_name, by_use, uses: 0, keys, heard: VecDeque::new(), most, most_keys }
    }

    /// Hears a caller, and says what its request is.
    pub fn hear(&mut self, caller: &Caller) -> Sequence {
        let (name, sequence) = match caller {
            Caller::Key(key) => {
                return self.keys.get(key).map_or(Sequence::New, |&fate| Sequence::Last(fate));
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
            Some(client) if sequence < client.last => Sequence::Older(client.last),
            Some(client) if sequence == client.last => Sequence::Last(client.fate),
            _ => Sequence::New,
        }
    }

    /// A caller's request waits to be decided under a number.
    pub fn ask(&mut self, caller: &Caller, ask: u64) {
        self.note(caller, Fate::Waits(ask));
        if let Caller::Client { client, sequence } = caller
            && let Some(client) = self.by_name.get_mut(client)
        {
            client.waiting.insert(*sequence);
        }
    }

    /// What is known of a caller's request, from before this service began.
    pub fn note(&mut self, caller: &Caller, fate: Fate) {
        match caller {
            Caller::Key(key) => {
                if self.keys.insert(key.clone(), fate).is_none() {
                    self.heard.push_back(key.clone());
                }
                if self.keys.len() > self.most_keys
                    && let Some(oldest) = self.heard.pop_front()
                {
                    self.keys.remove(&oldest);
                }
            }
            Caller::Client { client: name, sequence } => {
                self.uses += 1;
                let (last, used) = (*sequence, self.uses);
                let new = || Client { last, fate, waiting: BTreeSet::new(), used: 0 };
                let client = self.by_name.entry(name.clone()).or_insert_with(new);
                self.by_use.remove(&client.used);
                client.used = used;
                if last >= client.last {
                    (client.last, client.fate) = (last, fate);
                }
                self.by_use.insert(used, name.clone());
                if self.by_name.len() > self.most
                    && let Some((_, silent)) = self.by_use.pop_first()
                {
                    self.by_name.remove(&silent);
                }
            }
        }
    }

    /// A caller's request met its fate.
    pub fn settle(&mut self, caller: &Caller, fate: Fate) {
        match caller {
            Caller::Key(key) => {
                if let Some(known) = self.keys.get_mut(key) {
                    *known = fate;
                }
            }
            Caller::Client { client, sequence } => {
                let Some(client) = self.by_name.get_mut(client) else { return };
                client.waiting.remove(sequence);
                if client.last == *sequence {
                    client.fate = fate;
                }
            }
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
