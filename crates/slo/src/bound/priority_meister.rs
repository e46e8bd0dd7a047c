//! `priority-meister`: the longest delay over the queues of a stage, by linear programming (SLO section 3.2.3).
//!
//! The analysis follows one bit of the workload that leaves its last queue at `out`. The busy period of this queue
//! began at `in`: the last moment without backlog of the workload's priority or a higher priority. Since then the queue
//! has served its rate times the elapsed time. Everything that arrived before `in` had left the upstream queues by
//! then. Each upstream queue is therefore analysed in the same way, with `in` as its `out`. The result is a tree of
//! busy periods with the workload's last queue at its root. A queue that leads to several other queues appears once for
//! each of these, so any paths without a cycle give a tree. The thesis has one time per queue, which does not suffice
//! for paths that part and meet again.
//!
//! ```text
//! variables   in of each busy period, and out of the root; out of any other period is in of the period it leads to
//!             R' of each flow at each busy period: work served by out, counted from in of the flow's first queue
//! flow        R <= R', where R is R' of the busy period before, and 0 at the flow's first queue
//! limits      R' <= rate (out - in of the flow's first queue) + burst, for each bucket of each flow but the workload
//! work        sum of (R' - R) = capacity (out - in), minus the loss by latencies and whole requests
//! workload    R' at the root = y <= rate s + burst, for each of its buckets
//!
//! maximise    out of the root - in of the workload's first queue - s
//! ```
//!
//! y is the index of the bit, and s the earliest time at which it arrives. The thesis solves one program for each y and
//! takes the largest difference to the arrival time of y. This module solves one program for all y, because the latest
//! departure of the bit is concave in y, and its earliest arrival is convex in y.
//!
//! Flows of one path are merged into one flow with the sum of their curves. Flows on the workload's own path and of its
//! priority count as the workload if they keep their order of arrival ([`super::BoundSettings::fifo`]). For one queue
//! the code uses the closed form.
//!
//! The program can exceed the curves of [`super::Method::Dnc`] for three reasons. First, traffic of higher priorities
//! may come in any order in the program, which ignores the priorities within this traffic. Second, the program counts
//! the penalty for whole packets at each queue but the last; the hop-by-hop analysis does not. Third, the program does
//! not know that several busy periods belong to one queue. On lines and trees, with fluid service and one higher
//! priority, the program is at most the curves.
//!
//! The delay is the bound that the solver's prices prove, not its objective; the two agree to about a millionth.

use std::collections::BTreeMap;

use leeward_calculus::{ArrivalCurve, Overload, RateLatency, ServiceCurve};
use leeward_solver::{Limits, Program, SolverError, Variable};

use super::components::{Part, Parts};
use super::{BoundSettings, Unbounded, Unit};
use crate::Queue;

/// Largest number of busy periods of a program.
const MOST_PERIODS: usize = 4096;

/// Queueing delay of a part.
pub(super) fn delay(parts: &Parts<'_>, part: usize, settings: BoundSettings) -> Result<f64, Unbounded> {
    let own = &parts.parts[part];
    let before = Before { parts, part, flows: flows(parts, part, settings) };
    match own.route {
        [queue] => before.one_queue(*queue),
        _ => before.program(),
    }
}

/// Sum over the parts of one path that have at least the priority of the given part.
struct Flow<'s> {
    route: &'s [usize],
    arrivals: ArrivalCurve,
    /// True for the flow of the workload itself.
    own: bool,
}

/// Flows of a part's priority and of higher priorities, at the queues of a component.
struct Before<'p, 's> {
    parts: &'p Parts<'s>,
    part: usize,
    flows: Vec<Flow<'s>>,
}

