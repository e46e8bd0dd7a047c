//! A network of links that serves coflows by smallest effective bottleneck first (Varys, section 5.3).
//!
//! # Decisions
//!
//! The network decides when a flow starts, when a coflow ends, and when a link changes:
//!
//! 1. **Order.** The effective bottleneck of a coflow is the largest quotient, over links, of the bytes that its flows
//!    have left there and the link's capacity. Coflows are served in the order of it, the smallest first. Of equal
//!    coflows the earlier one is first.
//! 2. **Guaranteed rates** (MADD). In this order, each coflow gets the least rates on the free capacity with which all
//!    its flows end together, as early as possible. A coflow that has a flow on a link without free capacity gets none.
//! 3. **Work conservation.** In the same order, and in a coflow in the order of paths, each flow takes as much as its
//!    links have free.
//!
//! A flow that ends while others of its coflow remain is no decision: order and rates stay, and the flows on its links
//! take its rate in the order of step 3. So no flow can be faster unless another becomes slower, at any time.
//!
//! A flow of no coflow counts as a coflow of one flow.
//!
//! # Deviations
//!
//! CoflowSim, the authors' simulator, orders coflows by their bytes at the arrival, and hands out the rate of an early
//! flow at the next arrival or end of a coflow only. Varys gives coflows without any rate a share of the time, so that
//! none starves; here a large coflow may wait as long as smaller ones arrive.

mod allocation;
mod links;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::{Finished, FlowId, FluidError};

use links::Links;

/// Completions within this time are one event, in seconds. Flows that end together differ by rounding only.
const SAME_TIME: f64 = 1e-9;

/// A network that serves coflows by smallest effective bottleneck first. Its calls are those of
/// [`leeward_fluid::Network`]; the same calls give the same results to the last bit.
#[derive(Clone, Debug)]
pub struct Sebf {
    now: f64,
    links: Links,
    flows: Vec<Flow>,
    /// Unused slots of flows, and slots of flows that ended since the last decision.
    free: Vec<u32>,
    ended: Vec<u32>,
    /// Active coflows by their number, in order of their first flow.
    groups: BTreeMap<u64, Group>,
    next_group: u64,
    /// Number of each active coflow of the caller.
    of_coflow: HashMap<u32, u64>,
    /// True if nothing happened since the last decision that requires another.
    decided: bool,
    /// Predicted ends: bits of the time, slot, and version of the flow's rate. Outdated versions do not count.
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Ended flows that have not been returned yet.
    done: Vec<Finished>,
}

#[derive(Clone, Debug)]
struct Flow {
    generation: u32,
    /// Number of its coflow; `None` for a free slot.
    group: Option<u64>,
    hops: Box<[Hop]>,
    bytes: f64,
    /// Bytes left at time `since`.
    left: f64,
    since: f64,
    /// Bytes per second.
    rate: f64,
    /// Number of changes of the rate.
    version: u32,
    /// Position among all flows at the last decision.
    position: u32,
}

/// An active coflow.
#[derive(Clone, Debug, Default)]
struct Group {
    coflow: Option<u32>,
    /// Slots of its flows, in the order of their paths after a decision. Some may have ended.
    flows: Vec<u32>,
    /// Number of active flows.
    active: usize,
    /// True if flows started since the last decision.
    grown: bool,
    /// Work left on each link at the last decision.
    work: Vec<(u32, f64)>,
}

impl Flow {
    fn left_at(&self, now: f64) -> f64 {
        (self.left - self.rate * (now - self.since)).max(0.0)
    }

    /// Moves its state to the present.
    fn update(&mut self, now: f64) {
        self.left = self.left_at(now);
        self.since = now;
    }

    fn end(&self) -> f64 {
        if self.left > 0.0 { self.since + self.left / self.rate } else { self.since }
    }
}

