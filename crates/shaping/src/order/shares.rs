//! Shares of a server, by start-time fair queueing (Goyal, Vin, Cheng, 1996). A request's start tag is the later of
//! the server's virtual time and the end tag of its workload's last request. Its end tag is its start tag plus its work
//! divided by the weight. The request with the smallest start tag is served next, and its start tag becomes the
//! server's virtual time. So an idle workload accumulates no credit. A busy workload gets its share of every interval,
//! except for one request of each workload.

use crate::heap::Heap;
use crate::pool::{List, NONE, Pool, WAITING};

#[derive(Clone, Debug)]
pub(crate) struct Shares {
    flows: Vec<Share>,
    /// Start tag and number of the first request of each workload with waiting requests. Tags are not negative, so
    /// their bits have their order.
    heads: Heap<(u64, u64)>,
    /// The server's virtual time.
    time: f64,
}

/// Share of a workload.
#[derive(Clone, Copy, Debug)]
struct Share {
    weight: f64,
    /// End tag of the last request served.
    end: f64,
    list: List<WAITING>,
}

impl Shares {
    pub(super) fn new() -> Shares {
        Shares { flows: Vec::new(), heads: Heap::new(), time: 0.0 }
    }

    pub(super) fn add_flow(&mut self, flow: u32, weight: f64) {
        let share = Share { weight, end: 0.0, list: List::EMPTY };
        match self.flows.get_mut(flow as usize) {
            Some(former) => *former = share,
            None => self.flows.push(share),
        }
    }

    pub(super) fn set_weight(&mut self, flow: u32, weight: f64) {
        self.flows[flow as usize].weight = weight;
    }

    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        let flow = pool.get(id).flow;
        let share = &mut self.flows[flow as usize];
        if share.list.is_empty() {
            let start = share.end.max(self.time);
            self.heads.set(flow, (start.to_bits(), pool.get(id).request.number));
        }
        share.list.push_back(pool, id);
    }

    pub(super) fn put_back(&mut self, pool: &mut Pool, id: u32) {
        let flow = pool.get(id).flow;
        let share = &mut self.flows[flow as usize];
        share.list.merge(pool, &[id]);
        let start = share.end.max(self.time);
        self.set_head(pool, flow, start);
    }

    pub(super) fn peek(&self) -> u32 {
        self.heads.first().map_or(NONE, |(_, flow)| self.flows[flow as usize].list.head())
    }

    pub(super) fn take(&mut self, pool: &mut Pool, id: u32) {
        let flow = pool.get(id).flow;
        let Some((start, _)) = self.heads.key(flow) else { return };
        let share = &mut self.flows[flow as usize];
        self.time = f64::from_bits(start);
        share.end = self.time + pool.get(id).request.work / share.weight;
        share.list.remove(pool, id);
        let start = share.end;
        self.set_head(pool, flow, start);
    }

    pub(super) fn remove(&mut self, pool: &mut Pool, id: u32) {
        let flow = pool.get(id).flow;
        let Some((start, _)) = self.heads.key(flow) else { return };
        self.flows[flow as usize].list.remove(pool, id);
        self.set_head(pool, flow, f64::from_bits(start));
    }

    /// Sets the start tag of a workload's first request, if it has one.
    fn set_head(&mut self, pool: &Pool, flow: u32, start: f64) {
        match self.flows[flow as usize].list.head() {
            NONE => self.heads.remove(flow),
            id => self.heads.set(flow, (start.to_bits(), pool.get(id).request.number)),
        }
    }
}
