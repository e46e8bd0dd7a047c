//! Hop by hop: a bound for each queue, added up (SLO section A.3, approach 1).
//!
//! At a queue, a flow gets the service that remains after all other flows of the same or a higher priority, whatever
//! their order. The output of a queue arrives at the next queue of the path. Every flow is analysed alone, so its burst
//! counts at every hop. The analysis is simple, works for any path, and is usually the loosest.
//!
//! A higher priority may even worsen a flow's bound: the other flows then leave a queue later and in larger bursts, and
//! may share a later queue with the flow.

use super::network::{Network, Unbounded};
use crate::curve::ArrivalCurve;

/// Arrivals for each flow and hop.
pub(super) type Arrivals = Vec<Vec<Result<ArrivalCurve, Unbounded>>>;

impl Network {
    /// Largest delay of each flow over its path in seconds, or the reason why there is none.
    ///
    /// # Errors
    ///
    /// The result of a flow is an error if a queue that its delay depends on is overloaded.
    pub fn hop_by_hop(&self) -> Vec<Result<f64, Unbounded>> {
        self.walk().0
    }

    /// Arrivals at each hop of each flow.
    pub(super) fn arrivals(&self) -> Arrivals {
        self.walk().1
    }

    fn walk(&self) -> (Vec<Result<f64, Unbounded>>, Arrivals) {
        let mut delays = vec![Ok(0.0); self.flows.len()];
        let mut arrivals: Arrivals = self.flows.iter().map(|flow| vec![Ok(flow.arrivals.clone())]).collect();
        for &queue in &self.order {
            for (flow, hop, others) in self.others(queue, &arrivals) {
                let priority = self.flows[flow].priority;
                let last = hop + 1 == self.flows[flow].path.len();
                let own = arrivals[flow][hop].clone();
                let bounds = own.and_then(|own| {
                    let others = others?;
                    let leftover = |passes_on| self.service(queue, priority, passes_on).leftover(&others);
                    // A packet leaves a queue, and arrives at the next, with its last bit: only departures are rounded
                    // up to whole packets.
                    let delay = leftover(false).and_then(|leftover| leftover.delay(&own));
                    let output = leftover(!last).and_then(|leftover| leftover.output(&own));
                    delay.and_then(|delay| Ok((delay, output?))).map_err(|_| self.overloaded(queue, priority))
                });
                delays[flow] = delays[flow].and_then(|so_far| Ok(so_far + bounds.clone()?.0));
                if !last {
                    arrivals[flow].push(bounds.map(|(_, output)| output));
                }
            }
        }
        (delays, arrivals)
    }

    /// For each flow at a queue: its hop, and the arrivals of all other flows of the same or a higher priority.
    fn others(
        &self,
        queue: usize,
        arrivals: &Arrivals,
    ) -> Vec<(usize, usize, Result<ArrivalCurve, Unbounded>)> {
        let mut here = self.passing[queue].clone();
        here.sort_by_key(|&(flow, _)| (self.flows[flow].priority, flow));
        let mut before: Result<ArrivalCurve, Unbounded> = Ok(ArrivalCurve::zero());
        let mut others = Vec::with_capacity(here.len());
        for class in here.chunk_by(|a, b| self.flows[a.0].priority == self.flows[b.0].priority) {
            let own = |&(flow, hop): &(usize, usize)| arrivals[flow][hop].clone();
            // Sums from both ends, so that each flow's own arrivals are left out instead of subtracted.
            let mut after = vec![Ok(ArrivalCurve::zero())];
            for flow in class[1..].iter().rev() {
                after.push(plus(&after[after.len() - 1], &own(flow)));
            }
            for (flow, after) in class.iter().zip(after.into_iter().rev()) {
                others.push((flow.0, flow.1, plus(&before, &after)));
                before = plus(&before, &own(flow));
            }
        }
        others
    }
}

fn plus(
    a: &Result<ArrivalCurve, Unbounded>,
    b: &Result<ArrivalCurve, Unbounded>,
) -> Result<ArrivalCurve, Unbounded> {
    Ok(a.as_ref().map_err(|&error| error)?.plus(b.as_ref().map_err(|&error| error)?))
}
