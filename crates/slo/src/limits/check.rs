//! Check of limits: SLO equation 5.1 at each queue, summed over the path.
//!
//! At a queue of capacity C a workload of priority p waits at most
//!
//! ```text
//! (C T + sum of b of priorities up to and including p) / (C - sum of r of the priorities before p)
//! ```
//!
//! where T is the latency of the queue, and b the burst of a workload *at that queue*. Behind a queue with a delay of
//! up to d, a workload of bucket (r, b) arrives like a workload of bucket (r, b + r d). The reason: work that leaves
//! within t seconds arrived within t + d. The thesis' optimiser uses b at the limiter and checks only each flow's first
//! queue, as the released code does. So limits that pass this check may fail the check of the thesis, and the reverse.
//! For limits of several buckets, the sums are sums of curves, and the same argument holds.
//!
//! A queue adds no delay if all its traffic comes from one queue with at most its own capacity, and neither has a
//! latency. Fluid that left at the lower rate forms no further backlog.

use leeward_calculus::{
    ArrivalCurve, Overload, Packets, RateLatency, ServiceCurve, TokenBucket, queue_order,
};
use leeward_fabric::input::format_number;
use leeward_traces::Stage;

use super::super::format;
use super::super::system::{Promise, Queue, System};
use super::super::workload::Demand;

/// Reason for which a workload has no bound.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unmet {
    /// A queue is overloaded.
    #[error("queue {queue}: {}", format::overload(*.stage, .overload.load, .overload.service))]
    Overload {
        /// Stage of a workload at the queue.
        stage: Stage,
        /// Name of the queue.
        queue: String,
        /// Work per second: arriving, and served.
        overload: Overload,
    },
    /// A limit lets less pass than the workload sends in the long run.
    #[error("the limit at {stage} is below the workload: {}", format::overload(*.stage, .overload.load, .overload.service))]
    Limit {
        /// The stage.
        stage: Stage,
        /// Work per second: sent, and passed by the limit.
        overload: Overload,
    },
}

/// Upper bound on the latency of a workload's requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// For each demand, in seconds: delay by its limits, waiting and service at its queues, and the profiled
    /// tail.
    pub stages: Vec<f64>,
}

/// Invalid system.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SystemError {
    /// A queue has an invalid capacity.
    #[error("queue `{queue}` of capacity {}: must be finite and above 0", format_number(*.capacity))]
    Capacity {
        /// Name of the queue.
        queue: String,
        /// Capacity given.
        capacity: f64,
    },
    /// A queue has an invalid latency.
    #[error("queue `{queue}` of latency {} s: must be finite and not negative", format_number(*.latency))]
    Latency {
        /// Name of the queue.
        queue: String,
        /// Latency given, in seconds.
        latency: f64,
    },
    /// A promise has more or fewer routes, priorities or limits than its workload has demands.
    #[error(
        "workload `{workload}` has {demands} demands, {routes} routes, {priorities} priorities and {limits} limits: there must be as many of each"
    )]
    Shape {
        /// Name of the workload.
        workload: String,
        /// Number of demands.
        demands: usize,
        /// Number of routes.
        routes: usize,
        /// Number of priorities.
        priorities: usize,
        /// Number of limits.
        limits: usize,
    },
    /// A route names a queue that does not exist.
    #[error("workload `{workload}` crosses queue {queue}, and there are {queues}, numbered from 0")]
    Queue {
        /// Name of the workload.
        workload: String,
        /// Index of the missing queue.
        queue: usize,
        /// Number of queues.
        queues: usize,
    },
    /// The promises whose limits are to be chosen include an index that does not exist or that occurs twice.
    #[error("limits for promise {promise}: expected an index below {promises}, and each index once")]
    Promise {
        /// Index of the promise.
        promise: usize,
        /// Number of promises.
        promises: usize,
    },
    /// The routes form a cycle, so equation 5.1 cannot be summed along them.
    #[error("the routes form a cycle through queue `{queue}`: all routes must follow one order of queues")]
    Cycle {
        /// Name of a queue on the cycle, or downstream of it.
        queue: String,
    },
}

