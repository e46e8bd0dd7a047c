//! Table of the operations. An operation that is declared as [`Access::Compute`] but changes decisions replies before
//! the changes are durable, so a wrong `ACCESS` loses acknowledged changes. The test runs each operation and compares
//! its effects with its declaration.

use leeward_engine::{Availability, Engine, Policies};
use leeward_fabric::{Bytes, Cpus, DomainId, HostId, Nanos, ResourceId};
use leeward_ledger::LedgerSettings;
use leeward_placement::tasks::{AppRequest, Class, Task, Traffic, Worth};
use leeward_placement::{Explain, replicas, tasks};
use leeward_promises::Acknowledgement;
use leeward_records::{
    Caller, Change, Classes, DecisionId, EnforcerKind, Migration, MigrationAnswer, MigrationState, Mode,
    Modes, MoveOutcome, PlacementSpec, ReplicasSpec, TaskSpec, TasksSpec, WorkloadSpec,
};
use leeward_testing::clusters::{cluster, ledger};
use serde_json::json;
use tokio::sync::oneshot;

use super::operation::{Access, Call, Channels, Operation, Turn};
use super::operations::{
    Acknowledge, AnswerDryRun, AnswerMigration, ChangeDryRun, CommitmentDryRun, Confirm, ConfirmDryRun,
    DryRun, GetDecision, GetEnforcer, GetHolding, GetHotLinks, GetModes, GetPromises, GetRack, GetWorkload,
    ListEnforcers, ListWorkloads, PreviewPromises, ReevaluateDryRun, Release, RemoveEnforcer, SetFileModes,
    SetJob, SetOffSwitch, WhatIf,
};
use crate::core::{
    AdmissionPolicies, ChangeWorkload, ChooseDelete, ChooseRead, Commitment, Configuration, Coordinator,
    DecisionQuery, EnforcerPlace, GetPeaks, Job, Limits, MigrationQuery, ModeChange, NamePods, Placement,
    PolicyLabels, ReadTelemetry, Reevaluate, Report, Reservation, Score,
};

const CLUSTER: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1, cpus: 8, priorities: 4, \
    devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]}";
/// Time of all operations, so that none of them makes a decision expire.
const NOW: Nanos = Nanos(Nanos::SECOND.0);

/// The promises that an enforcer of this name would apply.
fn preview(name: &str) -> PreviewPromises {
    let (kind, host, device) = (EnforcerKind::Net, "r0h0".to_owned(), None);
    PreviewPromises { name: name.to_owned(), place: EnforcerPlace { kind, host, device } }
}

/// Behaviour of an operation on a leader.
struct Row {
    name: &'static str,
    declared: Access,
    /// True if the operation leaves changes to persist.
    changes: bool,
    /// True if its reply waits for durability.
    waits: bool,
}

fn row<O: Operation>(coordinator: &mut Coordinator<Channels>, operation: O) -> Row {
    let (to, reply) = oneshot::channel();
    let mut pending = Vec::new();
    let fabric = coordinator.fabric().clone();
    let mut turn = Turn { now: NOW, coordinator, pending: &mut pending, is_leader: true };
    (Call::new(operation, fabric, to).run)(Ok(&mut turn));
    let jobs: Vec<Job> = turn.coordinator.jobs().collect();
    jobs.into_iter().for_each(|job| turn.coordinator.finish_job(NOW, job.run()));
    turn.complete();
    drop(reply);
    let (name, changes) = (std::any::type_name::<O>(), coordinator.changes().count() > 0);
    let name = name.rsplit("::").next().unwrap_or(name);
    Row { name, declared: O::ACCESS, changes, waits: !pending.is_empty() }
}

fn block() -> Placement {
    let spec = ReplicasSpec { size: Bytes(1 << 20), replicas: 1, ..ReplicasSpec::default() };
    Placement {
        spec: PlacementSpec::Replicas(spec),
        caller: None,
        lasts: None,
        reference: None,
        digest: None,
    }
}

fn reservation() -> Reservation {
    let placement = Placement { caller: None, ..block() };
    Reservation::of(placement, Some(Nanos(1_000_000_000)))
}

fn commitment() -> Commitment {
    let placement = Placement { caller: None, ..block() };
    let hosts = vec!["r1h0".to_owned()];
    Commitment { placement, hosts, chosen: None }
}

fn workload() -> Placement {
    let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
    let workload = json!({
        "name": "w", "client": "r0h0", "server": "r1h1", "unloaded": "100us",
        "slo": { "percentile": 99, "latency": "50ms" },
        "curves": {
            "network-in": link, "network-out": link, "storage": [{ "rate": "10%", "burst": "4ms" }],
        },
    });
    let workload = workload.as_object().expect("an object").clone();
    let spec = PlacementSpec::Workload(WorkloadSpec { workload });
    // With a key, the request is decided although its caller has left.
    Placement { spec, caller: Some(Caller::Key("key".into())), lasts: None, reference: None, digest: None }
}

