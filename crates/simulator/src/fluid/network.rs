//! Flows in time: arrivals, completions, and what has been carried.
//!
//! Rates are constant between events, and the events are completions and the caller's calls. A call at some
//! time first goes through all completions until then; these are handed out, each with its own time, by the
//! next [`Network::advance`]. What is changed is solved when time moves on or somebody asks, so that arrivals
//! and completions at one time cost one solution.

use std::borrow::Cow;
use std::collections::HashMap;

use leeward_fabric::{Hop, ResourceId};

use super::FluidError;
use super::clocks::{Clocks, window};
use super::flows::{Flow, FlowId, Flows};
use super::maxmin::{EntryId, MaxMin};

/// A flow that has transferred its last byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Finished {
    /// Which.
    pub flow: FlowId,
    /// When, in seconds.
    pub at: f64,
}

/// A network of resources and the flows through it, at one time, the present, which calls move forward.
///
/// Times are in seconds. The same calls give the same results to the last bit; the order of calls at one time
/// does not matter, up to rounding.
///
/// ```
/// use leeward_fabric::{Hop, ResourceId};
/// use leeward_simulator::fluid::Network;
///
/// // Two flows share a link of 1 Gb/s; the second one comes half a second late.
/// let path = [Hop { resource: ResourceId(0), work: 8.0 }];
/// let mut network = Network::new(&[1e9])?;
/// let first = network.start(0.0, &path, 125e6, 1.0, f64::INFINITY, None)?;
/// let second = network.start(0.5, &path, 125e6, 1.0, f64::INFINITY, None)?;
/// let mut finished = Vec::new();
/// while let Some(time) = network.next_completion() {
///     network.advance(time, &mut finished)?;
/// }
/// assert_eq!((finished[0].flow, finished[0].at), (first, 1.5));
/// assert_eq!((finished[1].flow, finished[1].at), (second, 2.0));
/// # Ok::<(), leeward_simulator::fluid::FluidError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    now: f64,
    maxmin: MaxMin,
    /// No change since the last solution.
    settled: bool,
    clocks: Clocks,
    flows: Flows,
    /// The entry of each class with active flows.
    classes: HashMap<u64, u32>,
    /// Flows that finished and were not handed out yet.
    done: Vec<Finished>,
    /// Capacities without the background.
    capacities: Vec<f64>,
    /// Inelastic load.
    background: Vec<f64>,
    /// For each resource the work of flows that are gone; `None` if nobody observes.
    carried: Option<Vec<f64>>,
    ending: Vec<u32>,
}

impl Network {
    /// A network without flows at time 0. `capacities[r]` is in native units per second: bit/s for a link, ns
    /// of service per second for a device.
    pub fn new(capacities: &[f64]) -> Result<Network, FluidError> {
        Ok(Network {
            now: 0.0,
            maxmin: MaxMin::new(capacities)?,
            settled: true,
            clocks: Clocks::new(capacities.len()),
            flows: Flows::default(),
            classes: HashMap::new(),
            done: Vec::new(),
            capacities: capacities.to_vec(),
            background: vec![0.0; capacities.len()],
            carried: None,
            ending: Vec::new(),
        })
    }

    /// The same network, which from now on keeps what [`Network::carried`] tells.
    #[must_use]
    pub fn observed(mut self) -> Network {
        self.carried.get_or_insert_with(|| vec![0.0; self.capacities.len()]);
        self
    }

    /// The present, in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// How many flows are under way.
    pub fn active(&self) -> usize {
        self.flows.active()
    }

    /// The allocation, as last solved.
    pub fn maxmin(&self) -> &MaxMin {
        &self.maxmin
    }