impl Bound {
    /// Sum over all stages, in seconds.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// A flow at a queue: the traffic of a demand.
pub(crate) struct QueueFlow<'a> {
    /// Priority at the queue; 0 is served first.
    pub level: u64,
    /// Limits of the demand, at its limiter.
    pub limits: &'a ArrivalCurve,
    /// Largest possible delay between the limiter and this queue: the sum of the delays of the previous queues, in
    /// seconds.
    pub late: f64,
    /// Work of the largest request.
    pub largest: f64,
    /// The previous queue, by index, with the largest rate of its output; `None` at the first queue.
    pub from: Option<(usize, f64)>,
}

impl QueueFlow<'_> {
    /// Bucket at this queue. A request larger than the limiter's bucket passes once the bucket is full of
    /// tokens.
    pub fn bucket(&self, packets: Packets, bucket: TokenBucket) -> TokenBucket {
        let burst = match packets {
            Packets::Fluid => bucket.burst(),
            Packets::Whole => bucket.burst().max(self.largest),
        };
        let grown = (burst + bucket.rate() * self.late).min(f64::MAX);
        TokenBucket::new(bucket.rate(), grown).expect("a burst is finite and not negative")
    }

    fn curve(&self, packets: Packets) -> ArrivalCurve {
        let buckets: Vec<TokenBucket> =
            self.limits.buckets().iter().map(|&bucket| self.bucket(packets, bucket)).collect();
        ArrivalCurve::new(&buckets).expect("limits have a bucket")
    }
}

/// A queue as the source of traffic of another: its index, with the largest rate of its output. After a latency, late
/// and punctual work may leave together.
pub(crate) fn source(system: &System, queue: usize) -> (usize, f64) {
    let of = &system.queues[queue];
    (queue, if of.latency > 0.0 { f64::INFINITY } else { of.capacity })
}

/// True if a queue cannot have a backlog of fluid: it has no latency, and all its traffic comes from one queue with at
/// most its capacity.
pub(crate) fn passes_through(queue: &Queue, mut from: impl Iterator<Item = Option<(usize, f64)>>) -> bool {
    let Some(Some((first, upstream))) = from.next() else { return false };
    queue.latency == 0.0
        && upstream <= queue.capacity
        && from.all(|other| other.is_some_and(|(other, _)| other == first))
}

/// Delay of each flow at a queue, in the order of `flows`.
pub(crate) fn at_queue(
    queue: &Queue,
    packets: Packets,
    flows: &[QueueFlow<'_>],
) -> Vec<Result<f64, Overload>> {
    if packets == Packets::Fluid && passes_through(queue, flows.iter().map(|flow| flow.from)) {
        // This queue can serve everything that the previous queue can. An overload counts at the previous queue.
        return vec![Ok(0.0); flows.len()];
    }
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&flow| flows[flow].level);
    let mut delays = vec![Ok(0.0); flows.len()];
    let single = flows.iter().all(|flow| flow.limits.buckets().len() == 1);
    let mut sums = if single { Sums::Buckets(0.0, 0.0) } else { Sums::Curves(ArrivalCurve::zero()) };
    // Iterate from the last class, so that each class knows the largest request of the lower priorities.
    let mut behind = 0.0_f64;
    let mut blocks = Vec::new();
    for class in order.chunk_by(|&a, &b| flows[a].level == flows[b].level).rev() {
        blocks.push(if packets == Packets::Whole { behind } else { 0.0 });
        behind = class.iter().map(|&flow| flows[flow].largest).fold(behind, f64::max);
    }
    for (class, block) in
        order.chunk_by(|&a, &b| flows[a].level == flows[b].level).zip(blocks.into_iter().rev())
    {
        let delay = sums.serve(queue, packets, block, class.iter().map(|&flow| &flows[flow]));
        for &flow in class {
            delays[flow] = delay;
        }
    }
    delays
}

/// Traffic of the higher priorities.
enum Sums {
    /// Sum of rates, and sum of bursts.
    Buckets(f64, f64),
    /// Sum of curves.
    Curves(ArrivalCurve),
}

