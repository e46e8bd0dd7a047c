//! One path for longer: who else is on it, and how steady it is.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::{Progress, train, transfer};
use crate::control::{Place, Secret};
use crate::cross::{Cross, over_time};
use crate::error::ProbeError;
use crate::numbers::quantile;
use crate::sockets::clock::Clock;
use crate::stability::{Sample, Stability, stability};
use crate::train::{Train, Transfer};
use crate::transferred::SLOT_NS;

/// Slots of a window in which connections are counted over time: 100 ms. The paper has 10 ms; TCP's own bursts show there.
const WINDOW: usize = 10;

/// Competing traffic on a path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossTraffic {
    /// What one connection got, in bits per second.
    pub one_bps: f64,
    /// What each of two got; none where the path's rate was given.
    pub each_bps: Option<f64>,
    /// The equivalent number of competing connections and the path's rate; none where a second connection took nothing
    /// from the first.
    pub cross: Option<Cross>,
    /// The equivalents that fit what was seen, least and most: by the tenth and the ninetieth percentile over time.
    pub plausible: Option<(f64, f64)>,
    /// How long a window is, in nanoseconds.
    pub window_ns: u64,
    /// The equivalent in every window; none where nothing came.
    pub over_time: Vec<Option<f64>>,
}

/// Counts competing connections on a path (section 3.2): one connection for a while and, where the path's rate is not given,
/// two for as long.
///
/// # Errors
///
/// Whatever keeps it from being measured; [`ProbeError::Stopped`].
pub fn cross(
    from: &Place,
    to: &str,
    duration_ns: u64,
    path_bps: Option<f64>,
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<CrossTraffic, ProbeError> {
    if let Some(path) = path_bps.filter(|path| !(1.0..1e18).contains(path)) {
        return Err(ProbeError::setting("path_bps", format!("{path}: expected a positive rate")));
    }
    let steps = if path_bps.is_some() { 1 } else { 2 };
    let one = transfer(from, to, &Transfer { duration_ns, connections: 1 }, secret)?;
    progress(1, steps)?;
    let one_bps = one.rate_bps();
    let (each_bps, cross) = match path_bps {
        Some(path) => (None, Some(Cross::known(path, one_bps))),
        None => {
            let two = transfer(from, to, &Transfer { duration_ns, connections: 2 }, secret)?;
            progress(2, steps)?;
            let each = two.rate_bps() / 2.0;
            (Some(each), Cross::unknown(one_bps, each))
        }
    };
    let windows = one.windows_bps(WINDOW);
    let ends = quantile(&windows, 0.1).zip(quantile(&windows, 0.9)).filter(|&(low, _)| low > 0.0);
    let plausible = cross.zip(ends).map(|(cross, (low, high))| {
        let at = |seen| Cross::known(cross.path_bps, seen).connections;
        (at(high), at(low))
    });
    let over_time = cross.map_or_else(Vec::new, |cross| over_time(cross.path_bps, &windows));
    let window_ns = WINDOW as u64 * SLOT_NS;
    Ok(CrossTraffic { one_bps, each_bps, cross, plausible, window_ns, over_time })
}

/// How steady a path is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Steadiness {
    /// What was measured.
    pub samples: Vec<Sample>,
    /// What kept later trains from being measured, if anything did.
    pub errors: Vec<String>,
    /// The errors of each lag, where there is one.
    pub lags: Vec<Stability>,
}

/// When a path is measured again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The time from one measurement to the next, in nanoseconds.
    pub every_ns: u64,
    /// How many there are.
    pub times: usize,
    /// How much earlier measurements are compared with later ones, in nanoseconds.
    pub lags_ns: Vec<u64>,
}

/// Measures a path by trains every so often, and says how well an earlier measurement stands for a later one (section 4.1).
/// Once a train has been measured, others that cannot be do not end it.
///
/// # Errors
///
/// Whatever keeps the first train from being measured; [`ProbeError::Stopped`].
pub fn steadiness(
    from: &Place,
    to: &str,
    what: &Train,
    schedule: &Schedule,
    secret: &Secret,
    progress: &mut Progress<'_>,
) -> Result<Steadiness, ProbeError> {
    let &Schedule { every_ns, times, .. } = schedule;
    let clock = Clock::start();
    let (mut samples, mut errors) = (Vec::with_capacity(times), Vec::new());
    for number in 0..times {
        let due = (number as u64).saturating_mul(every_ns);
        // In short pieces, so that whoever wants to stop it is heard.
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
