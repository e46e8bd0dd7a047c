//! r-b curves: for every rate, the smallest bucket that does not delay a workload (SLO sections 2.3.1, 5.2).

mod arrival;
mod choose;
mod envelope;
mod error;
mod hull;
mod prune;
mod rb;

pub use arrival::ArrivalCurve;
pub use error::{CurveError, TraceError};
pub use prune::PrunedCurve;
pub use rb::{Interval, RbCurve};
