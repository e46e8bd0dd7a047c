//! Flows over time: arrivals, completions, and carried work.
//!
//! Rates are constant between events, which are completions and the caller's calls. A call first handles all
//! completions up to its time. The next [`Network::advance`] returns them, each with its own time. Changes are solved
//! when time advances or on a query, so arrivals and completions at the same time cost one solution.

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
    /// The flow.
    pub flow: FlowId,
    /// Completion time, in seconds.
    pub at: f64,
}

/// A network of resources and flows, at its current time. Calls advance this time.
///
/// Times are in seconds. The same calls give the same results to the last bit. The order of calls at the same time has
/// no effect, up to rounding.
///
/// ```
/// use leeward_fabric::{Hop, ResourceId};
/// use leeward_fluid::Network;
///
/// // Two flows share a link of 1 Gb/s; the second flow starts half a second after the first.
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
/// # Ok::<(), leeward_fluid::FluidError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    now: f64,
    maxmin: MaxMin,
    /// True if nothing changed since the last solution.
    settled: bool,
    clocks: Clocks,
    flows: Flows,
    /// Entry of each class with active flows.
    classes: HashMap<u64, u32>,
    /// Finished flows that have not been returned yet.
    done: Vec<Finished>,
    /// Capacities before the background load is subtracted.
    capacities: Vec<f64>,
    /// Inelastic load.
    background: Vec<f64>,
    /// For each resource, the work of ended flows; `None` if not observed.
    carried: Option<Vec<f64>>,
    ending: Vec<u32>,
}

impl Network {
    /// Creates a network without flows at time 0. `capacities[r]` is in native units per second: bit/s for a
    /// link, ns of service per second for a device.
    ///
    /// # Errors
    /// Returns an error for an invalid capacity.
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

    /// Enables [`Network::carried`] from now on.
    #[must_use]
    pub fn observed(mut self) -> Network {
        self.carried.get_or_insert_with(|| vec![0.0; self.capacities.len()]);
        self
    }

    /// Current time, in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Number of active flows.
    pub fn active(&self) -> usize {
        self.flows.active()
    }

    /// Starts a flow of `bytes` along `hops` at time `at`, which becomes the current time.
    ///
    /// Its rate is max-min fair with `weight`, and at most `cap` bytes per second (infinity for no cap). A flow without
    /// bytes, or without limits, finishes at once.
    ///
    /// Flows of one `class` share an entry of the allocation, which is faster if many flows take few paths. The caller
    /// guarantees that their hops, weights and caps are equal; the values of the first active flow count.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an invalid size, weight or cap, or an unknown resource.
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

    /// Removes a flow at time `at`; returns the bytes it had not transferred.
    ///
    /// # Errors
    /// Returns an error for a time in the past, or if there is no such flow.
    pub fn cancel(&mut self, at: f64, flow: FlowId) -> Result<f64, FluidError> {
        self.reach(at)?;
        let Flow { entry, bytes, .. } =
            *self.flows.get(flow).ok_or(FluidError::UnknownFlow { flow: flow.to_bits() })?;
        let left = self.left(flow, entry);
        self.account(entry, bytes - left);
        self.drop_flow(entry, flow.slot());
        Ok(left)
    }

    /// Sets the capacity of a resource in native units per second. At zero, its flows stall.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid capacity.
    pub fn set_capacity(&mut self, at: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.maxmin.check_capacity(resource, capacity)?;
        self.reach(at)?;
        self.capacities[resource.index()] = capacity;
        self.change_capacity(resource)
    }

    /// Sets the inelastic load of a resource in native units per second. Flows share the rest of the
    /// capacity, if any.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid load.
    pub fn set_background(&mut self, at: f64, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.maxmin.check_capacity(resource, load)?;
        self.reach(at)?;
        self.background[resource.index()] = load;
        self.change_capacity(resource)
    }

