//! The coordinator: one engine, and the decisions, clients and jobs around it. Sans I/O: commands are inputs, replies
//! and changes are outputs, and time is an argument. The coordinator knows no clock, socket or disk.
//!
//! Each operation is a method with its own reply and its own error. Some replies come later, as a [`Completion`]: a
//! policy waits for a batch, or an operation takes too long for the actor's loop. The coordinator does not interpret
//! the addresses of replies. Work that takes too long for the loop becomes a job, and its result comes back
//! ([`Coordinator::finish_job`]).

mod admission;
mod admission_policies;
mod apart;
mod apps;
mod clamp;
mod commitments;
mod comparisons;
mod completion;
mod confirm;
mod copies;
mod enforcement;
mod error;
mod evicted;
mod follow;
mod guarantees;
mod hot_links;
mod job;
mod job_names;
mod job_queue;
mod measured;
mod migrations;
mod modes;
mod other_choices;
mod place;
mod policies;
mod queries;
mod records;
mod redecisions;
mod reevaluations;
mod reply;
mod report;
mod request;
mod reservations;
mod resume;
#[cfg(test)]
#[path = "../../tests/unit/sequences.rs"]
mod sequences;
mod snapshot;
mod telemetry_state;
mod what_if;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::{Engine, Input, Output, Ruling};
use leeward_fabric::{Fabric, Nanos};
use leeward_ledger::{Epoch, Scratch};
use leeward_promises::Enforcement;
use leeward_readings::{Disks, Hosts, Pods, Readings};
use leeward_records::{
    Change, ClusterVersion, DecisionId, IdempotencyCache, JobNames, Mode, Modes, ModesState, RequestState,
};

pub use self::admission_policies::AdmissionPolicies;
use self::apps::QueuedApp;
use self::comparisons::PendingComparison;
pub use self::completion::{Addresses, Answer, Completion, PlaceTo, ScoreTo, WhatIfTo};
pub use self::copies::{ChooseDelete, ChooseRead, RankedCopies};
pub use self::enforcement::{EnforcerError, EnforcerPlace, EnforcerReply, NoEnforcer};
pub use self::error::{
    AnswerError, CallError, ConfirmError, DecisionError, InvalidReport, InvalidReportReason, NoWorkload,
    PlaceError, ReleaseError, ReportPart, ScoreError, TooManyJobs, Unavailable, WhatIfError,
};
use self::evicted::{EvictedDecisions, ExpiredEntries, MAX_ENDS};
use self::guarantees::Promises;
pub use self::hot_links::{HeavyWork, HotLinkCause};
pub use self::job::{Job, JobResult, Queue};
pub use self::job_names::ObservedJob;
use self::job_queue::{JobQueue, Jobs};
pub use self::measured::{GetPeaks, NamePods, NamedPods, Peaks, PodRates};
use self::migrations::Migrations;
pub use self::modes::{ModeChange, ModesView};
use self::other_choices::OtherChoices;
pub use self::other_choices::StepCounts;
pub use self::policies::{Configuration, PolicyLabels};
use self::records::Records;
pub use self::reevaluations::Reevaluate;
pub use self::reply::{
    DecisionLookup, Placed, RackContent, Rated, ReportSummary, ReservationState, Scores, Skipped, TaskState,
    UNKNOWN, WhatIfResult, WorkloadList, WorkloadState,
};
pub use self::request::{
    ChangeWorkload, Commitment, DecisionQuery, MigrationQuery, Placement, Report, Reservation, Score,
};
pub use self::snapshot::{Counts, DeviceState, HostState, LinkState, NetworkSnapshot};
pub use self::telemetry_state::{KeptTelemetry, ReadTelemetry, TelemetryPiece, TelemetryState};
use self::what_if::{ScoreQuery, WhatIf};

