//! The fluid network around an engine: the true state (capacities, hosts that are up, flows, background), the telemetry
//! that reads it, and the events at known times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_coflows::{Carrier, Tracker};
use leeward_engine::Input;
use leeward_fabric::{Endpoint, Fabric, Hop, HostId, Nanos};
use leeward_fluid::{Finished, FlowId, Network};
use leeward_workloads::Workload;

use super::error::RunError;
use super::profiles::Profiles;
use crate::outage::Outages;
use crate::record::{LinkRecorder, Record};
use crate::scenario::{Event, Scenario};
use crate::telemetry::{Reporters, TimedSamples};

/// State of a run, apart from the engine and its work. `P` are the pending events of a driver, and `N` is the network.
pub(super) struct World<'a, P, N = Network> {
    scenario: &'a Scenario,
    workload: &'a Workload,
    pub fabric: Arc<Fabric>,
    pub network: N,
    pub outages: Outages,
    pub reporters: Reporters,
    /// Scratch space for a path.
    pub hops: Vec<Hop>,
    profiles: Profiles,
    links: LinkRecorder,
    coflows: Tracker,
    /// Events at known times, in order of time and of scheduling.
    pending: BTreeMap<(Nanos, u64), P>,
    sequence: u64,
    /// Time of the next reading of counters.
    tick: Nanos,
    /// End of the interval that is recorded next.
    interval_end: Nanos,
    /// Number of applied rates, and of started flows of the background.
    rates: usize,
    flows: usize,
}

