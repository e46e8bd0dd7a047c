//! Errors of the service's operations as problem documents.

use std::convert::Infallible;

use leeward_fabric::input::excerpt;
use leeward_placement::Refusal;
use leeward_placement::tasks::{self, TaskPolicy};
use leeward_promises::AcknowledgeError;
use leeward_records::Clock;
use leeward_registry::Registration;
use leeward_service::{
    AnswerError, CallError, ConfirmError, DecisionError, EnforcerError, InvalidReport, InvalidReportReason,
    NoEnforcer, NoWorkload, PlaceError, ReadError, ReleaseError, ReportPart, ScoreError, TooManyJobs,
    Unavailable, VersionConflict, WhatIfError,
};

use super::{ANSWERED, BROKEN, BUSY, ENFORCER, FOLLOWER, NOT_FOUND, Problem, REFUSED, SEQUENCE, STORE};

/// Error of an operation.
pub trait IntoProblem {
    /// Returns the problem document for the client.
    fn problem(self, clock: &Clock) -> Problem;
}

impl IntoProblem for Infallible {
    fn problem(self, _: &Clock) -> Problem {
        match self {}
    }
}

impl<E: IntoProblem> IntoProblem for CallError<E> {
    fn problem(self, clock: &Clock) -> Problem {
        match self {
            CallError::Unavailable(reason) => reason.problem(clock),
            CallError::Failed(error) => error.problem(clock),
        }
    }
}

impl IntoProblem for ReadError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            ReadError::Busy => Problem::new(BUSY, self.to_string()),
            ReadError::Store(error) => Problem::new(STORE, format!("the store could not be read: {error}")),
        }
    }
}

impl IntoProblem for Unavailable {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            Unavailable::ClusterChanged => Problem::new(BUSY, "the cluster has just changed; retry"),
            Unavailable::Follower { leader } => {
                let leader = leader.map(|leader| leader.to_string());
                let target = leader.as_deref().unwrap_or("the leader, whose address is unknown");
                let detail = format!(
                    "this service is a follower and makes no decisions; send the request to {target}"
                );
                Problem { leader, ..Problem::new(FOLLOWER, detail) }
            }
            Unavailable::StoreFailed(problem) => Problem::new(
                STORE,
                format!("the change was not stored: {problem}; retry when the store is available"),
            ),
            Unavailable::OutcomeUnknown(problem) => Problem::new(
                STORE,
                format!(
                    "the store was lost, and the result of the change is unknown: {problem}; check the current state, \
                     or retry with the same sequence or key, which is safe"
                ),
            ),
            Unavailable::Stopped => Problem::broken(),
        }
    }
}

impl IntoProblem for PlaceError {
    fn problem(self, clock: &Clock) -> Problem {
        match self {
            PlaceError::Rejected(refusal) => Problem::new(REFUSED, refusal_text(&refusal, clock)),
            PlaceError::SloRejected(why) => Problem::new(
                REFUSED,
                format!(
                    "{why}; request a longer latency or less load, or retry when other workloads have ended"
                ),
            ),
            PlaceError::NameTaken(name, by) => Problem::new(
                REFUSED,
                format!(
                    "decision {by} already guarantees the SLO of a workload `{name}`; release that decision first, \
                     or use another name"
                ),
            ),
            PlaceError::Superseded { last } => Problem::new(
                SEQUENCE,
                format!(
                    "the last sequence of the client is {last}; use a higher number for each new request"
                ),
            ),
            PlaceError::KeyReused(caller, kind) => Problem::reused(
                Some(&caller),
                &format!("another request, of kind {kind}, that waits for its decision"),
            ),
            PlaceError::Forgotten(_) => Problem::new(
                SEQUENCE,
                "the request was placed, and its decision is no longer stored; use a new sequence or key to \
                 place it again",
            ),
            PlaceError::Busy => busy(),
            PlaceError::HostsTaken(tries) => Problem::new(
                BUSY,
                format!(
                    "the chosen hosts were taken or closed {tries} times before the commit, and nothing was \
                     placed; retry"
                ),
            ),
            PlaceError::Invalid(field, detail) => invalid(field, detail),
            PlaceError::StoreReadFailed(problem) => store_unreadable(&problem),
            PlaceError::Panicked => panicked(),
        }
    }
}

impl IntoProblem for ConfirmError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            ConfirmError::NotFound(id) => Problem::no_decision(&id.to_string()),
            ConfirmError::Ended(id) => Problem::new(
                REFUSED,
                format!("decision {id} has ended, so it cannot be confirmed; place again"),
            ),
            ConfirmError::NotReserved(id) => {
                Problem::new(REFUSED, format!("decision {id} is not reserved, so it needs no confirmation"))
            }
        }
    }
}

