//! What workloads are promised, checked: SLO equation 5.1 at each queue, added up along the way.
//!
//! At a queue of capacity C a workload of priority p waits at most
//!
//! ```text
//! (sum of b of priorities up to and with p) / (C - sum of r of those before p)
//! ```
//!
//! where b is what a workload's bucket holds *there*: behind a queue that delays it by up to d, a workload of bucket (r, b)
//! arrives like one of (r, b + r d), since what leaves within t seconds came within t + d. The thesis' optimiser takes b as it is
//! at the limiter, and looks at each flow's first queue only (the released code); a set that passes here need not pass there, and the
//! other way round. For limits of several buckets the sums are of curves, and the same argument holds.
//!
//! A queue has no delay of its own where all it serves comes from one queue that is not faster: a fluid that left at the
//! slower rate does not build up again.

use leeward_calculus::{
    ArrivalCurve, Overload, Packets, RateLatency, ServiceCurve, TokenBucket, queue_order,
};
use leeward_fabric::input::shown;
use leeward_traces::Stage;

use super::super::system::{Promise, System};
use super::super::words;
use super::super::workload::Demand;

/// Why a workload has no bound.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unmet {
    /// A queue is asked for more than it has.
    #[error("queue {queue}: {}", words::overload(*.stage, .overload.asked, .overload.served))]
    Overload {
        /// A stage that crosses it.
        stage: Stage,
        /// The queue, by name.
        queue: String,
        /// What it is asked for.
        overload: Overload,
    },
    /// A limit lets less pass than the workload brings in the long run.
    #[error("the limit at {stage} is below the workload: {}", words::overload(*.stage, .overload.asked, .overload.served))]
    Limit {
        /// The stage.
        stage: Stage,
        /// What it is asked for.
        overload: Overload,
    },
}

/// The most that a workload's requests take, in seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// For each of its demands: held back by its limits, waiting and served at the queues, and the profiled tail.
    pub stages: Vec<f64>,
}

/// An invalid system.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SystemError {
    /// An invalid capacity.
    #[error("queue `{queue}` of capacity {}: must be finite and above 0", shown(*.capacity))]
    Capacity {
        /// The queue.
        queue: String,
        /// Its capacity.
        capacity: f64,
    },
    /// A promise with more or fewer routes, priorities or limits than its workload has demands.
    #[error(
        "workload `{workload}` has {demands} demands, {routes} routes, {priorities} priorities and {limits} limits: there must be as many of each"
    )]
    Shape {
        /// The workload.
        workload: String,
        /// Its demands.
        demands: usize,
        /// Its routes.
        routes: usize,
        /// Its priorities.
        priorities: usize,
        /// Its limits.
        limits: usize,
    },
    /// A queue that does not exist.
    #[error("workload `{workload}` crosses queue {queue}, and there are {queues}, numbered from 0")]
    Queue {
        /// The workload.
        workload: String,
        /// The queue it names.
        queue: usize,
        /// How many there are.
        queues: usize,
    },
    /// A promise that does not exist, or is named twice.
    #[error("promise {promise} is to be given limits, and there are {promises}, each to be named once")]
    Promise {
        /// The one named.
        promise: usize,
        /// How many there are.
        promises: usize,
    },
    /// Routes that lead in a circle, for which equation 5.1 cannot be added up.
    #[error("the routes lead in a circle through queue `{queue}`: they must all follow one order of queues")]
    Circle {
        /// A queue of the circle, or behind one.
        queue: String,
    },
}

impl Bound {
    /// All stages together.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// A demand at a queue.
pub(crate) struct Seat<'a> {
    /// Its priority there; 0 is served first.
    pub level: u64,
    /// What its limits let pass, at the limiter.
    pub limits: &'a ArrivalCurve,
    /// How much later than at the limiter it may come here: the delays of the queues before.
    pub late: f64,
    /// Work of its largest request.
    pub largest: f64,
    /// The queue it comes from, with its capacity; None at its first.
    pub from: Option<(usize, f64)>,
}

impl Seat<'_> {
    /// What arrives here at most. A request that is larger than its bucket passes when the bucket is empty.
    pub fn bucket(&self, packets: Packets, bucket: TokenBucket) -> TokenBucket {
        let burst = match packets {
            Packets::Fluid => bucket.burst(),
            Packets::Whole => bucket.burst().max(self.largest),
        };
        let late = (burst + bucket.rate() * self.late).min(f64::MAX);
        TokenBucket::new(bucket.rate(), late).expect("a late bucket is finite and not negative")
    }

    fn curve(&self, packets: Packets) -> ArrivalCurve {
        let buckets: Vec<TokenBucket> =
            self.limits.buckets().iter().map(|&bucket| self.bucket(packets, bucket)).collect();
        ArrivalCurve::new(&buckets).expect("limits have a bucket")
    }
}

