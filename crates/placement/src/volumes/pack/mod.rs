//! Which server a workload's volume goes to, so that few servers keep every SLO (SLO section 5.2.3).
//!
//! ```text
//! Site (clients, servers, the queues between) + workload --Packing::plan--> Plan --apply--> Packing --> Report
//!                                                                            \--transaction--> ledger
//! ```
//!
//! First fit: servers are tried in order, and the first where limits can be chosen that keep the SLO of every workload gets it.
//! Workloads that are on that server already get new limits; those elsewhere that share a client's link keep theirs, and
//! their SLOs are checked too. Fast first fit passes over a server where the rates configured now, and the least rate
//! of the new workload, are more than a queue has: it finds somewhat fewer places, and looks at far fewer.
//!
//! A packing is deterministic: neither threads nor time change what is placed where.

mod candidate;
mod hopeless;
mod ledger;
mod packing;
mod report;
mod rounds;
mod ruled_out;
mod settings;
mod site;

pub use ledger::{BridgeError, Promised, believe, entries, transaction};
pub use packing::{Event, Packing, Plan, Request, Resident};
pub use report::{Hindered, Limit, NoRoom, PlacedReport, Refused, RefusedReport, Report, StageReport, Why};
pub use rounds::{Classes, ROUNDS, levels, promised};
pub use settings::{PackSettings, Requests};
pub use site::{Client, Server, Site, SiteError};
