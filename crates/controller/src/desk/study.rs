//! What takes longer than a turn: it is looked into elsewhere, on what was known when it was asked, and told to the desk when
//! it is found. Nothing here reads a clock or knows the desk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use leeward_engine::Published;
use leeward_fabric::{Cluster, HostId, Nanos};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment};
use leeward_placement::{Decision, Refusal};
use leeward_registry::{PolicySpec, RegistryError};
use leeward_slo::online::{self, Agreement, Declined, Form, Standing};

use super::message::{Rated, Score};
use super::record::Record;

/// Something to be looked into.
#[derive(Debug)]
pub struct Study {
    /// Its number.
    pub(super) number: u64,
    pub(super) lane: Lane,
    pub(super) question: Question,
}

/// Who waits for it. Those of one lane are looked into one after another, and those of another do not wait for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Somebody who is to be promised something.
    Promises,
    /// Somebody whose app takes longer than a turn to place.
    Apps,
    /// Somebody who asks what would be.
    WhatIfs,
    /// A scheduler that seeks a host.
    Scores,
}

/// What is to be found.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// What can be promised to a workload beside those in force.
    Promise(Asked),
    /// Where an app goes.
    App(Published, AppRequest),
    /// Where copies of a block would go.
    Replicas(Published, PolicySpec, ReplicaRequest, Vec<HostId>),
    /// Where tasks would go.
    Tasks(Published, PolicySpec, AppRequest, Vec<HostId>),
    /// How good hosts are for a task.
    Score(Published, Score),
}

/// A workload, and those in force on the cluster as it is believed to be.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub cluster: Cluster,
    /// The decisions that promised those in force.
    pub standing: Vec<Arc<Record>>,
    pub form: Form,
    pub id: u64,
    pub policy: PolicySpec,
    /// Whether its server is to be chosen, among all but these.
    pub among: Option<Vec<HostId>>,
}

impl Asked {
    fn find(self) -> Result<Agreement, Declined> {
        let Asked { cluster, standing, form, id, policy, among } = self;
        let standing: Vec<Standing> = standing.iter().filter_map(|record| standing_of(record)).collect();
        match among {
            None => online::admit(&cluster, &standing, &form, id, &policy),
            Some(closed) => online::pack(&cluster, &standing, &form, id, &policy, &closed),
        }
    }
}

/// What a decision promises; `None` if it promises nothing.
fn standing_of(record: &Record) -> Option<Standing> {
    let form = record.shown.wish.workload()?.workload.clone();
    Some(Standing { id: record.id, form, agreed: record.shown.promise.clone()? })
}

/// What was found.
#[derive(Debug)]
pub struct Finding {
    pub(super) number: u64,
    pub(super) answer: Found,
}

#[derive(Debug)]
pub(super) enum Found {
    Promise(Result<Agreement, Declined>),
    App(Result<Decision<Assignment>, Refusal>),
    Replicas(Result<Decision<Chain>, Refusal>),
    Tasks(Result<Decision<Assignment>, Refusal>),
    /// How good hosts are, in which state of the ledger, and how old the oldest telemetry was that plays a part; nothing if
    /// the policy ranks no hosts.
    Score(Option<(Rated, u64, Option<Nanos>)>),
    /// The policy cannot be made.
    Policy(RegistryError),
    /// The program is wrong, and went no further.
    Failed,
}

impl Study {
    /// Who waits for it.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Looks into it. May take seconds. What goes wrong in it is a finding too: whoever asked waits for one.
    pub fn find(self) -> Finding {
        let Study { number, question, .. } = self;
        // Nothing of the question is used after a panic.
        let answer = catch_unwind(AssertUnwindSafe(|| question.find())).unwrap_or(Found::Failed);
        Finding { number, answer }
    }
}

impl Finding {
    /// Whether the program went wrong.
    pub fn failed(&self) -> bool {
        matches!(self.answer, Found::Failed)
    }
}

