//! Policies that Python functions and objects implement.
//!
//! ```text
//! engine --Policy trait--> PythonPolicy --request, View--> Python --hosts or scores--> the checks of leeward-placement
//! ```
//!
//! `leeward.policy` describes the Python side. Its `start` function makes the functions of a policy for one run.

mod answer;
mod lent;
mod numbers;
mod request;
mod values;
mod view;

use std::sync::Arc;

use leeward_engine::Policies;
use leeward_fabric::input::InputError;
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_moves::{self as moves, MoveRequest};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment, TaskPolicy};
use leeward_placement::{
    AnswerError, Context, Decision, Explain, Policy, Pool, Refusal, Request, one_by_one,
};
use leeward_registry::PolicySpec;
use pyo3::prelude::*;

pub use self::request::{BlockRequest, PyAppRequest, RequestBatch};
pub use self::view::View;

use self::answer::{Answer, Unreadable};
use self::lent::lend;
use self::view::Constants;
use crate::errors::{PyInputError, Raised};

/// Name of a Python policy in decisions; results show its label instead.
const NAME: &str = "python";

/// Kinds of requests of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// Copies of blocks.
    Replicas,
    /// Tasks and apps.
    Tasks,
}

/// A policy that Python implements, for one run.
pub struct PythonPolicy {
    label: String,
    /// Called with a request and a view.
    place: Option<Py<PyAny>>,
    /// Called with a batch and a view.
    place_batch: Option<Py<PyAny>>,
    interval: Nanos,
    raised: Raised,
    constants: Arc<Constants>,
}

/// Functions of a policy from Python: `place`, `place_batch`, the interval of batches, and the policy for moves.
type Started = (Option<Py<PyAny>>, Option<Py<PyAny>>, Option<String>, Option<String>);

/// Makes the policies of a run from a Python policy. `start` is called with the seed of the run. An exception that the
/// policy raises later goes to `raised`, and the request is then refused.
///
/// # Errors
/// `start` raised an exception, or returned a policy that cannot place these requests.
pub fn start(
    py: Python<'_>,
    start: &Py<PyAny>,
    label: &str,
    placed: Placed,
    seed: u64,
    fabric: &Arc<Fabric>,
    raised: &Raised,
) -> PyResult<Policies> {
    let invalid = |message: String| PyInputError(InputError::new("policy", message));
    let (place, place_batch, interval, moves): Started = start.call1(py, (seed,))?.extract(py)?;
    let interval: Option<Nanos> = interval
        .map(|text| text.parse::<Nanos>().map_err(|error| invalid(format!("`{label}`: interval: {error}"))))
        .transpose()?;
    let moves: Option<Box<dyn Policy<MoveRequest>>> =
        moves.map(|text| move_policy(&text).map_err(invalid)).transpose()?;
    let policy = PythonPolicy {
        label: label.to_owned(),
        place,
        place_batch,
        interval: interval.unwrap_or_default(),
        raised: raised.clone(),
        constants: Arc::new(Constants::new(fabric.clone())),
    };
    let none = Policies::default();
    Ok(match placed {
        Placed::Replicas => Policies { replicas: Some(Box::new(policy)), ..none },
        Placed::Tasks if policy.place.is_none() => {
            return Err(invalid(format!("`{label}`: a policy for tasks needs `place`")).into());
        }
        Placed::Tasks => Policies { tasks: Some(Box::new(policy)), moves, ..none },
    })
}

/// Policies of a single decision, and their label: one of the registry, or the user's own, which `own` starts.
///
/// # Errors
/// The policy or a setting is invalid, or `own` raised an exception.
pub fn registered_or_own(
    py: Python<'_>,
    policy: &str,
    own: Option<&Py<PyAny>>,
    placed: Placed,
    seed: u64,
    fabric: &Arc<Fabric>,
    raised: &Raised,
) -> PyResult<(Policies, String)> {
    if let Some(own) = own {
        return Ok((start(py, own, policy, placed, seed, fabric, raised)?, policy.to_owned()));
    }
    let invalid = |message: String| PyInputError(InputError::new("request", message).in_field("policy"));
    let spec: PolicySpec = policy.parse().map_err(invalid)?;
    let none = Policies::default();
    let policies = match placed {
        Placed::Replicas => {
            let policy = replicas::REGISTRY.make(&spec.name, &spec.settings);
            policy.map(|policy| Policies { replicas: Some(policy), ..none })
        }
        Placed::Tasks => {
            let policy = tasks::REGISTRY.make(&spec.name, &spec.settings);
            policy.map(|policy| Policies { tasks: Some(policy), ..none })
        }
    };
    Ok((policies.map_err(|error| invalid(error.to_string()))?, spec.label))
}

