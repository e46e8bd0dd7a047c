//! Problem documents for refusals of the core.

use leeward_placement::Refusal;

use super::{ANSWERED, BROKEN, BUSY, FOLLOWER, NOT_FOUND, Problem, REFUSED, SEQUENCE, STORE};
use crate::clock::Clock;
use crate::desk::{Part, Refused, Wrong};

impl Problem {
    /// Problem for a refusal of the core.
    pub fn refused(refused: Refused, clock: &Clock) -> Problem {
        match refused {
            Refused::Report(part, wrong) => report(part, wrong, clock),
            Refused::Placement(refusal) => Problem::new(REFUSED, refusal_text(&refusal, clock)),
            Refused::Superseded { last } => Problem::new(
                SEQUENCE,
                format!(
                    "the client has asked with sequence {last} already; number each new request higher than the last"
                ),
            ),
            Refused::Reused(caller, kind) => Problem::reused(
                Some(&caller),
                &format!("a request of kind {kind}, which waits to be decided"),
            ),
            Refused::Forgotten(_) => Problem::new(
                SEQUENCE,
                "it was placed, and the decision is not kept any more; \
                 ask with a new sequence or key to place it again",
            ),
            Refused::NoDecision(id) => Problem::no_decision(&id.to_string()),
            Refused::NotInMemory(id) => Problem::new(
                NOT_FOUND,
                format!(
                    "decision {id} has left memory; what another policy would do is told of the last decisions, and of tasks and \
                     workloads that run"
                ),
            ),
            Refused::Store(problem) => Problem::new(
                STORE,
                format!(
                    "it cannot be kept, so nothing was done: {problem}; ask again when the store is well"
                ),
            ),
            Refused::Unread(problem) => Problem::new(
                STORE,
                format!(
                    "the decision has left memory, and the store cannot be read: {problem}; \
                     ask again when the store is well"
                ),
            ),
            Refused::EndedUnread(problem) => Problem::new(
                STORE,
                format!(
                    "its end is kept; the decision has left memory, and the store cannot be read: {problem}"
                ),
            ),
            Refused::Unknown(problem) => Problem::new(
                STORE,
                format!(
                    "the store went away, and whether it was kept is not known: {problem}; look whether it is there, \
                     or ask again with the same sequence or key: then it is not done twice"
                ),
            ),
            Refused::Follower { leader } => {
                let leader = leader.map(|leader| leader.to_string());
                let ask =
                    leader.as_deref().unwrap_or("the service that leads, which has not said where it is");
                let detail = format!("this service follows another one, which decides; ask {ask}");
                Problem { leader, ..Problem::new(FOLLOWER, detail) }
            }
            Refused::NoMigration(id) => Problem::none_kept("move", &id.to_string()),
            Refused::Answered(state) => {
                let detail = format!("the move is {} already, and stays so", state.word());
                Problem::new(ANSWERED, detail)
            }
            Refused::NoScores(policy) => Problem::new(
                REFUSED,
                format!(
                    "`{policy}` does not rank single hosts; serve with a policy for tasks that does (`leeward`, `utp`, `borg`)"
                ),
            ),
            Refused::Wrong(Some(field), detail) => Problem::field(field, detail),
            Refused::Wrong(None, detail) => Problem::invalid(detail),
            Refused::Promise(why) => Problem::new(
                REFUSED,
                format!("{why}; ask for a longer latency or for less, or again when others have ended"),
            ),
            Refused::Taken(name, by) => Problem::new(
                REFUSED,
                format!(
                    "a workload `{name}` is promised its SLO by decision {by}; release that first, or take another name"
                ),
            ),
            Refused::Jobs(most) => Problem::new(
                REFUSED,
                format!(
                    "{most} jobs have bounds, and more are not kept; take away those of jobs that are over: DELETE /v1/jobs/{{job}}"
                ),
            ),
            Refused::Failed => Problem::new(
                BROKEN,
                "the analysis failed, which is a mistake of this program, and nothing was done; \
                 report what was asked and what the service wrote to its log",
            ),
            Refused::NoWorkload(name) => Problem::none_kept("workload", &name),
            Refused::Outrun(tries) => Problem::new(
                BUSY,
                format!(
                    "hosts that it was to be on were taken or closed {tries} times while it was decided, and nothing was done; \
                     ask again"
                ),
            ),
            Refused::Moved => Problem::new(BUSY, "the cluster has just changed; ask again"),
            Refused::Version { found } => Problem::version(found),
            Refused::Busy => Problem::new(
                BUSY,
                "too many requests wait to be decided, or too many ask for this one; ask again a little later",
            ),
        }
    }
}

/// Text of a policy's refusal, with readable times and the remedy.
pub fn refusal_text(refusal: &Refusal, clock: &Clock) -> String {
    let placed_blindly = "or serve with a policy that places without it (`sinbad:without_telemetry=default`)";
    match refusal {
        Refusal::NoTelemetry { newest: Some(at) } => format!(
            "no recent telemetry: the newest report of any candidate ends at {}; report what links carry, {placed_blindly}",
            clock.text(*at)
        ),
        Refusal::NoTelemetry { newest: None } => {
            format!("{refusal}; report what links carry, {placed_blindly}")
        }
        refusal => format!("{refusal}; ask for less, or again when more hosts may take it"),
    }
}

fn report(part: Part, wrong: Wrong, clock: &Clock) -> Problem {
    let field = match (part, wrong) {
        (Part::Window, _) => "until".to_owned(),
        (Part::Load(at), Wrong::Negative) => format!("links[{at}].load_bps"),
        (Part::Load(at), _) => format!("links[{at}].link"),
        (Part::Host(at), Wrong::Mixed) => format!("hosts[{at}].up"),
        (Part::Host(at), _) => format!("hosts[{at}].host"),
        (Part::Workload(at), _) => format!("workloads[{at}].workload"),
    };
    let detail = match wrong {
        Wrong::Empty => "the window ends before it begins; `until` must be later than `from`".to_owned(),
        Wrong::Ahead => format!(
            "the window ends more than an interval ahead of now, {}; check the clock of who reports",
            clock.text(clock.now())
        ),
        Wrong::Negative => "must not be negative".to_owned(),
        Wrong::Twice => "it is there twice; a report says one thing of each".to_owned(),
        Wrong::Mixed => {
            "whether a host is up changes what loads mean; send `links` in a report of their own".to_owned()
        }
    };
    Problem::field(field, detail)
}
