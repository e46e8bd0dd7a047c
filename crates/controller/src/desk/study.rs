//! What takes longer than a turn: it is looked into elsewhere, on what was known when it was asked, and told to the desk when
//! it is found. Nothing here reads a clock or knows the desk.

use leeward_engine::Published;
use leeward_fabric::{Cluster, HostId};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment};
use leeward_placement::volumes::agree::{self, Agreement, Declined, Form, Standing};
use leeward_placement::{Decision, PolicyError, PolicySpec, Refusal};

/// Something to be looked into.
#[derive(Debug)]
pub struct Study {
    /// Its number.
    pub(super) number: u64,
    /// Whether somebody waits for it to be promised, and not only asks what would be.
    pub(super) commits: bool,
    pub(super) question: Question,
}

/// What is to be found.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// What can be promised to a workload beside those in force.
    Promise(Asked),
    /// Where copies of a block would go.
    Replicas(Published, PolicySpec, ReplicaRequest, Vec<HostId>),
    /// Where tasks would go.
    Tasks(Published, PolicySpec, AppRequest, Vec<HostId>),
}

/// A workload, and those in force on the cluster as it is believed to be.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub cluster: Cluster,
    pub standing: Vec<Standing>,
    pub form: Form,
    pub id: u64,
    pub policy: PolicySpec,
    /// Whether its server is to be chosen, among all but these.
    pub among: Option<Vec<HostId>>,
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
    Replicas(Result<Decision<Chain>, Refusal>),
    Tasks(Result<Decision<Assignment>, Refusal>),
    /// The policy cannot be made.
    Policy(PolicyError),
}

impl Study {
    /// Whether somebody waits for it to be promised, and not only asks what would be.
    pub fn commits(&self) -> bool {
        self.commits
    }

    /// Looks into it. May take seconds.
    pub fn find(self) -> Finding {
        let answer = match self.question {
            Question::Promise(Asked { cluster, standing, form, id, policy, among }) => {
                Found::Promise(match among {
                    None => agree::admit(&cluster, &standing, &form, id, &policy),
                    Some(closed) => agree::pack(&cluster, &standing, &form, id, &policy, &closed),
                })
            }
            Question::Replicas(mut published, policy, request, hosts) => {
                match replicas::make(&policy.name, &policy.settings) {
                    Ok(policy) => Found::Replicas(published.replicas(policy.as_ref(), &request, &hosts)),
                    Err(error) => Found::Policy(error),
                }
            }
            Question::Tasks(mut published, policy, request, hosts) => {
                match tasks::make(&policy.name, &policy.settings) {
                    Ok(policy) => Found::Tasks(published.tasks(policy.as_ref(), &request, &hosts)),
                    Err(error) => Found::Policy(error),
                }
            }
        };
        Finding { number: self.number, answer }
    }
}
