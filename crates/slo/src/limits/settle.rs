//! Limits that keep every SLO: choose, check, and choose again with the delays that the check found. Queues
//! on the path make bursts larger than at the limiter.

use leeward_calculus::{ArrivalCurve, Packets};

use super::super::format::time;
use super::super::system::{Promise, System};
use super::check::{Bound, Hops, KnownDelay, SystemError, Unmet, delays, for_each_hop, hops, total};
use super::{Limiting, NoLimits, Problem};

/// Largest number of rounds. Each round uses the burst growth that the previous choice caused.
const ROUNDS: usize = 4;

/// Share by which a bound must be below its SLO; differences between orders of summation are smaller.
pub(super) const ROUNDING: f64 = 1e-9;

/// Limits that keep every SLO, with the bounds that show it.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// Limits of each free promise.
    pub limits: Vec<Vec<ArrivalCurve>>,
    /// Bound of each promise of the system under these limits.
    pub bounds: Vec<Bound>,
    /// Delay of each hop, in seconds.
    pub(crate) hops: Hops<f64>,
}

/// Reason for which limits do not keep every SLO.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unsettled {
    /// Invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// No limits were chosen.
    #[error(transparent)]
    NoLimits(#[from] NoLimits),
    /// A workload has no bound under the chosen limits.
    #[error("workload `{workload}`: {unmet}")]
    Unbounded {
        /// Name of the workload.
        workload: String,
        /// Reason.
        unmet: Unmet,
    },
    /// A bound refuses the place.
    #[error("{0}")]
    Refused(String),
    /// The bound of a workload is above its SLO.
    #[error("workload `{workload}`: a bound of {} by {method}, above its SLO of {}", time(*.bound), time(*.slo))]
    Above {
        /// Name of the workload.
        workload: String,
        /// Bound, in seconds.
        bound: f64,
        /// SLO, in seconds.
        slo: f64,
        /// Method of the bound.
        method: &'static str,
    },
    /// A workload may miss its SLO under the chosen limits.
    #[error(
        "workload `{workload}` may take {}, which exceeds its SLO; {} of it is the wait at {queue}",
        time(*.bound),
        time(*.waits)
    )]
    Missed {
        /// Name of the workload.
        workload: String,
        /// Bound, in seconds.
        bound: f64,
        /// SLO, in seconds.
        slo: f64,
        /// Name of the queue of the longest wait.
        queue: String,
        /// Wait at that queue, in seconds.
        waits: f64,
    },
}

/// Chooses limits for the `free` promises of a system, by index, and checks that *every* promise keeps its SLO (best
/// effort has none). The function ignores the current limits of the free promises.
///
/// # Errors
/// [`Unsettled`] for an invalid system, if no limits are found, or if some SLO may be missed under the limits.
pub fn settle(
    system: &System,
    free: &[usize],
    way: &dyn Limiting,
    packets: Packets,
) -> Result<Settled, Unsettled> {
    let promises = system.promises.len();
    let invalid = |at: &usize| free[*at] >= promises || free[..*at].contains(&free[*at]);
    if let Some(at) = (0..free.len()).find(invalid) {
        return Err(SystemError::Promise { promise: free[at], promises }.into());
    }
    // Validate before any choice of limits.
    delays(system, packets)?;
    settle_with_delays(system.clone(), free, way, packets, for_each_hop(system, &KnownDelay::default()))
}

pub(crate) fn settle_with_delays(
    mut system: System,
    free: &[usize],
    way: &dyn Limiting,
    packets: Packets,
    mut known: Hops<KnownDelay>,
) -> Result<Settled, Unsettled> {
    let mut missed = None;
    for _ in 0..ROUNDS {
        let limits = match (way.choose(&Problem::with_delays(&system, free, packets, &known)), missed) {
            (Ok(limits), _) => limits,
            // The growth of bursts is the obstacle, and the missed SLO is the more useful message.
            (Err(NoLimits::Together), Some(missed)) => return Err(missed),
            (Err(error), _) => return Err(error.into()),
        };
        for (&index, limits) in free.iter().zip(&limits) {
            system.promises[index].limits.clone_from(limits);
        }
        let delays = hops(&system, packets, &known)?;
        match bounds_within_slos(&system, &delays) {
            Ok(bounds) => {
                let seconds = |delay: Result<f64, Unmet>| delay.expect("a promise with a bound");
                let stage = |hops: Vec<_>| hops.into_iter().map(seconds).collect();
                let hops = delays.into_iter().map(|stages| stages.into_iter().map(stage).collect()).collect();
                return Ok(Settled { limits, bounds, hops });
            }
            Err(why) if !way.is_joint() || !learn(&mut known, &delays) => return Err(why),
            Err(why) => missed = Some(why),
        }
    }
    Err(missed.expect("at least one round"))
}

/// Bounds of all promises, or the first violation.
fn bounds_within_slos(system: &System, hops: &Hops<Result<f64, Unmet>>) -> Result<Vec<Bound>, Unsettled> {
    let check = |(promise, hops): (&Promise, &Vec<Vec<Result<f64, Unmet>>>)| {
        let workload = || promise.workload.name.clone();
        let bound = match (total(promise, hops), promise.workload.slo) {
            (Ok(bound), None) => return Ok(bound),
            (Ok(bound), Some(_)) => bound,
            (Err(unmet), _) => return Err(Unsettled::Unbounded { workload: workload(), unmet }),
        };
        let (seconds, slo) = (bound.seconds(), promise.workload.slo.map_or(f64::INFINITY, |slo| slo.latency));
        if seconds <= slo * (1.0 - ROUNDING) {
            return Ok(bound);
        }
        let (queue, waits) = longest(system, promise, hops);
        Err(Unsettled::Missed { workload: workload(), bound: seconds, slo, queue, waits })
    };
    system.promises.iter().zip(hops).map(check).collect()
}

/// Queue of a promise's longest wait, and that wait in seconds.
fn longest(system: &System, promise: &Promise, hops: &[Vec<Result<f64, Unmet>>]) -> (String, f64) {
    let delays = promise.route.iter().flatten().zip(hops.iter().flatten());
    let known = delays.filter_map(|(&queue, delay)| delay.as_ref().ok().map(|&seconds| (queue, seconds)));
    let longest = known.max_by(|a, b| a.1.total_cmp(&b.1));
    longest.map_or((String::new(), 0.0), |(queue, seconds)| (system.queues[queue].name.clone(), seconds))
}

/// Stores the delays found for hops that are not fixed. Returns true if the next choice may differ: only delays before
/// another hop have an effect.
fn learn(known: &mut Hops<KnownDelay>, found: &Hops<Result<f64, Unmet>>) -> bool {
    let mut changed = false;
    for (known, found) in known.iter_mut().flatten().zip(found.iter().flatten()) {
        // A stage without queues (its client is its server) has no hops.
        let hops = known.len();
        for (hop, (known, found)) in known.iter_mut().zip(found).enumerate() {
            if let Ok(seconds) = *found
                && !known.fixed
            {
                changed |= hop + 1 < hops && known.seconds != seconds;
                known.seconds = seconds;
            }
        }
    }
    changed
}