/// Flows by path, the workload's own first.
fn flows<'s>(parts: &Parts<'s>, part: usize, settings: BoundSettings) -> Vec<Flow<'s>> {
    let own = &parts.parts[part];
    let is_own = |at: usize, of: &Part<'_>| {
        at == part || settings.fifo && of.route == own.route && of.priority == own.priority
    };
    let mut sums: BTreeMap<(bool, &[usize]), ArrivalCurve> = BTreeMap::new();
    for &at in &parts.components[own.component] {
        let of = &parts.parts[at];
        if of.priority <= own.priority {
            let sum = sums.entry((!is_own(at, of), of.route)).or_insert_with(ArrivalCurve::zero);
            *sum = sum.plus(&parts.limits(at));
        }
    }
    let flow = |((other, route), arrivals): ((bool, &'s [usize]), ArrivalCurve)| {
        let pruned = arrivals.prune_to(settings.buckets.max(1));
        Flow { route, arrivals: pruned.map_or(arrivals, |pruned| pruned.curve), own: !other }
    };
    sums.into_iter().map(flow).collect()
}

impl<'p, 's> Before<'p, 's> {
    /// Delay at one queue in closed form. The service that other flows leave, in any order, is convex, so the
    /// longest delay is the largest horizontal distance.
    fn one_queue(&self, queue: usize) -> Result<f64, Unbounded> {
        let mut others = ArrivalCurve::zero();
        for flow in self.flows.iter().filter(|flow| !flow.own && flow.route.contains(&queue)) {
            if flow.route.first() != Some(&queue) {
                return self.program();
            }
            others = others.plus(&flow.arrivals);
        }
        let &Queue { capacity, latency, .. } = &self.parts.system.queues[queue];
        let lag = (self.held(queue, false) / capacity + latency).min(f64::MAX);
        let service = RateLatency::new(capacity, lag).expect("a capacity is finite and above 0");
        let left = ServiceCurve::from(service).leftover(&others);
        left.and_then(|left| left.delay(&self.flows[0].arrivals)).map_err(|_| self.overload(queue))
    }

    fn program(&self) -> Result<f64, Unbounded> {
        let periods = self.periods()?;
        for period in &periods {
            if self.load(period.queue) > self.parts.system.queues[period.queue].capacity {
                return Err(self.overload(period.queue));
            }
        }
        // Scale: the unit of work is one second of the fastest queue, and the unit of time is the time that all bursts
        // take.
        let capacity = |period: &Period| self.parts.system.queues[period.queue].capacity;
        let fastest = periods.iter().map(capacity).fold(0.0, f64::max);
        let bursts = |period: &Period| -> f64 {
            let here = self.flows.iter().filter(|flow| flow.route.contains(&period.queue));
            let bursts = here.map(|flow| flow.arrivals.buckets()[flow.arrivals.buckets().len() - 1].burst());
            (bursts.sum::<f64>() + period.lag) / capacity(period)
        };
        let unit = periods.iter().map(bursts).sum::<f64>();
        if unit == 0.0 {
            return Ok(0.0);
        }
        let scale = Scale { work: fastest * unit, rate: fastest };
        let program = self.build(&periods, &scale);
        match program.minimise(Limits::default(), None) {
            Ok(solution) => Ok((-solution.bound * unit).max(0.0)),
            // Some queues are loaded to exactly their capacity.
            Err(SolverError::Unbounded) if self.is_full(self.fullest(&periods)) => {
                Err(self.overload(self.fullest(&periods)))
            }
            Err(error) => {
                let (workload, stage) = self.parts.place(self.part);
                Err(Unbounded::Solver { workload, stage, error })
            }
        }
    }