impl IntoProblem for DecisionError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            DecisionError::NotFound(id) => Problem::no_decision(&id.to_string()),
            DecisionError::StoreReadFailed(problem) => store_unreadable(&problem),
        }
    }
}

impl IntoProblem for ReleaseError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            ReleaseError::NotFound(id) => Problem::no_decision(&id.to_string()),
            ReleaseError::StoreReadFailed(problem) => Problem::new(
                STORE,
                format!(
                    "the end is stored, but the decision is no longer in memory, and the store cannot be read: \
                     {problem}"
                ),
            ),
        }
    }
}

impl IntoProblem for WhatIfError {
    fn problem(self, clock: &Clock) -> Problem {
        match self {
            WhatIfError::NotFound(id) => Problem::no_decision(&id.to_string()),
            WhatIfError::NotInMemory(id) => Problem::new(
                NOT_FOUND,
                format!(
                    "decision {id} is no longer in memory; a what-if needs one of the last decisions, or one of \
                     a running task or workload"
                ),
            ),
            WhatIfError::Invalid(field, detail) => invalid(field, detail),
            WhatIfError::NameTaken(name, by) => PlaceError::NameTaken(name, by).problem(clock),
            WhatIfError::NoWorkload(name) => NoWorkload(name).problem(clock),
            WhatIfError::Ended(id) => {
                Problem::new(REFUSED, format!("decision {id} has ended, so its tasks cannot move"))
            }
            WhatIfError::Busy => busy(),
            WhatIfError::Panicked => panicked(),
        }
    }
}

impl IntoProblem for ScoreError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            ScoreError::Unsupported(policy) => Problem::new(
                REFUSED,
                format!(
                    "`{policy}` does not score single hosts; run the service with a policy for tasks that does ({})",
                    scoring_policies()
                ),
            ),
            ScoreError::Busy => busy(),
            ScoreError::Panicked => panicked(),
        }
    }
}

/// Policies for tasks that score single hosts, the last of the registry first. The list leaves out the parts of `utp`,
/// because they serve for comparison with it.
fn scoring_policies() -> String {
    let is_part = |name: &str| ["utp-reactive", "utp-proactive"].contains(&name);
    let scores = |entry: &&Registration<dyn TaskPolicy>| {
        !is_part(entry.name) && (entry.make)("").is_ok_and(|policy| policy.host_balance().is_some())
    };
    let names = tasks::REGISTRY.iter().rev().filter(scores).map(|entry| format!("`{}`", entry.name));
    names.collect::<Vec<String>>().join(", ")
}

impl IntoProblem for AnswerError {
    fn problem(self, _: &Clock) -> Problem {
        match self {
            AnswerError::NotFound(id) => Problem::not_stored("move", &id.to_string()),
            AnswerError::Answered(state) => {
                let detail = format!("the move is already {}", state.word());
                Problem::new(ANSWERED, detail)
            }
            AnswerError::OtherExecutor(executor) => {
                Problem::new(ANSWERED, format!("the executor `{}` took the move", excerpt(&executor)))
            }
        }
    }
}

impl IntoProblem for TooManyJobs {
    fn problem(self, _: &Clock) -> Problem {
        let most = self.0;
        let detail = format!(
            "{most} jobs have limits, and no more can be stored; remove the limits of finished jobs with \
             DELETE /v1/jobs/{{job}}"
        );
        Problem::new(REFUSED, detail)
    }
}

impl IntoProblem for NoWorkload {
    fn problem(self, _: &Clock) -> Problem {
        Problem::not_stored("workload", &self.0)
    }
}

impl IntoProblem for NoEnforcer {
    fn problem(self, _: &Clock) -> Problem {
        Problem::not_stored("enforcer", &self.0)
    }
}