/// Limits on the coordinator's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Decisions in memory. Default 10,000.
    pub decisions: usize,
    /// Evicted decisions whose entries still count, because telemetry does not show their load yet. Beyond the limit,
    /// the oldest is released. Default 300,000.
    pub evicted: usize,
    /// Clients with known sequences. Default 10,000.
    pub clients: usize,
    /// Known idempotency keys. Default 100,000.
    pub keys: usize,
    /// Requests that wait for their decision. Default 10,000.
    pub waiting: usize,
    /// Time in which an advised move is answered, and in which a taken move is carried out. Default 5 minutes.
    pub move_timeout: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            decisions: 10_000,
            evicted: 300_000,
            clients: 10_000,
            keys: 100_000,
            waiting: 10_000,
            move_timeout: Nanos(300 * Nanos::SECOND.0),
        }
    }
}

/// An engine with its decisions and clients.
pub struct Coordinator<A: Addresses> {
    engine: Engine,
    labels: PolicyLabels,
    modes: ModesState,
    /// True while every mode counts as off.
    switched_off: bool,
    records: Records,
    migrations: Migrations,
    promises: Promises,
    enforcement: Enforcement,
    evicted: EvictedDecisions,
    /// Entries to release at the end of the operation.
    expired: Vec<ExpiredEntries>,
    hosts: Hosts,
    readings: Readings,
    disks: Disks,
    pods: Pods,
    clients: IdempotencyCache,
    job_names: JobNames,
    /// Decisions that expire, by time.
    expiries: BTreeSet<(Nanos, DecisionId)>,
    /// Copies on each host, from decisions in memory that have not ended.
    replicas: Vec<u32>,
    /// Numbers of decisions and of accepted samples.
    decided: u64,
    samples: u64,
    /// Requests that wait for their decision, by id.
    waiting: BTreeMap<DecisionId, Waiting<A>>,
    /// New jobs of all queues.
    jobs: Jobs,
    /// Waiting apps that take too long for the actor's loop, and their total size in bytes.
    apps: JobQueue<QueuedApp>,
    apps_bytes: usize,
    /// Open what-if queries and score queries.
    what_ifs: JobQueue<WhatIf<A>>,
    /// Comparisons of decided apps that take too long for the actor's loop.
    comparisons: JobQueue<PendingComparison>,
    scores: JobQueue<ScoreQuery<A>>,
    limits: Limits,
    /// Version of the cluster.
    version: ClusterVersion,
    /// Id of the next decision.
    next: DecisionId,
    now: Nanos,
    /// Current time during a resume, whose decisions have earlier times; zero otherwise.
    resumes_at: Nanos,
    wake: Option<Nanos>,
    outputs: Vec<Output>,
    changes: Vec<Change>,
    /// Numbers of decisions and moves since the last step of the history.
    counts: leeward_records::Counts,
    other_choices: OtherChoices,
    completions: Vec<Completion<A>>,
    scratch: Scratch,
}

/// A placement that waits for its decision, and the reply addresses of all callers that sent it.
struct Waiting<A: Addresses> {
    placement: Placement,
    /// Time for which the decision is held unless it is confirmed; `None` without a limit.
    reserve: Option<Nanos>,
    /// Mode of its kind when it arrived, and how it is decided.
    mode: Mode,
    ruling: Ruling,
    /// Labels of the policy that decides it, and of the other one.
    policies: [Arc<str>; 2],
    callers: Vec<PlaceTo<A>>,
}

