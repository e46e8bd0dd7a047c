//! Jobs: work that takes too long for the actor's loop. A job runs outside the coordinator with the state at its start,
//! and its result goes back to the coordinator. This module reads no clock and does not use the coordinator.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use leeward_agreements::{ActiveWorkload, Agreement, Form, Rejected};
use leeward_engine::{Comparison, Decider, EngineSnapshot, Ruling};
use leeward_fabric::{Cluster, HostId, Nanos};
use leeward_ledger::Epoch;
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, Alternative, AppRequest, Assignment, Transfer, Worth};
use leeward_placement::{Decision, PathLoad, Refusal};
use leeward_promises::{ChangeInput, Redecided, redecide};
use leeward_records::{DecisionId, DecisionRecord};
use leeward_registry::{PolicySpec, RegistryError};

use super::reply::Rated;
use super::request::{ChangeWorkload, Score};

/// A re-evaluation that waits or runs.
#[derive(Clone, Debug)]
pub(super) struct Again {
    pub transfers: Vec<Transfer>,
    pub worth: Worth,
    /// False for a dry run, which changes nothing.
    pub commits: bool,
}

/// A decision about a changed workload that waits or runs.
#[derive(Clone, Debug)]
pub(super) struct ChangeQuery {
    pub change: ChangeWorkload,
    /// False for a dry run, which changes nothing.
    pub commits: bool,
    /// Number of earlier attempts.
    pub attempts: u32,
    /// Versions of the reservations at each resource when the job began.
    pub versions: Vec<u32>,
}

/// Result of a re-evaluation's job, with its request and the hosts of the tasks at its start.
#[derive(Debug)]
pub(super) struct AgainOutput {
    pub request: AppRequest,
    pub hosts: Vec<HostId>,
    pub result: Result<Alternative, Refusal>,
}

/// A job that takes too long for the actor's loop.
#[derive(Debug)]
pub struct Job {
    /// Number of the job.
    pub(super) number: u64,
    pub(super) kind: JobKind,
}

/// Queue of jobs. The jobs of one queue run one after another; queues do not wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// Admission of workloads.
    Promises,
    /// Placement of large apps.
    Apps,
    /// What-if queries.
    WhatIfs,
    /// Scores of many hosts.
    Scores,
    /// Comparisons of large apps.
    Comparisons,
}

/// Input of a job, by queue.
#[derive(Clone, Debug)]
pub(super) enum JobKind {
    /// Admits a workload beside the active ones.
    Promise(AdmissionInput),
    /// Places an app.
    App(EngineSnapshot, AppRequest, Ruling),
    /// Asks the policy that did not decide.
    Compare(CompareInput),
    /// Decides a request again under another policy.
    WhatIf(WhatIfJob),
    /// Scores hosts for a task.
    Score(EngineSnapshot, Score),
}

/// Input of a comparison: the state before a decision, and its request.
#[derive(Clone, Debug)]
pub(super) enum CompareInput {
    /// An app, the policy that decided, and its hosts.
    App(Box<EngineSnapshot>, Box<AppRequest>, Decider, Assignment),
    /// A workload, with the other policy.
    Promise(AdmissionInput),
}

/// Choice of the policy that did not decide.
#[derive(Debug)]
pub(super) enum CompareOutput {
    App(Option<Comparison<Assignment>>),
    Promise(Result<Agreement, Rejected>),
}

/// Input of a what-if query, by kind of the request.
#[derive(Clone, Debug)]
pub(super) enum WhatIfJob {
    /// Copies of a block.
    Replicas(EngineSnapshot, PolicySpec, ReplicaRequest, WhatIfHosts),
    /// Tasks.
    Tasks(EngineSnapshot, PolicySpec, AppRequest, WhatIfHosts),
    /// Remaining transfers of tasks that run on these hosts.
    Again(EngineSnapshot, AppRequest, Vec<HostId>, Worth),
    /// A workload.
    Promise(AdmissionInput),
    /// A workload with a promise whose requests have changed.
    Change(Box<ChangeInput>),
}

/// Hosts of the decision that a what-if query is about.
#[derive(Clone, Debug)]
pub(super) struct WhatIfHosts {
    /// Hosts whose capacity the decision uses; empty after its end.
    pub load: Vec<HostId>,
    /// Hosts of the decision; `None` in a dry run.
    pub decided: Option<Vec<HostId>>,
}

/// Loads on the links of a decision and of another choice, on the network without the decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WhatIfLoads {
    pub decided: Option<PathLoad>,
    pub chosen: Option<PathLoad>,
}

/// A workload, and the active workloads, on the cluster with the capacities that the ledger assumes.
#[derive(Clone, Debug)]
pub(super) struct AdmissionInput {
    pub cluster: Cluster,
    /// Decisions with the active guarantees.
    pub active: Vec<Arc<DecisionRecord>>,
    pub form: Form,
    pub id: DecisionId,
    pub policy: PolicySpec,
    /// Hosts that take no volumes, for a new volume; `None` if the volume exists.
    pub closed_hosts: Option<Vec<HostId>>,
}

