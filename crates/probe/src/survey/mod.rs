//! Measurements of more than one path, ordered from one place: whole meshes, shared bottlenecks, calibration.
//!
//! Each says how far it is to a function that may stop it. What is done is in the neighbouring modules, which know no
//! network; here it is only asked for, in order.

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
use crate::transferred::Transferred;

pub use bottlenecks::{
    Bottlenecks, EARLIER_NS, Experiment, RackUplink, bottlenecks, check_bottlenecks, protocol,
};
pub use calibration::{Calibration, calibrate};
pub use mesh::{Measured, Meshed, Placed, mesh, topology};
pub use path::{CrossTraffic, Schedule, Steadiness, cross, steadiness};

/// Told with each step that is done and how many there are; an error stops the survey.
pub type Progress<'a> = dyn FnMut(usize, usize) -> Result<(), ProbeError> + 'a;

/// A host that takes part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredHost")]
pub struct Host {
    /// What it is called in what comes out.
    pub name: String,
    /// Where it listens: `HOST` or `HOST:PORT`, as every other host knows it.
    pub address: String,
}

impl Host {
    fn place(&self) -> Place {
        Place::Host(self.address.clone())
    }
}

/// Has a train measured.
///
/// # Errors
///
/// Whatever keeps it from being measured.
pub fn train(from: &Place, to: &str, train: &Train, secret: &Secret) -> Result<Estimate, ProbeError> {
    train.check(&Limits::default())?;
    match order(from, to, &Order::Train { train: *train }, secret)? {
        Outcome::Train { estimate } => Ok(estimate),
        _ => Err(ProbeError::Nothing("an answer to another order".to_owned())),
    }
}

/// Has a transfer carried.
///
/// # Errors
///
/// Whatever keeps it from being carried.
pub fn transfer(
    from: &Place,
    to: &str,
    transfer: &Transfer,
    secret: &Secret,
) -> Result<Transferred, ProbeError> {
    transfer.check(&Limits::default())?;
    match order(from, to, &Order::Transfer { transfer: *transfer }, secret)? {
        Outcome::Transfer { transferred } => Ok(transferred),
        _ => Err(ProbeError::Nothing("an answer to another order".to_owned())),
    }
}

/// Has hops counted; `None` where nothing says that it was reached.
///
/// # Errors
///
/// Whatever keeps them from being counted.
pub fn hops(from: &Place, to: &str, secret: &Secret) -> Result<Option<u8>, ProbeError> {
    match order(from, to, &Order::Hops {}, secret)? {
        Outcome::Hops { hops } => Ok(hops),
        _ => Err(ProbeError::Nothing("an answer to another order".to_owned())),
    }
}

/// The result of a thread, whose panic goes on here.
fn joined<T>(made: std::thread::Result<T>) -> T {
    made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
