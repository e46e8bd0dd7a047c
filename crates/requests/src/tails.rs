//! Random times without queueing, drawn from a device's profile.

use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_registry::random::{Draws, Kind};
use leeward_traces::Stage;
use leeward_traces::device::{Device, UnloadedError};

use super::arrival::Arrival;

const TAIL: Kind = Kind::named("request tail");

/// Draws the time of each request at its device in addition to its work ([`super::Setup::tails`]), from the device's
/// profile. Without other load, a request then takes the drawn time, or its work if that is longer. `number`
/// distinguishes workloads of one seed. `None` if the profile has no times without queueing.
///
/// A draw is the time at a percentile uniform from 0 to 100. A percentile that was not measured uses the next higher
/// measured one, as in bounds. So at each measured percentile, requests take the time that the bound assumes; between
/// two of them, they take more. Draws beyond the highest percentile of a size use the highest.
///
/// # Errors
/// [`UnloadedError::Unmeasured`] for a request of a size that was measured at no percentile.
pub fn tails(
    arrivals: &[Arrival],
    device: &Device,
    seed: u64,
    number: u64,
) -> Result<Option<Arc<[Nanos]>>, UnloadedError> {
    let draws = Draws::new(seed, TAIL);
    let tail = |(index, arrival): (usize, &Arrival)| {
        let percentile: f64 = (100.0 * draws.draw(number, index as u64)).max(f64::MIN_POSITIVE);
        let most = device.unloaded.highest_percentile(arrival.kind, arrival.size);
        let percentile = most.map_or(percentile, |most| percentile.min(most));
        let seconds = device.unloaded(arrival.kind, arrival.size, percentile)?;
        let tail =
            |seconds: f64| Nanos::from_secs_f64((seconds - arrival.work[Stage::Storage as usize]).max(0.0));
        Ok(seconds.map(tail))
    };
    arrivals.iter().enumerate().map(tail).collect()
}
