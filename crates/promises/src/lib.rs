//! Promises in force. A promise is a workload's granted SLO with its priorities and limits. Enforcers (Zhu's thesis,
//! section 2.2) apply it at hosts, and acknowledge what they applied. This crate knows which promise is in force where,
//! what the requests of a workload experience, and how much of its SLO a workload uses up.
//!
//! ```text
//! decided --document--> enforcer --acknowledgement, lease--> enforced --counters--> seen
//!                                                                \--silence, drift--> unenforced
//! ```
//!
//! [`Enforcement`] is the state machine, with time as an argument. Each change of priorities or limits begins a new
//! [version](leeward_records::PromisesVersion) of the whole set, and a promise has the version of its last change. A promise
//! is enforced at a place if an enforcer with a lease has applied this version or a later one, and names the workload.
//! [`document`] has the promises of one enforcer, [`bodies`] its acknowledgement, and [`views`] the responses about both.
//! [`redecide`] decides again on a workload whose requests have changed, and plans the copy of its volume if that should
//! move.

mod acknowledgement;
pub mod bodies;
mod burn;
mod changes;
mod copy;
pub mod document;
mod enforcement;
mod enforcers;
mod former;
pub mod levels;
mod recent;
mod redecide;
mod seen;
mod status;
pub mod views;

pub use self::acknowledgement::{AcknowledgeError, Acknowledged, AcknowledgedWorkload, Acknowledgement};
pub use self::burn::{BurnAlert, WINDOWS};
pub use self::changes::{EnforcerChange, EnforcerEvent, PromiseChange, PromiseEvent};
pub use self::enforcement::Enforcement;
pub use self::enforcers::{EnforcerState, MAX_ENFORCERS};
pub use self::recent::RecentChanges;
pub use self::redecide::{ChangeInput, Redecided, redecide};
pub use self::seen::{Latency, RequestCounters};
pub use self::status::{
    Place, PlaceState, PlaceStatus, PromiseState, PromiseStatus, PromisesTable, Reported, places,
};
