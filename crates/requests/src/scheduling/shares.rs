//! Shares of device time, by start-time fair queueing (Goyal, Vin, Cheng, 1996). A request's start tag is the later of
//! the device's virtual time and the end tag of its workload's last request. Its end tag is its start tag plus its work
//! divided by the weight. The request with the smallest start tag is served next, and its start tag becomes the
//! device's virtual time. So an idle workload accumulates no credit. A busy workload gets its share of every interval,
//! except for one request of each workload.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::live::{List, NONE, Pool};

#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// Weights by workload.
    pub(crate) weights: Vec<f64>,
    /// End tags of the last requests served, by workload.
    ends: Vec<f64>,
    lists: Vec<List>,
    /// First request of each workload with waiting requests.
    heads: BinaryHeap<Head>,
    /// The device's virtual time.
    time: f64,
}

/// First request of a workload; the greatest is served next.
#[derive(Clone, Copy, Debug)]
struct Head {
    start: f64,
    number: u64,
    workload: u32,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        other.start.total_cmp(&self.start).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl Shares {
    pub(super) fn new(weights: &[f64]) -> Shares {
        Shares {
            weights: weights.to_vec(),
            ends: vec![0.0; weights.len()],
            lists: vec![List::EMPTY; weights.len()],
            heads: BinaryHeap::with_capacity(weights.len()),
            time: 0.0,
        }
    }

    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        let live = pool.get(id);
        let (workload, number) = (live.workload, live.number);
        let list = &mut self.lists[workload as usize];
        if list.is_empty() {
            let start = self.ends[workload as usize].max(self.time);
            self.heads.push(Head { start, number, workload });
        }
        list.push(pool, id);
    }

    pub(super) fn peek(&self) -> u32 {
        self.heads.peek().map_or(NONE, |head| self.lists[head.workload as usize].head)
    }

    pub(super) fn pop(&mut self, pool: &Pool) -> u32 {
        let Some(head) = self.heads.pop() else { return NONE };
        let workload = head.workload as usize;
        let id = self.lists[workload].pop(pool);
        self.time = head.start;
        self.ends[workload] = head.start + pool.get(id).left / self.weights[workload];
        let next = self.lists[workload].head;
        if next != NONE {
            self.heads.push(Head { start: self.ends[workload], number: pool.get(next).number, ..head });
        }
        id
    }
}