impl Question {
    fn find(self) -> Found {
        match self {
            Question::Promise(asked) => Found::Promise(asked.find()),
            Question::App(published, request) => Found::App(published.place(&request)),
            Question::Replicas(published, policy, request, hosts) => {
                match replicas::REGISTRY.make(&policy.name, &policy.settings) {
                    Ok(policy) => Found::Replicas(published.replicas(policy.as_ref(), &request, &hosts)),
                    Err(error) => Found::Policy(error),
                }
            }
            Question::Tasks(published, policy, request, hosts) => {
                match tasks::REGISTRY.make(&policy.name, &policy.settings) {
                    Ok(policy) => Found::Tasks(published.tasks(policy.as_ref(), &request, &hosts)),
                    Err(error) => Found::Policy(error),
                }
            }
            Question::Score(published, Score { request, peers, hosts, .. }) => {
                let ratings = published.rate(&request, &peers, &hosts);
                Found::Score(ratings.map(|ratings| {
                    let links = ratings.iter().filter_map(|rating| rating.limit);
                    let oldest = published.measured_until(links);
                    let age = oldest.map(|oldest| published.at().since(oldest));
                    (Rated::new(published.fabric(), ratings), published.epoch(), age)
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leeward_engine::{Engine, Policies};
    use leeward_fabric::Capacities;
    use leeward_ledger::{Ledger, LedgerSettings};
    use leeward_placement::Explain;
    use serde_json::json;

    use super::*;
    use crate::desk::{
        Desk, Labels, Limits, Message, Placement, Refused, Replies, Reply, Request, Wish, WorkloadWish,
    };

    const CLUSTER: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1, priorities: 4, devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]}";

    fn ask(name: &str) -> Message {
        let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
        let form = json!({
            "name": name, "client": "r0h0", "server": "r1h1", "unloaded": "100us",
            "slo": { "percentile": 99, "latency": "50ms" },
            "curves": {
                "network-in": link, "network-out": link, "storage": [{ "rate": "10%", "burst": "4ms" }],
            },
        });
        let wish = WorkloadWish { workload: form.as_object().expect("an object").clone() };
        let wish = Wish::Workload(wish);
        Message::Place(Placement { request: Request::Workload, wish, caller: None, lasts: None })
    }

    #[test]
    fn where_an_analysis_goes_wrong_who_asked_is_told_and_the_next_is_looked_into() {
        let Cluster { fabric, capacities } = Cluster::from_text("test", CLUSTER).expect("a right cluster");
        let ledger = Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right");
        let labels = Labels { replicas: "none".into(), tasks: "none".into(), moves: None };
        let engine = Engine::new(ledger, Policies::default(), 1, Explain::Off);
        let mut desk: Desk<u32> = Desk::new(engine, labels, Limits::default());
        let mut out = Replies::new();
        desk.handle(Nanos(1), ask("a"), 1, &mut out);
        desk.handle(Nanos(1), ask("b"), 2, &mut out);
        let mut study = desk.studies().next().expect("the first is looked into");
        // No mistake that is known leads to this: capacities of another fabric.
        let Question::Promise(asked) = &mut study.question else { panic!("{study:?}") };
        asked.cluster.capacities = Capacities::new(Vec::new());
        let finding = study.find();
        assert!(finding.failed());
        desk.found(Nanos(2), finding, &mut out);
        assert_eq!(out, [(1, Err(Refused::Failed))]);
        out.clear();
        let study = desk.studies().next().expect("the second is looked into");
        desk.found(Nanos(3), study.find(), &mut out);
        assert!(matches!(out.as_slice(), [(2, Ok(Reply::Placed { .. }))]), "{out:?}");
        desk.handle(Nanos(4), Message::WhatIf(1, "dnc".to_owned()), 3, &mut out);
        out.clear();
        let number = desk.studies().next().expect("it is looked into").number;
        desk.found(Nanos(5), Finding { number, answer: Found::Failed }, &mut out);
        assert_eq!(out, [(3, Err(Refused::Failed))]);
    }
}