    /// Starts a flow of `bytes` along `hops` at time `at`, which becomes the present.
    ///
    /// Its rate is max-min fair with `weight`, and at most `cap` bytes per second (infinite for none). A flow
    /// without bytes, or without limits, finishes at once.
    ///
    /// Flows of one `class` share an entry of the allocation, which is faster where many flows take few
    /// paths. The caller promises that their hops, weights and caps are the same; those of the first one
    /// under way count.
    pub fn start(
        &mut self,
        at: f64,
        hops: &[Hop],
        bytes: f64,
        weight: f64,
        cap: f64,
        class: Option<u64>,
    ) -> Result<FlowId, FluidError> {
        if !(0.0..f64::INFINITY).contains(&bytes) {
            return Err(FluidError::Bytes { value: bytes });
        }
        self.maxmin.check(hops, weight, cap, 1)?;
        self.reach(at)?;
        if bytes == 0.0 || (cap == f64::INFINITY && hops.iter().all(|hop| hop.work == 0.0)) {
            let flow = self.flows.add(0, bytes, bytes);
            self.account_hops(hops, bytes);
            self.end(flow);
            return Ok(flow);
        }
        self.settled = false;
        if let Some(&entry) = class.as_ref().and_then(|key| self.classes.get(key)) {
            let more = self.maxmin.flows(entry) + 1;
            let flow = self.clocks.join(&mut self.flows, entry, bytes, self.now);
            self.maxmin.set_flows(EntryId(entry), more)?;
            return Ok(flow);
        }
        let EntryId(entry) = self.maxmin.add_checked(hops, weight, cap, 1);
        if let Some(key) = class {
            self.classes.insert(key, entry);
        }
        let flow = self.flows.add(entry, bytes, bytes);
        self.clocks.begin(entry, flow.slot(), bytes, weight, class);
        Ok(flow)
    }

    /// Takes a flow out of the network at time `at`; returns the bytes it still had to transfer.
    pub fn cancel(&mut self, at: f64, flow: FlowId) -> Result<f64, FluidError> {
        self.reach(at)?;
        let Flow { entry, bytes, .. } =
            *self.flows.get(flow).ok_or(FluidError::UnknownFlow { flow: flow.to_bits() })?;
        let left = self.left(flow, entry);
        self.account(entry, bytes - left);
        self.drop_flow(entry, flow.slot());
        Ok(left)
    }

    /// Sets the capacity of a resource in native units per second. Where it is zero, flows stand still.
    pub fn set_capacity(&mut self, at: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.maxmin.check_capacity(resource, capacity)?;
        self.reach(at)?;
        self.capacities[resource.index()] = capacity;
        self.change_capacity(resource)
    }

    /// Sets the inelastic load of a resource in native units per second. Flows share what it leaves of the
    /// capacity, if anything.
    pub fn set_background(&mut self, at: f64, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.maxmin.check_capacity(resource, load)?;
        self.reach(at)?;
        self.background[resource.index()] = load;
        self.change_capacity(resource)
    }

    fn change_capacity(&mut self, resource: ResourceId) -> Result<(), FluidError> {
        self.settled = false;
        let r = resource.index();
        // What rounding leaves of a capacity that is all taken would be a capacity.
        let rest = self.capacities[r] - self.background[r];
        let rest = if rest > 1e-12 * self.capacities[r] { rest } else { 0.0 };
        self.maxmin.set_capacity(resource, rest)
    }

    /// When the next flow finishes if nothing else happens. `None` if none does.
    pub fn next_completion(&mut self) -> Option<f64> {
        if let Some(first) = self.done.first() {
            return Some(first.at);
        }
        self.settle();
        let next = self.clocks.earliest();
        (next < f64::INFINITY).then_some(next)
    }

    /// Moves the present to `to` and appends the flows that finished until then, in the order of their times.
    pub fn advance(&mut self, to: f64, finished: &mut Vec<Finished>) -> Result<(), FluidError> {
        self.reach(to)?;
        finished.append(&mut self.done);
        Ok(())
    }

    /// The present rate of a flow in bytes per second. `None` if it is no longer under way.
    pub fn rate(&mut self, flow: FlowId) -> Option<f64> {
        let entry = self.flows.get(flow)?.entry;
        self.settle();
        self.maxmin.rate(EntryId(entry))
    }

    /// The present load of a resource in native units per second, without the background.
    pub fn load(&mut self, resource: ResourceId) -> f64 {
        self.settle();
        self.maxmin.load(resource)
    }

    /// The bytes that a flow has still to transfer at time `at`. `None` if it is no longer under way then.
    /// For a time after the present a copy of the network is sent ahead; a time before it counts as the
    /// present.
    pub fn remaining(&self, flow: FlowId, at: f64) -> Option<f64> {
        let network = self.ahead(at);
        let entry = network.flows.get(flow)?.entry;
        Some(network.left(flow, entry))
    }

