//! Records: decisions, requests and changes with the names of hosts and links, as stores persist them and the HTTP API
//! shows them. Ids are valid for one fabric only, and records outlive the fabric.

mod caller;
mod change;
mod clock;
mod decision;
mod digest;
pub mod distinct;
mod idempotency;
mod ids;
mod job_names;
pub mod labels;
mod migration;
mod modes;
mod period;
mod promises;
mod redecision;
mod remaining;
pub mod schema;
mod spec;

pub use self::caller::Caller;
pub use self::change::{Change, Origin, State, StoredEntry, Version};
pub use self::clock::{Clock, ClockReadings, ClockStep};
pub use self::decision::{Beside, DecisionDetails, DecisionRecord, Effect, Gain, Limit, LinkLoad};
pub use self::digest::text_digest;
pub use self::idempotency::{IdempotencyCache, Lookup, RequestState};
pub use self::ids::{ClusterVersion, DecisionId};
pub use self::job_names::JobNames;
pub use self::migration::{Migration, MigrationAnswer, MigrationState, MoveOutcome};
pub use self::modes::{Canary, CanaryBy, Mode, Modes, ModesState};
pub use self::period::{Counts, DecisionCounts, HotTimes, LinkMean, MoveCounts, Period, PeriodLength};
pub use self::promises::{AppliedState, Enforcer, EnforcerKind, PromisesVersion};
pub use self::redecision::{CopyPlan, Redecision, RedecisionOutcome, TraceSource};
pub use self::remaining::RemainingTransfer;
pub use self::spec::{
    Classes, PlacementSpec, Rate, ReplicasSpec, TaskSpec, TasksSpec, TransferSpec, WorkloadSpec,
};
