//! Decomposition of a system: one part per stage of each promise, and components, the sets of queues that
//! share traffic.

use std::ops::Range;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_traces::Stage;

use super::{BoundSettings, Unbounded, Unit};
use crate::{Demand, System};

/// Half a nanosecond, in seconds: traces resolve no shorter time. A shorter delay by limits is rounding error.
pub(super) const TIME_RESOLUTION: f64 = 5e-10;

/// Demand of a promise at one stage.
#[derive(Debug)]
pub(super) struct Part<'s> {
    pub promise: usize,
    pub priority: u32,
    pub route: &'s [usize],
    pub demand: &'s Demand,
    pub component: usize,
    enforced: &'s ArrivalCurve,
}

/// All parts of a valid system.
#[derive(Debug)]
pub(super) struct Parts<'s> {
    pub system: &'s System,
    pub parts: Vec<Part<'s>>,
    /// Parts of each component, ascending. A component is a set of queues that traffic connects.
    pub components: Vec<Vec<usize>>,
    /// Group of each promise. Bursts of promises in one group may coincide.
    pub groups: Vec<usize>,
    pub settings: BoundSettings,
    /// First part of each promise, then the number of parts.
    firsts: Vec<usize>,
}

impl<'s> Parts<'s> {
    pub fn new(system: &'s System, settings: BoundSettings) -> Parts<'s> {
        let (mut parts, mut firsts) = (Vec::new(), vec![0]);
        for (promise, of) in system.promises.iter().enumerate() {
            for (at, demand) in of.workload.demands.iter().enumerate() {
                let route = of.route[at].as_slice();
                let (priority, enforced) = (of.priorities[at], &of.limits[at]);
                parts.push(Part { promise, priority, route, demand, component: 0, enforced });
            }
            firsts.push(parts.len());
        }
        let queue_groups = system.queue_groups();
        let mut numbers = vec![None; system.queues.len()];
        let mut components: Vec<Vec<usize>> = Vec::new();
        for (at, part) in parts.iter_mut().enumerate() {
            part.component = *numbers[queue_groups[part.route[0]]].get_or_insert_with(|| {
                components.push(Vec::new());
                components.len() - 1
            });
            components[part.component].push(at);
        }
        Parts { system, parts, components, groups: system.dependency_groups(), settings, firsts }
    }

    /// Indices of the parts of a promise.
    pub fn of(&self, promise: usize) -> Range<usize> {
        self.firsts[promise]..self.firsts[promise + 1]
    }

    /// Arrival curve at the first queue of a part, after its limits. Limits let whole requests pass, even if links
    /// serve frames. A request larger than the bucket passes when the bucket is full. So a bucket counts at least as
    /// large as the largest request.
    pub fn limits(&self, part: usize) -> ArrivalCurve {
        let Part { enforced, demand, .. } = self.parts[part];
        let packet = match self.settings.unit {
            Unit::Frames if !self.settings.paced => demand.largest,
            _ => self.packet(part),
        };
        if enforced.burst() >= packet {
            return enforced.clone();
        }
        let raised = enforced
            .buckets()
            .iter()
            .map(|bucket| TokenBucket::new(bucket.rate(), bucket.burst().max(packet)).unwrap_or(*bucket));
        ArrivalCurve::new(&raised.collect::<Vec<_>>()).expect("at least one bucket")
    }

    /// Longest delay of a part by its limits, in seconds, for arrivals within the curve of its demand.
    pub fn limiter_delay(&self, part: usize) -> Result<f64, Unbounded> {
        let Part { enforced, demand, .. } = self.parts[part];
        let mut most = 0.0f64;
        for &bucket in enforced.buckets() {
            let delay = demand.arrivals.shaper_delay(bucket);
            most = most.max(delay.map_err(|overload| {
                let (workload, stage) = self.place(part);
                Unbounded::Limits { workload, stage, overload }
            })?);
        }
        Ok(if most > TIME_RESOLUTION { most } else { 0.0 })
    }

    /// Work of a part that is served without interruption.
    pub fn packet(&self, part: usize) -> f64 {
        self.settings.packet(self.parts[part].demand)
    }

    /// Largest work in service at a device at the time when it could start a request of any priority.
    ///
    /// A device serves several requests in parallel. Work is in seconds at saturation, so m parallel requests, each of
    /// work w, take m w seconds. The latency of a single request is also m w seconds: its work plus its unloaded tail.
    /// A request waits only while all slots are taken, and a device with all slots taken does one second of work per
    /// second. At the start of the wait, each slot holds a request of any priority, which ends within its unloaded
    /// latency. The work in service therefore counts as the longest of these latencies. The bursts follow, as at a
    /// single server, and then the request's own tail. Without tails a device is a single server, and a request waits
    /// only for lower priorities in service.
    ///
    /// A device may take several requests and serve them in sequence, regardless of later arrivals. A request may wait
    /// for all of them. They count as that number ([`BoundSettings::at_once`]) times the largest request.
    pub fn in_service(&self, component: usize, queue: usize) -> f64 {
        if self.settings.unit == Unit::Fluid {
            return 0.0;
        }
        let here = self.components[component].iter().map(|&part| &self.parts[part]);
        let device = here.filter(|part| part.demand.stage == Stage::Storage && part.route.contains(&queue));
        let demands: Vec<&Demand> = device.map(|part| part.demand).collect();
        let capacity = self.system.queues[queue].capacity;
        let at_once = demands.iter().map(|demand| self.settings.at_once(demand)).max().unwrap_or(1);
        let inside = demands.into_iter().map(|demand| {
            let &Demand { largest, unloaded, .. } = demand;
            let alone = if unloaded > 0.0 { largest + unloaded * capacity } else { 0.0 };
            if at_once > 1 { alone.max(f64::from(at_once) * largest) } else { alone }
        });
        inside.fold(0.0, f64::max).min(f64::MAX)
    }

    /// Queues of a component, ascending.
    pub fn queues(&self, component: usize) -> Vec<usize> {
        let routes = self.components[component].iter().flat_map(|&part| self.parts[part].route);
        let mut queues: Vec<usize> = routes.copied().collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Workload and stage of a part, for messages.
    pub fn place(&self, part: usize) -> (String, Stage) {
        let Part { promise, demand, .. } = self.parts[part];
        (self.workload(promise), demand.stage)
    }

    pub fn workload(&self, promise: usize) -> String {
        self.system.promises[promise].workload.name.clone()
    }

    pub fn queue(&self, queue: usize) -> String {
        self.system.queues[queue].name.clone()
    }
}
