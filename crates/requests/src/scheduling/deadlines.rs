//! Earliest deadline first: the deadline of a request is its arrival plus its workload's SLO, regardless of earlier
//! delays (SLO section 3.3.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::live::{NONE, Pool};

#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// Nanoseconds from arrival to deadline, by workload; `u64::MAX` without an SLO.
    objectives: Vec<u64>,
    /// Deadline, number of the request, request.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Deadlines {
    pub(super) fn new(objectives: &[u64]) -> Deadlines {
        Deadlines { objectives: objectives.to_vec(), heap: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, pool: &Pool, id: u32) {
        let live = pool.get(id);
        let deadline = live.arrived.saturating_add(self.objectives[live.workload as usize]);
        self.heap.push(Reverse((deadline, live.number, id)));
    }

    pub(super) fn peek(&self) -> u32 {
        self.heap.peek().map_or(NONE, |&Reverse((_, _, id))| id)
    }

    pub(super) fn pop(&mut self) -> u32 {
        self.heap.pop().map_or(NONE, |Reverse((_, _, id))| id)
    }
}
