//! The service without HTTP: the coordinator, which decides, and the actor, which owns it.
//!
//! ```text
//! client --operation--> Handle --channel--> Actor --method--> Coordinator (engine inside)
//!                                             |                   |
//!               replies <-- GroupCommitWriter <-- replies, changes
//! ```
//!
//! `core` is sans I/O: operations and times are inputs, replies and changes are outputs. One task (`actor`) owns the
//! coordinator and runs the operations of all clients one after another, so each placement sees the earlier ones. A
//! writer thread persists the changes; a reply that depends on them waits until they are durable. Several services may
//! share a store: the leader decides, and the followers apply the changes that it persists.

mod actor;
mod background;
mod core;

pub use self::actor::{
    Access, Acknowledge, AnswerDryRun, AnswerMigration, ChangeDryRun, Changed, Channels, Closed,
    CommitmentDryRun, Confirm, ConfirmDryRun, DryRun, GetDecision, GetEnforcer, GetHolding, GetHotLinks,
    GetModes, GetPromises, GetRack, GetWorkload, Handle, HistoryBuckets, LeaderState, ListEnforcers,
    ListWorkloads, Maker, Method, NewCluster, OpenError, Operation, PreviewPromises, ReadError,
    ReevaluateDryRun, Release, RemoveEnforcer, ReplyTo, STEP, SetFileModes, SetJob, SetOffSwitch,
    StoreLookup, VersionConflict, WhatIf,
};
pub use self::background::in_background;
pub use self::core::{
    Addresses, AdmissionPolicies, Answer, AnswerError, CallError, ChangeWorkload, ChooseDelete, ChooseRead,
    Commitment, Completion, Configuration, ConfirmError, Coordinator, Counts, DecisionError, DecisionLookup,
    DecisionQuery, DeviceState, EnforcerError, EnforcerPlace, EnforcerReply, GetPeaks, HeavyWork, HostState,
    HotLinkCause, InvalidReport, InvalidReportReason, Job, JobResult, KeptTelemetry, Limits, LinkState,
    MigrationQuery, ModeChange, ModesView, NamePods, NamedPods, NetworkSnapshot, NoEnforcer, NoWorkload,
    ObservedJob, Peaks, PlaceError, PlaceTo, Placed, Placement, PodRates, PolicyLabels, Queue, RackContent,
    RankedCopies, Rated, ReadTelemetry, Reevaluate, ReleaseError, Report, ReportPart, ReportSummary,
    Reservation, ReservationState, Score, ScoreError, ScoreTo, Scores, Skipped, TaskState, TelemetryPiece,
    TelemetryState, TooManyJobs, UNKNOWN, Unavailable, WhatIfError, WhatIfResult, WhatIfTo, WorkloadList,
    WorkloadState,
};
pub use leeward_engine::KnownCapacity;
pub use leeward_readings::{
    HostReport, KnownHost, KnownReading, PODS_PER_HOST, PodId, Reading, ReportedDiskName, Requests,
};
