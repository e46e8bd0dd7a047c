//! Longer surveys of one path: cross traffic and stability.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::{ProgressObserver, train, transfer};
use crate::control::{Place, Secret};
use crate::cross::{Cross, over_time};
use crate::error::ProbeError;
use crate::numbers::quantile;
use crate::sockets::clock::Clock;
use crate::stability::{Sample, Stability, stability};
use crate::train::{Train, Transfer};
use crate::transfer_report::SLOT_NS;

/// Slots per window for the count of connections over time: 100 ms. The paper uses 10 ms, at which TCP's own bursts are
/// visible.
const WINDOW: usize = 10;

/// Competing traffic on a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossTraffic {
    /// Rate of one connection, in bits per second.
    pub one_bps: f64,
    /// Rate of each of two connections; `None` if the path's rate was given.
    pub each_bps: Option<f64>,
    /// Equivalent number of competing connections, and the path's rate; `None` if a second connection took no rate from
    /// the first.
    pub cross: Option<Cross>,
    /// Smallest and largest equivalent number of connections consistent with the measurement: the tenth and the
    /// ninetieth percentile over time.
    pub plausible: Option<(f64, f64)>,
    /// Length of a window in nanoseconds.
    pub window_ns: u64,
    /// Equivalent number of connections in every window; `None` for a window without data.
    pub over_time: Vec<Option<f64>>,
}

/// Counts competing connections on a path (section 3.2): measures one connection and, if the path's rate is not given,
/// two connections for the same time.
///
/// # Errors
///
/// Returns the error that prevents a measurement, and [`ProbeError::Stopped`] if the caller stops the survey.
pub fn cross(
    from: &Place,
    to: &str,
    duration_ns: u64,
    path_bps: Option<f64>,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<CrossTraffic, ProbeError> {
    if let Some(path) = path_bps.filter(|path| !(1.0..1e18).contains(path)) {
        return Err(ProbeError::setting("path_bps", format!("{path}: expected a positive rate")));
    }
    let steps = if path_bps.is_some() { 1 } else { 2 };
    let one = transfer(from, to, &Transfer { duration_ns, connections: 1 }, secret)?;
    progress(1, steps)?;
    let one_bps = one.rate_bps();
    let (each_bps, cross) = match path_bps {
        Some(path) => (None, Some(Cross::from_path_rate(path, one_bps))),
        None => {
            let two = transfer(from, to, &Transfer { duration_ns, connections: 2 }, secret)?;
            progress(2, steps)?;
            let each = two.rate_bps() / 2.0;
            (Some(each), Cross::from_two_rates(one_bps, each))
        }
    };
    let windows = one.windows_bps(WINDOW);
    let ends = quantile(&windows, 0.1).zip(quantile(&windows, 0.9)).filter(|&(low, _)| low > 0.0);
    let plausible = cross.zip(ends).map(|(cross, (low, high))| cross.plausible(low, high));
    let over_time = cross.map_or_else(Vec::new, |cross| over_time(cross.path_bps, &windows));
    let window_ns = WINDOW as u64 * SLOT_NS;
    Ok(CrossTraffic { one_bps, each_bps, cross, plausible, window_ns, over_time })
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
