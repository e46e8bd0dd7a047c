//! Who is served next: one file for each way.

mod cake;
mod deadlines;
mod levels;
mod shares;

pub use cake::Cake;
pub(super) use cake::Control;

use self::deadlines::Deadlines;
use self::levels::Levels;
use self::shares::Shares;
use super::live::Pool;

/// Which of the requests that wait at a server is next. Those over their limits come after all others in any order.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Order {
    /// Strict priorities, and within one in order of arrival: what PriorityMeister enforces, and bySLO with other priorities.
    #[default]
    Priority,
    /// In order of arrival at the server.
    Fifo,
    /// Device time in proportion to weights: proportional share (SLO section 3.3.1). Devices only.
    Shares,
    /// Shares with weights moved by feedback. Devices only.
    Cake(Cake),
    /// The earliest deadline, arrival and SLO, first; best effort last. Devices only.
    Deadline,
}

/// What waits at a server within its limits, in the server's order.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    Levels(Levels),
    Shares(Shares),
    Deadlines(Deadlines),
}

impl Waiting {
    /// For workloads of these weights and objectives in nanoseconds, on so many levels.
    pub(super) fn new(order: Order, levels: usize, weights: &[f64], objectives: &[u64]) -> Waiting {
        match order {
            Order::Priority | Order::Fifo => Waiting::Levels(Levels::new(levels)),
            Order::Shares | Order::Cake(_) => Waiting::Shares(Shares::new(weights)),
            Order::Deadline => Waiting::Deadlines(Deadlines::new(objectives)),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        match self {
            Waiting::Levels(levels) => levels.push(pool, id),
            Waiting::Shares(shares) => shares.push(pool, id),
            Waiting::Deadlines(deadlines) => deadlines.push(pool, id),
        }
    }

    /// The next, or [`super::live::NONE`].
    #[inline]
    pub(super) fn peek(&self) -> u32 {
        match self {
            Waiting::Levels(levels) => levels.peek(),
            Waiting::Shares(shares) => shares.peek(),
            Waiting::Deadlines(deadlines) => deadlines.peek(),
        }
    }

    /// Takes the next out; there is one.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut Pool) -> u32 {
        match self {
            Waiting::Levels(levels) => levels.pop(pool),
            Waiting::Shares(shares) => shares.pop(pool),
            Waiting::Deadlines(deadlines) => deadlines.pop(),
        }
    }

    /// Puts back one that a link has sent a packet of; it is the first of its level. Links have no other order than levels.
    #[inline]
    pub(super) fn again(&mut self, pool: &mut Pool, id: u32) {
        if let Waiting::Levels(levels) = self {
            levels.again(pool, id);
        }
    }

    /// The weights of workloads, where there are such.
    pub(super) fn weights(&mut self) -> Option<&mut [f64]> {
        match self {
            Waiting::Shares(shares) => Some(&mut shares.weights),
            _ => None,
        }
    }
}
