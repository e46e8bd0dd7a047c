//! Experiments on many workloads that are drawn from a few traces (SLO sections 4.4 and 5.4): where they are packed, who of them is
//! admitted, and whether what they were promised is kept when their requests are replayed.
//!
//! ```text
//! files --Traces--> requests, curves and models, made once
//! seed  --draws---> Draw (trace, where it begins, SLO) --+--pack---> Packing: servers used --\
//!                                                         \--admit--> admitted, as a System --replay--> Kept
//! ```
//!
//! Beside these, workloads are drawn by load and burstiness alone, and contend under each way to schedule requests (SLO section 3.4):
//!
//! ```text
//! Contest (Members, machines, a device), seed --Contenders--> traces and curves --run, by Scheduler--> Fared
//! ```
//!
//! A draw is data and depends on nothing but its seed, so that every way and every policy is tried on the same draws. Curves are of the
//! trace as it is, and where a workload begins counts when it is replayed: what comes together where a trace's end meets its
//! beginning is in no curve, and limits near the mean rate hold it back for long. A replay that is to show whether what was
//! promised is kept begins at 0. What runs here is one thread, but for the making of curves, whose result does not depend on how many
//! there are.

mod admit;
mod cache;
mod contend;
mod draw;
mod error;
mod first_fit;
mod member;
mod pack;
mod peaks;
mod replay;
mod site;
mod tails;
mod traces;

pub use admit::{Admitted, admit};
pub use cache::CacheShape;
pub use contend::{Contenders, Contest, Fared, Scheduler};
pub use draw::{Draw, draws, links, visits};
pub use error::StudyError;
pub use first_fit::first_fit;
pub use member::{Instead, Load, Member, Sends};
pub use pack::{Packed, Step, fits_alone, pack};
pub use peaks::{Peak, peaks};
pub use replay::{Kept, Overrun, ReplaySettings, replay};
pub use site::Shape;
pub use tails::{TailSettings, Tails, bounds_of_all, tails};
pub use traces::{Part, TraceSettings, Traces};
