//! Long-run load of a component: the average rates of its curves against the capacities of its queues.
//!
//! A queue with more load than capacity has no bound by models, regardless of limits. A model describes tails, and the
//! curve of the same workload may have a higher rate. If a backlog grows without end, the share of slow requests need
//! not be small. Curves and programs have a bound if limits hold the load back.

use std::collections::BTreeMap;

use leeward_calculus::Overload;

use super::Unbounded;
use super::components::Parts;

/// Overloaded queues of a component.
#[derive(Debug)]
pub(super) struct Overloads {
    /// For each overloaded queue and each of its priorities, ascending: the load of the parts up to and including this
    /// priority.
    overloaded: BTreeMap<usize, Vec<(u32, f64)>>,
    /// Parts at each queue of the component; empty if no queue is overloaded.
    at: BTreeMap<usize, Vec<usize>>,
}

impl Overloads {
    pub fn new(parts: &Parts<'_>, component: usize) -> Overloads {
        let mut at: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &part in &parts.components[component] {
            for &queue in parts.parts[part].route {
                at.entry(queue).or_default().push(part);
            }
        }
        let mut overloaded = BTreeMap::new();
        for (&queue, here) in &mut at {
            here.sort_by_key(|&part| (parts.parts[part].priority, part));
            let mut load = 0.0;
            let mut sums: Vec<(u32, f64)> = Vec::new();
            for &part in here.iter() {
                let of = &parts.parts[part];
                load += of.demand.arrivals.rate();
                match sums.last_mut() {
                    Some(last) if last.0 == of.priority => last.1 = load,
                    _ => sums.push((of.priority, load)),
                }
            }
            if load > parts.system.queues[queue].capacity {
                overloaded.insert(queue, sums);
            }
        }
        if overloaded.is_empty() {
            at.clear();
        }
        Overloads { overloaded, at }
    }

    /// Checks that a part can have a bound. A part has no bound if its priority and higher priorities overload a queue
    /// of its path. It also has no bound if a flow on its path has passed an overloaded queue before.
    ///
    /// # Errors
    /// [`Unbounded::Overload`] with the first overloaded queue.
    pub fn check(&self, parts: &Parts<'_>, part: usize) -> Result<(), Unbounded> {
        let of = &parts.parts[part];
        let upstream = |queue: &usize| {
            let here = self.at.get(queue).into_iter().flatten();
            let before = here.map(|&other| &parts.parts[other]).filter(|other| other.priority <= of.priority);
            let queue = *queue;
            before.flat_map(move |other| {
                let passed = other.route.iter().take_while(move |&&before| before != queue);
                passed.map(|&queue| (queue, other.priority))
            })
        };
        let own = of.route.iter().map(|&queue| (queue, of.priority));
        let first = own.chain(of.route.iter().flat_map(upstream)).find_map(|(queue, priority)| {
            self.overload(parts, queue, priority).map(|overload| (queue, overload))
        });
        match first {
            None => Ok(()),
            Some((queue, overload)) => {
                let (workload, stage) = parts.place(part);
                Err(Unbounded::Overload { workload, stage, queue: parts.queue(queue), overload })
            }
        }
    }

    /// Load of a queue up to and including a priority, if it exceeds the capacity.
    fn overload(&self, parts: &Parts<'_>, queue: usize, priority: u32) -> Option<Overload> {
        let sums = self.overloaded.get(&queue)?;
        let upto = sums.partition_point(|&(other, _)| other <= priority);
        let load = sums[..upto].last().map_or(0.0, |&(_, load)| load);
        let served = parts.system.queues[queue].capacity;
        (load > served).then_some(Overload { load, service: served })
    }
}