    /// The work that flows have brought to a resource until time `at`, in native units: the integral of its
    /// load over time, without the background. Zero unless the network is [`observed`](Network::observed).
    /// Times before and after the present are as with [`remaining`](Network::remaining).
    ///
    /// This is counted by flows, what each has transferred, not by adding up loads; so bytes are conserved,
    /// and it costs little while flows run and a look at the entries under way when asked for.
    pub fn carried(&self, resource: ResourceId, at: f64) -> f64 {
        let network = self.ahead(at);
        let Some(&past) = network.carried.as_ref().and_then(|carried| carried.get(resource.index())) else {
            return 0.0;
        };
        let served = |entry: u32| network.clocks.served(&network.flows, entry, network.now);
        past + network.maxmin.crossing(resource).map(|(entry, work)| work * served(entry)).sum::<f64>()
    }

    /// The network as it will be at a time after the present.
    fn ahead(&self, at: f64) -> Cow<'_, Network> {
        if !(at > self.now && at.is_finite()) {
            return Cow::Borrowed(self);
        }
        let mut copy = self.clone();
        copy.reach(at).expect("the time is after the present");
        Cow::Owned(copy)
    }

    /// The bytes left of a flow under way.
    fn left(&self, flow: FlowId, entry: u32) -> f64 {
        let behind = self.flows.at(flow.slot()).tag - self.flows.at(self.clocks.head(entry)).tag;
        self.clocks.left(entry, self.now) + behind
    }

    /// Moves the present to `to`, through all completions until then.
    fn reach(&mut self, to: f64) -> Result<(), FluidError> {
        if !(to >= self.now && to < f64::INFINITY) {
            return Err(FluidError::Time { given: to, now: self.now });
        }
        if to == self.now && !self.settled {
            return Ok(());
        }
        loop {
            self.settle();
            let next = self.clocks.earliest();
            // A rounding error does not put a completion off.
            if next > to + window(to) {
                break;
            }
            self.now = next.clamp(self.now, to);
            self.complete();
        }
        self.now = to;
        Ok(())
    }

    /// Solves what has changed.
    fn settle(&mut self) {
        if !self.settled {
            self.settled = true;
            self.maxmin.solve();
            self.clocks.follow(&self.maxmin, self.now);
        }
    }

    /// Ends all flows that finish at the present.
    fn complete(&mut self) {
        let mut ending = std::mem::take(&mut self.ending);
        self.clocks.due(&self.maxmin, self.now, &mut ending);
        for entry in ending.drain(..) {
            loop {
                let slot = self.clocks.head(entry);
                self.account(entry, self.flows.at(slot).bytes);
                self.done.push(Finished { flow: self.flows.id(slot), at: self.now });
                if !self.drop_flow(entry, slot) || !self.clocks.is_due(entry, self.now) {
                    break;
                }
            }
        }
        self.ending = ending;
    }

    /// A flow that is over before it began.
    fn end(&mut self, flow: FlowId) {
        self.done.push(Finished { flow, at: self.now });
        self.flows.remove(flow.slot());
    }

    /// Takes a flow out of its entry; says whether the entry has others.
    fn drop_flow(&mut self, entry: u32, slot: u32) -> bool {
        self.settled = false;
        let last = self.clocks.leave(&self.flows, entry, slot);
        self.flows.remove(slot);
        if let Some(key) = last {
            if let Some(key) = key {
                self.classes.remove(&key);
            }
            self.maxmin.remove(EntryId(entry)).expect("the entry had this flow");
            return false;
        }
        let flows = self.maxmin.flows(entry) - 1;
        self.maxmin.set_flows(EntryId(entry), flows).expect("the entry has other flows");
        true
    }

    /// Counts bytes that a flow of an entry has transferred.
    fn account(&mut self, entry: u32, bytes: f64) {
        if let Some(carried) = &mut self.carried {
            for (r, work) in self.maxmin.path(entry) {
                carried[r as usize] += work * bytes;
            }
        }
    }

    /// Counts bytes that were transferred in no time.
    fn account_hops(&mut self, hops: &[Hop], bytes: f64) {
        if let Some(carried) = &mut self.carried {
            for hop in hops {
                carried[hop.resource.index()] += hop.work * bytes;
            }
        }
    }
}
