//! Surveys (meshes, shared bottlenecks, calibration): measurements of several paths, requested from one place.
//!
//! Each survey reports its progress to a function that may stop it. These modules only request measurements in order;
//! the computations are in the modules beside `survey`, which do no input or output.

mod bottlenecks;
mod calibration;
mod mesh;
mod path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::control::{Order, Outcome, Place, Secret, order};
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::train::{Limits, Train, Transfer};
use crate::transfer_report::TransferReport;

pub use bottlenecks::{
    BOTTLENECK_HOSTS, Bottlenecks, EARLIER_NS, Experiment, GroupUplink, Sources, bottleneck_steps,
    bottlenecks, check_bottlenecks, protocol,
};
pub use calibration::{Calibration, calibrate};
pub(crate) use mesh::check_hosts;
pub use mesh::{HopMeasurement, MeshMeasurement, PathMeasurement, mesh, topology};
pub use path::{CrossTraffic, Schedule, Steadiness, cross, steadiness};

/// Progress callback with the number of completed steps and of all steps; an error stops the survey.
pub type ProgressObserver<'a> = dyn FnMut(usize, usize) -> Result<(), ProbeError> + 'a;

/// A host that takes part in a survey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredHost")]
pub struct Host {
    /// Name of the host in the results.
    pub name: String,
    /// Address on which the host listens, in the form that every other host can use: `HOST` or `HOST:PORT`.
    pub address: String,
}

impl Host {
    fn place(&self) -> Place {
        Place::Host(self.address.clone())
    }
}

/// Requests the measurement of a path with a train.
///
/// # Errors
///
/// Returns the error that prevents the measurement.
pub fn train(from: &Place, to: &str, train: &Train, secret: &Secret) -> Result<Estimate, ProbeError> {
    train.check(&Limits::default())?;
    match order(from, to, &Order::Train { train: *train }, secret)? {
        Outcome::Train { estimate } => Ok(estimate),
        _ => Err(ProbeError::Nothing("reply to another request".to_owned())),
    }
}

/// Requests a bulk transfer.
///
/// # Errors
///
/// Returns the error that prevents the transfer.
pub fn transfer(
    from: &Place,
    to: &str,
    transfer: &Transfer,
    secret: &Secret,
) -> Result<TransferReport, ProbeError> {
    transfer.check(&Limits::default())?;
    match order(from, to, &Order::Transfer { transfer: *transfer }, secret)? {
        Outcome::Transfer { transferred } => Ok(transferred),
        _ => Err(ProbeError::Nothing("reply to another request".to_owned())),
    }
}

/// Requests a hop count; `None` if no reply confirms arrival.
///
/// # Errors
///
/// Returns the error that prevents counting.
pub fn hops(from: &Place, to: &str, secret: &Secret) -> Result<Option<u8>, ProbeError> {
    match order(from, to, &Order::Hops {}, secret)? {
        Outcome::Hops { hops } => Ok(hops),
        _ => Err(ProbeError::Nothing("reply to another request".to_owned())),
    }
}

/// Result of a thread; a panic of the thread continues in the caller.
fn join<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