fn move_policy(text: &str) -> Result<Box<dyn Policy<MoveRequest>>, String> {
    let spec: PolicySpec = text.parse()?;
    moves::REGISTRY.make(&spec.name, &spec.settings).map_err(|error| error.to_string())
}

/// A kind of request that a Python policy decides.
trait Decidable: Request<Choice = Vec<HostId>> {
    /// Number of the request.
    fn id(&self) -> u64;
    /// Number of rows of scores that the request may have, one by default.
    fn rows(&self) -> usize;
    /// The refusal of a request that no policy can place.
    fn check(&self, pool: &Pool) -> Result<(), Refusal>;
    fn check_answer(&self, pool: &Pool, hosts: &[HostId]) -> Result<(), AnswerError>;
    fn best_by_scores(&self, pool: &Pool, scores: &[f64], seed: u64) -> Result<Vec<HostId>, Refusal>;
    fn decision(&self, hosts: &[HostId], context: &Context<'_, '_>) -> Decision<Vec<HostId>>;
    fn to_python(&self, py: Python<'_>, seed: u64) -> PyResult<Py<PyAny>>;
}

impl Decidable for ReplicaRequest {
    fn id(&self) -> u64 {
        self.id
    }

    fn rows(&self) -> usize {
        1
    }

    fn check(&self, pool: &Pool) -> Result<(), Refusal> {
        replicas::check_request(pool, self)
    }

    fn check_answer(&self, pool: &Pool, hosts: &[HostId]) -> Result<(), AnswerError> {
        replicas::check_answer(pool, self, hosts)
    }

    fn best_by_scores(&self, pool: &Pool, scores: &[f64], seed: u64) -> Result<Vec<HostId>, Refusal> {
        replicas::best_by_scores(pool, self, scores, seed)
    }

    fn decision(&self, hosts: &[HostId], context: &Context<'_, '_>) -> Decision<Vec<HostId>> {
        let (now, epoch) = (context.view.now(), context.view.epoch());
        replicas::given(NAME, self, hosts, now, epoch, context.pool)
    }

    fn to_python(&self, py: Python<'_>, seed: u64) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, BlockRequest::new(self, seed))?.into_any())
    }
}

impl Decidable for AppRequest {
    fn id(&self) -> u64 {
        self.id
    }

    fn rows(&self) -> usize {
        self.tasks.len()
    }

    fn check(&self, _: &Pool) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_answer(&self, pool: &Pool, hosts: &[HostId]) -> Result<(), AnswerError> {
        tasks::check_answer(pool, self, hosts)
    }

    fn best_by_scores(&self, pool: &Pool, scores: &[f64], seed: u64) -> Result<Vec<HostId>, Refusal> {
        tasks::best_by_scores(pool, self, scores, seed)
    }

    fn decision(&self, hosts: &[HostId], context: &Context<'_, '_>) -> Decision<Vec<HostId>> {
        let (now, epoch) = (context.view.now(), context.view.epoch());
        // Reasons name the task of each host, which a choice of the caller does not.
        Decision { why: Vec::new(), ..tasks::given(NAME, self, hosts, now, epoch, context.pool) }
    }

    fn to_python(&self, py: Python<'_>, seed: u64) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyAppRequest::new(self, seed))?.into_any())
    }
}

impl PythonPolicy {
    /// Calls a function of the policy with a request, or a batch, and a view that ends with the call.
    fn call<R>(
        &self,
        function: &Py<PyAny>,
        context: &mut Context<'_, '_>,
        request: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> Result<R, Unreadable>,
    ) -> Result<R, Unreadable> {
        lend(context, |lent| {
            Python::attach(|py| {
                let view = Py::new(py, View::new(lent.clone(), self.constants.clone()))?;
                let answer = function.call1(py, (request(py)?, view))?;
                read(answer.bind(py))
            })
        })
    }

    /// Stores an exception, and returns the refusal of the request for which it was raised.
    fn fail(&self, error: PyErr) -> Refusal {
        let reason = error.to_string();
        self.raised.set(error);
        Refusal::Declined { reason }
    }

    /// Stores the error about a wrong answer, and returns the refusal of the request.
    fn reject(&self, request: &str, message: String) -> Refusal {
        let policy = format!("policy `{}`", self.label);
        self.fail(PyInputError(InputError::new(policy, message).in_field(request)).into())
    }

    fn unreadable(&self, request: &str, unreadable: Unreadable) -> Refusal {
        match unreadable {
            Unreadable::Raised(error) => self.fail(error),
            Unreadable::Form(message) => self.reject(request, message),
        }
    }

    /// The refusal of all requests after an exception.
    fn check_state(&self) -> Result<(), Refusal> {
        if self.raised.is_set() {
            return Err(Refusal::Declined { reason: format!("`{}` raised an exception", self.label) });
        }
        Ok(())
    }