    fn change_capacity(&mut self, resource: ResourceId) -> Result<(), FluidError> {
        self.settled = false;
        let r = resource.index();
        // A rounding error in a fully used capacity must not count as capacity.
        let rest = self.capacities[r] - self.background[r];
        let rest = if rest > 1e-12 * self.capacities[r] { rest } else { 0.0 };
        self.maxmin.set_capacity(resource, rest)
    }

    /// Returns the time of the next completion if no call changes the network before it. `None` if no flow will
    /// complete.
    pub fn next_completion(&mut self) -> Option<f64> {
        if let Some(first) = self.done.first() {
            return Some(first.at);
        }
        self.settle();
        let next = self.clocks.earliest();
        (next < f64::INFINITY).then_some(next)
    }

    /// Advances the current time to `to` and appends the flows that finished until then, in order of time.
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
        let entry = self.flows.get(flow)?.entry;
        self.settle();
        self.maxmin.rate(EntryId(entry))
    }

    /// Returns the current load of a resource in native units per second, without the background.
    pub fn load(&mut self, resource: ResourceId) -> f64 {
        self.settle();
        self.maxmin.load(resource)
    }

    /// Returns the bytes that a flow has not transferred at time `at`. `None` if it is not active then. A
    /// future time is simulated on a copy of the network; a past time counts as the current time.
    pub fn remaining(&self, flow: FlowId, at: f64) -> Option<f64> {
        let network = self.ahead(at);
        let entry = network.flows.get(flow)?.entry;
        Some(network.left(flow, entry))
    }

    /// Returns the work of flows that a resource has served until time `at`, in native units. It is the integral of
    /// the load over time, without the background. Zero unless the network is [`observed`](Network::observed). Future
    /// and past times are as for [`remaining`](Network::remaining).
    ///
    /// The work is counted by flow, from its transferred bytes, instead of by integrating loads. So bytes are
    /// conserved. Counting costs little while flows run; a query visits the active entries.
    #[inline]
    pub fn carried(&self, resource: ResourceId, at: f64) -> f64 {
        let network = self.ahead(at);
        let Some(&past) = network.carried.as_ref().and_then(|carried| carried.get(resource.index())) else {
            return 0.0;
        };
        let served = |entry: u32| network.clocks.served(&network.flows, entry, network.now);
        past + network.maxmin.crossing(resource).map(|(entry, work)| work * served(entry)).sum::<f64>()
    }

    /// Returns the network at a future time.
    fn ahead(&self, at: f64) -> Cow<'_, Network> {
        if !(at > self.now && at.is_finite()) {
            return Cow::Borrowed(self);
        }
        let mut copy = self.clone();
        copy.reach(at).expect("the time is after the present");
        Cow::Owned(copy)
    }

    /// Returns the bytes left of an active flow.
    fn left(&self, flow: FlowId, entry: u32) -> f64 {
        let behind = self.flows.at(flow.slot()).tag - self.flows.at(self.clocks.head(entry)).tag;
        self.clocks.left(entry, self.now) + behind
    }

    /// Advances the current time to `to`, through all completions until then.
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
            // A rounding error must not delay a completion.
            if next > to + window(to) {
                break;
            }
            self.now = next.clamp(self.now, to);
            self.complete();
        }
        self.now = to;
        Ok(())
    }

    /// Solves pending changes.
    fn settle(&mut self) {
        if !self.settled {
            self.settled = true;
            self.maxmin.solve();
            self.clocks.follow(&self.maxmin, self.now);
        }
    }

    /// Ends all flows that finish at the current time.
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

    /// Ends a flow that finishes at its start.
    fn end(&mut self, flow: FlowId) {
        self.done.push(Finished { flow, at: self.now });
        self.flows.remove(flow.slot());
    }

    /// Removes a flow from its entry; returns true if the entry has others.
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

    /// Counts bytes of a flow that finished at its start.
    fn account_hops(&mut self, hops: &[Hop], bytes: f64) {
        if let Some(carried) = &mut self.carried {
            for hop in hops {
                carried[hop.resource.index()] += hop.work * bytes;
            }
        }
    }
}