impl Sebf {
    /// Creates a network without flows at time 0. `capacities[r]` is in native units per second.
    ///
    /// # Errors
    /// Returns an error for an invalid capacity.
    pub fn new(capacities: &[f64]) -> Result<Sebf, FluidError> {
        Ok(Sebf {
            now: 0.0,
            links: Links::new(capacities)?,
            flows: Vec::new(),
            free: Vec::new(),
            ended: Vec::new(),
            groups: BTreeMap::new(),
            next_group: 0,
            of_coflow: HashMap::new(),
            decided: true,
            ends: BinaryHeap::new(),
            done: Vec::new(),
        })
    }

    /// Starts a flow of `bytes` along `hops` at time `at`, as a part of `coflow`. A flow of no coflow is a coflow of
    /// its own. A flow without bytes or without work ends at once.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an invalid size, or an unknown resource.
    pub fn start(
        &mut self,
        at: f64,
        hops: &[Hop],
        bytes: f64,
        coflow: Option<u32>,
    ) -> Result<FlowId, FluidError> {
        if !(0.0..f64::INFINITY).contains(&bytes) {
            return Err(FluidError::Bytes { value: bytes });
        }
        self.links.check(hops)?;
        self.reach(at)?;
        let instant = bytes == 0.0 || hops.iter().all(|hop| hop.work == 0.0);
        let group = if instant { None } else { Some(self.group(coflow)) };
        let slot = self.free.pop().unwrap_or(self.flows.len() as u32);
        let generation = self.flows.get(slot as usize).map_or(0, |flow| flow.generation.wrapping_add(1));
        let hops = combine(hops);
        let flow = Flow {
            generation,
            group,
            hops,
            bytes,
            left: bytes,
            since: at,
            rate: 0.0,
            version: 0,
            position: 0,
        };
        if instant {
            self.links.account(&flow.hops, bytes);
            self.done.push(Finished { flow: FlowId::new(slot, generation), at });
            self.ended.push(slot);
        }
        match self.flows.get_mut(slot as usize) {
            Some(free) => *free = flow,
            None => self.flows.push(flow),
        }
        if let Some(group) = group.and_then(|number| self.groups.get_mut(&number)) {
            group.flows.push(slot);
            group.active += 1;
            group.grown = true;
            self.decided = false;
        }
        Ok(FlowId::new(slot, generation))
    }

    /// Returns the number of an active coflow, which is new if the caller's coflow has no active flow.
    fn group(&mut self, coflow: Option<u32>) -> u64 {
        if let Some(&number) = coflow.and_then(|coflow| self.of_coflow.get(&coflow)) {
            return number;
        }
        let number = self.next_group;
        self.next_group += 1;
        self.groups.insert(number, Group { coflow, ..Group::default() });
        if let Some(coflow) = coflow {
            self.of_coflow.insert(coflow, number);
        }
        number
    }

    /// Sets the capacity of a link in native units per second. At zero, its flows stall.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid capacity.
    pub fn set_capacity(&mut self, at: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.reach(at)?;
        self.decided = false;
        self.links.set_capacity(resource, capacity)
    }

    /// Sets the inelastic load of a link in native units per second. Flows share the rest of the capacity, if any.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid load.
    pub fn set_background(&mut self, at: f64, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.reach(at)?;
        self.decided = false;
        self.links.set_background(resource, load)
    }

    /// Returns the time of the next completion if no call changes the network before it. `None` if no flow will end.
    pub fn next_completion(&mut self) -> Option<f64> {
        if let Some(first) = self.done.first() {
            return Some(first.at);
        }
        self.settle();
        self.next_end()
    }

    /// Advances the current time to `to` and appends the flows that ended until then, in order of time.
    ///
    /// # Errors
    /// Returns an error for a time in the past, or one that is not finite.
    pub fn advance(&mut self, to: f64, finished: &mut Vec<Finished>) -> Result<(), FluidError> {
        self.reach(to)?;
        finished.append(&mut self.done);
        Ok(())
    }

