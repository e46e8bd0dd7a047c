//! Packing: places workloads on as few servers as possible, while every SLO holds (SLO section 5.2.3).
//!
//! ```text
//! Site (clients, servers, the queues between) + workload --Packing::plan--> Plan --apply--> Packing --> Report
//!                                                                            \--transaction--> ledger
//! ```
//!
//! First fit: the search tries servers in order ([`ServerOrder`] has others), and takes the first server with limits that keep the SLO of every
//! workload. Workloads on that server get new limits. Workloads elsewhere that share a client's link keep their limits,
//! and the search checks their SLOs too. Fast first fit skips a server if the configured rates plus the lowest rate of
//! the new workload exceed a queue's capacity. Fast first fit finds slightly fewer places, and tries far fewer.
//!
//! A packing is deterministic: placements do not depend on threads or time.

mod candidate;
mod confirm;
mod infeasible;
mod ledger;
mod order;
mod packing;
mod plan;
mod pruned;
mod report;
mod rounds;
mod search;
mod settings;
mod site;

pub use ledger::{BridgeError, PromisedEntries, entries, transaction};
pub use packing::{Packing, Resident};
pub use plan::{Plan, Request};
pub use report::{
    NoRoom, Obstacle, PlacedReport, RefusedReport, RejectReason, Rejection, Report, StageReport,
};
pub use rounds::{Classes, ROUNDS, levels, with_slos};
pub use settings::{Confirm, PackSettings, Requests, ServerOrder};
pub use site::{Client, Server, Site, SiteError};
