//! Limits that keep every SLO: chosen, checked, and where queues on the way make bursts larger than they are at the limiter, chosen
//! again with what the check found.

use leeward_calculus::{ArrivalCurve, Packets};

use super::super::system::{Promise, System};
use super::super::words::time;
use super::check::{Bound, Hops, Known, SystemError, Unmet, delays, for_each_hop, hops, total};
use super::{Limiting, NoLimits, Problem};

/// How often limits are chosen before a set is given up. Each time the bursts behind a queue are those of the choice before.
const ROUNDS: usize = 4;

/// By how much a bound is to be below its SLO, as a share: sums of other orders differ by less.
pub(super) const ROUNDING: f64 = 1e-9;

/// Limits that keep every SLO, and the bounds they were checked with.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// For each free promise, its limits.
    pub limits: Vec<Vec<ArrivalCurve>>,
    /// For each promise of the system, its bound with these limits.
    pub bounds: Vec<Bound>,
    /// The delay of each hop.
    pub(crate) hops: Hops<f64>,
}

/// Why limits do not keep every SLO.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unsettled {
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// No limits were chosen.
    #[error(transparent)]
    NoLimits(#[from] NoLimits),
    /// With the limits chosen a workload has no bound.
    #[error("workload `{workload}`: {unmet}")]
    Unbounded {
        /// The workload.
        workload: String,
        /// Why.
        unmet: Unmet,
    },
    /// With the limits chosen a workload may miss its SLO.
    #[error(
        "workload `{workload}` may take {}, {} of it at {queue}, and its SLO is less",
        time(*.bound),
        time(*.waits)
    )]
    Missed {
        /// The workload.
        workload: String,
        /// Its bound, in seconds.
        bound: f64,
        /// Its SLO, in seconds.
        slo: f64,
        /// The queue where it waits longest.
        queue: String,
        /// How long it waits there, in seconds.
        waits: f64,
    },
}

/// Chooses limits for the `free` promises of a system, by index, and checks that with them *every* promise keeps its SLO
/// (best effort has none). The limits that the free promises came with count for nothing.
///
/// # Errors
/// An invalid system; no limits; or limits with which some SLO may be missed.
pub fn settle(
    system: &System,
    free: &[usize],
    way: &dyn Limiting,
    packets: Packets,
) -> Result<Settled, Unsettled> {
    let promises = system.promises.len();
    let wrong = |at: &usize| free[*at] >= promises || free[..*at].contains(&free[*at]);
    if let Some(at) = (0..free.len()).find(wrong) {
        return Err(SystemError::Promise { promise: free[at], promises }.into());
    }
    // Before anything is chosen, so that the limits are of a system that is one.
    delays(system, packets)?;
    settle_knowing(system.clone(), free, way, packets, for_each_hop(system, &Known::default()))
}

pub(crate) fn settle_knowing(
    mut system: System,
    free: &[usize],
    way: &dyn Limiting,
    packets: Packets,
    mut known: Hops<Known>,
) -> Result<Settled, Unsettled> {
    let mut missed = None;
    for _ in 0..ROUNDS {
        let limits = match (way.choose(&Problem::knowing(&system, free, packets, &known)), missed) {
            (Ok(limits), _) => limits,
            // What stands in the way is the growth of bursts: the SLO that it breaks says more.
            (Err(NoLimits::Together), Some(missed)) => return Err(missed),
            (Err(error), _) => return Err(error.into()),
        };
        for (&index, limits) in free.iter().zip(&limits) {
            system.promises[index].limits.clone_from(limits);
        }
        let found = hops(&system, packets, &known)?;
        match kept(&system, &found) {
            Ok(bounds) => {
                let seconds = |delay: Result<f64, Unmet>| delay.expect("a promise with a bound");
                let stage = |hops: Vec<_>| hops.into_iter().map(seconds).collect();
                let hops = found.into_iter().map(|stages| stages.into_iter().map(stage).collect()).collect();
                return Ok(Settled { limits, bounds, hops });
            }
            Err(why) if !way.together() || !learn(&mut known, &found) => return Err(why),
            Err(why) => missed = Some(why),
        }
    }
    Err(missed.expect("at least one round"))
}

/// The bounds of all promises, or the first that is not kept.
fn kept(system: &System, hops: &Hops<Result<f64, Unmet>>) -> Result<Vec<Bound>, Unsettled> {
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

/// The queue where a promise waits longest, and how long.
fn longest(system: &System, promise: &Promise, hops: &[Vec<Result<f64, Unmet>>]) -> (String, f64) {
    let delays = promise.route.iter().flatten().zip(hops.iter().flatten());
    let known = delays.filter_map(|(&queue, delay)| delay.as_ref().ok().map(|&seconds| (queue, seconds)));
    let longest = known.max_by(|a, b| a.1.total_cmp(&b.1));
    longest.map_or((String::new(), 0.0), |(queue, seconds)| (system.queues[queue].name.clone(), seconds))
}

/// Takes over what was found of hops that do not stand. Whether that makes a difference to what is chosen: only what comes before
/// another hop does.
fn learn(known: &mut Hops<Known>, found: &Hops<Result<f64, Unmet>>) -> bool {
    let mut changed = false;
    for (known, found) in known.iter_mut().flatten().zip(found.iter().flatten()) {
        // A stage that crosses no queue, on a client that is the server, has none at all.
        let hops = known.len();
        for (hop, (known, found)) in known.iter_mut().zip(found).enumerate() {
            if let Ok(seconds) = *found
                && !known.stands
            {
                changed |= hop + 1 < hops && known.seconds != seconds;
                known.seconds = seconds;
            }
        }
    }
    changed
}
