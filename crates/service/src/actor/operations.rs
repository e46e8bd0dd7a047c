//! The table of operations: the reply, the error and the method of the coordinator of each.

use std::convert::Infallible;
use std::sync::Arc;

use leeward_engine::Availability;
use leeward_fabric::{DomainId, ResourceId};
use leeward_ledger::SettingsError;
use leeward_promises::Acknowledgement;
use leeward_promises::document::EnforcerPromises;
use leeward_records::{DecisionId, DecisionRecord, Enforcer, Migration, MigrationAnswer, Modes};

use super::operation::{Access, Method, Operation, StoreLookup};
use crate::core::{
    AnswerError, ChangeWorkload, ChooseDelete, ChooseRead, Commitment, Configuration, ConfirmError,
    Coordinator, DecisionError, DecisionQuery, EnforcerError, EnforcerPlace, EnforcerReply, GetPeaks,
    HotLinkCause, InvalidReport, MigrationQuery, ModeChange, ModesView, NamePods, NamedPods, NoEnforcer,
    NoWorkload, Peaks, PlaceError, Placed, Placement, RackContent, RankedCopies, ReadTelemetry, Reevaluate,
    ReleaseError, Report, ReportSummary, Reservation, Score, ScoreError, Scores, TelemetryPiece, TooManyJobs,
    WhatIfError, WhatIfResult, WorkloadList, WorkloadState,
};

impl Operation for Report {
    type Reply = ReportSummary;
    type Error = InvalidReport;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> = Method::Now(Coordinator::report);
}

impl Operation for ReadTelemetry {
    type Reply = TelemetryPiece;
    type Error = Infallible;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, _, request| Ok(coordinator.telemetry_piece(request)));
}

// The measured demand is telemetry: each service takes in the reports of all agents, and stores none of it.
impl Operation for NamePods {
    type Reply = NamedPods;
    type Error = Infallible;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, names| Ok(coordinator.name_pods(now, names)));
}

impl Operation for GetPeaks {
    type Reply = Peaks;
    type Error = Infallible;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, query| Ok(coordinator.peaks(now, query)));
}

impl Operation for Placement {
    type Reply = Placed;
    type Error = PlaceError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Completed(Coordinator::place);
}

impl Operation for Commitment {
    type Reply = Placed;
    type Error = PlaceError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Completed(Coordinator::commit_given);
}

/// Checks a placement that the caller decided itself, without a commit.
#[derive(Clone, PartialEq, Debug)]
pub struct CommitmentDryRun(pub Commitment);

impl Operation for CommitmentDryRun {
    type Reply = Arc<DecisionRecord>;
    type Error = PlaceError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, CommitmentDryRun(commitment)| {
        coordinator.check_given(now, commitment)
    });
}

/// Decides a request as it would be decided now, without a commit.
#[derive(Clone, PartialEq, Debug)]
pub struct DryRun(pub Placement);

impl Operation for DryRun {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Completed(|coordinator, now, DryRun(placement), to| coordinator.dry_run(now, placement, to));
}

/// Ends a decision and releases its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release(pub DecisionId);

impl Operation for Release {
    type Reply = Arc<DecisionRecord>;
    type Error = ReleaseError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Lookup(
        |coordinator, now, Release(id)| coordinator.release(now, id),
        StoreLookup {
            found: |record| record,
            missing: ReleaseError::NotFound,
            unread: ReleaseError::StoreReadFailed,
        },
    );
}

impl Operation for Reservation {
    type Reply = Placed;
    type Error = PlaceError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Completed(Coordinator::place_reserved);
}

/// Confirms a reserved decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirm(pub DecisionId);

impl Operation for Confirm {
    type Reply = Arc<DecisionRecord>;
    type Error = ConfirmError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, Confirm(id)| coordinator.confirm(now, id));
}

/// Checks a confirmation without a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfirmDryRun(pub DecisionId);

impl Operation for ConfirmDryRun {
    type Reply = Arc<DecisionRecord>;
    type Error = ConfirmError;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, ConfirmDryRun(id)| coordinator.confirmable(now, id));
}

/// Shows the decision of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetDecision(pub DecisionId);