impl Sums {
    /// Delay of the next class. Adds the class to the sums.
    fn serve<'a>(
        &mut self,
        queue: &Queue,
        packets: Packets,
        block: f64,
        class: impl Iterator<Item = &'a QueueFlow<'a>>,
    ) -> Result<f64, Overload> {
        let &Queue { capacity, latency, .. } = queue;
        match self {
            Sums::Buckets(rates, bursts) => {
                let (mut rate, mut burst) = (0.0, 0.0);
                for flow in class {
                    let bucket = flow.bucket(packets, flow.limits.buckets()[0]);
                    rate += bucket.rate();
                    burst += bucket.burst();
                }
                let served = capacity - *rates;
                let overload = Overload { load: *rates + rate, service: capacity };
                *rates += rate;
                *bursts += burst;
                let delay = (*bursts + block + capacity * latency) / served;
                let bounded = rate <= served && served > 0.0 && delay.is_finite();
                if bounded { Ok(delay) } else { Err(overload) }
            }
            Sums::Curves(before) => {
                let own = class.fold(ArrivalCurve::zero(), |own, flow| own.plus(&flow.curve(packets)));
                let overload = Overload { load: before.rate() + own.rate(), service: capacity };
                let late = (block / capacity + latency).min(f64::MAX);
                let link: ServiceCurve =
                    RateLatency::new(capacity, late).expect("a capacity is finite and above 0").into();
                let delay = link.leftover(before).and_then(|left| left.delay(&own));
                *before = before.plus(&own);
                delay.map_err(|_| overload)
            }
        }
    }
}

/// Delay of a hop, as known from earlier rounds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct KnownDelay {
    /// Delay in seconds, or a lower bound of it.
    pub seconds: f64,
    /// True for a fixed hop: traffic at its queue is unchanged, and the check skips the queue.
    pub fixed: bool,
}

/// Values by promise, demand and hop.
pub(crate) type Hops<T> = Vec<Vec<Vec<T>>>;

/// One value for each hop of a system.
pub(crate) fn for_each_hop<T: Clone>(system: &System, value: &T) -> Hops<T> {
    let promise = |promise: &Promise| {
        promise.route.iter().map(|path| vec![value.clone(); path.len()]).collect::<Vec<Vec<T>>>()
    };
    system.promises.iter().map(promise).collect()
}

/// For each promise of a system: its bound, or the reason why it has none. Best effort counts at its priority.
///
/// Traffic from an overloaded queue may arrive at any time, so no promise has a bound at the following queues either.
///
/// # Errors
/// [`SystemError`] for an invalid system.
pub fn bounds(system: &System, packets: Packets) -> Result<Vec<Result<Bound, Unmet>>, SystemError> {
    let delays = delays(system, packets)?;
    Ok(system.promises.iter().zip(&delays).map(|(promise, delays)| total(promise, delays)).collect())
}

/// Delay of each hop of a system.
///
/// # Errors
/// [`SystemError`] for an invalid system.
pub(crate) fn delays(system: &System, packets: Packets) -> Result<Hops<Result<f64, Unmet>>, SystemError> {
    hops(system, packets, &for_each_hop(system, &KnownDelay::default()))
}

/// Delay of each hop; fixed hops keep their known delay.
///
/// # Errors
/// [`SystemError`] for an invalid system.
pub(crate) fn hops(
    system: &System,
    packets: Packets,
    known: &Hops<KnownDelay>,
) -> Result<Hops<Result<f64, Unmet>>, SystemError> {
    validate(system)?;
    let (order, hops_by_queue) = (order(system)?, hops_by_queue(system));
    let mut delays: Hops<Result<f64, Unmet>> = for_each_hop(system, &Ok(0.0));
    for queue in order {
        let here = &hops_by_queue[queue];
        let is_fixed = |&&(promise, demand, hop): &&(usize, usize, usize)| known[promise][demand][hop].fixed;
        if here.iter().any(|flow| is_fixed(&flow)) {
            for &(promise, demand, hop) in here.iter().filter(is_fixed) {
                delays[promise][demand][hop] = Ok(known[promise][demand][hop].seconds);
            }
            continue;
        }
        let late = |&(promise, demand, hop): &(usize, usize, usize)| -> Result<f64, Unmet> {
            let hops: &[Result<f64, Unmet>] = &delays[promise][demand][..hop];
            hops.iter().try_fold(0.0, |sum, delay| delay.clone().map(|delay| sum + delay))
        };
        let results: Vec<Result<f64, Unmet>> =
            match here.iter().map(late).collect::<Result<Vec<f64>, Unmet>>() {
                Err(unmet) => vec![Err(unmet); here.len()],
                Ok(late) => {
                    let flows: Vec<QueueFlow<'_>> = (here.iter().zip(late))
                        .map(|(&(promise, demand, hop), late)| {
                            let of = &system.promises[promise];
                            let from = hop.checked_sub(1).map(|hop| of.route[demand][hop]);
                            QueueFlow {
                                level: u64::from(of.priorities[demand]),
                                limits: &of.limits[demand],
                                late,
                                largest: of.workload.demands[demand].largest,
                                from: from.map(|queue| source(system, queue)),
                            }
                        })
                        .collect();
                    let named = |overload, &(promise, demand, _): &(usize, usize, usize)| Unmet::Overload {
                        stage: system.promises[promise].workload.demands[demand].stage,
                        queue: system.queues[queue].name.clone(),
                        overload,
                    };
                    let results = at_queue(&system.queues[queue], packets, &flows).into_iter().zip(here);
                    results.map(|(delay, flow)| delay.map_err(|overload| named(overload, flow))).collect()
                }
            };
        for (&(promise, demand, hop), delay) in here.iter().zip(results) {
            delays[promise][demand][hop] = delay;
        }
    }
    Ok(delays)
}

