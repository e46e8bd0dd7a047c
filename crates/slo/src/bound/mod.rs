//! Bounds on the latency of every promise of a system: per stage and in total.
//!
//! ```text
//! System --check--> parts (one for each stage of each promise) --> components (queues that share traffic)
//!                     \--> dnc                curves: all traffic within its limits
//!                      |-> priority-meister   the linear program of SLO section 3.2.3, on the same limits
//!                      |-> plp                the linear program of Bouillard (2022) for order of arrival, on the same limits
//!                      \-> snc                models: a percentile of requests (SLO section 4.2)
//! ```
//!
//! A stage's bound is the sum of the delay by its limiter, the delay in its queues and its unloaded tail. The bounds of
//! stages add up, because each stage has its own limiters. Traffic enters a stage's first queue within its limits,
//! independently of earlier stages. A limiter that passes the workload's original traffic without delay delays only
//! requests that are already late.
//!
//! A promise without a bound has a typed reason ([`Unbounded`]), never a large number.

mod check;
mod components;
mod curves;
mod error;
mod overloads;
pub mod plp;
mod priority_meister;
mod settings;
mod stochastic;

pub use check::SystemError;
pub use error::{SloBelowUnloaded, Unbounded};
pub(super) use settings::LEAST_FRAME;
pub use settings::{BoundSettings, Unit};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_traces::Stage;

use super::{Slo, System, Workload};
use components::{Parts, TIME_RESOLUTION};
use overloads::Overloads;

/// Method to bound latencies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Deterministic network calculus by curves: the closed form of SLO equation 5.1, with any number of buckets per
    /// workload. Over several queues it is the lower of [`leeward_calculus::Network::aggregate`] and
    /// [`leeward_calculus::Network::hop_by_hop`]. The bound holds for every request within its limits.
    Dnc,
    /// The linear program of PriorityMeister (SLO section 3.2.3), over any paths without a cycle. The bound holds for
    /// every request within its limits.
    PriorityMeister,
    /// The linear program PLP++ for requests of one priority in order of arrival (Bouillard, Performance Evaluation
    /// 2022), over any paths without a cycle. The bound holds for every request within its limits.
    Plp,
    /// Stochastic network calculus (SLO section 4.2). The bound holds for the SLO's percentile of requests, as far as
    /// the models are accurate. No bound exists if the long-run rates of the curves exceed a queue's capacity, even if
    /// the models allow one.
    Snc,
    /// The lowest bound of the other methods that apply.
    Best,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] =
        [Method::Dnc, Method::PriorityMeister, Method::Plp, Method::Snc, Method::Best];

    /// Name in files and the API.
    pub fn name(self) -> &'static str {
        match self {
            Method::Dnc => "dnc",
            Method::PriorityMeister => "priority-meister",
            Method::Plp => "plp",
            Method::Snc => "snc",
            Method::Best => "best",
        }
    }

    /// True if a bound may come from models, which assume that arrivals are stationary and independent.
    pub fn needs_models(self) -> bool {
        matches!(self, Method::Snc | Method::Best)
    }
}

/// Upper bound on the latency of a promise's requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Sum over all stages, in seconds.
    pub seconds: f64,
    /// Bound of each stage, in seconds, in the order of the workload's demands: limiter, queues and unloaded
    /// tail.
    pub stages: Vec<f64>,
    /// Method of this bound; never [`Method::Best`].
    pub method: Method,
}

/// Latency of a workload's largest request at one stage, without other load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Alone {
    /// Stage of the request.
    pub stage: Stage,
    /// Latency, in seconds.
    pub seconds: f64,
}

/// A promise whose SLO the analysis does not guarantee.
#[derive(Clone, PartialEq, Debug)]
pub struct Miss {
    /// Index of the promise.
    pub promise: usize,
    /// The promised SLO.
    pub slo: Slo,
    /// Bound above the SLO, or the reason for no bound.
    pub outcome: Result<Bound, Unbounded>,
}

/// Bounds of the promises of a system, with a cache of the results that several promises share.
#[derive(Debug)]
pub struct Bounds<'s> {
    parts: Parts<'s>,
    settings: BoundSettings,
    /// For each component, once computed: queueing delay of each of its parts.
    curves: Vec<Option<Vec<Result<f64, curves::Fault>>>>,
    snc_components: Vec<Option<stochastic::Component>>,
    plp_components: Vec<Option<plp::Component<'s>>>,
    overloads: Vec<Option<Overloads>>,
}