/// A coordinator with the decisions of a block (0), of a workload (1) and of a task (2), an advised move (0), and an
/// enforcer.
fn coordinator() -> Coordinator<Channels> {
    let ledger = ledger(&cluster(CLUSTER));
    let policies = Policies {
        replicas: replicas::REGISTRY.make("uniform", "").ok(),
        tasks: tasks::REGISTRY.make("utp", "").ok(),
        ..Policies::default()
    };
    let labels = PolicyLabels {
        replicas: "uniform".into(),
        tasks: "utp".into(),
        moves: None,
        ..PolicyLabels::default()
    };
    let engine = Engine::new(ledger, policies, 1, Explain::Off);
    let mut coordinator = Coordinator::new(engine, labels, Limits::default());
    let advised = Migration {
        id: 0,
        at: NOW,
        decision: DecisionId(7),
        index: 0,
        task: "t".to_owned(),
        job: None,
        from: "r0h0".to_owned(),
        to: "r1h0".to_owned(),
        link: "r0/up".to_owned(),
        state: MigrationState::Advised,
        executor: None,
        reason: None,
    };
    coordinator.follow(NOW, Change::Migration(advised)).expect("the coordinator follows");
    row(&mut coordinator, block());
    assert!(row(&mut coordinator, workload()).changes, "the workload is admitted");
    row(&mut coordinator, task());
    row(&mut coordinator, acknowledgement("kept"));
    coordinator
}

fn task() -> Commitment {
    let classes = Classes::from([Traffic::default(); Class::COUNT]);
    let (name, cpus, memory) = ("t".to_owned(), Cpus(1000), Bytes(0));
    let task = TaskSpec { name, cpus, memory, egress: classes, ingress: classes, tolerant: false };
    let spec = PlacementSpec::Tasks(TasksSpec { tasks: vec![task], ..TasksSpec::default() });
    Commitment { placement: Placement { spec, ..block() }, hosts: vec!["r0h0".to_owned()], chosen: None }
}

fn reevaluation() -> Reevaluate {
    Reevaluate { id: DecisionId(2), remaining: None, worth: Worth::default() }
}

fn change() -> ChangeWorkload {
    let PlacementSpec::Workload(WorkloadSpec { workload }) = workload().spec else {
        unreachable!("it is a workload")
    };
    ChangeWorkload { workload, trace: None, bytes: None }
}

fn acknowledgement(name: &str) -> Acknowledge {
    Acknowledge(Acknowledgement {
        name: name.to_owned(),
        kind: EnforcerKind::Net,
        host: "r0h0".to_owned(),
        device: None,
        instance: None,
        addresses: Vec::new(),
        ttl: Nanos(15_000_000_000),
        applied: None,
        workloads: Vec::new(),
    })
}

fn mode_change() -> ModeChange {
    let modes = [Some(Mode::Off), None, None, None, None];
    ModeChange { modes, by: "an operator".to_owned(), reason: None }
}

fn configuration() -> Configuration {
    let (policies, labels) = (Policies::default(), PolicyLabels::default());
    Configuration {
        policies,
        labels,
        admission: AdmissionPolicies::default(),
        ledger: LedgerSettings::default(),
        move_timeout: Limits::default().move_timeout,
    }
}

