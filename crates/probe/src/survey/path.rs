//! Longer surveys of one path: cross traffic and stability.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::{ProgressObserver, join, train, transfer};
use crate::control::{Place, Secret};
use crate::cross::{self, Cross, advantage};
use crate::error::ProbeError;
use crate::numbers::quantile;
use crate::sockets::clock::Clock;
use crate::stability::{Sample, Stability, stability};
use crate::train::{Congestion, Limits, Train, Transfer};
use crate::transfer_report::{SLOT_NS, TransferReport};

/// Slots per window for the count of connections over time: 100 ms. The paper uses 10 ms, at which TCP's own bursts are
/// visible.
const WINDOW: usize = 10;

/// Competing traffic on a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossTraffic {
    /// Rate of one connection, in bits per second.
    pub one_bps: f64,
    /// Rate of that connection beside a second one that began later.
    pub earlier_bps: f64,
    /// Rate of the second connection.
    pub later_bps: f64,
    /// Rate of the second connection relative to the first, 1 if TCP divides the path evenly; `None` if one of them got
    /// nothing.
    pub advantage: Option<f64>,
    /// Number of competing connections, each with the rate of the earlier one, and the path's rate; `None` if the second
    /// connection took no rate from others.
    pub cross: Option<Cross>,
    /// Smallest and largest number of connections consistent with the measurement: the tenth and the ninetieth percentile
    /// over time, of this number and of the number that assumes an even division.
    pub plausible: Option<(f64, f64)>,
    /// Length of a window in nanoseconds.
    pub window_ns: u64,
    /// Number of connections in every window of the second connection; `None` for a window without data.
    pub over_time: Vec<Option<f64>>,
}

/// Counts competing connections on a path (section 3.2). One connection runs for twice the duration, and a second one
/// during its second half, which determines the number. Both use this congestion control, or the default of the source.
/// If the path's rate is not given, both halves determine it.
///
/// # Errors
///
/// Returns the error that prevents a measurement, and [`ProbeError::Stopped`] if the caller stops the survey.
pub fn cross(
    from: &Place,
    to: &str,
    duration_ns: u64,
    path_bps: Option<f64>,
    congestion: Option<Congestion>,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<CrossTraffic, ProbeError> {
    if let Some(path) = path_bps.filter(|path| !(1.0..1e18).contains(path)) {
        return Err(ProbeError::setting("path_bps", format!("{path}: expected a positive rate")));
    }
    let carry =
        |duration_ns| transfer(from, to, &Transfer { duration_ns, connections: 1, congestion }, secret);
    check_cross(duration_ns)?;
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| carry(2 * duration_ns));
        thread::sleep(Duration::from_nanos(duration_ns));
        let stopped = progress(1, 2);
        let second = stopped.and_then(|()| carry(duration_ns));
        (join(first.join()), second)
    });
    let (first, second) = (first?, second?);
    progress(2, 2)?;
    let (alone, earlier) = halves(&first, duration_ns);
    let (one_bps, earlier_bps, later_bps) = (alone.rate_bps(), earlier.rate_bps(), second.rate_bps());
    let cross = match path_bps {
        Some(path) => Cross::beside_two(path, earlier_bps, later_bps),
        None => Cross::from_two_connections(one_bps, earlier_bps, later_bps),
    };
    let windows = alone.windows_bps(WINDOW);
    let beside: Vec<_> = earlier.windows_bps(WINDOW).into_iter().zip(second.windows_bps(WINDOW)).collect();
    let over_time: Vec<Option<f64>> = cross.map_or_else(Vec::new, |cross| {
        let count = |&(earlier, later): &(f64, f64)| Cross::beside_two(cross.path_bps, earlier, later);
        beside.iter().map(|rates| count(rates).map(|cross| cross.connections)).collect()
    });
    let plausible = cross.and_then(|cross| {
        let even = cross::over_time(cross.path_bps, &windows);
        let both = [even, over_time.clone()].map(|counts| counts.into_iter().flatten().collect::<Vec<f64>>());
        let ends = |share: f64| both.iter().filter_map(move |counts| quantile(counts, share));
        Some((ends(0.1).reduce(f64::min)?, ends(0.9).reduce(f64::max)?))
    });
    let (advantage, window_ns) = (advantage(earlier_bps, later_bps), WINDOW as u64 * SLOT_NS);
    let result =
        CrossTraffic { one_bps, earlier_bps, later_bps, advantage, cross, plausible, window_ns, over_time };
    Ok(result)
}

/// The two halves of a transfer whose duration is twice this one.
fn halves(both: &TransferReport, duration_ns: u64) -> (TransferReport, TransferReport) {
    let slots = (duration_ns / SLOT_NS) as usize;
    let second = both.slots.iter().map(|each| each[slots.min(each.len())..].to_vec());
    let second = TransferReport { duration_ns, slots: second.collect() };
    (TransferReport { duration_ns, slots: both.slots.clone() }, second)
}

/// Checks the duration of a count of competing connections, whose first transfer takes twice as long.
fn check_cross(duration_ns: u64) -> Result<(), ProbeError> {
    let both = Transfer { duration_ns: duration_ns.saturating_mul(2), connections: 1, congestion: None };
    Transfer { duration_ns, connections: 1, congestion: None }.check(&Limits::default())?;
    both.check(&Limits::default()).map_err(|_| {
        let seconds = duration_ns as f64 / 1e9;
        ProbeError::setting("duration_ns", format!("{seconds} s: expected at most 30 s"))
    })
}

/// Stability of a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Steadiness {
    /// Measurements.
    pub samples: Vec<Sample>,
    /// Errors that prevented later trains.
    pub errors: Vec<String>,
    /// Errors of each lag with at least one pair of measurements.
    pub lags: Vec<Stability>,
}

/// Timing of repeated measurements of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Time from one measurement to the next, in nanoseconds.
    pub every_ns: u64,
    /// Number of measurements.
    pub times: usize,
    /// Lags between compared measurements, in nanoseconds.
    pub lags_ns: Vec<u64>,
}

/// Measures a path with trains at intervals and computes how well earlier measurements predict later ones (section
/// 4.1). After the first successful train, later failures do not end the survey.
///
/// # Errors
///
/// Returns the error of the first train, and [`ProbeError::Stopped`] if the caller stops the survey.
pub fn steadiness(
    from: &Place,
    to: &str,
    what: &Train,
    schedule: &Schedule,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Steadiness, ProbeError> {
    let &Schedule { every_ns, times, .. } = schedule;
    let clock = Clock::start();
    let (mut samples, mut errors) = (Vec::with_capacity(times), Vec::new());
    for number in 0..times {
        let due = (number as u64).saturating_mul(every_ns);
        // Sleeps in short pieces, so that a request to stop is noticed.
        while clock.ns() < due {
            thread::sleep(Duration::from_nanos((due - clock.ns()).min(200_000_000)));
            progress(number, times)?;
        }
        let at_ns = clock.ns();
        match train(from, to, what, secret) {
            Ok(estimate) => samples.push(Sample { at_ns, rate_bps: estimate.rate_bps }),
            Err(error) if samples.is_empty() => return Err(error),
            Err(error) => errors.push(error.to_string()),
        }
        progress(number + 1, times)?;
    }
    let lags = schedule.lags_ns.iter().filter_map(|&lag| stability(&samples, lag, every_ns / 2)).collect();
    Ok(Steadiness { samples, errors, lags })
}