impl<'s> Bounds<'s> {
    /// Validates a system and divides it into parts and components.
    ///
    /// # Errors
    /// [`SystemError`] with the first invalid queue, promise or setting.
    pub fn new(system: &'s System, settings: BoundSettings) -> Result<Bounds<'s>, SystemError> {
        check::check(system)?;
        settings.check()?;
        let parts = Parts::new(system, settings);
        let components = parts.components.len();
        let snc_components = (0..components).map(|_| None).collect();
        let plp_components = (0..components).map(|_| None).collect();
        let overloads = (0..components).map(|_| None).collect();
        Ok(Bounds {
            parts,
            settings,
            curves: vec![None; components],
            snc_components,
            plp_components,
            overloads,
        })
    }

    /// Bound of a promise, by index.
    ///
    /// # Errors
    /// [`Unbounded`]: the reason for no bound.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn bound(&mut self, promise: usize, method: Method) -> Result<Bound, Unbounded> {
        let stages = match method {
            Method::Best => return self.best(promise),
            Method::Snc => self.stochastic(promise, false)?,
            Method::Dnc | Method::PriorityMeister | Method::Plp => self.deterministic(promise, method)?,
        };
        self.sum(promise, &stages, method)
    }

    /// Adds unloaded tails to delays of limiters and queues.
    fn sum(&self, promise: usize, stages: &[f64], method: Method) -> Result<Bound, Unbounded> {
        let demands = &self.parts.system.promises[promise].workload.demands;
        let stages: Vec<f64> =
            stages.iter().zip(demands).map(|(delay, demand)| delay + demand.unloaded).collect();
        let seconds: f64 = stages.iter().sum();
        if !seconds.is_finite() {
            return Err(Unbounded::NotFinite { workload: self.name(promise) });
        }
        Ok(Bound { seconds, stages, method })
    }

    /// Promises among `which` whose bound exceeds their SLO or does not exist. Best effort has no SLO and never misses.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn misses(&mut self, which: impl IntoIterator<Item = usize>, method: Method) -> Vec<Miss> {
        which.into_iter().filter_map(|promise| self.miss(promise, method)).collect()
    }

    /// The miss of a promise, if its bound does not prove that its SLO is met.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn miss(&mut self, promise: usize, method: Method) -> Option<Miss> {
        let slo = self.parts.system.promises[promise].workload.slo?;
        let outcome = match method {
            // The first bound within the SLO suffices.
            Method::Best => self.first_within(promise, slo),
            method => self.within(promise, method, slo),
        };
        let met = outcome.as_ref().is_ok_and(|bound| bound.seconds <= slo.latency);
        (!met).then_some(Miss { promise, slo, outcome })
    }

    /// Stage at which the largest request of a promise takes longest without other load, and the latency at this stage.
    /// The slowest queue serves the request as a whole, while the other queues forward it; the latencies of all queues and
    /// the unloaded tail follow.
    /// Stages are not summed: a request that is the largest at one stage (a write to a server) may be small at the
    /// next.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn alone(&self, promise: usize) -> Option<Alone> {
        let of = &self.parts.system.promises[promise];
        let stages = of.workload.demands.iter().zip(&of.route).map(|(demand, route)| {
            let capacities = || route.iter().map(|&queue| self.parts.system.queues[queue].capacity);
            let slowest = capacities().fold(f64::INFINITY, f64::min);
            let packet = self.settings.packet(demand);
            let forwarded: f64 = capacities().map(|capacity| packet / capacity).sum();
            let late: f64 = route.iter().map(|&queue| self.parts.system.queues[queue].latency).sum();
            let seconds = demand.unloaded + (demand.largest - packet) / slowest + forwarded + late;
            Alone { stage: demand.stage, seconds }
        });
        stages.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    fn best(&mut self, promise: usize) -> Result<Bound, Unbounded> {
        let bounds = self.candidates(promise)?.iter().map(|&method| self.bound(promise, method));
        least(bounds)
    }

    /// Methods that may have a bound for a promise. With a queue that workloads overload, programs take long to find
    /// none, and models have none. Limits may hold such workloads back, so curves decide.
    fn candidates(&mut self, promise: usize) -> Result<&'static [Method], Unbounded> {
        match self.check_overloads(promise) {
            Ok(()) => Ok(&SINGLE),
            Err(overload) => match self.bound(promise, Method::Dnc) {
                Ok(_) => Ok(&WITHIN_LIMITS),
                Err(_) => Err(overload),
            },
        }
    }

    fn first_within(&mut self, promise: usize, slo: Slo) -> Result<Bound, Unbounded> {
        let mut bounds = Vec::new();
        for &method in self.candidates(promise)? {
            let bound = self.within(promise, method, slo);
            if bound.as_ref().is_ok_and(|bound| bound.seconds <= slo.latency) {
                return bound;
            }
            bounds.push(bound);
        }
        least(bounds)
    }

    /// A bound by the method. If a coarse bound is within the SLO, the result may exceed the method's own bound.
    fn within(&mut self, promise: usize, method: Method, slo: Slo) -> Result<Bound, Unbounded> {
        if method == Method::Snc {
            let coarse = self.stochastic(promise, true)?;
            let bound = self.sum(promise, &coarse, method)?;
            if bound.seconds <= slo.latency {
                return Ok(bound);
            }
        }
        self.bound(promise, method)
    }

    fn deterministic(&mut self, promise: usize, method: Method) -> Result<Vec<f64>, Unbounded> {
        let parts = self.parts.of(promise);
        let mut stages = Vec::with_capacity(parts.len());
        for part in parts {
            let limiter = self.parts.limiter_delay(part)?;
            let queues = match method {
                Method::PriorityMeister => priority_meister::delay(&self.parts, part, self.settings)?,
                Method::Plp => self.plp_delay(part)?,
                _ => self.curve_delay(part)?,
            };
            stages.push(limiter + queues);
        }
        Ok(stages)
    }

    fn curve_delay(&mut self, part: usize) -> Result<f64, Unbounded> {
        let component = self.parts.parts[part].component;
        let parts = &self.parts;
        let known = self.curves[component].get_or_insert_with(|| curves::delays(parts, component));
        let at = parts.components[component].binary_search(&part).expect("a part is of its component");
        known[at].map_err(|fault| fault.into_error(parts, part))
    }

    fn plp_delay(&mut self, part: usize) -> Result<f64, Unbounded> {
        let component = self.parts.parts[part].component;
        let (parts, settings) = (&self.parts, self.settings);
        let known = self.plp_components[component]
            .get_or_insert_with(|| plp::Component::new(parts, component, settings));
        if known.is_one_queue() {
            return self.curve_delay(part);
        }
        known.delay(parts, part, settings)
    }

    fn stochastic(&mut self, promise: usize, coarse: bool) -> Result<Vec<f64>, Unbounded> {
        let parts = self.parts.of(promise);
        let Some(slo) = self.parts.system.promises[promise].workload.slo else {
            return Err(Unbounded::NoSlo { workload: self.name(promise) });
        };
        self.check_overloads(promise)?;
        // The allowed share of slow requests is split equally over the stages, as in the released code.
        let percentile = 100.0 - (100.0 - slo.percentile) / parts.len() as f64;
        let mut stages = Vec::with_capacity(parts.len());
        for part in parts {
            let component = self.parts.parts[part].component;
            let (parts, settings) = (&self.parts, self.settings);
            let network = self.snc_components[component]
                .get_or_insert_with(|| stochastic::Component::new(parts, component, settings));
            stages.push(network.delay(parts, part, percentile, coarse)?);
        }
        Ok(stages)
    }

    /// Checks by curves that the long-run load on a promise's path is within capacity.
    fn check_overloads(&mut self, promise: usize) -> Result<(), Unbounded> {
        for part in self.parts.of(promise) {
            let component = self.parts.parts[part].component;
            let parts = &self.parts;
            let known = self.overloads[component].get_or_insert_with(|| Overloads::new(parts, component));
            known.check(parts, part)?;
        }
        Ok(())
    }

    /// Name of a promise's workload.
    pub(super) fn name(&self, promise: usize) -> String {
        self.parts.workload(promise)
    }
}