/// The rows, in the order of the operations in `src/actor/operations.rs`.
fn rows() -> Vec<Row> {
    let coordinator = &mut coordinator();
    let score = Score {
        request: AppRequest { tasks: vec![Task::default()], ..AppRequest::default() },
        job: None,
        peers: Vec::new(),
        hosts: vec![HostId(0)],
    };
    let rows = vec![
        row(coordinator, Report { window: (Nanos(0), NOW), ..Report::default() }),
        row(coordinator, ReadTelemetry { first: 0, most: 9 }),
        row(coordinator, NamePods { pods: Vec::new(), limit: 9 }),
        row(coordinator, GetPeaks { after: None, limit: 9 }),
        row(coordinator, block()),
        row(coordinator, reservation()),
        row(coordinator, Confirm(DecisionId(4))),
        row(coordinator, ConfirmDryRun(DecisionId(0))),
        row(coordinator, commitment()),
        row(coordinator, CommitmentDryRun(commitment())),
        row(coordinator, DryRun(block())),
        row(coordinator, Release(DecisionId(3))),
        row(coordinator, GetDecision(DecisionId(0))),
        row(coordinator, DecisionQuery { limit: 9, ..DecisionQuery::default() }),
        row(coordinator, GetHolding { link: ResourceId(0), limit: 9 }),
        row(coordinator, GetHotLinks(vec!["r0:uplink".to_owned()])),
        row(coordinator, GetRack(DomainId(0))),
        row(coordinator, MigrationQuery { limit: 9, ..MigrationQuery::default() }),
        row(coordinator, AnswerMigration(0, MigrationAnswer::anonymous(MoveOutcome::Done))),
        row(coordinator, AnswerDryRun(AnswerMigration(0, MigrationAnswer::anonymous(MoveOutcome::Done)))),
        row(coordinator, SetJob("j".to_owned(), Availability { down: Some(1), ..Availability::default() })),
        row(coordinator, score),
        row(coordinator, ChooseRead { copies: vec![HostId(0)], reader: None, request: 1 }),
        row(coordinator, ChooseDelete { copies: vec![HostId(0)], count: 1, request: 1 }),
        row(coordinator, WhatIf { id: DecisionId(0), policy: "sinbad".to_owned() }),
        row(coordinator, reevaluation()),
        row(coordinator, ReevaluateDryRun(reevaluation())),
        row(coordinator, GetModes),
        row(coordinator, mode_change()),
        row(coordinator, SetFileModes(Modes::all(Mode::Shadow))),
        row(coordinator, SetOffSwitch(true)),
        row(coordinator, configuration()),
        row(coordinator, ListWorkloads { before: None, limit: 9 }),
        row(coordinator, GetWorkload("w".to_owned())),
        row(coordinator, change()),
        row(coordinator, ChangeDryRun(change())),
        row(coordinator, acknowledgement("e")),
        row(coordinator, RemoveEnforcer("e".to_owned())),
        row(coordinator, ListEnforcers { after: None, limit: 9 }),
        row(coordinator, GetEnforcer("kept".to_owned())),
        row(coordinator, GetPromises("kept".to_owned())),
        row(coordinator, preview("new")),
    ];
    let operations = include_str!("../../src/actor/operations.rs").matches("\nimpl Operation for ").count();
    assert_eq!(rows.len(), operations, "the table lists each operation once");
    rows
}

#[test]
fn each_operation_has_the_access_that_it_needs() {
    for Row { name, declared, changes, waits } in rows() {
        match declared {
            Access::Write => assert!(changes && waits, "{name} is a write without changes"),
            Access::Read => assert!(!changes && waits, "{name} changes stored state, or replies too early"),
            Access::Compute => assert!(!changes && !waits, "{name} changes stored state"),
            // A report may bring advised moves, and the off switch undoes them; the replies do not show either.
            Access::Telemetry => assert!(!waits, "{name} waits for the store"),
        }
    }
}

#[test]
fn the_accesses_are_those_of_the_table() {
    use Access::{Compute, Read, Telemetry, Write};
    let expected = [
        ("Report", Telemetry),
        ("ReadTelemetry", Telemetry),
        ("NamePods", Telemetry),
        ("GetPeaks", Telemetry),
        ("Placement", Write),
        ("Reservation", Write),
        ("Confirm", Write),
        ("ConfirmDryRun", Read),
        ("Commitment", Write),
        ("CommitmentDryRun", Compute),
        ("DryRun", Compute),
        ("Release", Write),
        ("GetDecision", Read),
        ("DecisionQuery", Read),
        ("GetHolding", Read),
        ("GetHotLinks", Compute),
        ("GetRack", Compute),
        ("MigrationQuery", Read),
        ("AnswerMigration", Write),
        ("AnswerDryRun", Read),
        ("SetJob", Write),
        ("Score", Compute),
        ("ChooseRead", Compute),
        ("ChooseDelete", Compute),
        ("WhatIf", Compute),
        ("Reevaluate", Write),
        ("ReevaluateDryRun", Compute),
        ("GetModes", Read),
        ("ModeChange", Write),
        ("SetFileModes", Write),
        ("SetOffSwitch", Telemetry),
        ("Configuration", Telemetry),
        ("ListWorkloads", Read),
        ("GetWorkload", Read),
        ("ChangeWorkload", Write),
        ("ChangeDryRun", Compute),
        ("Acknowledge", Write),
        ("RemoveEnforcer", Write),
        ("ListEnforcers", Read),
        ("GetEnforcer", Read),
        ("GetPromises", Read),
        ("PreviewPromises", Read),
    ];
    let declared: Vec<(&str, Access)> = rows().iter().map(|row| (row.name, row.declared)).collect();
    assert_eq!(declared, expected);
}
