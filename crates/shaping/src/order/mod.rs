//! Orders of service, one file each, of the requests that wait within their limits.

mod levels;
mod shares;

use self::levels::Levels;
use self::shares::Shares;
use crate::heap::Heap;
use crate::pool::{Entry, NONE, Pool};

/// Order in which a server starts requests. In every order, requests over their limits come last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Strict priorities, first come first served within a priority (SLO section 2.2.1).
    #[default]
    Priority,
    /// First come, first served.
    Fifo,
    /// Work in proportion to the weights of workloads (SLO section 3.3.1).
    Shares,
    /// Earliest deadline first.
    Deadline,
}

/// Requests that wait within their limits. A rank is the index of a priority among those of the server, 0 first.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    Levels(Levels),
    Shares(Shares),
    /// By deadline and number.
    Deadlines(Heap<(u64, u64)>),
}

impl Queue {
    pub fn new(order: Order) -> Queue {
        match order {
            Order::Priority | Order::Fifo => Queue::Levels(Levels::new()),
            Order::Shares => Queue::Shares(Shares::new()),
            Order::Deadline => Queue::Deadlines(Heap::new()),
        }
    }

    /// Adds a workload, or gives the place of a former one to a new one.
    pub fn add_flow(&mut self, flow: u32, weight: f64) {
        if let Queue::Shares(shares) = self {
            shares.add_flow(flow, weight);
        }
    }

    pub fn set_weight(&mut self, flow: u32, weight: f64) {
        if let Queue::Shares(shares) = self {
            shares.set_weight(flow, weight);
        }
    }

    /// Replaces the sorted priorities `old` by `new`. Requests keep their priorities, which are among both.
    pub fn set_priorities(&mut self, old: &[u32], new: &[u32]) {
        if let Queue::Levels(levels) = self {
            levels.set_priorities(old, new);
        }
    }

    /// Moves the requests of a workload to another rank, where they are in order of arrival.
    pub fn move_flow(&mut self, pool: &mut Pool, flow: u32, from: u32, to: u32) {
        if let Queue::Levels(levels) = self {
            levels.move_flow(pool, flow, from, to);
        }
    }

    #[inline]
    pub fn push(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        match self {
            Queue::Levels(levels) => levels.push(pool, rank, id),
            Queue::Shares(shares) => shares.push(pool, id),
            Queue::Deadlines(heap) => heap.set(id, deadline(pool.get(id))),
        }
    }

    /// Puts a started request back as the next of its rank or workload.
    #[inline]
    pub fn put_back(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        match self {
            Queue::Levels(levels) => levels.put_back(pool, rank, id),
            Queue::Shares(shares) => shares.put_back(pool, id),
            Queue::Deadlines(heap) => heap.set(id, deadline(pool.get(id))),
        }
    }

    /// The next request, or [`NONE`].
    #[inline]
    pub fn peek(&self) -> u32 {
        match self {
            Queue::Levels(levels) => levels.peek(),
            Queue::Shares(shares) => shares.peek(),
            Queue::Deadlines(heap) => heap.first().map_or(NONE, |(_, id)| id),
        }
    }

    /// Takes the next request, `id`, for its service.
    #[inline]
    pub fn take(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        match self {
            Queue::Levels(levels) => levels.remove(pool, rank, id),
            Queue::Shares(shares) => shares.take(pool, id),
            Queue::Deadlines(heap) => heap.remove(id),
        }
    }

    /// Removes a request that is not served.
    pub fn remove(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        match self {
            Queue::Levels(levels) => levels.remove(pool, rank, id),
            Queue::Shares(shares) => shares.remove(pool, id),
            Queue::Deadlines(heap) => heap.remove(id),
        }
    }
}

fn deadline(entry: &Entry) -> (u64, u64) {
    (entry.request.deadline.0, entry.request.number)
}