impl<A: Addresses> Coordinator<A> {
    /// Creates a coordinator with a new engine.
    pub fn new(engine: Engine, labels: PolicyLabels, limits: Limits) -> Coordinator<A> {
        let hosts = engine.ledger().fabric().host_count();
        Coordinator {
            evicted: EvictedDecisions::new(engine.ledger().settings(), limits.evicted),
            expired: Vec::new(),
            engine,
            labels,
            modes: ModesState::of_file(Modes::default(), Nanos(0)),
            switched_off: false,
            records: Records::new(limits.decisions),
            migrations: Migrations::default(),
            promises: Promises::default(),
            enforcement: Enforcement::default(),
            hosts: Hosts::default(),
            readings: Readings::default(),
            disks: Disks::default(),
            pods: Pods::default(),
            clients: IdempotencyCache::new(limits.clients, limits.keys),
            job_names: JobNames::default(),
            expiries: BTreeSet::new(),
            replicas: vec![0; hosts],
            decided: 0,
            samples: 0,
            waiting: BTreeMap::new(),
            jobs: Jobs::default(),
            apps: JobQueue::default(),
            apps_bytes: 0,
            what_ifs: JobQueue::default(),
            comparisons: JobQueue::default(),
            scores: JobQueue::default(),
            limits,
            version: ClusterVersion::default(),
            next: DecisionId::default(),
            now: Nanos(0),
            resumes_at: Nanos(0),
            wake: None,
            outputs: Vec::new(),
            changes: Vec::new(),
            counts: leeward_records::Counts::default(),
            other_choices: OtherChoices::default(),
            completions: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Limits on the coordinator's data.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Rejects all waiting requests, so that callers send them again later or elsewhere. Returns true if any request
    /// waited.
    pub fn reject_waiting(&mut self) -> bool {
        let before = self.completions.len();
        for (id, Waiting { placement, callers, .. }) in std::mem::take(&mut self.waiting) {
            self.release_job(&placement.spec, id);
            placement.caller.iter().for_each(|caller| self.clients.settle(caller, RequestState::Rejected));
            let completion =
                |to| Completion::Place(to, Err(CallError::Unavailable(Unavailable::ClusterChanged)));
            self.completions.extend(callers.into_iter().map(completion));
        }
        for query in self.what_ifs.take_all() {
            let error = CallError::Unavailable(Unavailable::ClusterChanged);
            self.completions.push(Completion::WhatIf(query.to, Err(error)));
        }
        for query in self.scores.take_all() {
            let error = CallError::Unavailable(Unavailable::ClusterChanged);
            self.completions.push(Completion::Score(query.to, Err(error)));
        }
        self.completions.len() > before
    }

    /// Fabric of the ledger.
    pub fn fabric(&self) -> &Arc<Fabric> {
        self.engine.ledger().fabric()
    }

    /// Epoch of the ledger.
    pub fn epoch(&self) -> Epoch {
        self.engine.ledger().epoch()
    }

    /// Time of the next [`Coordinator::wake`] if no operation comes first.
    pub fn wakes_at(&self) -> Option<Nanos> {
        let expires = self.expiries.first().map(|&(at, _)| at);
        let lease = self.enforcement.due().filter(|_| !self.is_follower());
        let migration = self.migrations.due(self.limits.move_timeout);
        [self.wake, expires, migration, lease].into_iter().flatten().min()
    }

    /// Drains the changes to persist, in order. Replies may be sent only after these are durable.
    pub fn changes(&mut self) -> std::vec::Drain<'_, Change> {
        self.changes.drain(..)
    }

    /// Drains the late replies, in order.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion<A>> {
        self.completions.drain(..)
    }

    /// Advances time to `now`, which may bring completions. A time before that of the last call counts as the time of
    /// the last call.
    pub fn wake(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        // After a jump of time, many decisions may expire at once; the rest follow at the next call.
        for _ in 0..MAX_ENDS {
            let Some((_, id)) = self.expiries.first().copied().filter(|&(at, _)| at <= self.now) else {
                break;
            };
            self.expiries.pop_first();
            self.end(id);
        }
        self.expire_migrations();
        self.expire_enforcers();
        self.expired.extend(self.evicted.take_expired(self.now));
        self.release_expired();
        self.apply(Input::Wake);
    }

    /// Applies an input to the engine, and handles its outputs.
    fn apply(&mut self, input: Input<'_>) {
        self.engine.handle(self.now, input, &mut self.outputs);
        self.handle_outputs();
    }

    /// Handles the outputs of the engine's last operation. Entries of decisions that leave memory are released last.
    fn handle_outputs(&mut self) {
        self.wake = None;
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::ReplicasPlaced(id, result) => self.finish_placement(DecisionId(id), result),
                Output::WakeAt(at) => self.wake = Some(at),
                Output::MovesAdvised(advice) => self.record_advice(advice),
                Output::MovesConsidered(moves) => self.record_considered(moves),
            }
        }
        self.outputs = outputs;
        self.release_expired();
    }
}