impl AdmissionInput {
    fn run(&self) -> Result<Agreement, Rejected> {
        let AdmissionInput { cluster, active, form, id, policy, closed_hosts } = self;
        let active: Vec<ActiveWorkload> =
            active.iter().filter_map(|record| active_workload(record)).collect();
        match closed_hosts {
            None => leeward_agreements::admit(cluster, &active, form, id.0, policy),
            Some(closed) => leeward_agreements::pack(cluster, &active, form, id.0, policy, closed),
        }
    }
}

/// Guarantee of a decision; `None` if it has none.
pub(super) fn active_workload(record: &DecisionRecord) -> Option<ActiveWorkload> {
    let form = record.details.spec.workload()?.workload.clone();
    Some(ActiveWorkload { id: record.id.0, form, agreed: record.details.promise.clone()? })
}

/// Result of a job.
#[derive(Debug)]
pub struct JobResult {
    pub(super) number: u64,
    pub(super) output: JobOutput,
}

/// The job panicked without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Panicked;

/// Placement of an app, with a comparison if one was requested.
pub(super) type AppAnswer = Result<(Decision<Assignment>, Option<Comparison<Assignment>>), Refusal>;

/// Output of a job, by queue.
#[derive(Debug)]
pub(super) enum JobOutput {
    Promise(Result<Result<Agreement, Rejected>, Panicked>),
    App(Result<AppAnswer, Panicked>),
    Compare(Result<CompareOutput, Panicked>),
    WhatIf(Result<WhatIfOutput, Panicked>),
    Score(Result<Option<JobScores>, Panicked>),
}

/// Output of a what-if query.
#[derive(Debug)]
pub(super) enum WhatIfOutput {
    Replicas(Result<Decision<Chain>, Refusal>, WhatIfLoads),
    Tasks(Result<Decision<Assignment>, Refusal>, WhatIfLoads),
    Again(Box<AgainOutput>),
    Promise(Result<Agreement, Rejected>),
    Change(Result<Redecided, Rejected>),
    /// The policy's settings are invalid.
    Policy(RegistryError),
}

/// Scores of hosts, with the epoch of the ledger and the age of the oldest telemetry that they depend on.
#[derive(Debug)]
pub(super) struct JobScores {
    pub ratings: Rated,
    pub epoch: Epoch,
    pub age: Option<Nanos>,
}

impl Job {
    /// Queue of the job.
    pub fn queue(&self) -> Queue {
        match self.kind {
            JobKind::Promise(_) => Queue::Promises,
            JobKind::App(..) => Queue::Apps,
            JobKind::Compare(_) => Queue::Comparisons,
            JobKind::WhatIf(_) => Queue::WhatIfs,
            JobKind::Score(..) => Queue::Scores,
        }
    }

    /// Runs the job, which may take seconds. A panic becomes a result too, because the coordinator waits for one.
    pub fn run(self) -> JobResult {
        let Job { number, kind } = self;
        let output = match kind {
            JobKind::Promise(input) => JobOutput::Promise(catch_panic(|| input.run())),
            JobKind::App(snapshot, request, ruling) => {
                JobOutput::App(catch_panic(|| snapshot.place(&request, ruling)))
            }
            JobKind::Compare(CompareInput::App(snapshot, request, by, hosts)) => {
                let compare = || CompareOutput::App(snapshot.compare(by, &request, &hosts));
                JobOutput::Compare(catch_panic(compare))
            }
            JobKind::Compare(CompareInput::Promise(input)) => {
                JobOutput::Compare(catch_panic(|| CompareOutput::Promise(input.run())))
            }
            JobKind::WhatIf(job) => JobOutput::WhatIf(catch_panic(|| job.run())),
            JobKind::Score(snapshot, score) => {
                JobOutput::Score(catch_panic(|| score_hosts(&snapshot, &score)))
            }
        };
        JobResult { number, output }
    }
}

/// Runs a function, and catches a panic. Values that the function captures must not be used after a panic.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| Panicked)
}

impl JobResult {
    /// Returns true if the job panicked.
    pub fn failed(&self) -> bool {
        match &self.output {
            JobOutput::Promise(output) => output.is_err(),
            JobOutput::App(output) => output.is_err(),
            JobOutput::Compare(output) => output.is_err(),
            JobOutput::WhatIf(output) => output.is_err(),
            JobOutput::Score(output) => output.is_err(),
        }
    }
}

impl WhatIfJob {
    fn run(self) -> WhatIfOutput {
        match self {
            WhatIfJob::Replicas(snapshot, policy, request, hosts) => {
                match replicas::REGISTRY.make(&policy.name, &policy.settings) {
                    Ok(policy) => {
                        let result = snapshot.replicas(policy.as_ref(), &request, &hosts.load);
                        let loads = loads(&hosts, &result, |at| snapshot.load_of_replicas(&request, at));
                        WhatIfOutput::Replicas(result, loads)
                    }
                    Err(error) => WhatIfOutput::Policy(error),
                }
            }
            WhatIfJob::Tasks(snapshot, policy, request, hosts) => {
                match tasks::REGISTRY.make(&policy.name, &policy.settings) {
                    Ok(policy) => {
                        let result = snapshot.tasks(policy.as_ref(), &request, &hosts.load);
                        let loads = loads(&hosts, &result, |at| snapshot.load_of_tasks(&request, at));
                        WhatIfOutput::Tasks(result, loads)
                    }
                    Err(error) => WhatIfOutput::Policy(error),
                }
            }
            WhatIfJob::Again(snapshot, request, hosts, worth) => {
                let result = snapshot.consider_again(&request, &hosts, &worth);
                WhatIfOutput::Again(Box::new(AgainOutput { request, hosts, result }))
            }
            WhatIfJob::Promise(input) => WhatIfOutput::Promise(input.run()),
            WhatIfJob::Change(input) => WhatIfOutput::Change(redecide(&input)),
        }
    }
}

