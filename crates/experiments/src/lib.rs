//! Experiments on many workloads drawn from a few traces (SLO sections 4.4 and 5.4): packing, admission, and a check by
//! replay that guaranteed latencies hold.
//!
//! ```text
//! files --Traces--> requests, curves and models, computed once
//! seed  --draws---> Draw (trace, start, SLO)           --+--pack---> Packing: servers used --\
//!                                                         \--admit--> admitted, as a System
//! System --replay--> PromiseOutcome
//! ```
//!
//! Other workloads are drawn only by load and burstiness, or are recorded traces at another pace. They compete under each
//! request scheduler (SLO section 3.4):
//!
//! ```text
//! ContentionExperiment (WorkloadDraws, machines, a device), seed --> DrawnContention (traces and curves)
//! DrawnContention, Scheduler --run--> ContentionResult
//! ```
//!
//! A draw is data and depends only on its seed, so every limit method and every policy gets the same draws. Curves
//! describe the trace as it is; the start of a workload within its trace affects only the replay. No curve contains the
//! requests around the wrap from a trace's end to its beginning, and limits near the mean rate delay these requests for
//! a long time. A replay that checks promises therefore begins at the start of the traces. Experiments run on one
//! thread, except for the computation of curves, whose result does not depend on the number of threads.

mod admit;
mod cache;
mod contention;
mod draw;
mod error;
mod first_fit;
mod gaps;
mod pack;
mod peaks;
mod recorded;
mod replay;
mod site;
mod tails;
mod traces;
mod workload_draw;

pub use admit::{AdmissionResult, admit};
pub use cache::CacheShape;
pub use contention::{ContentionExperiment, ContentionResult, DrawnContention, Scheduler};
pub use draw::{Draw, draws, links, visits};
pub use error::ExperimentError;
pub use first_fit::first_fit;
pub use gaps::{Gaps, gaps};
pub use pack::{PackingResult, Step, fits_alone, pack};
pub use peaks::{Peak, peaks};
pub use replay::{Enforcement, PromiseOutcome, ReplaySettings, replay};
pub use site::Shape;
pub use tails::{TailSettings, Tails, bounds_of_all, tails};
pub use traces::{Part, TraceSettings, Traces};
pub use workload_draw::{Load, Traffic, TrafficChange, WorkloadDraw};
