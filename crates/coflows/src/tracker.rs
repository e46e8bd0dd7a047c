//! Tracker of the coflows of a run: their bounds while their flows start, and their ends.

use std::collections::{BTreeMap, HashMap};

use leeward_fabric::{Capacities, Hop};
use leeward_fluid::{Finished, FlowId};

use super::coflow::{Arrival, Coflow};

/// Coflows of a run, and their active flows.
#[derive(Debug)]
pub struct Tracker {
    coflows: Vec<Coflow>,
    /// For each coflow, its flows that have not ended, and those that have not started.
    left: Vec<(u32, u32)>,
    /// Work on each resource of coflows whose flows are starting.
    work: BTreeMap<u32, BTreeMap<u32, f64>>,
    /// Coflow of each active flow. No loop iterates over the map, so its order has no effect.
    of_flow: HashMap<FlowId, u32>,
    /// Number of coflows with flows to come or active.
    open: usize,
}

impl Tracker {
    /// Creates the tracker. A coflow without flows ends at its arrival.
    pub fn new(arrivals: &[Arrival]) -> Tracker {
        let coflow = |arrival: &Arrival| Coflow {
            arrival: arrival.clone(),
            bound: 0.0,
            finished: (arrival.flows == 0).then_some(arrival.arrive),
        };
        Tracker {
            coflows: arrivals.iter().map(coflow).collect(),
            left: arrivals.iter().map(|arrival| (arrival.flows, arrival.flows)).collect(),
            work: BTreeMap::new(),
            of_flow: HashMap::new(),
            open: arrivals.iter().filter(|arrival| arrival.flows > 0).count(),
        }
    }

    /// Records the start of a flow of a coflow.
    pub fn start(&mut self, coflow: u32, flow: FlowId, hops: &[Hop], bytes: f64, truth: &Capacities) {
        let work = self.work.entry(coflow).or_default();
        let bound = &mut self.coflows[coflow as usize].bound;
        for hop in hops.iter().filter(|_| bytes > 0.0) {
            let total = work.entry(hop.resource.0).or_default();
            *total += bytes * hop.work;
            *bound = bound.max(*total / truth.get(hop.resource).0 as f64);
        }
        self.of_flow.insert(flow, coflow);
        let to_start = &mut self.left[coflow as usize].1;
        *to_start -= 1;
        if *to_start == 0 {
            self.work.remove(&coflow);
        }
    }

    /// Records the end of a flow. The last flow of a coflow ends the coflow.
    pub fn finish(&mut self, done: Finished) {
        let Some(coflow) = self.of_flow.remove(&done.flow) else { return };
        let left = &mut self.left[coflow as usize].0;
        *left -= 1;
        if *left == 0 {
            self.coflows[coflow as usize].finished = Some(done.at);
            self.open -= 1;
        }
    }

    /// Returns true if a coflow has not ended, or has not arrived.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Returns the coflows at the end of the run, in order of arrival.
    pub fn take(&mut self) -> Vec<Coflow> {
        let mut coflows = std::mem::take(&mut self.coflows);
        coflows.sort_by(|a, b| a.arrival.arrive.total_cmp(&b.arrival.arrive));
        coflows
    }
}