impl Operation for GetDecision {
    type Reply = Arc<DecisionRecord>;
    type Error = DecisionError;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> = Method::Lookup(
        |coordinator, now, GetDecision(id)| coordinator.decision(now, id),
        StoreLookup {
            found: |record| record,
            missing: DecisionError::NotFound,
            unread: DecisionError::StoreReadFailed,
        },
    );
}

impl Operation for DecisionQuery {
    type Reply = Vec<Arc<DecisionRecord>>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, query| Ok(coordinator.decisions(now, &query)));
}

/// Lists decisions with entries on a link, the latest first, at most `limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetHolding {
    /// The link.
    pub link: ResourceId,
    /// Largest number of decisions.
    pub limit: usize,
}

impl Operation for GetHolding {
    type Reply = Vec<Arc<DecisionRecord>>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetHolding { link, limit }| Ok(coordinator.holding(now, link, limit)));
}

/// Shows the causes of the load on links, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetHotLinks(pub Vec<String>);

impl Operation for GetHotLinks {
    type Reply = Vec<Option<HotLinkCause>>;
    type Error = Infallible;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetHotLinks(names)| Ok(coordinator.hot_links(now, &names)));
}

/// Shows tasks, copies and reservations in a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetRack(pub DomainId);

impl Operation for GetRack {
    type Reply = RackContent;
    type Error = Infallible;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetRack(rack)| Ok(coordinator.rack(now, rack)));
}

impl Operation for MigrationQuery {
    type Reply = Vec<Migration>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, query| Ok(coordinator.migrations(now, query)));
}

/// Answers an advised move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerMigration(pub u64, pub MigrationAnswer);

impl Operation for AnswerMigration {
    type Reply = Migration;
    type Error = AnswerError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, AnswerMigration(id, answer)| coordinator.answer(now, id, answer));
}

/// Checks an answer to an advised move without a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerDryRun(pub AnswerMigration);

impl Operation for AnswerDryRun {
    type Reply = Migration;
    type Error = AnswerError;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, AnswerDryRun(AnswerMigration(id, answer))| {
            coordinator.answered(now, id, answer)
        });
}

/// Sets the number of evictions that a job tolerates.
#[derive(Clone, PartialEq, Debug)]
pub struct SetJob(pub String, pub Availability);

impl Operation for SetJob {
    type Reply = ();
    type Error = TooManyJobs;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, SetJob(name, availability)| {
        coordinator.set_job(now, name, availability)
    });
}

impl Operation for Score {
    type Reply = Scores;
    type Error = ScoreError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> = Method::Completed(Coordinator::score);
}

impl Operation for ChooseRead {
    type Reply = RankedCopies;
    type Error = Infallible;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, query| Ok(coordinator.choose_read(now, &query)));
}

impl Operation for ChooseDelete {
    type Reply = RankedCopies;
    type Error = Infallible;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, query| Ok(coordinator.choose_delete(now, &query)));
}

/// Decides the request of decision `id` again under another policy, without a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhatIf {
    /// The decision.
    pub id: DecisionId,
    /// Name of the policy, with settings after colons: `sinbad:remote_racks=2`.
    pub policy: String,
}

impl Operation for WhatIf {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> = Method::Completed(|coordinator, now, WhatIf { id, policy }, to| {
        coordinator.what_if(now, id, &policy, to)
    });
}

impl Operation for Reevaluate {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Completed(|coordinator, now, query, to| coordinator.reevaluate(now, query, false, to));
}

/// A re-evaluation that changes nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct ReevaluateDryRun(pub Reevaluate);

impl Operation for ReevaluateDryRun {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> =
        Method::Completed(|coordinator, now, query, to| coordinator.reevaluate(now, query.0, true, to));
}

/// Shows the modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetModes;

impl Operation for GetModes {
    type Reply = ModesView;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> = Method::Now(|coordinator, _, GetModes| Ok(coordinator.modes()));
}

impl Operation for ModeChange {
    type Reply = ModesView;
    type Error = Infallible;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, change| Ok(coordinator.change_modes(now, change)));
}

/// Takes on the modes of a settings file that was read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetFileModes(pub Modes);