    fn decide<Q: Decidable>(
        &self,
        place: &Py<PyAny>,
        request: &Q,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Vec<HostId>>, Refusal> {
        self.check_state()?;
        request.check(context.pool)?;
        let (fabric, seed) = (self.constants.fabric().clone(), context.seed);
        let to_python = |py: Python<'_>| request.to_python(py, seed);
        let answer = self.call(place, context, to_python, |answer| answer::read(answer, &fabric));
        let answer = answer.map_err(|error| self.unreadable(&name(request), error))?;
        self.settle(request, answer, context)
    }

    fn decide_batch(
        &self,
        place_batch: &Py<PyAny>,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let all = |refusal: Refusal| -> Vec<Result<Decision<Chain>, Refusal>> {
            batch.iter().map(|_| Err(refusal.clone())).collect()
        };
        if let Err(refusal) = self.check_state() {
            return all(refusal);
        }
        let checked: Vec<Result<(), Refusal>> = batch.iter().map(|one| one.check(context.pool)).collect();
        let valid = batch.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
        let valid: Vec<ReplicaRequest> = valid.map(|(request, _)| request.clone()).collect();
        if valid.is_empty() {
            return checked.into_iter().filter_map(Result::err).map(Err).collect();
        }
        let (fabric, seed, count) = (self.constants.fabric().clone(), context.seed, valid.len());
        let to_python = |py: Python<'_>| -> PyResult<Py<PyAny>> {
            Ok(Py::new(py, RequestBatch::new(&valid, seed))?.into_any())
        };
        let read = |answer: &Bound<'_, PyAny>| answer::read_batch(answer, &fabric, count);
        let answers = match self.call(place_batch, context, to_python, read) {
            Ok(answers) => answers,
            Err(error) => return all(self.unreadable(&batch_name(&valid), error)),
        };
        let mut answers = answers.into_iter();
        let mut decisions = Vec::with_capacity(batch.len());
        for (request, checked) in batch.iter().zip(checked) {
            let decision = checked.and_then(|()| {
                let answer = answers.next().expect("there is an answer for each valid request");
                self.check_state()?;
                self.settle(request, answer, context)
            });
            decisions.push(decision);
        }
        decisions
    }

    /// Checks an answer, and makes it a decision.
    fn settle<Q: Decidable>(
        &self,
        request: &Q,
        answer: Answer,
        context: &Context<'_, '_>,
    ) -> Result<Decision<Vec<HostId>>, Refusal> {
        let pool = context.pool;
        let hosts = match answer {
            Answer::Declined => {
                return Err(Refusal::Declined { reason: format!("`{}` declined the request", self.label) });
            }
            Answer::Scores(scores) => {
                let hosts = pool.fabric().host_count();
                let most = hosts.saturating_mul(request.rows());
                if scores.len() != hosts && scores.len() != most {
                    let or_most = if most == hosts { String::new() } else { format!(" or {most}") };
                    let message = format!("{} scores: expected {hosts}{or_most}", scores.len());
                    return Err(self.reject(&name(request), message));
                }
                request.best_by_scores(pool, &scores, context.seed)?
            }
            Answer::Hosts(hosts) => {
                let checked = request.check_answer(pool, &hosts);
                checked.map_err(|error| self.reject(&name(request), error.text(pool.fabric())))?;
                hosts
            }
        };
        let mut decision = request.decision(&hosts, context);
        if context.explain == Explain::Off {
            decision.why.clear();
        }
        Ok(decision)
    }
}

/// Name of a request in errors.
fn name(request: &impl Decidable) -> String {
    format!("request {}", request.id())
}

/// Name of a batch in errors.
fn batch_name(batch: &[ReplicaRequest]) -> String {
    match batch {
        [first, .., last] => format!("requests {} to {}", first.id, last.id),
        [one] => name(one),
        [] => "request".to_owned(),
    }
}

impl Policy<ReplicaRequest> for PythonPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        match (&self.place, &self.place_batch) {
            (Some(place), _) => self.decide(place, request, context),
            (None, Some(place_batch)) => {
                self.decide_batch(place_batch, std::slice::from_ref(request), context).remove(0)
            }
            (None, None) => Err(self.reject(&name(request), "the policy has no `place`".to_owned())),
        }
    }

    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        match &self.place_batch {
            Some(place_batch) => self.decide_batch(place_batch, batch, context),
            None => one_by_one(self, batch, context),
        }
    }

    fn batching_delay(&self, _: &ReplicaRequest) -> Nanos {
        self.interval
    }
}

impl Policy<AppRequest> for PythonPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        match &self.place {
            Some(place) => self.decide(place, request, context),
            None => Err(self.reject(&name(request), "the policy has no `place`".to_owned())),
        }
    }
}

impl TaskPolicy for PythonPolicy {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        (request.tasks.len() as u64).saturating_mul(fabric.host_count() as u64)
    }
}