/// Whether a queue cannot have a backlog of a fluid: all of it comes from one queue that is not faster.
pub(crate) fn passes_through(capacity: f64, mut from: impl Iterator<Item = Option<(usize, f64)>>) -> bool {
    let Some(Some((queue, upstream))) = from.next() else { return false };
    upstream <= capacity && from.all(|other| other.is_some_and(|(other, _)| other == queue))
}

/// The delay of each seat at a queue, in the order of `seats`.
pub(crate) fn at_queue(capacity: f64, packets: Packets, seats: &[Seat<'_>]) -> Vec<Result<f64, Overload>> {
    if packets == Packets::Fluid && passes_through(capacity, seats.iter().map(|seat| seat.from)) {
        // What the queue before can serve, this one can. If that is overloaded, so are they all: there.
        return vec![Ok(0.0); seats.len()];
    }
    let mut order: Vec<usize> = (0..seats.len()).collect();
    order.sort_by_key(|&seat| seats[seat].level);
    let mut delays = vec![Ok(0.0); seats.len()];
    let single = seats.iter().all(|seat| seat.limits.buckets().len() == 1);
    let mut sums = if single { Sums::Buckets(0.0, 0.0) } else { Sums::Curves(ArrivalCurve::zero()) };
    // From the last class on, so that each knows the largest request of those behind.
    let mut behind = 0.0_f64;
    let mut blocks = Vec::new();
    for class in order.chunk_by(|&a, &b| seats[a].level == seats[b].level).rev() {
        blocks.push(if packets == Packets::Whole { behind } else { 0.0 });
        behind = class.iter().map(|&seat| seats[seat].largest).fold(behind, f64::max);
    }
    for (class, block) in
        order.chunk_by(|&a, &b| seats[a].level == seats[b].level).zip(blocks.into_iter().rev())
    {
        let delay = sums.serve(capacity, packets, block, class.iter().map(|&seat| &seats[seat]));
        for &seat in class {
            delays[seat] = delay;
        }
    }
    delays
}

/// What the classes before bring.
enum Sums {
    /// Their rates and bursts together.
    Buckets(f64, f64),
    /// Their curves together.
    Curves(ArrivalCurve),
}

impl Sums {
    /// The delay of the next class, which is then added.
    fn serve<'a>(
        &mut self,
        capacity: f64,
        packets: Packets,
        block: f64,
        class: impl Iterator<Item = &'a Seat<'a>>,
    ) -> Result<f64, Overload> {
        match self {
            Sums::Buckets(rates, bursts) => {
                let (mut rate, mut burst) = (0.0, 0.0);
                for seat in class {
                    let bucket = seat.bucket(packets, seat.limits.buckets()[0]);
                    rate += bucket.rate();
                    burst += bucket.burst();
                }
                let served = capacity - *rates;
                let overload = Overload { asked: *rates + rate, served: capacity };
                *rates += rate;
                *bursts += burst;
                let delay = (*bursts + block) / served;
                let bounded = rate <= served && served > 0.0 && delay.is_finite();
                if bounded { Ok(delay) } else { Err(overload) }
            }
            Sums::Curves(before) => {
                let own = class.fold(ArrivalCurve::zero(), |own, seat| own.plus(&seat.curve(packets)));
                let asked = Overload { asked: before.rate() + own.rate(), served: capacity };
                let link: ServiceCurve = RateLatency::new(capacity, (block / capacity).min(f64::MAX))
                    .expect("a capacity is finite and above 0")
                    .into();
                let delay = link.leftover(before).and_then(|left| left.delay(&own));
                *before = before.plus(&own);
                delay.map_err(|_| asked)
            }
        }
    }
}

/// What is known of a hop before a system is looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Known {
    /// Its delay, or as much as is known of it.
    pub seconds: f64,
    /// Whether it stands: the queue is served as it was, and is not looked at.
    pub stands: bool,
}

/// For each promise, demand and hop.
pub(crate) type Hops<T> = Vec<Vec<Vec<T>>>;

/// One entry for each hop of a system.
pub(crate) fn for_each_hop<T: Clone>(system: &System, value: &T) -> Hops<T> {
    let promise = |promise: &Promise| {
        promise.route.iter().map(|path| vec![value.clone(); path.len()]).collect::<Vec<Vec<T>>>()
    };
    system.promises.iter().map(promise).collect()
}

/// The bound of each promise of a system, or why it has none. Best effort counts as its priority says.
///
/// What comes to a queue from one that is overloaded may come at any time, so nothing has a bound there, nor behind.
///
/// # Errors
/// An invalid system.
pub fn bounds(system: &System, packets: Packets) -> Result<Vec<Result<Bound, Unmet>>, SystemError> {
    let delays = delays(system, packets)?;
    Ok(system.promises.iter().zip(&delays).map(|(promise, delays)| total(promise, delays)).collect())
}

/// The delay of each hop of a system.
///
/// # Errors
/// An invalid system.
pub(crate) fn delays(system: &System, packets: Packets) -> Result<Hops<Result<f64, Unmet>>, SystemError> {
    hops(system, packets, &for_each_hop(system, &Known::default()))
}

