//! Requests of a server, in one pool of reused slots, and lists of them that are linked through the slots.

use crate::request::{Request, Ticket};

/// Marker for no request.
pub(crate) const NONE: u32 = u32::MAX;

/// Links of the list in which a request waits: behind its limits, in the order of service, or among demoted requests.
pub(crate) const WAITING: usize = 0;

/// Links of the list of requests over their limits that an idle server may take.
pub(crate) const OVER: usize = 1;

/// Place of a request in the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// The slot has no request.
    Free,
    /// Waits for tokens.
    Limited,
    /// Waits in the order of service.
    Ordered,
    /// Waits after all others, although it is not behind a limit: it was demoted before.
    Demoted,
    /// Started and not completed.
    Started,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

/// A request, or the slot of a former one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub request: Request,
    /// Index of its workload.
    pub flow: u32,
    pub place: Place,
    /// Number of requests that had this slot before.
    generation: u32,
    /// Position in the order of arrival at its list. Lists are sorted by it.
    pub stamp: u64,
    /// Time of arrival.
    pub entered: u64,
    /// Priority with which it started.
    pub priority: u32,
    /// Index of its batch, from its start on.
    pub batch: u32,
    /// Numbers of requests and bytes started at the server up to this request.
    pub started: (u64, u64),
    links: [Links; 2],
}

/// Pool of all requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Pool {
    #[inline]
    pub fn add(&mut self, request: Request, flow: u32, stamp: u64, entered: u64) -> u32 {
        let unlinked = Links { previous: NONE, next: NONE };
        let id = self.free.pop();
        let entry = Entry {
            request,
            flow,
            place: Place::Limited,
            generation: id.map_or(0, |id| self.entries[id as usize].generation),
            stamp,
            entered,
            priority: 0,
            batch: NONE,
            started: (0, 0),
            links: [unlinked; 2],
        };
        match id {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn remove(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        (entry.place, entry.generation) = (Place::Free, entry.generation.wrapping_add(1));
        self.free.push(id);
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Entry {
        &mut self.entries[id as usize]
    }

    #[inline]
    pub fn ticket(&self, id: u32) -> Ticket {
        Ticket { id, generation: self.get(id).generation }
    }

    /// The request of a ticket; `None` if it has ended.
    #[inline]
    pub fn find(&self, ticket: Ticket) -> Option<u32> {
        let entry = self.entries.get(ticket.id as usize)?;
        let is_there = entry.place != Place::Free && entry.generation == ticket.generation;
        is_there.then_some(ticket.id)
    }
}

/// Requests in order, linked by their links of the number `LINKS`. A request is in at most one list of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<const LINKS: usize> {
    head: u32,
    tail: u32,
}

impl<const LINKS: usize> List<LINKS> {
    pub const EMPTY: List<LINKS> = List { head: NONE, tail: NONE };

    #[inline]
    pub fn head(&self) -> u32 {
        self.head
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The request after `id`.
    pub fn after(pool: &Pool, id: u32) -> u32 {
        pool.get(id).links[LINKS].next
    }

    /// The requests in order.
    pub fn iter(self, pool: &Pool) -> impl Iterator<Item = u32> {
        let there = |id: u32| (id != NONE).then_some(id);
        std::iter::successors(there(self.head), move |&id| there(Self::after(pool, id)))
    }

    #[inline]
    pub fn push_back(&mut self, pool: &mut Pool, id: u32) {
        self.insert(pool, NONE, id);
    }

    /// Inserts a request before `at`, or as the last one if that is [`NONE`].
    #[inline]
    fn insert(&mut self, pool: &mut Pool, at: u32, id: u32) {
        let previous = if at == NONE { self.tail } else { pool.get(at).links[LINKS].previous };
        pool.get_mut(id).links[LINKS] = Links { previous, next: at };
        match previous {
            NONE => self.head = id,
            previous => pool.get_mut(previous).links[LINKS].next = id,
        }
        match at {
            NONE => self.tail = id,
            at => pool.get_mut(at).links[LINKS].previous = id,
        }
    }

    /// Removes a request of this list.
    #[inline]
    pub fn remove(&mut self, pool: &mut Pool, id: u32) {
        let Links { previous, next } = pool.get(id).links[LINKS];
        match previous {
            NONE => self.head = next,
            previous => pool.get_mut(previous).links[LINKS].next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => pool.get_mut(next).links[LINKS].previous = previous,
        }
    }

    /// Inserts requests by their stamps. They and the list are in order of stamps.
    pub fn merge(&mut self, pool: &mut Pool, ids: &[u32]) {
        let mut at = self.head;
        for &id in ids {
            while at != NONE && pool.get(at).stamp < pool.get(id).stamp {
                at = Self::after(pool, at);
            }
            self.insert(pool, at, id);
        }
    }
}
