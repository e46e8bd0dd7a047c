//! The policies: who goes where.
//!
//! ```text
//! requests + View (what the network carries) + Pool (which hosts may take work) --Policy--> Decisions
//! ```
//!
//! A policy is a value with a name, made from settings with a schema, and called with a batch of requests. It holds
//! no state: streaks are in the ledger, queues and budgets in the engine. It moves only its view; a decision carries
//! the transaction that the engine commits, what the decision rests on, and on demand every candidate with the number
//! that ranked it. Ties are broken by a seeded hash and never by position, or every tie would go to rack 0.
//!
//! Adding a policy is adding one file and one line to its kind's registry ([`replicas::REGISTRY`], [`tasks::REGISTRY`]).

mod constraints;
mod decision;
pub mod moves;
mod policy;
mod pool;
mod reason;
pub mod replicas;
mod spec;
pub mod tasks;
mod ties;
pub mod volumes;

pub use constraints::{Constraint, Constraints};
pub use decision::{
    Basis, Candidate, Considered, Decision, Limit, Note, Objectives, Refusal, Sight, Verdict,
};
pub use policy::{Context, Explain, Made, Peer, Policy, PolicyError, Rating, Registration, Request};
pub use pool::Pool;
pub use reason::Reason;
pub use spec::PolicySpec;