/// The delay of each hop, those that stand as they are known.
///
/// # Errors
/// An invalid system.
pub(crate) fn hops(
    system: &System,
    packets: Packets,
    known: &Hops<Known>,
) -> Result<Hops<Result<f64, Unmet>>, SystemError> {
    validate(system)?;
    let (order, at) = (order(system)?, at(system));
    let mut delays: Hops<Result<f64, Unmet>> = for_each_hop(system, &Ok(0.0));
    for queue in order {
        let here = &at[queue];
        let is_known = |&&(promise, demand, hop): &&(usize, usize, usize)| known[promise][demand][hop].stands;
        if here.iter().any(|seat| is_known(&seat)) {
            for &(promise, demand, hop) in here.iter().filter(is_known) {
                delays[promise][demand][hop] = Ok(known[promise][demand][hop].seconds);
            }
            continue;
        }
        let late = |&(promise, demand, hop): &(usize, usize, usize)| -> Result<f64, Unmet> {
            let hops: &[Result<f64, Unmet>] = &delays[promise][demand][..hop];
            hops.iter().try_fold(0.0, |sum, delay| delay.clone().map(|delay| sum + delay))
        };
        let found: Vec<Result<f64, Unmet>> = match here.iter().map(late).collect::<Result<Vec<f64>, Unmet>>()
        {
            Err(unmet) => vec![Err(unmet); here.len()],
            Ok(late) => {
                let seats: Vec<Seat<'_>> = (here.iter().zip(late))
                    .map(|(&(promise, demand, hop), late)| {
                        let of = &system.promises[promise];
                        let from = hop.checked_sub(1).map(|hop| of.route[demand][hop]);
                        Seat {
                            level: u64::from(of.priorities[demand]),
                            limits: &of.limits[demand],
                            late,
                            largest: of.workload.demands[demand].largest,
                            from: from.map(|queue| (queue, system.queues[queue].capacity)),
                        }
                    })
                    .collect();
                let named = |overload, &(promise, demand, _): &(usize, usize, usize)| Unmet::Overload {
                    stage: system.promises[promise].workload.demands[demand].stage,
                    queue: system.queues[queue].name.clone(),
                    overload,
                };
                let found = at_queue(system.queues[queue].capacity, packets, &seats).into_iter().zip(here);
                found.map(|(delay, seat)| delay.map_err(|overload| named(overload, seat))).collect()
            }
        };
        for (&(promise, demand, hop), delay) in here.iter().zip(found) {
            delays[promise][demand][hop] = delay;
        }
    }
    Ok(delays)
}

/// The bound of a promise whose hops have these delays.
pub(crate) fn total(promise: &Promise, delays: &[Vec<Result<f64, Unmet>>]) -> Result<Bound, Unmet> {
    let stage = |(at, hops): (usize, &Vec<Result<f64, Unmet>>)| {
        let own = before_queues(&promise.workload.demands[at], &promise.limits[at])?;
        hops.iter().try_fold(own, |sum, delay| delay.clone().map(|delay| sum + delay))
    };
    Ok(Bound { stages: delays.iter().enumerate().map(stage).collect::<Result<_, _>>()? })
}

/// What a demand takes besides its queues: its limits, and its profiled tail.
///
/// # Errors
/// Limits that let less pass than it brings in the long run.
pub(crate) fn before_queues(demand: &Demand, limits: &ArrivalCurve) -> Result<f64, Unmet> {
    let shaped = limits
        .buckets()
        .iter()
        .try_fold(0.0_f64, |most, &bucket| demand.arrivals.shaper_delay(bucket).map(|delay| most.max(delay)));
    let stage = demand.stage;
    Ok(shaped.map_err(|overload| Unmet::Limit { stage, overload })? + demand.unloaded)
}

/// Whether a system is one.
fn validate(system: &System) -> Result<(), SystemError> {
    for queue in &system.queues {
        if !queue.capacity.is_finite() || queue.capacity <= 0.0 {
            return Err(SystemError::Capacity { queue: queue.name.clone(), capacity: queue.capacity });
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

/// The queues in an order in which every route passes them.
fn order(system: &System) -> Result<Vec<usize>, SystemError> {
    let routes = system.promises.iter().flat_map(|promise| &promise.route);
    queue_order(system.queues.len(), routes.map(Vec::as_slice))
        .map_err(|queue| SystemError::Circle { queue: system.queues[queue].name.clone() })
}

/// For each queue who is there: (promise, demand, hop).
fn at(system: &System) -> Vec<Vec<(usize, usize, usize)>> {
    let mut at = vec![Vec::new(); system.queues.len()];
    for (promise, of) in system.promises.iter().enumerate() {
        for (demand, path) in of.route.iter().enumerate() {
            path.iter().enumerate().for_each(|(hop, &queue)| at[queue].push((promise, demand, hop)));
        }
    }
    at
}
