//! Placement policies: decide where copies of blocks, tasks and apps go.
//!
//! ```text
//! requests + View (network load) + Pool (eligible hosts) --Policy--> Decisions
//! ```
//!
//! A policy is a value with a name. The registry creates it from settings with a schema, and callers give it batches of
//! requests. Policies hold no state: streaks are in the ledger, queues and budgets in the engine. A policy changes only
//! its view. A decision carries the transaction for the engine to commit, its basis, and on demand every candidate with
//! the number that ranked it. A seeded hash breaks ties. Breaking them by position would send every tie to rack 0.
//!
//! A new policy needs one file and one line in its kind's registry ([`replicas::REGISTRY`],
//! [`tasks::REGISTRY`]). A policy outside of this crate implements the same trait: it chooses hosts or gives scores, which
//! [`replicas::check_answer`], [`replicas::best_by_scores`] and their counterparts in [`tasks`] check and complete.

mod answer;
mod constraints;
mod decision;
mod estimate;
mod job;
mod path_load;
mod policy;
mod pool;
mod reason;
pub mod replicas;
mod task_pairs;
pub mod tasks;
mod ties;

pub use answer::AnswerError;
pub use constraints::{Constraint, Constraints, LabelValues};
pub use decision::{
    Basis, Candidate, Considered, Decision, Gaps, Limit, Note, Objectives, Refusal, Sight, Verdict, oldest_of,
};
pub use job::JobId;
pub use path_load::PathLoad;
pub use policy::{Context, Explain, Policy, Request, one_by_one};
pub use pool::Pool;
pub use reason::Reason;
pub use task_pairs::{Apart, ApartGroup, LatencyBound, MOST_BOUNDS, MOST_GROUPED};
pub use ties::Ties;