impl Operation for SetFileModes {
    type Reply = ModesView;
    type Error = Infallible;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, SetFileModes(modes)| Ok(coordinator.set_file_modes(now, modes)));
}

/// Turns the off switch on or off. The switch is not stored; the ends of the moves that it undoes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetOffSwitch(pub bool);

impl Operation for SetOffSwitch {
    type Reply = ModesView;
    type Error = Infallible;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, SetOffSwitch(switched_off)| {
        Ok(coordinator.set_off_switch(now, switched_off))
    });
}

impl Operation for Configuration {
    type Reply = ();
    type Error = SettingsError;

    const ACCESS: Access = Access::Telemetry;
    const METHOD: Method<Self> = Method::Now(Coordinator::configure);
}

/// Lists workloads with a guaranteed SLO, the latest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListWorkloads {
    /// Only decisions with ids below this one.
    pub before: Option<DecisionId>,
    /// Largest number of workloads.
    pub limit: usize,
}

impl Operation for ListWorkloads {
    type Reply = WorkloadList;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, ListWorkloads { before, limit }| {
        Ok(coordinator.workloads(now, before, limit))
    });
}

/// Shows the workload of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetWorkload(pub String);

impl Operation for GetWorkload {
    type Reply = WorkloadState;
    type Error = NoWorkload;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetWorkload(name)| coordinator.workload(now, &name));
}

impl Operation for ChangeWorkload {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Completed(|coordinator, now, change, to| coordinator.change_workload(now, change, false, to));
}

/// A decision about a changed workload that changes nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeDryRun(pub ChangeWorkload);

impl Operation for ChangeDryRun {
    type Reply = WhatIfResult;
    type Error = WhatIfError;

    const ACCESS: Access = Access::Compute;
    const METHOD: Method<Self> = Method::Completed(|coordinator, now, change, to| {
        coordinator.change_workload(now, change.0, true, to)
    });
}

/// Takes the acknowledgement of an enforcer, and renews its lease.
#[derive(Clone, PartialEq, Debug)]
pub struct Acknowledge(pub Acknowledgement);

impl Operation for Acknowledge {
    type Reply = EnforcerReply;
    type Error = EnforcerError;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, Acknowledge(acknowledgement)| {
        coordinator.acknowledge(now, acknowledgement)
    });
}

/// Removes an enforcer that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoveEnforcer(pub String);

impl Operation for RemoveEnforcer {
    type Reply = Arc<Enforcer>;
    type Error = NoEnforcer;

    const ACCESS: Access = Access::Write;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, RemoveEnforcer(name)| coordinator.remove_enforcer(now, &name));
}

/// Lists enforcers by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEnforcers {
    /// Only names after this one.
    pub after: Option<String>,
    /// Largest number of enforcers.
    pub limit: usize,
}

impl Operation for ListEnforcers {
    type Reply = Vec<EnforcerReply>;
    type Error = Infallible;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, ListEnforcers { after, limit }| {
        Ok(coordinator.enforcers(now, after.as_deref(), limit))
    });
}

/// Shows the enforcer of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetEnforcer(pub String);

impl Operation for GetEnforcer {
    type Reply = EnforcerReply;
    type Error = NoEnforcer;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetEnforcer(name)| coordinator.enforcer(now, &name));
}

/// Shows the promises of an enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPromises(pub String);

impl Operation for GetPromises {
    type Reply = EnforcerPromises;
    type Error = NoEnforcer;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> =
        Method::Now(|coordinator, now, GetPromises(name)| coordinator.enforcer_promises(now, &name));
}

/// Shows the promises that an enforcer of this name, kind and place would apply, without registering it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviewPromises {
    /// Name of the enforcer. If it is registered, its kind and place are those that it has stated.
    pub name: String,
    /// Kind and place.
    pub place: EnforcerPlace,
}

impl Operation for PreviewPromises {
    type Reply = EnforcerPromises;
    type Error = EnforcerError;

    const ACCESS: Access = Access::Read;
    const METHOD: Method<Self> = Method::Now(|coordinator, now, PreviewPromises { name, place }| {
        coordinator.preview_promises(now, &name, place)
    });
}
