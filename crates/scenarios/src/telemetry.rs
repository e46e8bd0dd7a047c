//! Telemetry of a simulated network. Counters are read at intervals; reports may be late, lost or noisy.
//!
//! A host reports its interfaces, and a switch reports the links of its rack or pod, each in one message. Every
//! reporter draws from its own stream, so the losses of one do not affect another.

use leeward_fabric::{DomainId, Fabric, Load, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_placement::Candidate;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_registry::random::{Kind, stream};

const REPORTER: Kind = Kind::named("reporter");

/// Telemetry of the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Time between readings of a counter. Default 1s (Sinbad section 6.2).
    pub interval: Nanos,
    /// Delay of a report. Default 0s.
    pub delay: Nanos,
    /// Largest additional random delay of a report. Default 0s.
    pub jitter: Nanos,
    /// Share of lost reports. Default 0.
    pub loss: f64,
    /// Standard deviation of a reading, as a share of the reading. Default 0.
    pub noise: f64,
    /// Kinds of available counters. Default hosts, racks, pods.
    pub counters: Vec<Counter>,
}

/// A kind of counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counter {
    /// Interfaces of hosts, read by the hosts.
    Hosts,
    /// Rack uplinks and downlinks, read by their switches. Without these, the ledger adds up the loads of the hosts.
    Racks,
    /// Pod uplinks and downlinks, read by their switches.
    Pods,
    /// Devices, read by their hosts.
    Devices,
}

impl Default for Telemetry {
    fn default() -> Self {
        Telemetry {
            interval: Nanos::SECOND,
            delay: Nanos(0),
            jitter: Nanos(0),
            loss: 0.0,
            noise: 0.0,
            counters: vec![Counter::Hosts, Counter::Racks, Counter::Pods],
        }
    }
}

impl Telemetry {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns the first invalid field, and the expected value.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.interval.0 == 0 {
            return Err(("interval", format!("{}: expected a positive time", self.interval)));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(("loss", format!("{}: expected a share from 0 to 1", self.loss)));
        }
        if !(0.0..=10.0).contains(&self.noise) {
            return Err(("noise", format!("{}: expected a share from 0 to 10", self.noise)));
        }
        Ok(())
    }
}

/// A host or switch that reads counters and sends the readings.
#[derive(Debug)]
struct Reporter {
    source: Candidate,
    resources: Vec<ResourceId>,
    random: ChaCha8Rng,
}

/// All reporters of a network, and the last readings of their counters.
#[derive(Debug)]
pub struct Reporters {
    settings: Telemetry,
    reporters: Vec<Reporter>,
    /// Work carried by each resource up to the last reading.
    carried: Vec<f64>,
    last: Nanos,
}

/// Samples in transit, with their arrival times.
pub type TimedSamples = Vec<(Nanos, Vec<Sample>)>;

impl Reporters {
    /// Creates the reporters that `settings` define.
    pub fn new(settings: Telemetry, fabric: &Fabric, seed: u64) -> Reporters {
        let has = |counter| settings.counters.contains(&counter);
        let mut reporters = Vec::new();
        let mut add = |source, resources: Vec<ResourceId>| {
            if !resources.is_empty() {
                let random = stream(seed, REPORTER, reporters.len() as u64);
                reporters.push(Reporter { source, resources, random });
            }
        };
        for host in fabric.all_hosts() {
            let mut resources = Vec::new();
            if has(Counter::Hosts) {
                resources.extend([fabric.egress(host), fabric.ingress(host)].into_iter().flatten());
                let others = fabric.all_hosts().filter_map(|other| fabric.pair(host, other));
                resources.extend(others);
            }
            if has(Counter::Devices) {
                let devices = 0..fabric.devices(host).len() as u16;
                resources.extend(devices.filter_map(|index| fabric.device(host, index)));
            }
            add(Candidate::Host(host), resources);
        }
        for domain in (0..fabric.domain_count() as u32).map(DomainId) {
            let is_rack = domain.index() < fabric.rack_count();
            if has(if is_rack { Counter::Racks } else { Counter::Pods }) {
                let links = [fabric.out_of_domain(domain), fabric.into_domain(domain)];
                add(Candidate::Domain(domain), links.into_iter().flatten().collect());
            }
        }
        Reporters { settings, reporters, carried: vec![0.0; fabric.resource_count()], last: Nanos(0) }
    }

    /// Interval between readings.
    pub fn interval(&self) -> Nanos {
        self.settings.interval
    }

    /// Reads every counter at `now`. `carried` returns the total work that a resource has carried. Hosts and switches
    /// that are not `up` send nothing.
    pub fn read(
        &mut self,
        now: Nanos,
        mut carried: impl FnMut(ResourceId) -> f64,
        up: impl Fn(Candidate) -> bool,
    ) -> TimedSamples {
        let window = (std::mem::replace(&mut self.last, now), now);
        let seconds = window.1.since(window.0).as_secs_f64();
        if seconds <= 0.0 {
            return TimedSamples::new();
        }
        let settings = &self.settings;
        let mut without_jitter = Vec::new();
        let mut messages = TimedSamples::new();
        for reporter in &mut self.reporters {
            let lost = settings.loss > 0.0 && reporter.random.random::<f64>() < settings.loss;
            let silent = lost || !up(reporter.source);
            let first = without_jitter.len();
            for &resource in &reporter.resources {
                let total = carried(resource);
                let work = total - std::mem::replace(&mut self.carried[resource.index()], total);
                let mut load = work.max(0.0) / seconds;
                if settings.noise > 0.0 {
                    let noise: f64 = StandardNormal.sample(&mut reporter.random);
                    load = (load * (1.0 + settings.noise * noise)).max(0.0);
                }
                if !silent {
                    without_jitter.push(Sample {
                        resource,
                        window,
                        load: Load(load.round() as i64),
                        guaranteed: None,
                    });
                }
            }
            if settings.jitter.0 > 0 && !silent {
                let extra = reporter.random.random_range(0..=settings.jitter.0);
                let arrives = now.plus(settings.delay).plus(Nanos(extra));
                messages.push((arrives, without_jitter.split_off(first)));
            }
        }
        if !without_jitter.is_empty() {
            messages.push((now.plus(settings.delay), without_jitter));
        }
        messages
    }
}
