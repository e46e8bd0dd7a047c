//! The fluid simulator.
mod cascade;
mod clocks;
mod completions;
mod crowd;
mod entry;
mod error;
mod filling;
mod flows;
mod handover;
mod maxmin;
mod members;
mod network;
mod outage;
mod paths;
mod plant;
mod profiles;
mod queue;
mod watch;

pub use cascade::Effort;
pub use error::FluidError;
pub use flows::FlowId;
pub use maxmin::{EntryId, Limit, MaxMin};
pub use network::{Finished, Network};
pub use plant::run;
