//! Property test of the coordinator over arbitrary sequences of operations. The coordinator never panics, and every
//! caller gets one reply. The ledger holds exactly the entries of open decisions, and the persisted changes reproduce
//! the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Availability, Engine, HistorySettings, Policies, Rates};
use leeward_fabric::input::Files;
use leeward_fabric::{Bytes, DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{EntryId, Sample};
use leeward_moves as moves;
use leeward_placement::tasks::{App, AppRequest, Peer, TaskId};
use leeward_placement::{Explain, replicas, tasks};
use leeward_readings::HostReport;
use leeward_records::{
    Caller, DecisionId, DecisionRecord, MigrationAnswer, MoveOutcome, PlacementSpec, ReplicasSpec, TasksSpec,
    WorkloadSpec,
};
use leeward_store::{Sqlite, Store};
use leeward_testing::clusters::{cluster, ledger};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const CLUSTER: &str = "racks: 3\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 2\npriorities: 4\ncpus: 8\n\
                       devices: [{name: ssd, read: 500MB/s, write: 400MB/s, capacity: 100GiB}]\n";

/// An operation or event.
#[derive(Clone, Debug)]
enum Step {
    Report {
        hosts: Vec<(u32, Option<bool>, Option<bool>)>,
        shares: Vec<u8>,
        late: i64,
        tasks: Vec<u64>,
    },
    /// A reported latency of a workload.
    Latency {
        name: u8,
        late: i64,
    },
    Block {
        size: u64,
        writer: Option<u32>,
        caller: u8,
        lasts: Option<u64>,
    },
    Tasks {
        count: usize,
        mbps: u64,
        /// True for transfers between the tasks; the placement then runs as a job.
        transfers: bool,
        caller: u8,
        lasts: Option<u64>,
        job: Option<u8>,
    },
    Workload {
        name: u8,
        client: u32,
        server: Option<u32>,
        millis: u64,
        caller: u8,
    },
    Release(u64),
    Answer(u64, bool),
    Job(u8, bool),
    /// A query of some kind, about some id.
    Query(u8, u64),
    /// All open jobs run.
    RunJobs,
    /// Time advances by this number of milliseconds; a negative number sets the clock back.
    Advance(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lasts = || prop::option::weighted(0.3, 0_u64..20_000);
    let host = (0_u32..10, prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
    let report = (
        prop::collection::vec(host, 0..2),
        prop::collection::vec(0_u8..110, 0..6),
        -1_500_i64..3_000,
        prop::collection::vec(0_u64..12, 0..3),
    );
    let name = 0_u8..4;
    let step = prop_oneof![
        6 => report.prop_map(|(hosts, shares, late, tasks)| Step::Report { hosts, shares, late, tasks }),
        1 => (name.clone(), -500_i64..2_000).prop_map(|(name, late)| Step::Latency { name, late }),
        5 => (0_u64..1 << 31, prop::option::of(0_u32..9), any::<u8>(), lasts())
            .prop_map(|(size, writer, caller, lasts)| Step::Block { size, writer, caller, lasts }),
        7 => (0_usize..9, 0_u64..600, any::<bool>(), any::<u8>(), lasts(), prop::option::of(name.clone())).prop_map(
            |(count, mbps, transfers, caller, lasts, job)| Step::Tasks { count, mbps, transfers, caller, lasts, job }
        ),
        2 => (name.clone(), 0_u32..9, prop::option::of(0_u32..9), 1_u64..200, any::<u8>()).prop_map(
            |(name, client, server, millis, caller)| Step::Workload { name, client, server, millis, caller }
        ),
        4 => (0_u64..20).prop_map(Step::Release),
        2 => (0_u64..6, any::<bool>()).prop_map(|(id, done)| Step::Answer(id, done)),
        1 => (name, any::<bool>()).prop_map(|(job, fixed)| Step::Job(job, fixed)),
        2 => (any::<u8>(), 0_u64..20).prop_map(|(code, id)| Step::Query(code, id)),
        4 => Just(Step::RunJobs),
        3 => (-5_000_i64..20_000).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..60)
}

/// Numbers as reply addresses.
enum Numbers {}

impl Addresses for Numbers {
    type To<T> = u64;

    fn is_open<T>(_: &u64) -> bool {
        true
    }
}

/// Addresses of the late replies.
fn addresses(coordinator: &mut Coordinator<Numbers>) -> Vec<u64> {
    let to = |completion| match completion {
        Completion::Place(to, _) | Completion::WhatIf(to, _) | Completion::Score(to, _) => to,
    };
    coordinator.completions().map(to).collect()
}

/// A coordinator with its store and its waiting callers.
struct Harness {
    coordinator: Coordinator<Numbers>,
    store: Sqlite,
    now: Nanos,
    /// Number of operations so far, and the address of the next one.
    calls: u64,
    waiting: BTreeSet<u64>,
    /// Jobs with limits on evictions.
    bounded: BTreeSet<String>,
}

fn new_coordinator() -> Coordinator<Numbers> {
    let ledger = ledger(&cluster(CLUSTER));
    let policies = Policies {
        replicas: replicas::REGISTRY.make("sinbad", "{interval: 2s, without_telemetry: default}").ok(),
        tasks: tasks::REGISTRY.make("leeward", "{tries: 2}").ok(),
        moves: moves::REGISTRY.make("utp", "").ok(),
        history: Some(HistorySettings { window: Nanos(60 * Nanos::SECOND.0), percentile: 0.98 }),
        ..Policies::default()
    };
    let label = |name: &str| Arc::<str>::from(name);
    let labels = PolicyLabels {
        replicas: label("sinbad"),
        tasks: label("leeward"),
        moves: Some(label("utp")),
        ..PolicyLabels::default()
    };
    Coordinator::new(Engine::new(ledger, policies, 7, Explain::Top(4)), labels, Limits::default())
}

fn caller(number: u8) -> Option<Caller> {
    match number % 8 {
        0..=3 => None,
        4 => Some(Caller::Key(Arc::from(format!("key {}", number / 64)))),
        client => Some(Caller::Client {
            client: Arc::from(format!("client {client}")),
            sequence: u64::from(number / 16),
        }),
    }
}

impl Harness {
    fn new() -> Harness {
        let store = Sqlite::in_memory().expect("an in-memory store opens");
        let mut harness = Harness {
            coordinator: new_coordinator(),
            store,
            now: Nanos(20 * Nanos::SECOND.0),
            calls: 0,
            waiting: BTreeSet::new(),
            bounded: BTreeSet::new(),
        };
        harness.coordinator.wake(harness.now);
        harness
    }

    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::RunJobs => {
                let jobs: Vec<Job> = self.coordinator.jobs().collect();
                jobs.into_iter().for_each(|job| self.coordinator.finish_job(self.now, job.run()));
            }
            Step::Advance(millis) => {
                self.now = Nanos(self.now.0.saturating_add_signed(millis * 1_000_000));
                self.coordinator.wake(self.now);
            }
            step => {
                let is_late = matches!(step, Step::Block { .. } | Step::Tasks { .. } | Step::Workload { .. })
                    || matches!(step, Step::Query(code, _) if matches!(code % 8, 4 | 7));
                let fabric = self.coordinator.fabric().clone();
                if self.call(step, &fabric, self.calls).is_none() {
                    return Ok(());
                }
                if is_late {
                    self.waiting.insert(self.calls);
                }
                self.calls += 1;
            }
        }
        for to in addresses(&mut self.coordinator) {
            prop_assert!(self.waiting.remove(&to), "{to} gets two replies");
        }
        let changes: Vec<Change> = self.coordinator.changes().collect();
        self.store.apply(&changes).expect("the store accepts the changes");
        self.check()
    }

    /// Carries out an operation, with `to` as the address of late replies. Returns `None` for events and
    /// invalid requests.
    fn call(&mut self, step: Step, fabric: &Fabric, to: u64) -> Option<()> {
        let now = self.now;
        let back = |millis: i64| Nanos(now.0.saturating_add_signed(-millis * 1_000_000));
        match step {
            Step::Report { hosts, shares, late, tasks } => {
                let until = back(late);
                let window = (Nanos(until.0.saturating_sub(Nanos::SECOND.0)), until);
                let hosts = hosts.into_iter().filter(|(host, ..)| *host < 9);
                let host = |(host, up, draining)| HostReport {
                    host: HostId(host),
                    up,
                    draining,
                    stored: None,
                    storage: None,
                };
                let load = |(at, share): (usize, u8)| {
                    let link = ResourceId((at * 7 % fabric.resource_count()) as u32);
                    let load = Load(i64::from(share) * 10_000_000);
                    Sample { resource: link, window, load, guaranteed: None }
                };
                let rates =
                    |app: u64| (TaskId { app, index: 0 }, Rates { egress_bps: app << 26, ingress_bps: 1 });
                let _ = self.coordinator.report(
                    now,
                    Report {
                        window,
                        loads: shares.into_iter().enumerate().map(load).collect(),
                        hosts: hosts.map(host).collect(),
                        tasks: tasks.into_iter().map(rates).collect(),
                        ..Report::default()
                    },
                );
            }
            Step::Latency { name, late } => {
                let (from, until) = (back(late + 10), back(late));
                let workloads = vec![(format!("w{name}"), 0.01)];
                let report = Report { window: (from, until), workloads, ..Report::default() };
                let _ = self.coordinator.report(now, report);
            }
            Step::Block { size, writer, caller: number, lasts } => {
                let writer = writer.map(|host| fabric.host_name(HostId(host)).to_owned());
                let spec = ReplicasSpec { size: Bytes(size), replicas: 3, writer, ..ReplicasSpec::default() };
                self.coordinator.place(
                    now,
                    Placement {
                        spec: PlacementSpec::Replicas(spec),
                        caller: caller(number),
                        lasts: lasts.map(|millis| Nanos(millis * 1_000_000)),
                        reference: None,
                        digest: None,
                    },
                    to,
                );
            }
            Step::Tasks { count, mbps, transfers: has_transfers, caller: number, lasts, job } => {
                let rate = format!("{mbps}Mbps");
                let task = |at: usize| json!({ "name": format!("t{at}"), "egress": rate, "cpus": 1, "tolerant": true });
                let transfer = |at: usize| json!({ "from": "t0", "to": format!("t{at}"), "bytes": "1MB" });
                let transfers = (1..count).filter(|_| has_transfers).map(transfer).collect::<Vec<_>>();
                let tasks = (0..count).map(task).collect::<Vec<_>>();
                let app = json!({ "tasks": tasks, "transfers": transfers }).to_string();
                let app = App::from_text("app", &app, &Files::default()).ok()?;
                let spec = TasksSpec::of(&app, job.map(|job| format!("job {job}")), Vec::new());
                self.coordinator.place(
                    now,
                    Placement {
                        spec: PlacementSpec::Tasks(spec),
                        caller: caller(number),
                        lasts: lasts.map(|millis| Nanos(millis * 1_000_000)),
                        reference: None,
                        digest: None,
                    },
                    to,
                );
            }
            Step::Workload { name, client, server, millis, caller: number } => {
                let host = |host: u32| fabric.host_name(HostId(host)).to_owned();
                let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
                let form = json!({
                    "name": format!("w{name}"), "client": host(client), "server": server.map(host),
                    "slo": { "percentile": 99, "latency": format!("{millis}ms") }, "unloaded": "100us",
                    "curves": {
                        "network-in": link, "network-out": link,
                        "storage": [{ "rate": "8%", "burst": "4ms" }],
                    },
                });
                let spec = WorkloadSpec { workload: form.as_object()?.clone() };
                let spec = if server.is_some() {
                    PlacementSpec::Workload(spec)
                } else {
                    PlacementSpec::Volumes(spec)
                };
                self.coordinator.place(
                    now,
                    Placement { spec, caller: caller(number), lasts: None, reference: None, digest: None },
                    to,
                );
            }
            Step::Release(id) => drop(self.coordinator.release(now, DecisionId(id))),
            Step::Answer(id, is_done) => {
                let outcome = if is_done { MoveOutcome::Done } else { MoveOutcome::Refused(None) };
                drop(self.coordinator.answer(now, id, MigrationAnswer::anonymous(outcome)));
            }
            Step::Job(job, fixed) => {
                let availability =
                    Availability { evictions_per_hour: fixed.then_some(0), ..Availability::default() };
                let name = format!("job {job}");
                if fixed {
                    self.bounded.insert(name.clone())
                } else {
                    self.bounded.remove(&name)
                };
                self.coordinator.set_job(now, name, availability).expect("fewer jobs than the limit");
            }
            Step::Query(code, id) => match code % 8 {
                0 => {
                    let query = DecisionQuery {
                        kind: None,
                        before: Some(DecisionId(id)),
                        limit: 3,
                        holding: code > 99,
                    };
                    drop(self.coordinator.decisions(now, &query));
                }
                1 => {
                    let rack = fabric.all_racks().nth(id as usize % 3).unwrap_or(DomainId(0));
                    drop(self.coordinator.rack(now, rack));
                }
                2 => drop(self.coordinator.holding(now, ResourceId(id as u32), 5)),
                3 => {
                    let query = MigrationQuery { state: None, before: Some(id), limit: 2 };
                    drop(self.coordinator.migrations(now, query));
                }
                4 => {
                    let policies = ["sinbad", "utp", "dnc", "compactor", "?", "leeward:effort=10000"];
                    self.coordinator.what_if(now, DecisionId(id), policies[usize::from(code) % 6], to);
                }
                5 => drop(self.coordinator.workloads(now, Some(DecisionId(id)), 2)),
                6 => drop(self.coordinator.workload(now, &format!("w{}", id % 4))),
                _ => {
                    let peers =
                        vec![Peer { host: HostId(1), egress_bps: 1, ingress_bps: 1 }; usize::from(code)];
                    let count = if code > 200 { 60 } else { 3 };
                    let hosts = (0..count).map(|at| HostId(at % 9)).collect();
                    let request = AppRequest { tasks: vec![tasks::Task::default()], ..AppRequest::default() };
                    self.coordinator.score(now, Score { request, job: None, peers, hosts }, to);
                }
            },
            Step::RunJobs | Step::Advance(_) => return None,
        }
        Some(())
    }

    /// Asserts the invariants.
    fn check(&self) -> Result<(), TestCaseError> {
        let coordinator = &self.coordinator;
        let ledger = coordinator.engine.ledger();
        let open = || coordinator.records.last(None).filter(|record| record.released.is_none());
        let mut held = BTreeSet::new();
        for record in open() {
            for &entry in &record.entries {
                prop_assert!(held.insert(entry), "{entry:?} is held twice");
            }
        }
        let ended = coordinator.records.last(None).filter(|record| record.released.is_some());
        prop_assert!(
            ended.flat_map(|record| &record.entries).next().is_none(),
            "an ended record has entries"
        );
        // The range has many more ids than a test creates entries.
        let in_ledger = (0..4_096).map(EntryId).filter(|&entry| ledger.entry(entry).is_some());
        for entry in in_ledger {
            prop_assert!(held.remove(&entry), "{entry:?} belongs to no decision: {:?}", ledger.entry(entry));
        }
        let mut replicas = vec![0; ledger.fabric().host_count()];
        let mut workloads = BTreeMap::new();
        for record in open() {
            if let PlacementSpec::Replicas(_) = record.details.spec {
                for host in &record.details.hosts {
                    replicas[ledger.fabric().host(host).expect("a host").index()] += 1;
                }
            }
            if let Some(spec) = record.details.spec.workload() {
                let before = workloads.insert(spec.name().to_owned(), record.id);
                prop_assert_eq!(before, None, "two guarantees for one workload");
                // Entries of a guarantee do not expire.
                prop_assert!(record.entries.iter().all(|&entry| ledger.entry(entry).is_some()));
            }
        }
        prop_assert_eq!(&replicas, &coordinator.replicas);
        self.check_tasks()?;
        prop_assert_eq!(&workloads, &coordinator.promises.active);
        let expiries: BTreeSet<_> = open().filter_map(|record| Some((record.expires?, record.id))).collect();
        prop_assert_eq!(&expiries, &coordinator.expiries);
        Ok(())
    }

    /// Asserts that every host has room for its tasks, and that every known job name is in use.
    fn check_tasks(&self) -> Result<(), TestCaseError> {
        let coordinator = &self.coordinator;
        let open = || coordinator.records.last(None).filter(|record| record.released.is_none());
        let mut cpus = BTreeMap::<&String, u64>::new();
        for record in open() {
            let PlacementSpec::Tasks(spec) = &record.details.spec else { continue };
            for (task, host) in spec.tasks.iter().zip(&record.details.hosts) {
                *cpus.entry(host).or_default() += task.cpus.0;
            }
        }
        prop_assert!(cpus.values().all(|&cpus| cpus <= 8_000), "{cpus:?}");
        let specs = open().map(|record| &record.details.spec);
        let specs = specs.chain(coordinator.waiting.values().map(|waiting| &waiting.placement.spec));
        let named = specs.filter_map(job_names::job_of).chain(&self.bounded);
        let remembered = coordinator.job_names.remembered().map(|(name, _)| name);
        let named: BTreeSet<&String> = named.chain(remembered).collect();
        prop_assert!(coordinator.job_names.all().map(|(name, _)| name).eq(named));
        // Observed traffic is that of a known name, or of a running app without one.
        let unnamed = open().map(|record| JobNames::unnamed(record.id));
        let known: BTreeSet<_> =
            coordinator.job_names.all().map(|(_, number)| number).chain(unnamed).collect();
        prop_assert!(coordinator.engine.observed_jobs().all(|number| known.contains(&number)));
        Ok(())
    }

    /// Asserts that a coordinator resumed from the store has the same state.
    fn replay(mut self) -> Result<(), TestCaseError> {
        self.coordinator.reject_waiting();
        for to in addresses(&mut self.coordinator) {
            prop_assert!(self.waiting.remove(&to), "{to} gets two replies");
        }
        prop_assert!(self.waiting.is_empty(), "{:?} get no reply", self.waiting);
        let state = self.store.load(1_000, 1_000).expect("the store is readable");
        let callers = state.callers.clone();
        let mut coordinator = new_coordinator();
        coordinator.resume(state, Nanos(u64::MAX)).expect("the state fits the cluster");
        prop_assert_eq!(coordinator.changes().count(), 0, "a resume changes no stored state");
        let records = |coordinator: &Coordinator<Numbers>| -> Vec<_> {
            let bare = |record: &Arc<DecisionRecord>| DecisionRecord {
                entries: Vec::new(),
                ..DecisionRecord::clone(record)
            };
            coordinator.records.last(None).map(bare).collect()
        };
        prop_assert_eq!(records(&coordinator), records(&self.coordinator));
        // Rejected requests are not stored, and their ids may be used again.
        prop_assert!(
            coordinator.next <= self.coordinator.next
                && coordinator.records.last(None).all(|record| record.id < coordinator.next)
        );
        // Observed traffic is not stored.
        let used = |coordinator: &Coordinator<Numbers>| -> Vec<String> {
            let remembered: BTreeSet<_> = coordinator.job_names.remembered().map(|(name, _)| name).collect();
            let names = coordinator.job_names.all().map(|(name, _)| name);
            let used = |name: &&String| !remembered.contains(name) || self.bounded.contains(*name);
            names.filter(used).cloned().collect()
        };
        prop_assert_eq!(used(&coordinator), used(&self.coordinator));
        prop_assert_eq!(&coordinator.promises.active, &self.coordinator.promises.active);
        prop_assert_eq!(coordinator.enforcement.version(), self.coordinator.enforcement.version());
        let moves =
            |coordinator: &Coordinator<Numbers>| coordinator.migrations.last().cloned().collect::<Vec<_>>();
        prop_assert_eq!(moves(&coordinator), moves(&self.coordinator));
        coordinator.wake(self.coordinator.now);
        let (original, resumed) = (self.coordinator.snapshot(), coordinator.snapshot());
        for (original, resumed) in original.hosts.iter().zip(&resumed.hosts) {
            let counts = (resumed.tasks, resumed.replicas);
            prop_assert_eq!((original.tasks, original.replicas), counts, "{:?}", resumed.host);
        }
        for (original, resumed) in original.links.iter().zip(&resumed.links) {
            prop_assert_eq!(original.reserved, resumed.reserved, "{:?}", resumed.link);
        }
        // A retry gets the same decision.
        for (caller, id) in callers {
            prop_assert!(
                coordinator.records.get(id).is_some_and(|record| record.caller.as_ref() == Some(&caller))
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sequence_leaves_ledger_and_store_consistent(steps in steps()) {
        let mut harness = Harness::new();
        for step in steps {
            harness.run(step)?;
        }
        harness.replay()?;
    }
}
