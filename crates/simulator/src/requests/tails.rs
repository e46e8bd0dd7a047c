//! Times without queueing, drawn from what a device's profile knows of them.

use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_traces::Stage;
use leeward_traces::device::{Device, UnloadedError};

use super::arrival::Arrival;
use crate::stage::random::{Draws, Kind};

const TAIL: Kind = Kind::named("request tail");

/// What each request takes at its device beside its work ([`super::Setup::tails`]), drawn from the device's profile: alone it then
/// takes the time that was drawn, or its work if that is longer. `number` tells workloads of one seed apart. None if the profile
/// has no times without queueing.
///
/// A draw is the time at a percentile that is even from 0 to 100. At one that was not measured the next higher counts, as in bounds, so
/// at each percentile that was measured requests take what the bound takes them to, and between two they take more; beyond the
/// highest nothing is known, and it counts.
pub fn tails(arrivals: &[Arrival], device: &Device, seed: u64, number: u64) -> Option<Arc<[Nanos]>> {
    let draws = Draws::new(seed, TAIL);
    let tail = |(index, arrival): (usize, &Arrival)| {
        let percentile = (100.0 * draws.draw(number, index as u64)).max(f64::MIN_POSITIVE);
        let seconds = match device.unloaded(arrival.kind, arrival.size, percentile) {
            Err(UnloadedError::Beyond { largest, .. }) => {
                device.unloaded(arrival.kind, arrival.size, largest).ok().flatten()
            }
            found => found.ok().flatten(),
        }?;
        Some(Nanos::from_secs_f64((seconds - arrival.work[Stage::Storage as usize]).max(0.0)))
    };
    arrivals.iter().enumerate().map(tail).collect()
}
