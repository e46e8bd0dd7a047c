//! Models of traces: Zhu's thesis, section 4.2.4.
//!
//! ```text
//! trace --> batches --> counts of intervals --mixture--> rates of states --path--> state of each interval --\
//!   |          \---------------------------------------------------------------------------> sizes --> Mmpp --> Fit
//!   \--> replays of the trace alone -------------------------------------------------------------------/
//! ```
//!
//! The thesis covers the range of counts with levels of two standard deviations each (LAMBDA, by Heyman and Lucantoni).
//! Below a few requests per interval, a level is wider than its own rate, and chance alone fills several levels. So
//! [`Chain::Closed`] has the states that the counts carry instead: the Bayesian information criterion decides on their
//! number, and their rates are means. [`Chain::Published`] is the fit of the released code.
//!
//! A model with fewer and lower states is only useful if its bounds hold. For [`Chain::Closed`], [`fit`] serves the trace
//! alone at several rates, first come, first served, and compares the latencies with the bounds of the model. If a bound
//! is too low, all rates rise by the smallest factor that suffices ([`Fit::lift`]).

mod error;
mod intervals;
mod levels;
mod mixture;
mod path;
mod poisson;
mod replay;
mod request;
mod settings;
mod states;
mod trace_fit;

pub use error::FitError;
pub use request::Request;
pub use settings::{Chain, FitSettings, SizeModel};
pub use trace_fit::{Fit, FitDeviation, fit, fit_nanos};