    /// Busy periods, each after the period that it leads to.
    fn periods(&self) -> Result<Vec<Period>, Unbounded> {
        let route = self.parts.parts[self.part].route;
        let last = route[route.len() - 1];
        let mut periods =
            vec![Period { queue: last, leads_to: None, lag: self.lag(last, false), main: true }];
        let mut at = 0;
        while at < periods.len() {
            let Period { queue, main, .. } = periods[at];
            let mut before: Vec<(usize, bool)> = (self.flows.iter())
                .filter_map(|flow| {
                    let hop = flow.route.iter().position(|&other| other == queue)?;
                    Some((flow.route[hop.checked_sub(1)?], main && flow.own))
                })
                .collect();
            // The workload's own path comes first, once.
            before.sort_by_key(|&(queue, main)| (queue, !main));
            before.dedup_by_key(|&mut (queue, _)| queue);
            for (queue, main) in before {
                let mut up = Some(at);
                while let Some(period) = up {
                    if periods[period].queue == queue {
                        let (workload, stage) = self.parts.place(self.part);
                        return Err(Unbounded::Cycle { workload, stage, queue: self.parts.queue(queue) });
                    }
                    up = periods[period].leads_to;
                }
                periods.push(Period { queue, leads_to: Some(at), lag: self.lag(queue, true), main });
                if periods.len() > MOST_PERIODS {
                    let (workload, stage) = self.parts.place(self.part);
                    return Err(Unbounded::Size { workload, stage, most: MOST_PERIODS });
                }
            }
            at += 1;
        }
        Ok(periods)
    }

    /// Twice the longest time, in seconds, that all busy periods take one after another. Real traffic stays within it, so
    /// it bounds the times of the program, and the solver's prices prove a bound without an assumption on the times.
    fn range(&self, periods: &[Period]) -> f64 {
        // For each period: its longest length, and the length of the longest chain of periods before it.
        let mut chains = vec![(0.0f64, 0.0f64); periods.len()];
        for (at, period) in periods.iter().enumerate().rev() {
            let before = chains[at].1;
            let (mut load, mut work) = (0.0, period.lag);
            for flow in self.flows.iter().filter(|flow| flow.route.contains(&period.queue)) {
                let bucket = flow.arrivals.buckets()[flow.arrivals.buckets().len() - 1];
                load += bucket.rate();
                work += bucket.burst() + bucket.rate() * before;
            }
            let length = work / (self.parts.system.queues[period.queue].capacity - load).max(0.0);
            chains[at].0 = length;
            if let Some(next) = period.leads_to {
                chains[next].1 = chains[next].1.max(before + length);
            }
        }
        let sum: f64 = chains.iter().map(|(length, _)| length).sum();
        if sum.is_nan() { f64::INFINITY } else { 2.0 * sum }
    }