impl<'a, P, N: Carrier> World<'a, P, N> {
    /// Creates the state at the start of a run. `event` turns an event of the scenario into a pending one.
    pub fn new(
        scenario: &'a Scenario,
        workload: &'a Workload,
        seed: u64,
        event: fn(Event) -> P,
    ) -> Result<World<'a, P, N>, RunError> {
        let fabric = scenario.cluster.fabric.clone();
        let truth = scenario.cluster.capacities.clone();
        let capacities: Vec<f64> = truth.as_slice().iter().map(|capacity| capacity.0 as f64).collect();
        let mut world = World {
            network: N::with_capacities(&capacities)?,
            outages: Outages::new(fabric.clone(), truth),
            reporters: Reporters::new(scenario.telemetry.clone(), &fabric, seed),
            hops: Vec::new(),
            profiles: Profiles::new(fabric.resource_count()),
            links: LinkRecorder::new(&fabric, scenario.ledger.hot),
            coflows: Tracker::new(&workload.coflows),
            pending: BTreeMap::new(),
            sequence: 0,
            tick: scenario.telemetry.interval,
            interval_end: scenario.sample,
            rates: 0,
            flows: 0,
            scenario,
            workload,
            fabric,
        };
        for &scheduled in &scenario.events {
            world.schedule(scheduled.at, event(scheduled));
        }
        Ok(world)
    }

    /// Drops the readings of counters, for a driver without an engine.
    pub fn without_telemetry(mut self) -> Self {
        self.tick = Nanos(u64::MAX);
        self
    }

    /// Adds an event at a known time.
    pub fn schedule(&mut self, at: Nanos, pending: P) {
        self.sequence += 1;
        self.pending.insert((at, self.sequence), pending);
    }

    /// Returns the next event that is due, with its time.
    pub fn pop_due(&mut self, clock: Nanos) -> Option<(Nanos, P)> {
        let entry = self.pending.first_entry().filter(|entry| entry.key().0 <= clock)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }

    /// Returns the time of the next step, or `None` at the end of the run. `arrival` and `clock` are the driver's own
    /// next times. Arrivals after the horizon are left out. The run continues while work is `active`, but not beyond
    /// twice the horizon.
    pub fn next_step(&mut self, arrival: f64, clock: f64, active: bool) -> Option<f64> {
        let horizon = self.scenario.horizon.as_secs_f64();
        let rate = self.workload.rates.get(self.rates).map_or(f64::INFINITY, |rate| rate.at);
        let flow = self.workload.flows.get(self.flows).map_or(f64::INFINITY, |flow| flow.start);
        let arrival = rate.min(flow).min(arrival);
        let arrival = if arrival < horizon { arrival } else { f64::INFINITY };
        let pending = self.pending.first_key_value().map(|(key, _)| key.0);
        let known = [Some(self.tick), Some(self.interval_end), pending].into_iter().flatten().min();
        let clock = known.map_or(f64::INFINITY, Nanos::as_secs_f64).min(clock);
        let now = self.network.next_completion().unwrap_or(f64::INFINITY).min(arrival).min(clock);
        let is_over = now > horizon && !active && arrival == f64::INFINITY;
        if is_over || now > 2.0 * horizon { None } else { Some(now) }
    }

    /// Returns true if a coflow has not ended.
    pub fn has_coflows(&self) -> bool {
        self.coflows.is_open()
    }

    /// Returns the finished share of the run.
    pub fn progress(&self, now: f64) -> f64 {
        (now / self.scenario.horizon.as_secs_f64()).min(1.0)
    }

    /// Starts a flow. Flows between the same two ends share an entry of the network.
    pub fn start_flow(
        &mut self,
        now: f64,
        from: Endpoint,
        to: Endpoint,
        bytes: f64,
    ) -> Result<FlowId, RunError> {
        self.start_part(now, from, to, bytes, None)
    }

    /// Starts a flow of a coflow, if any.
    fn start_part(
        &mut self,
        now: f64,
        from: Endpoint,
        to: Endpoint,
        bytes: f64,
        coflow: Option<u32>,
    ) -> Result<FlowId, RunError> {
        self.hops.clear();
        self.fabric.path(&[from, to], &mut self.hops);
        let class = class_of(from).zip(class_of(to)).map(|(from, to)| from << 32 | to);
        let flow = self.network.start_flow(now, &self.hops, bytes, class, coflow)?;
        if let Some(coflow) = coflow {
            self.coflows.start(coflow, flow, &self.hops, bytes, self.outages.truth());
        }
        Ok(flow)
    }

    /// Applies the rates and starts the flows of the background that are due.
    pub fn start_background(&mut self, now: f64) -> Result<(), RunError> {
        let (workload, horizon) = (self.workload, self.scenario.horizon.as_secs_f64());
        while let Some(rate) =
            workload.rates.get(self.rates).filter(|rate| rate.at <= now && rate.at < horizon)
        {
            let offered = rate.rate.0.max(0) as f64;
            self.network.set_background(now, rate.resource, offered)?;
            self.profiles.offer(now, rate.resource, offered, self.outages.truth());
            self.rates += 1;
        }
        while let Some(flow) =
            workload.flows.get(self.flows).filter(|flow| flow.start <= now && flow.start < horizon)
        {
            self.start_part(now, flow.from, flow.to, flow.bytes.0 as f64, flow.coflow)?;
            self.flows += 1;
        }
        Ok(())
    }

    /// Records the end of a flow of the background.
    pub fn finish_background(&mut self, done: Finished, record: &mut Record) {
        record.flows.0 += 1;
        self.coflows.finish(done);
    }

    /// Applies an event of the scenario. Returns the engine's inputs: announced changes, and recoveries of hosts whose
    /// failure was `detected`.
    pub fn apply_event(
        &mut self,
        now: f64,
        event: Event,
        detected: &mut BTreeSet<HostId>,
    ) -> Result<Vec<Input<'static>>, RunError> {
        let effects = self.outages.apply(event);
        let hosts = effects.hosts.iter().filter_map(|&host| effects.input(host, detected));
        let mut inputs: Vec<Input<'static>> = hosts.collect();
        for &(resource, capacity) in &effects.changed.truth {
            self.network.set_capacity(now, resource, capacity.0 as f64)?;
            self.profiles.update_capacity(now, resource, self.outages.truth());
        }
        if event.announced {
            let nominal = effects.changed.nominal.iter();
            inputs.extend(nominal.map(|&(resource, capacity)| Input::SetCapacity(resource, capacity)));
        }
        Ok(inputs)
    }

    /// Reads all counters if that is due. Returns the time of the reading, and the reports with their times of arrival.
    pub fn read_counters(&mut self, now: f64) -> Option<(Nanos, TimedSamples)> {
        let tick = self.tick;
        if tick > Nanos::from_secs_f64(now) {
            return None;
        }
        self.tick = tick.plus(self.reporters.interval());
        let (network, profiles, outages) = (&self.network, &self.profiles, &self.outages);
        let carried = |r| network.carried(r, now) + profiles.carried(r, now);
        Some((tick, self.reporters.read(tick, carried, |source| outages.can_report(source))))
    }

    /// Ends the interval of the records that is due. Intervals after the horizon are not recorded.
    pub fn end_interval(&mut self, now: f64, record: &mut Record) {
        if self.interval_end > Nanos::from_secs_f64(now) {
            return;
        }
        self.interval_end = self.interval_end.plus(self.scenario.sample);
        if now <= self.scenario.horizon.as_secs_f64() {
            let (network, profiles, truth) = (&self.network, &self.profiles, self.outages.truth());
            let carried = |r| network.carried(r, now) + profiles.carried(r, now);
            self.links.end_interval(now, self.scenario.warmup.as_secs_f64(), truth, carried, record);
        }
    }

    /// Completes the record at the end of the run: with coflows, and with the numbers of flows of the background.
    pub fn finish(&mut self, record: &mut Record) {
        self.links.finish(record);
        record.flows.1 = self.flows as u64 - record.flows.0;
        record.coflows = self.coflows.take();
    }
}

/// Returns a number for a host, rack or pod. Background flows between the same two numbers share one entry of the
/// network.
fn class_of(endpoint: Endpoint) -> Option<u64> {
    match endpoint {
        Endpoint::Host(host) => Some(u64::from(host.0) << 1),
        Endpoint::Domain(domain) => Some(u64::from(domain.0) << 1 | 1),
        Endpoint::DeviceWrite(..) | Endpoint::DeviceRead(..) => None,
    }
}
