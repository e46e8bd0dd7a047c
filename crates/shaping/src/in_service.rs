//! Requests in service, and the caps on them.

use leeward_traces::Kind;

use crate::caps::{Batch, Caps, StartCaps};
use crate::pool::{Entry, List, Pool, WAITING};
use crate::request::Request;

/// Priority of demoted requests, after all others.
pub(crate) const DEMOTED: u32 = u32::MAX;

/// Counts of the requests that are in service.
#[derive(Clone, Debug)]
pub(crate) struct InService {
    caps: Caps,
    /// Number of batches; a request without followers is a batch of one.
    outstanding: u32,
    /// Numbers of reads and of writes.
    counts: [u32; 2],
    /// Bytes of reads and of writes.
    bytes: [u64; 2],
    /// Numbers of requests and bytes started since the beginning.
    started: (u64, u64),
    /// Number of requests in service, by batch.
    batches: Vec<u32>,
    free: Vec<u32>,
    /// The batch that the next request may join.
    open: Option<OpenBatch>,
    /// With caps behind higher priorities: the oldest request of each.
    oldest: Option<Oldest>,
}

/// A batch of writes, until a request starts that does not join it.
#[derive(Clone, Copy, Debug)]
struct OpenBatch {
    batch: u32,
    flow: u32,
    priority: u32,
    /// End of its last write on the volume.
    end: u64,
    bytes: u64,
}

impl InService {
    pub fn new(caps: Caps) -> InService {
        InService {
            caps,
            outstanding: 0,
            counts: [0; 2],
            bytes: [0; 2],
            started: (0, 0),
            batches: Vec::new(),
            free: Vec::new(),
            open: None,
            oldest: caps.behind.map(|_| Oldest::new()),
        }
    }

    /// Number of requests in service.
    pub fn count(&self) -> usize {
        self.counts[0] as usize + self.counts[1] as usize
    }

    /// True if a request of this priority is in service. Known with caps behind higher priorities only.
    pub fn has_priority(&self, priority: u32) -> bool {
        self.oldest.as_ref().is_some_and(|oldest| oldest.has(priority))
    }

    /// Replaces the priorities of the server, which are sorted. Those of requests in service are among them.
    pub fn set_priorities(&mut self, priorities: &[u32]) {
        if let Some(oldest) = &mut self.oldest {
            oldest.set_priorities(priorities);
        }
    }

    /// Returns true if the caps let a request of this priority start.
    #[inline]
    pub fn may_start(&self, request: &Request, priority: u32) -> bool {
        let way = request.kind as usize;
        let [requests, most] = match request.kind {
            Kind::Read => [u64::from(self.caps.reads), self.caps.read_bytes],
            Kind::Write => [u64::from(self.caps.writes), self.caps.write_bytes],
        };
        let bytes = self.bytes[way];
        if self.outstanding >= self.caps.outstanding
            || u64::from(self.counts[way]) >= requests
            || (bytes > 0 && bytes.saturating_add(request.size) > most)
        {
            return false;
        }
        let (Some(StartCaps { requests, bytes }), Some(oldest)) = (self.caps.behind, &self.oldest) else {
            return true;
        };
        oldest.before(priority).is_none_or(|until| {
            self.started.0 - until.0 < u64::from(requests) && self.started.1.wrapping_sub(until.1) < bytes
        })
    }

    /// Returns true if the next request in order joins the open batch.
    #[inline]
    pub fn joins(&self, entry: &Entry, priority: u32) -> bool {
        let (Some(Batch { bytes, gap }), Some(open)) = (self.caps.batch, &self.open) else { return false };
        let Request { kind, size, offset, .. } = entry.request;
        kind == Kind::Write
            && (entry.flow, priority) == (open.flow, open.priority)
            && offset.is_some_and(|offset| offset.abs_diff(open.end) <= gap)
            && open.bytes.checked_add(size).is_some_and(|sum| sum <= bytes)
    }

    /// Ends the open batch: no request starts now, or the next one does not join.
    #[inline]
    pub fn close_batch(&mut self) {
        self.open = None;
    }

    /// Starts a request with the priority of its entry, in the open batch or in one of its own.
    pub fn start(&mut self, pool: &mut Pool, id: u32, joins: bool) {
        let entry = pool.get_mut(id);
        let Request { kind, size, offset, .. } = entry.request;
        let way = kind as usize;
        self.counts[way] += 1;
        self.bytes[way] = self.bytes[way].saturating_add(size);
        self.started = (self.started.0 + 1, self.started.1.wrapping_add(size));
        entry.started = self.started;
        let (flow, priority) = (entry.flow, entry.priority);
        let (batch, bytes) = match self.open.filter(|_| joins) {
            Some(open) => {
                self.batches[open.batch as usize] += 1;
                (open.batch, open.bytes + size)
            }
            None => {
                self.outstanding += 1;
                (self.add_batch(), size)
            }
        };
        entry.batch = batch;
        let end = offset.and_then(|offset| offset.checked_add(size));
        let may_open = self.caps.batch.is_some() && kind == Kind::Write && priority != DEMOTED;
        self.open = end.filter(|_| may_open).map(|end| OpenBatch { batch, flow, priority, end, bytes });
        if let Some(oldest) = &mut self.oldest {
            oldest.start(pool, id);
        }
    }