    fn build(&self, periods: &[Period], scale: &Scale) -> Program {
        let most = self.range(periods);
        let (time, work) = (most / (scale.work / scale.rate), |flow: &Flow<'_>| {
            let bucket = flow.arrivals.buckets()[flow.arrivals.buckets().len() - 1];
            2.0 * (bucket.burst() + bucket.rate() * most) / scale.work
        });
        let free = -time..=time;
        let mut program = Program::new();
        let out = program.add(-1.0, free.clone());
        let starts: Vec<Variable> = (periods.iter().enumerate())
            .map(|(at, period)| {
                // Time zero is the workload's arrival at its first queue.
                let first = period.main && !periods[at + 1..].iter().any(|later| later.main);
                program.add(0.0, if first { 0.0..=0.0 } else { free.clone() })
            })
            .collect();
        let arrival = program.add(1.0, 0.0..=time);
        // For each period: the served work of each flow at its queue.
        let served: Vec<BTreeMap<usize, Variable>> = (periods.iter())
            .map(|period| {
                let here =
                    (0..self.flows.len()).filter(|&flow| self.flows[flow].route.contains(&period.queue));
                here.map(|flow| (flow, program.add(0.0, 0.0..=work(&self.flows[flow])))).collect()
            })
            .collect();
        for (at, period) in periods.iter().enumerate() {
            let end = period.leads_to.map_or(out, |next| starts[next]);
            let start = starts[at];
            program.constrain(0.0..=f64::INFINITY, &[(end, 1.0), (start, -1.0)]);
            let capacity = self.parts.system.queues[period.queue].capacity / scale.rate;
            let mut work = vec![(end, -capacity), (start, capacity)];
            for (&flow, &done) in &served[at] {
                work.push((done, 1.0));
                let before = self.before(periods, at, flow);
                if let Some(before) = before {
                    let arrived = served[before][&flow];
                    work.push((arrived, -1.0));
                    program.constrain(0.0..=f64::INFINITY, &[(done, 1.0), (arrived, -1.0)]);
                }
                let buckets = self.flows[flow].arrivals.buckets();
                let mut limit = |from: &[(Variable, f64)]| {
                    for bucket in buckets {
                        let rate = bucket.rate() / scale.rate;
                        let mut terms = vec![(done, 1.0)];
                        terms.extend(from.iter().map(|&(time, sign)| (time, sign * rate)));
                        program.constrain(f64::NEG_INFINITY..=bucket.burst() / scale.work, &terms);
                    }
                };
                if !(self.flows[flow].own && period.main) {
                    let mut first = at;
                    while let Some(before) = self.before(periods, first, flow) {
                        first = before;
                    }
                    limit(&[(end, -1.0), (starts[first], 1.0)]);
                } else if period.leads_to.is_none() {
                    limit(&[(arrival, -1.0)]);
                }
            }
            program.constrain(-period.lag / scale.work..=0.0, &work);
        }
        program
    }

    /// Busy period from which a flow reached the period `at`.
    fn before(&self, periods: &[Period], at: usize, flow: usize) -> Option<usize> {
        let route = self.flows[flow].route;
        let hop = route.iter().position(|&queue| queue == periods[at].queue)?;
        let before = route[hop.checked_sub(1)?];
        (at + 1..periods.len())
            .find(|&other| periods[other].leads_to == Some(at) && periods[other].queue == before)
    }

    /// Work by which a queue's service lags: the work of its latency, and what it holds back as a whole.
    fn lag(&self, queue: usize, passes_on: bool) -> f64 {
        let &Queue { capacity, latency, .. } = &self.parts.system.queues[queue];
        self.held(queue, passes_on) + capacity * latency
    }

    /// Work that is served as a whole: the unit in service at the start, and the incomplete unit at the end.
    fn held(&self, queue: usize, passes_on: bool) -> f64 {
        if self.parts.settings.unit == Unit::Fluid {
            return 0.0;
        }
        let own = &self.parts.parts[self.part];
        let (mut after, mut before) = (self.parts.in_service(own.component, queue), 0.0f64);
        for &at in &self.parts.components[own.component] {
            let of = &self.parts.parts[at];
            if of.route.contains(&queue) {
                let larger = if of.priority > own.priority { &mut after } else { &mut before };
                *larger = larger.max(self.parts.packet(at));
            }
        }
        after + if passes_on { before } else { 0.0 }
    }

    fn load(&self, queue: usize) -> f64 {
        let here = self.flows.iter().filter(|flow| flow.route.contains(&queue));
        here.map(|flow| flow.arrivals.rate()).sum()
    }

    fn overload(&self, queue: usize) -> Unbounded {
        let (workload, stage) = self.parts.place(self.part);
        let overload = Overload { load: self.load(queue), service: self.parts.system.queues[queue].capacity };
        Unbounded::Overload { workload, stage, queue: self.parts.queue(queue), overload }
    }

    /// True if a queue has no capacity left, within rounding.
    fn is_full(&self, queue: usize) -> bool {
        self.load(queue) >= self.parts.system.queues[queue].capacity * (1.0 - 1e-9)
    }

    /// Queue with the largest load as a share of its capacity.
    fn fullest(&self, periods: &[Period]) -> usize {
        let share = |queue: usize| self.load(queue) / self.parts.system.queues[queue].capacity;
        let queues = periods.iter().map(|period| period.queue);
        queues.max_by(|&a, &b| share(a).total_cmp(&share(b))).expect("a path has a queue")
    }
}

/// A busy period of a queue.
struct Period {
    queue: usize,
    /// Index of the downstream period; `None` for the root.
    leads_to: Option<usize>,
    lag: f64,
    /// True on the workload's own path.
    main: bool,
}

/// Units of the program.
struct Scale {
    work: f64,
    rate: f64,
}