/// Methods that [`Method::Best`] tries, fastest first.
const SINGLE: [Method; 4] = [Method::Dnc, Method::Snc, Method::Plp, Method::PriorityMeister];

/// Methods whose bounds depend on limits alone, fastest first.
const WITHIN_LIMITS: [Method; 3] = [Method::Dnc, Method::Plp, Method::PriorityMeister];

/// The lowest bound; the first error if there is no bound.
fn least(bounds: impl IntoIterator<Item = Result<Bound, Unbounded>>) -> Result<Bound, Unbounded> {
    let less = |a: Result<Bound, Unbounded>, b: Result<Bound, Unbounded>| match (&a, &b) {
        (Ok(first), Ok(second)) if second.seconds < first.seconds => b,
        (Err(_), Ok(_)) => b,
        _ => a,
    };
    bounds.into_iter().reduce(less).expect("there is a method")
}

/// Bounds of all promises, in order.
pub fn bounds(system: &System, method: Method, settings: BoundSettings) -> Vec<Result<Bound, Unbounded>> {
    match Bounds::new(system, settings) {
        Ok(mut bounds) => (0..system.promises.len()).map(|promise| bounds.bound(promise, method)).collect(),
        Err(error) => system.promises.iter().map(|_| Err(error.clone().into())).collect(),
    }
}

/// Checks the unloaded latency of a workload: without any load, the sum of its unloaded tails must be below
/// its SLO. Best effort always passes.
///
/// # Errors
/// [`SloBelowUnloaded`] with the stage at which the sum reaches the SLO.
pub fn attainable(workload: &Workload) -> Result<(), SloBelowUnloaded> {
    let Some(slo) = workload.slo else { return Ok(()) };
    let mut unloaded = 0.0;
    for demand in &workload.demands {
        unloaded += demand.unloaded;
        if unloaded.is_nan() || unloaded >= slo.latency {
            let (name, stage) = (workload.name.clone(), demand.stage);
            return Err(SloBelowUnloaded { workload: name, stage, slo: slo.latency, unloaded });
        }
    }
    Ok(())
}

/// True if limits delay a workload by more than traces can resolve.
fn is_delayed(seconds: f64) -> bool {
    seconds > TIME_RESOLUTION
}
