//! Aggregate: one bound for the whole path. Flows that travel together count their bursts once (SLO sections A.3 and
//! A.4, equation A.5, in its deterministic form).
//!
//! For flows W of one priority on one path over queues S1 to Sn:
//!
//! * X: flows of a higher priority, along the whole path;
//! * Ck, for each Sk: the other flows at Sk with W's priority or a higher one.
//!
//! ```text
//! S = ((S1 minus C1) conv ... conv (Sn minus Cn)) minus X;     delay(W, S)
//! ```
//!
//! W contains all flows of the priority along the path. These flows keep their order, so one delay holds for all of
//! them.
//!
//! Flows of Ck that enter the network at Sk arrive unchanged. Flows that entered the network at the same queue Q,
//! directly before Sk, form one flow Z. The arrivals of Z at Sk are the output of Q for the sum of these flows, after
//! the other flows at Q whose priority is at least the lowest priority in Z. The assignment of this lowest priority to
//! all of Z is safe (lemma 1). For flows with more hops before Sk, the arrivals come from the hop-by-hop analysis.
//!
//! The thesis covers two hops, and its proof also holds for n hops. The proof follows a busy period back to its start,
//! queue by queue. During the part at Sk, the whole rate of Sk serves W, X and Ck. The thesis puts other flows of W's
//! path and priority into X. In this module they are in W, because they are served in order. The result is tighter, and
//! the thesis' released code does the same.

use std::collections::BTreeMap;

use super::hop_by_hop::Arrivals;
use super::network::{Network, Unbounded};
use crate::curve::ArrivalCurve;

impl Network {
    /// Largest delay of each flow over its path in seconds, or the reason why there is none.
    ///
    /// # Errors
    ///
    /// The result of a flow is an error if a queue that its delay depends on is overloaded.
    pub fn aggregate(&self) -> Vec<Result<f64, Unbounded>> {
        let arrivals = self.arrivals();
        // Flows of one path and priority share one bound.
        let mut bounds: BTreeMap<(&[usize], u32), Result<f64, Unbounded>> = BTreeMap::new();
        let mut delays = Vec::with_capacity(self.flows.len());
        for flow in &self.flows {
            let bound = bounds.entry((&flow.path, flow.priority));
            delays.push(*bound.or_insert_with(|| self.path_delay(&flow.path, flow.priority, &arrivals)));
        }
        delays
    }

    /// Delay of flows of `priority` along all of `path`.
    fn path_delay(&self, path: &[usize], priority: u32, arrivals: &Arrivals) -> Result<f64, Unbounded> {
        // Flows along the whole path, with their hop at the first queue; in order of flow.
        let along_path: Vec<(usize, usize)> = self.passing[path[0]]
            .iter()
            .copied()
            .filter(|&(flow, hop)| {
                self.flows[flow].priority <= priority && self.flows[flow].path[hop..].starts_with(path)
            })
            .collect();
        let mut service = None;
        for (step, &queue) in path.iter().enumerate() {
            let cross: Vec<(usize, usize)> = self.passing[queue]
                .iter()
                .copied()
                .filter(|&(flow, hop)| {
                    let first = hop.checked_sub(step).map(|first| (flow, first));
                    self.flows[flow].priority <= priority
                        && first.is_none_or(|first| along_path.binary_search(&first).is_err())
                })
                .collect();
            let own = self.service(queue, priority, step + 1 < path.len());
            let leftover = own.leftover(&self.total_arrivals(&cross, arrivals)?);
            let leftover = leftover.map_err(|_| self.overloaded(queue, priority))?;
            service = Some(match service {
                None => leftover,
                Some(before) => leftover.then(&before).ok_or_else(|| self.overloaded(queue, priority))?,
            });
        }
        let service = service.expect("a path has a queue");
        let (own, before): (Vec<_>, Vec<_>) =
            along_path.into_iter().partition(|&(flow, _)| self.flows[flow].priority == priority);
        let (own, before) = (self.total_arrivals(&own, arrivals)?, self.total_arrivals(&before, arrivals)?);
        let leftover = service.leftover(&before);
        leftover
            .and_then(|leftover| leftover.delay(&own))
            .map_err(|_| self.overloaded(self.bottleneck(path, priority), priority))
    }

    /// Total arrivals of flows at one queue. `flows` has each flow with the index of its hop at this queue.
    fn total_arrivals(
        &self,
        flows: &[(usize, usize)],
        arrivals: &Arrivals,
    ) -> Result<ArrivalCurve, Unbounded> {
        let mut sum = ArrivalCurve::zero();
        let mut by_queue: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(flow, hop) in flows {
            if hop == 1 {
                by_queue.entry(self.flows[flow].path[0]).or_default().push(flow);
            } else {
                sum = sum.plus(arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
        }
        for (queue, group) in by_queue {
            sum = sum.plus(&self.group_output(queue, &group, arrivals)?);
        }
        Ok(sum)
    }

    /// Output of a queue for a group of flows that all enter the network at this queue, in order of flow.
    fn group_output(
        &self,
        queue: usize,
        group: &[usize],
        arrivals: &Arrivals,
    ) -> Result<ArrivalCurve, Unbounded> {
        let lowest = group.iter().map(|&flow| self.flows[flow].priority).max().unwrap_or(0);
        let (mut own, mut others) = (ArrivalCurve::zero(), ArrivalCurve::zero());
        for &(flow, hop) in &self.passing[queue] {
            if self.flows[flow].priority <= lowest {
                let sum = if group.binary_search(&flow).is_ok() { &mut own } else { &mut others };
                *sum = sum.plus(arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
        }
        let leftover = self.service(queue, lowest, true).leftover(&others);
        leftover.and_then(|leftover| leftover.output(&own)).map_err(|_| self.overloaded(queue, lowest))
    }

    /// The queue of a path with the lowest rate left after the flows of `priority` and higher priorities.
    fn bottleneck(&self, path: &[usize], priority: u32) -> usize {
        let leftover = |&queue: &usize| self.capacities[queue] - self.load(queue, priority);
        *path.iter().min_by(|a, b| leftover(a).total_cmp(&leftover(b))).expect("a path has a queue")
    }
}