    /// Returns the current rate of a flow in bytes per second. `None` if it is not active.
    pub fn rate(&mut self, flow: FlowId) -> Option<f64> {
        self.settle();
        let is_flow =
            |entry: &&Flow| entry.group.is_some() && FlowId::new(flow.slot(), entry.generation) == flow;
        self.flows.get(flow.slot() as usize).filter(is_flow).map(|entry| entry.rate)
    }

    /// Returns the work of flows that a link has served until the present, in native units.
    pub fn carried(&self, resource: ResourceId) -> f64 {
        let served = |slot: &u32| {
            let flow = &self.flows[*slot as usize];
            let hop = flow.hops.iter().find(|hop| hop.resource == resource).filter(|_| flow.group.is_some());
            hop.map_or(0.0, |hop| hop.work * (flow.bytes - flow.left_at(self.now)))
        };
        self.links.carried(resource) + self.links.members(resource).iter().map(served).sum::<f64>()
    }

    /// Advances the current time to `to`, through all completions until then.
    fn reach(&mut self, to: f64) -> Result<(), FluidError> {
        if !(to >= self.now && to < f64::INFINITY) {
            return Err(FluidError::Time { given: to, now: self.now });
        }
        // Changes at the same time cost one decision.
        if to == self.now && !self.decided {
            return Ok(());
        }
        self.settle();
        while let Some(end) = self.next_end().filter(|&end| end <= to) {
            self.now = self.now.max(end);
            self.end_flows();
            self.settle();
        }
        self.now = to;
        Ok(())
    }

    fn settle(&mut self) {
        if !self.decided {
            self.decided = true;
            self.decide();
        }
    }

    /// Returns the earliest predicted end.
    fn next_end(&mut self) -> Option<f64> {
        while let Some(&Reverse((bits, slot, version))) = self.ends.peek() {
            let flow = &self.flows[slot as usize];
            if flow.group.is_some() && flow.version == version {
                return Some(f64::from_bits(bits));
            }
            self.ends.pop();
        }
        None
    }

    /// Predicts the end of a flow with its current rate.
    fn predict(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        if flow.rate > 0.0 || flow.left == 0.0 {
            self.ends.push(Reverse((flow.end().to_bits(), slot, flow.version)));
        }
    }

    /// Ends all flows that are due. The flows on their links take their rates, unless a decision follows.
    fn end_flows(&mut self) {
        let mut touched = Vec::new();
        while self.next_end().is_some_and(|end| end <= self.now + SAME_TIME) {
            let Some(Reverse((_, slot, _))) = self.ends.pop() else { break };
            let flow = &mut self.flows[slot as usize];
            let Some(number) = flow.group.take() else { continue };
            self.done.push(Finished { flow: FlowId::new(slot, flow.generation), at: self.now });
            self.links.account(&flow.hops, flow.bytes);
            self.links.release(&flow.hops, flow.rate);
            touched.extend(flow.hops.iter().map(|hop| hop.resource));
            self.ended.push(slot);
            let group = self.groups.get_mut(&number).expect("a coflow is active while its flows are");
            group.active -= 1;
            if group.active == 0 {
                if let Some(coflow) = group.coflow {
                    self.of_coflow.remove(&coflow);
                }
                self.groups.remove(&number);
                self.decided = false;
            }
        }
        if self.decided {
            touched.sort_unstable();
            touched.dedup();
            self.share_released(&touched);
        }
    }
}

/// Returns the hops with work, each resource once.
fn combine(hops: &[Hop]) -> Box<[Hop]> {
    let mut combined: Vec<Hop> = Vec::with_capacity(hops.len());
    for &hop in hops.iter().filter(|hop| hop.work > 0.0) {
        match combined.iter_mut().find(|other| other.resource == hop.resource) {
            Some(other) => other.work += hop.work,
            None => combined.push(hop),
        }
    }
    combined.into()
}
