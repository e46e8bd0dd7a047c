//! Aggregate: a bound for the whole path at once, in which flows that go together pay for their bursts once (SLO sections A.3 and
//! A.4, equation A.5, in its deterministic form).
//!
//! For flows W of one priority on one path over queues S1 to Sn:
//!
//! * X: flows of a priority before, along the whole path;
//! * at each Sk, Ck: the others there of W's priority and those before.
//!
//! ```text
//! S = ((S1 minus C1) conv ... conv (Sn minus Cn)) minus X;     delay(W, S)
//! ```
//!
//! W is all flows of the priority along the path; they keep their order, so one delay holds for all.
//!
//! Flows of Ck that enter at Sk come as they are. Those that entered at one queue Q just before come as one flow Z: what Q,
//! less all others there of the last priority in Z and those before, passes on of their sum. To take Z at its last
//! priority is on the safe side (lemma 1). Those that entered earlier still come as hop by hop says.
//!
//! The thesis has two hops. For n hops its proof goes through: follow a busy period back to its start queue by queue; over
//! each, the queue's whole rate went to W, X and Ck. It puts other flows of W's path and priority into X; that they are in W,
//! since they are served in order, is tighter, and is what its released code does.

use std::collections::BTreeMap;

use super::hop_by_hop::Arrivals;
use super::network::{Network, Unbounded};
use crate::curve::ArrivalCurve;

impl Network {
    /// The largest delay of each flow over its path, in seconds, or why there is none.
    pub fn aggregate(&self) -> Vec<Result<f64, Unbounded>> {
        let arrivals = self.arrivals();
        // Flows of one path and priority have one bound.
        let mut known: BTreeMap<(&[usize], u32), Result<f64, Unbounded>> = BTreeMap::new();
        let mut delays = Vec::with_capacity(self.flows.len());
        for flow in &self.flows {
            let bound = known.entry((&flow.path, flow.priority));
            delays.push(*bound.or_insert_with(|| self.along(&flow.path, flow.priority, &arrivals)));
        }
        delays
    }

    /// The delay of flows of `priority` along all of `path`.
    fn along(&self, path: &[usize], priority: u32, arrivals: &Arrivals) -> Result<f64, Unbounded> {
        // Which flows go all the way, and at which hop of theirs they are at the first queue; in order of flow.
        let whole_way: Vec<(usize, usize)> = self.at[path[0]]
            .iter()
            .copied()
            .filter(|&(flow, hop)| {
                self.flows[flow].priority <= priority && self.flows[flow].path[hop..].starts_with(path)
            })
            .collect();
        let mut service = None;
        for (step, &queue) in path.iter().enumerate() {
            let cross: Vec<(usize, usize)> = self.at[queue]
                .iter()
                .copied()
                .filter(|&(flow, hop)| {
                    let first = hop.checked_sub(step).map(|first| (flow, first));
                    self.flows[flow].priority <= priority
                        && first.is_none_or(|first| whole_way.binary_search(&first).is_err())
                })
                .collect();
            let own = self.service(queue, priority, step + 1 < path.len());
            let left = own.leftover(&self.together(&cross, arrivals)?);
            let left = left.map_err(|_| self.overloaded(queue, priority))?;
            service = Some(match service {
                None => left,
                Some(before) => left.then(&before).ok_or_else(|| self.overloaded(queue, priority))?,
            });
        }
        let service = service.expect("a path has a queue");
        let (own, before): (Vec<_>, Vec<_>) =
            whole_way.into_iter().partition(|&(flow, _)| self.flows[flow].priority == priority);
        let (own, before) = (self.together(&own, arrivals)?, self.together(&before, arrivals)?);
        let left = service.leftover(&before);
        left.and_then(|left| left.delay(&own))
            .map_err(|_| self.overloaded(self.fullest(path, priority), priority))
    }

    /// What these flows, each at a hop at one and the same queue, bring there together.
    fn together(&self, flows: &[(usize, usize)], arrivals: &Arrivals) -> Result<ArrivalCurve, Unbounded> {
        let mut sum = ArrivalCurve::zero();
        let mut from: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(flow, hop) in flows {
            if hop == 1 {
                from.entry(self.flows[flow].path[0]).or_default().push(flow);
            } else {
                sum = sum.plus(arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
        }
        for (queue, group) in from {
            sum = sum.plus(&self.passed_on(queue, &group, arrivals)?);
        }
        Ok(sum)
    }

    /// What a queue passes on of a group of flows that all enter there, in order of flow.
    fn passed_on(
        &self,
        queue: usize,
        group: &[usize],
        arrivals: &Arrivals,
    ) -> Result<ArrivalCurve, Unbounded> {
        let lowest = group.iter().map(|&flow| self.flows[flow].priority).max().unwrap_or(0);
        let (mut own, mut others) = (ArrivalCurve::zero(), ArrivalCurve::zero());
        for &(flow, hop) in &self.at[queue] {
            if self.flows[flow].priority <= lowest {
                let sum = if group.binary_search(&flow).is_ok() { &mut own } else { &mut others };
                *sum = sum.plus(arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
        }
        let left = self.service(queue, lowest, true).leftover(&others);
        left.and_then(|left| left.output(&own)).map_err(|_| self.overloaded(queue, lowest))
    }

    /// The queue of a path that has least left beside the flows of `priority` and those before.
    fn fullest(&self, path: &[usize], priority: u32) -> usize {
        let left = |&queue: &usize| self.capacities[queue] - self.asked(queue, priority);
        *path.iter().min_by(|a, b| left(a).total_cmp(&left(b))).expect("a path has a queue")
    }
}
