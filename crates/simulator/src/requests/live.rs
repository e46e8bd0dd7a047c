//! Requests on their way, in one pool of places that are used again, and lists of them that need no memory of their own.

use leeward_traces::Kind;

/// No request.
pub(super) const NONE: u32 = u32::MAX;

/// The level of requests over their limits: after all others.
pub(super) const DEMOTED: u32 = u32::MAX;

/// A request where it is, or a packet of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// The one behind it in the list it is in.
    pub(super) next: u32,
    pub(super) workload: u32,
    /// Which of all hops it is at.
    pub(super) hop: u32,
    /// Its rank at the queue it is at, 0 first; [`DEMOTED`] for the rest of a stage at which it was over its limits.
    pub(super) level: u32,
    pub(super) kind: Kind,
    /// A packet that is not the last of its request: it fills queues, and ends with its stage.
    pub(super) is_packet: bool,
    /// Waits behind a limiter: its tokens are not there yet.
    pub(super) is_over: bool,
    /// It was over its limits somewhere on its way.
    pub(super) was_demoted: bool,
    /// It gives back the place at a device that it, or its batch, has.
    pub(super) frees: bool,
    /// In order of arrival, over all workloads.
    pub(super) number: u64,
    pub(super) arrived: u64,
    /// When it came to the queue it is at.
    pub(super) entered: u64,
    /// When its stage began.
    pub(super) since: u64,
    /// Work left at the queue it is at.
    pub(super) left: f64,
    pub(super) work: [f64; 3],
    pub(super) size: u64,
    pub(super) offset: Option<u64>,
    /// Nanoseconds at a device beside its work and the device's latency.
    pub(super) tail: u64,
    /// Nanoseconds in each stage so far.
    pub(super) spent: [u64; 3],
}

/// All places.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    places: Vec<Live>,
    free: Vec<u32>,
}

impl Pool {
    #[inline]
    pub(super) fn add(&mut self, live: Live) -> u32 {
        if let Some(id) = self.free.pop() {
            self.places[id as usize] = live;
            return id;
        }
        self.places.push(live);
        (self.places.len() - 1) as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        // A place that nobody has is of no request's number, so that stale entries of it are seen to be such.
        self.places[id as usize].number = u64::MAX;
        self.free.push(id);
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Live {
        &self.places[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Live {
        &mut self.places[id as usize]
    }
}

/// Requests in order, linked through their places: each is in one list at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List { head: NONE, tail: NONE };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        pool.get_mut(id).next = NONE;
        if self.head == NONE {
            self.head = id;
        } else {
            pool.get_mut(self.tail).next = id;
        }
        self.tail = id;
    }

    #[inline]
    pub(super) fn push_front(&mut self, pool: &mut Pool, id: u32) {
        pool.get_mut(id).next = self.head;
        if self.head == NONE {
            self.tail = id;
        }
        self.head = id;
    }

    #[inline]
    pub(super) fn pop(&mut self, pool: &Pool) -> u32 {
        let id = self.head;
        if id != NONE {
            self.head = pool.get(id).next;
        }
        id
    }
}
