//! The service without HTTP: the coordinator, which decides, and the actor, which owns it.
//!
//! ```text
//! client --operation--> Handle --channel--> Actor --method--> Coordinator (engine inside)
//!                                             |                   |
//!               replies <-- GroupCommitWriter <-- replies, changes
//! ```
//!
//! `core` is sans I/O: operations and times in, replies and changes out. One task owns the coordinator (`actor`) and gives
//! it the operations of all clients one after the other, so each placement sees those before it. A writer thread persists
//! the changes; a reply that depends on them waits until they are durable. Several services may share a store: the leader
//! decides, and the followers apply the changes that it persists.

mod actor;
mod core;

pub use self::actor::{
    Access, AnswerMigration, Changed, Channels, Closed, GetDecision, GetHolding, GetRack, GetWorkload,
    Handle, ListWorkloads, Maker, NewCluster, OpenError, Operation, Pending, Position, Release, ReplyTo,
    STEP, SetJob, Slots, Turn, VersionConflict, WhatIf,
};
pub use self::core::{
    Addresses, Answer, AnswerError, CallError, Called, Completion, Coordinator, Counts, DecisionError,
    DecisionQuery, DeviceState, Finding, HostReport, HostState, InvalidReport, Labels, Lane, Limits,
    LinkState, Lookup, MigrationAnswer, MigrationQuery, NoWorkload, Part, PlaceError, PlaceTo, Placed,
    Placement, Promising, RackContent, Rated, Reading, ReleaseError, Report, ReportSummary, Request,
    Requests, ReservationState, Score, ScoreError, ScoreTo, Scores, Seen, Skipped, Study, TaskState,
    TooManyJobs, UNKNOWN, Unavailable, WhatIfError, WhatIfResult, WhatIfTo, WorkloadState, World, Wrong,
};
