//! Calibration survey: tests all trains of a grid against bulk transfers.

use serde::Serialize;

use super::{Host, ProgressObserver, train, transfer};
use crate::calibrate::{Score, TrainErrors, choose};
use crate::control::Secret;
use crate::error::ProbeError;
use crate::train::{Limits, Train, Transfer};

/// Result of a calibration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration {
    /// Rate of the bulk transfer on each path, in bits per second.
    pub bulk_bps: Vec<f64>,
    /// Scores of the trains, in order of the grid.
    pub scores: Vec<Score>,
    /// Cheapest train with an acceptable error.
    pub best: Train,
    /// Errors that prevented trains.
    pub errors: Vec<String>,
}

/// Sends every train of a grid on every path, and compares the train with a bulk transfer on the same path (section
/// 4.1).
///
/// # Errors
///
/// Returns the error of a failed bulk transfer; [`ProbeError::Nothing`] if no train succeeded; [`ProbeError::Stopped`]
/// if the caller stops the survey.
pub fn calibrate(
    paths: &[(Host, Host)],
    grid: &[Train],
    bulk: &Transfer,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<Calibration, ProbeError> {
    for one in grid {
        one.check(&Limits::default())?;
    }
    let steps = paths.len() * (grid.len() + 1);
    let mut done = 0;
    let mut results: Vec<_> = grid.iter().map(|&train| TrainErrors { train, errors: Vec::new() }).collect();
    let (mut bulk_bps, mut errors) = (Vec::new(), Vec::new());
    for (from, to) in paths {
        let truth = transfer(&from.place(), &to.address, bulk, secret)?.rate_bps();
        bulk_bps.push(truth);
        done += 1;
        progress(done, steps)?;
        for one in &mut results {
            match train(&from.place(), &to.address, &one.train, secret) {
                Ok(estimate) => one.errors.push((estimate.rate_bps / truth - 1.0).abs()),
                Err(error) => errors.push(error.to_string()),
            }
            done += 1;
            progress(done, steps)?;
        }
    }
    let Some((scores, best)) = choose(&results) else {
        let why = errors.first().cloned().unwrap_or_else(|| "no paths, or no trains".to_owned());
        return Err(ProbeError::Nothing(why));
    };
    let best = scores[best].train;
    Ok(Calibration { bulk_bps, scores, best, errors })
}