    fn add_batch(&mut self) -> u32 {
        if let Some(batch) = self.free.pop() {
            self.batches[batch as usize] = 1;
            return batch;
        }
        self.batches.push(1);
        (self.batches.len() - 1) as u32
    }

    /// Frees the caps of a request. Those of a batch are free when all of its requests are.
    pub fn end(&mut self, pool: &mut Pool, id: u32) {
        let Entry { request: Request { kind, size, .. }, batch, .. } = *pool.get(id);
        let way = kind as usize;
        self.counts[way] -= 1;
        // Zero without requests, also after a sum beyond the range.
        self.bytes[way] = if self.counts[way] == 0 { 0 } else { self.bytes[way].saturating_sub(size) };
        self.batches[batch as usize] -= 1;
        if self.batches[batch as usize] == 0 {
            self.outstanding -= 1;
            self.free.push(batch);
            self.open = self.open.filter(|open| open.batch != batch);
        }
        if let Some(oldest) = &mut self.oldest {
            oldest.end(pool, id);
        }
    }
}

/// Requests in service by priority, in order of start, and the oldest of all higher priorities in logarithmic time.
#[derive(Clone, Debug)]
struct Oldest {
    priorities: Vec<u32>,
    /// Requests by rank; the last list is for demoted requests.
    lists: Vec<List<WAITING>>,
    /// A tree of the `started` of the first request of each list. The leaves are the last half; each inner node is the
    /// least of its two children.
    tree: Vec<(u64, u64)>,
}

/// Node of a list without requests.
const NEVER: (u64, u64) = (u64::MAX, 0);

impl Oldest {
    fn new() -> Oldest {
        Oldest { priorities: Vec::new(), lists: vec![List::EMPTY], tree: vec![NEVER; 2] }
    }

    /// Rank of a priority; of an unknown one, that of the next lower priority.
    #[inline]
    fn rank(&self, priority: u32) -> usize {
        self.priorities.binary_search(&priority).unwrap_or_else(|rank| rank)
    }

    fn has(&self, priority: u32) -> bool {
        !self.lists[self.rank(priority)].is_empty()
    }

    fn set_priorities(&mut self, priorities: &[u32]) {
        let old = std::mem::replace(&mut self.priorities, priorities.to_vec());
        let mut lists = vec![List::EMPTY; priorities.len() + 1];
        let mut tree = vec![NEVER; 2 * lists.len().next_power_of_two()];
        let leaves = tree.len() / 2;
        for (priority, from) in old.into_iter().chain([DEMOTED]).zip(0..) {
            let to = self.rank(priority);
            if !self.lists[from].is_empty() {
                lists[to] = self.lists[from];
                tree[leaves + to] = self.node(from);
            }
        }
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at].min(tree[2 * at + 1]);
        }
        (self.lists, self.tree) = (lists, tree);
    }

    /// Leaf of a rank in the tree as it is.
    fn node(&self, rank: usize) -> (u64, u64) {
        self.tree[self.tree.len() / 2 + rank]
    }

    fn start(&mut self, pool: &mut Pool, id: u32) {
        let rank = self.rank(pool.get(id).priority);
        let was_empty = self.lists[rank].is_empty();
        self.lists[rank].push_back(pool, id);
        if was_empty {
            self.set(rank, pool.get(id).started);
        }
    }

    fn end(&mut self, pool: &mut Pool, id: u32) {
        let rank = self.rank(pool.get(id).priority);
        let was_first = self.lists[rank].head() == id;
        self.lists[rank].remove(pool, id);
        if was_first {
            let list = self.lists[rank];
            self.set(rank, if list.is_empty() { NEVER } else { pool.get(list.head()).started });
        }
    }

    fn set(&mut self, rank: usize, node: (u64, u64)) {
        let mut at = self.tree.len() / 2 + rank;
        self.tree[at] = node;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at].min(self.tree[2 * at + 1]);
        }
    }

    /// `started` of the oldest request of a higher priority.
    fn before(&self, priority: u32) -> Option<(u64, u64)> {
        let leaves = self.tree.len() / 2;
        let (mut from, mut to) = (leaves, leaves + self.rank(priority));
        let mut least = NEVER;
        // The widest subtrees between the first leaf and that of the priority.
        while from < to {
            if from % 2 == 1 {
                least = least.min(self.tree[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                least = least.min(self.tree[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        (least != NEVER).then_some(least)
    }
}