/// Bound of a promise from the delays of its hops.
pub(crate) fn total(promise: &Promise, delays: &[Vec<Result<f64, Unmet>>]) -> Result<Bound, Unmet> {
    let stage = |(at, hops): (usize, &Vec<Result<f64, Unmet>>)| {
        let own = before_queues(&promise.workload.demands[at], &promise.limits[at])?;
        hops.iter().try_fold(own, |sum, delay| delay.clone().map(|delay| sum + delay))
    };
    Ok(Bound { stages: delays.iter().enumerate().map(stage).collect::<Result<_, _>>()? })
}

/// Latency of a demand outside its queues, in seconds: the delay by its limits, and its profiled tail.
///
/// # Errors
/// [`Unmet::Limit`] for limits below the demand's long-run rate.
pub(crate) fn before_queues(demand: &Demand, limits: &ArrivalCurve) -> Result<f64, Unmet> {
    let shaped = limits
        .buckets()
        .iter()
        .try_fold(0.0_f64, |most, &bucket| demand.arrivals.shaper_delay(bucket).map(|delay| most.max(delay)));
    let stage = demand.stage;
    Ok(shaped.map_err(|overload| Unmet::Limit { stage, overload })? + demand.unloaded)
}

/// Checks capacities, counts and queue indices.
fn validate(system: &System) -> Result<(), SystemError> {
    for queue in &system.queues {
        if !queue.capacity.is_finite() || queue.capacity <= 0.0 {
            return Err(SystemError::Capacity { queue: queue.name.clone(), capacity: queue.capacity });
        }
        if !queue.latency.is_finite() || queue.latency < 0.0 {
            return Err(SystemError::Latency { queue: queue.name.clone(), latency: queue.latency });
        }
    }
    for promise in &system.promises {
        let workload = || promise.workload.name.clone();
        let demands = promise.workload.demands.len();
        let (routes, priorities, limits) =
            (promise.route.len(), promise.priorities.len(), promise.limits.len());
        if [routes, priorities, limits] != [demands; 3] {
            return Err(SystemError::Shape { workload: workload(), demands, routes, priorities, limits });
        }
        for path in &promise.route {
            let queues = system.queues.len();
            if let Some(&queue) = path.iter().find(|&&queue| queue >= queues) {
                return Err(SystemError::Queue { workload: workload(), queue, queues });
            }
        }
    }
    Ok(())
}

/// Queues in an order that follows every route.
fn order(system: &System) -> Result<Vec<usize>, SystemError> {
    let routes = system.promises.iter().flat_map(|promise| &promise.route);
    queue_order(system.queues.len(), routes.map(Vec::as_slice))
        .map_err(|queue| SystemError::Cycle { queue: system.queues[queue].name.clone() })
}

/// For each queue, its hops as (promise, demand, hop).
fn hops_by_queue(system: &System) -> Vec<Vec<(usize, usize, usize)>> {
    let mut hops = vec![Vec::new(); system.queues.len()];
    for (promise, of) in system.promises.iter().enumerate() {
        for (demand, path) in of.route.iter().enumerate() {
            path.iter().enumerate().for_each(|(hop, &queue)| hops[queue].push((promise, demand, hop)));
        }
    }
    hops
}