/// Loads on the links of a decision and of the other choice.
fn loads(
    hosts: &WhatIfHosts,
    result: &Result<Decision<Vec<HostId>>, Refusal>,
    load: impl Fn(&[HostId]) -> PathLoad,
) -> WhatIfLoads {
    WhatIfLoads {
        decided: hosts.decided.as_deref().map(&load),
        chosen: result.as_ref().ok().map(|decision| load(&decision.choice)),
    }
}

/// Scores hosts; `None` if the policy does not score single hosts.
fn score_hosts(snapshot: &EngineSnapshot, Score { request, peers, hosts, .. }: &Score) -> Option<JobScores> {
    let ratings = snapshot.score_hosts(request, peers, hosts)?;
    let oldest = snapshot.measured_until(ratings.iter().filter_map(|rating| rating.limit));
    let age = oldest.map(|oldest| snapshot.at().since(oldest));
    let (ratings, epoch) = (Rated::new(snapshot.fabric(), ratings), snapshot.epoch());
    Some(JobScores { ratings, epoch, age })
}

#[cfg(test)]
mod tests {
    use leeward_engine::{Engine, Policies};
    use leeward_fabric::Capacities;
    use leeward_placement::Explain;
    use leeward_testing::clusters::{RACKS_2X2_WITH_SSDS, cluster, ledger};
    use serde_json::json;

    use super::*;
    use crate::core::{
        Addresses, CallError, Completion, Coordinator, DecisionLookup, Limits, PlaceError, Placement,
        PolicyLabels, WhatIfError,
    };
    use leeward_records::{PlacementSpec, WorkloadSpec};

    /// Numbers as reply addresses.
    enum Numbers {}

    impl Addresses for Numbers {
        type To<T> = u32;

        fn is_open<T>(_: &u32) -> bool {
            true
        }
    }

    fn placement(name: &str) -> Placement {
        let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
        let form = json!({
            "name": name, "client": "r0h0", "server": "r1h1", "unloaded": "100us",
            "slo": { "percentile": 99, "latency": "50ms" },
            "curves": {
                "network-in": link, "network-out": link, "storage": [{ "rate": "10%", "burst": "4ms" }],
            },
        });
        let spec = WorkloadSpec { workload: form.as_object().expect("an object").clone() };
        let spec = PlacementSpec::Workload(spec);
        Placement { spec, caller: None, lasts: None, reference: None, digest: None }
    }

    #[test]
    fn the_callers_of_a_job_that_panics_get_an_error_and_the_next_job_runs() {
        let ledger = ledger(&cluster(RACKS_2X2_WITH_SSDS));
        let labels = PolicyLabels {
            replicas: "none".into(),
            tasks: "none".into(),
            moves: None,
            ..PolicyLabels::default()
        };
        let engine = Engine::new(ledger, Policies::default(), 1, Explain::Off);
        let mut coordinator: Coordinator<Numbers> = Coordinator::new(engine, labels, Limits::default());
        coordinator.place(Nanos(1), placement("a"), 1);
        coordinator.place(Nanos(1), placement("b"), 2);
        let mut job = coordinator.jobs().next().expect("the job of the first");
        // Capacities of another fabric cause a panic; no known bug leads to this.
        let JobKind::Promise(input) = &mut job.kind else { panic!("{job:?}") };
        input.cluster.capacities = Capacities::new(Vec::new());
        let result = job.run();
        assert!(result.failed());
        coordinator.finish_job(Nanos(2), result);
        let panicked = Some(Completion::Place(1, Err(CallError::Failed(PlaceError::Panicked))));
        assert_eq!(coordinator.completions().next(), panicked);
        let job = coordinator.jobs().next().expect("the job of the second");
        coordinator.finish_job(Nanos(3), job.run());
        assert!(matches!(
            coordinator.completions().next(),
            Some(Completion::Place(2, Ok(DecisionLookup::InMemory(_))))
        ));
        coordinator.what_if(Nanos(4), DecisionId(1), "dnc", 3);
        let number = coordinator.jobs().next().expect("the job of the query").number;
        coordinator.finish_job(Nanos(5), JobResult { number, output: JobOutput::WhatIf(Err(Panicked)) });
        let panicked = Some(Completion::WhatIf(3, Err(CallError::Failed(WhatIfError::Panicked))));
        assert_eq!(coordinator.completions().next(), panicked);
    }
}