impl IntoProblem for EnforcerError {
    fn problem(self, clock: &Clock) -> Problem {
        let unknown = |field: &str, what: &str, name: &str| {
            Problem::field(field, format!("`{}`: the cluster has no such {what}", excerpt(name)))
        };
        let error = match self {
            EnforcerError::UnknownHost(name) => return unknown("host", "host", &name),
            EnforcerError::UnknownDevice(name) => return unknown("device", "device of this host", &name),
            EnforcerError::Rejected(error) => error,
        };
        let detail = match error {
            AcknowledgeError::TooMany(most) => {
                let detail = format!(
                    "{most} enforcers have a lease, and no more can be stored; remove those that have ended with \
                     DELETE /v1/enforcers/{{enforcer}}"
                );
                return Problem::new(REFUSED, detail);
            }
            AcknowledgeError::NameTaken(kind, host) => format!(
                "the name belongs to an enforcer of kind {} at host `{}`; use another name, or remove that enforcer",
                kind.name(),
                excerpt(&host)
            ),
            AcknowledgeError::OtherInstance(ends) => format!(
                "another enforcer of this name has a lease until {}; give each enforcer of a host a name of its own \
                 (--name), or wait for the end of the lease",
                clock.text(ends)
            ),
            AcknowledgeError::OtherSet(present) => format!(
                "the version is of another set of promises, and this service has set {}; read the promises again and \
                 apply them",
                present.set
            ),
            AcknowledgeError::FutureVersion { acknowledged, present } => format!(
                "version {acknowledged} is later than the present version {present}; read the promises again and apply \
                 them"
            ),
            AcknowledgeError::OlderVersion { acknowledged, before } => format!(
                "version {acknowledged} is older than version {before}, which this enforcer has acknowledged; omit \
                 `set` and `version` after a restart"
            ),
        };
        Problem::new(ENFORCER, detail)
    }
}

impl IntoProblem for VersionConflict {
    fn problem(self, _: &Clock) -> Problem {
        Problem::version(self.0)
    }
}

fn busy() -> Problem {
    let detail =
        "too many requests wait for a decision, or too many callers wait for this request; retry later";
    Problem::new(BUSY, detail)
}

fn panicked() -> Problem {
    Problem::new(
        BROKEN,
        "the analysis panicked because of a bug, and nothing was done; report the request and the log of the \
         service",
    )
}

fn invalid(field: Option<String>, detail: String) -> Problem {
    match field {
        Some(field) => Problem::field(field, detail),
        None => Problem::invalid(detail),
    }
}

fn store_unreadable(problem: &str) -> Problem {
    Problem::new(
        STORE,
        format!(
            "the decision is no longer in memory, and the store cannot be read: {problem}; retry when the store is \
             available"
        ),
    )
}

/// Text of a policy's refusal, with readable times and a remedy.
pub fn refusal_text(refusal: &Refusal, clock: &Clock) -> String {
    let remedy = "or use a policy that places without telemetry (`sinbad:without_telemetry=default` for blocks, `borg` for \
                  tasks)";
    match refusal {
        Refusal::NoTelemetry { newest: Some(at) } => format!(
            "no recent telemetry: the newest report of any candidate ends at {}; report the loads of links, {remedy}",
            clock.text(*at)
        ),
        Refusal::NoTelemetry { newest: None } => {
            format!("{refusal}; report the loads of links, {remedy}")
        }
        refusal => format!("{refusal}; request less, or retry when more hosts are eligible"),
    }
}

impl IntoProblem for InvalidReport {
    fn problem(self, clock: &Clock) -> Problem {
        let InvalidReport { part, reason } = self;
        let field = match (part, reason) {
            (ReportPart::Window, _) => "until".to_owned(),
            (ReportPart::Load(at), InvalidReportReason::NegativeLoad) => format!("links[{at}].load_bps"),
            (ReportPart::Load(at), _) => format!("links[{at}].link"),
            (ReportPart::Host(at), InvalidReportReason::HealthWithLoads) => format!("hosts[{at}].up"),
            (ReportPart::Host(at), _) => format!("hosts[{at}].host"),
            (ReportPart::Workload(at), _) => format!("workloads[{at}].workload"),
        };
        let detail = match reason {
            InvalidReportReason::EmptyWindow => {
                "the window ends before it begins; `until` must be later than `from`".to_owned()
            }
            InvalidReportReason::FutureWindow => format!(
                "the window ends more than an interval ahead of now, {}; check the clock of the reporter",
                clock.text(clock.now())
            ),
            InvalidReportReason::NegativeLoad => "must not be negative".to_owned(),
            InvalidReportReason::Duplicate => {
                "this entry is a duplicate; a report may list each item only once".to_owned()
            }
            InvalidReportReason::HealthWithLoads => {
                "`up` changes the meaning of loads; send `links` in a report of their own".to_owned()
            }
        };
        Problem::field(field, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_score_names_policies_that_score() {
        let problem = ScoreError::Unsupported("choreo".into()).problem(&Clock::system());
        assert!(problem.detail.ends_with("that does (`leeward`, `utp`, `borg`)"), "{}", problem.detail);
    }
}
