//! Service orders of servers, one file each.

mod cake;
mod deadlines;
mod levels;
mod shares;

pub use cake::Cake;
pub(super) use cake::WeightController;

use self::deadlines::Deadlines;
use self::levels::Levels;
use self::shares::Shares;
use super::live::Pool;

/// Order in which a server serves waiting requests. In every order, requests over their limits come last.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Scheduling {
    /// Strict priorities, first come first served within a priority. PriorityMeister enforces this order; bySLO
    /// enforces it with other priorities.
    #[default]
    Priority,
    /// First come, first served at the server.
    Fifo,
    /// Proportional share (SLO section 3.3.1): device time in proportion to weights. Devices only.
    Shares,
    /// Proportional share with weights that feedback adjusts. Devices only.
    Cake(Cake),
    /// Earliest deadline first: the deadline is arrival plus SLO. Best effort comes last. Devices only.
    Deadline,
}

/// Requests that wait at a server within their limits, in the server's order.
#[derive(Clone, Debug)]
pub(super) enum RequestQueue {
    Levels(Levels),
    Shares(Shares),
    Deadlines(Deadlines),
}

impl RequestQueue {
    /// Creates an empty queue on `levels` levels, for workloads with these weights and with objectives in nanoseconds.
    pub(super) fn new(order: Scheduling, levels: usize, weights: &[f64], objectives: &[u64]) -> RequestQueue {
        match order {
            Scheduling::Priority | Scheduling::Fifo => RequestQueue::Levels(Levels::new(levels)),
            Scheduling::Shares | Scheduling::Cake(_) => RequestQueue::Shares(Shares::new(weights)),
            Scheduling::Deadline => RequestQueue::Deadlines(Deadlines::new(objectives)),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        match self {
            RequestQueue::Levels(levels) => levels.push(pool, id),
            RequestQueue::Shares(shares) => shares.push(pool, id),
            RequestQueue::Deadlines(deadlines) => deadlines.push(pool, id),
        }
    }

    /// Returns the next request, or [`super::live::NONE`].
    #[inline]
    pub(super) fn peek(&self) -> u32 {
        match self {
            RequestQueue::Levels(levels) => levels.peek(),
            RequestQueue::Shares(shares) => shares.peek(),
            RequestQueue::Deadlines(deadlines) => deadlines.peek(),
        }
    }

    /// Removes and returns the next request; the queue must not be empty.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut Pool) -> u32 {
        match self {
            RequestQueue::Levels(levels) => levels.pop(pool),
            RequestQueue::Shares(shares) => shares.pop(pool),
            RequestQueue::Deadlines(deadlines) => deadlines.pop(),
        }
    }

    /// Puts a request back as the first of its level, after a link has sent one of its packets. Links support levels
    /// only.
    #[inline]
    pub(super) fn put_back(&mut self, pool: &mut Pool, id: u32) {
        if let RequestQueue::Levels(levels) = self {
            levels.put_back(pool, id);
        }
    }

    /// Returns the weights of workloads, if the order has weights.
    pub(super) fn weights(&mut self) -> Option<&mut [f64]> {
        match self {
            RequestQueue::Shares(shares) => Some(&mut shares.weights),
            _ => None,
        }
    }
}
