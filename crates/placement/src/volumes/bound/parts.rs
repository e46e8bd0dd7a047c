//! A system taken apart: one part for each stage of each promise, and the sets of queues that share traffic.

use std::collections::BTreeMap;
use std::ops::Range;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_traces::Stage;

use super::{BoundSettings, Unbounded, Unit};
use crate::volumes::{Demand, System};

/// Seconds that no trace tells apart: half a nanosecond. What limits hold back for less is rounding.
pub(super) const UNMEASURED: f64 = 5e-10;

/// What a promise brings to one stage.
#[derive(Debug)]
pub(super) struct Part<'s> {
    pub promise: usize,
    pub priority: u32,
    pub route: &'s [usize],
    pub demand: &'s Demand,
    pub component: usize,
    enforced: &'s ArrivalCurve,
}

/// All parts of a system, which was checked.
#[derive(Debug)]
pub(super) struct Parts<'s> {
    pub system: &'s System,
    pub parts: Vec<Part<'s>>,
    /// Parts by queues that traffic connects, in order of part.
    pub components: Vec<Vec<usize>>,
    /// For each promise a number that those share whose bursts may come together.
    pub groups: Vec<usize>,
    pub settings: BoundSettings,
    /// The first part of each promise, and the number of parts.
    firsts: Vec<usize>,
}

impl<'s> Parts<'s> {
    pub fn new(system: &'s System, settings: BoundSettings) -> Parts<'s> {
        let (mut parts, mut firsts) = (Vec::new(), vec![0]);
        let mut sets = Sets((0..system.queues.len()).collect());
        for (promise, of) in system.promises.iter().enumerate() {
            for (at, demand) in of.workload.demands.iter().enumerate() {
                let route = of.route[at].as_slice();
                route.windows(2).for_each(|pair| sets.join(pair[0], pair[1]));
                let (priority, enforced) = (of.priorities[at], &of.limits[at]);
                parts.push(Part { promise, priority, route, demand, component: 0, enforced });
            }
            firsts.push(parts.len());
        }
        let mut numbers = vec![None; system.queues.len()];
        let mut components: Vec<Vec<usize>> = Vec::new();
        for (at, part) in parts.iter_mut().enumerate() {
            part.component = *numbers[sets.find(part.route[0])].get_or_insert_with(|| {
                components.push(Vec::new());
                components.len() - 1
            });
            components[part.component].push(at);
        }
        let groups = groups(system);
        Parts { system, parts, components, groups, settings, firsts }
    }

    /// The parts of a promise.
    pub fn of(&self, promise: usize) -> Range<usize> {
        self.firsts[promise]..self.firsts[promise + 1]
    }

    /// What enters the first queue of a part: what its limits let pass. Requests are let pass whole, also where links serve frames,
    /// and one that is larger than the bucket once that is full; so no bucket counts as smaller than the largest.
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
        ArrivalCurve::new(&raised.collect::<Vec<_>>()).expect("it had a bucket")
    }

    /// How long limits hold a part back at most, in seconds; beside what is late anyway.
    pub fn held(&self, part: usize) -> Result<f64, Unbounded> {
        let Part { enforced, demand, .. } = self.parts[part];
        let mut most = 0.0f64;
        for &bucket in enforced.buckets() {
            let held = demand.arrivals.shaper_delay(bucket);
            most = most.max(held.map_err(|overload| {
                let (workload, stage) = self.place(part);
                Unbounded::Limits { workload, stage, overload }
            })?);
        }
        Ok(if most > UNMEASURED { most } else { 0.0 })
    }

    /// What a part has served whole, in work.
    pub fn packet(&self, part: usize) -> f64 {
        self.settings.packet(self.parts[part].demand)
    }

    /// What a device may still be busy with when it could begin with a request of any priority, in work.
    ///
    /// A device serves several requests at once. Work is seconds at saturation, so m requests at once, each of work w, take
    /// m w, which is part of what a request takes alone: its work and its unloaded tail. A request waits only as long as
    /// all places are taken, and a device with all places taken does a second of work in a second. When its wait
    /// begins, each place has a request of whatever priority that ends within what that takes alone. So what is in service counts,
    /// at most, as the longest of these times; then come the bursts as at one server; then its own tail. Without tails a
    /// device is one server, and only what comes after in priority is waited for.
    ///
    /// One that is handed several requests and serves them one after another, whatever comes meanwhile, may have all of them
    /// before it: [`BoundSettings::outstanding`] times the largest.
    pub fn in_service(&self, component: usize, queue: usize) -> f64 {
        if self.settings.unit == Unit::Fluid {
            return 0.0;
        }
        let here = self.components[component].iter().map(|&part| &self.parts[part]);
        let device = here.filter(|part| part.demand.stage == Stage::Storage && part.route.contains(&queue));
        let capacity = self.system.queues[queue].capacity;
        let several = self.settings.outstanding > 1;
        let inside = device.filter(|part| several || part.demand.unloaded > 0.0).map(|part| {
            let Demand { largest, unloaded, .. } = *part.demand;
            let alone = if unloaded > 0.0 { largest + unloaded * capacity } else { 0.0 };
            if several { alone.max(f64::from(self.settings.outstanding) * largest) } else { alone }
        });
        inside.fold(0.0, f64::max).min(f64::MAX)
    }

    /// The queues of a component, in order.
    pub fn queues(&self, component: usize) -> Vec<usize> {
        let routes = self.components[component].iter().flat_map(|&part| self.parts[part].route);
        let mut queues: Vec<usize> = routes.copied().collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// The workload and stage of a part, for messages.
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

/// Dependencies are symmetric and transitive; names that are not in the system count for nothing.
fn groups(system: &System) -> Vec<usize> {
    let names: BTreeMap<&str, usize> =
        system.promises.iter().enumerate().map(|(at, of)| (of.workload.name.as_str(), at)).collect();
    let mut sets = Sets((0..system.promises.len()).collect());
    for (at, of) in system.promises.iter().enumerate() {
        for name in &of.workload.dependencies {
            if let Some(&other) = names.get(name.as_str()) {
                sets.join(at, other);
            }
        }
    }
    (0..system.promises.len()).map(|at| sets.find(at)).collect()
}

/// Disjoint sets.
struct Sets(Vec<usize>);

impl Sets {
    fn find(&mut self, of: usize) -> usize {
        let mut root = of;
        while self.0[root] != root {
            self.0[root] = self.0[self.0[root]];
            root = self.0[root];
        }
        root
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
    }
}
