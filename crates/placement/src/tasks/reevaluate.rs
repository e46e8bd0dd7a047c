//! Re-evaluation of a running app: decides if its tasks should move to other hosts (Choreo section 2.4).
//!
//! The policy places the rest of the app as if the app were absent: the view excludes its load, and the pool excludes
//! its tasks. One model then predicts for both placements when the remaining transfers end ([`super::completion()`]).
//! The paper re-evaluates apps every T minutes and does not count the cost of a migration; here:
//!
//! ```text
//! cost  = pause + time to carry the state of every task that moves, all at once, from its host to its next
//! moves if  cost + (the rest, on the new hosts)  <  (1 - margin) * (the rest, on the current hosts)
//! ```
//!
//! A task with nothing left to send or receive stays, if its host can take it beside the other tasks. In apps that are
//! not too large, every other task stays too, unless its move makes the rest end earlier. So each migration shortens
//! the prediction by at least `margin`, costs included: two placements of similar quality do not alternate.

use leeward_fabric::{Bytes, Fabric, HostId, Nanos};
use leeward_ledger::{Owner, OwnerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::CapacityCheck;
use super::{AppRequest, Assignment, Transfer, completion, transaction};
use crate::{Basis, Context, Decision, Policy, Pool, Refusal};

/// Most tasks of an app for which the search for tasks that can stay runs. The search examines every task alone.
const MOST_TASKS: usize = 256;
const MOST_TRANSFERS: usize = 20_000;

/// Costs of a migration beyond the transfer of memory, and the gain it must bring.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Worth {
    /// Pause of the app after the transfer of its state.
    pub pause: Nanos,
    /// State that each task carries to its next host; `None` if it is the task's memory.
    pub state: Option<Bytes>,
    /// Share of the remaining time that a migration must save at least, all costs included; 0 to 1.
    pub margin: f64,
}

/// Result of a re-evaluation. Times are predictions, in seconds from now; infinite if a link has no capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Alternative {
    /// New hosts of the tasks, and the ledger entries for them.
    pub decision: Decision<Assignment>,
    /// End of the remaining transfers on the current hosts.
    pub stays: f64,
    /// End of the remaining transfers on the new hosts, without the cost of the migration.
    pub moves: f64,
    /// Duration of the migration.
    pub cost: f64,
    /// Number of tasks that would change hosts.
    pub moved: u32,
}

impl Alternative {
    /// True if the app should migrate.
    pub fn is_worth(&self, margin: f64) -> bool {
        self.moved > 0 && self.cost + self.moves < (1.0 - margin) * self.stays
    }

    /// Reason for which the app should migrate or stay, as text.
    pub fn reason(&self, margin: f64) -> String {
        let moves = if self.moved == 1 { "1 move".into() } else { format!("{} moves", self.moved) };
        let after = self.cost + self.moves;
        if self.moved == 0 {
            return "the policy finds no better hosts".into();
        }
        if !after.is_finite() {
            return format!("{moves} would never end: a link on the way carries nothing");
        }
        let instead = format!(
            "transfers end {} instead of {}, the cost of {} included",
            end_text(after),
            end_text(self.stays),
            seconds_text(self.cost)
        );
        if self.is_worth(margin) {
            format!("{moves}: {instead}")
        } else if after < self.stays {
            format!("{moves} would save less than {:.0} %: {instead}", 100.0 * margin)
        } else {
            format!("{moves} would save no time: {instead}")
        }
    }
}

/// Result of a re-evaluation by name. Times are forecasts in seconds from the re-evaluation; null if a link carries
/// nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reevaluation")]
pub struct ReevaluationRecord {
    /// Tasks to move; empty if the app should stay.
    pub moves: Vec<TaskMove>,
    /// End of the remaining transfers on the current hosts.
    pub before_s: Option<f64>,
    /// End of the remaining transfers on the new hosts, with the cost of the moves.
    pub after_s: Option<f64>,
    /// `before_s` minus `after_s`.
    pub gain_s: Option<f64>,
    /// Duration of the moves.
    pub cost_s: Option<f64>,
    /// True if the app should move.
    pub worth_it: bool,
    /// Reason for which the app should move or stay.
    pub reason: String,
}

/// Move of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskMove {
    /// Name of the task.
    pub task: String,
    /// Host that it leaves.
    pub from: String,
    /// Its new host.
    pub to: String,
}

impl ReevaluationRecord {
    /// Record of an app that runs on `hosts`; its tasks have `names`. A refusal of the policy is a reason to stay.
    pub fn of<'a>(
        fabric: &Fabric,
        names: impl Iterator<Item = &'a str>,
        hosts: &[HostId],
        result: &Result<Alternative, Refusal>,
        margin: f64,
    ) -> ReevaluationRecord {
        let finite = |seconds: f64| seconds.is_finite().then_some(seconds);
        let alternative = match result {
            Ok(alternative) => alternative,
            Err(refusal) => {
                let names: Vec<&str> = names.collect();
                return ReevaluationRecord {
                    moves: Vec::new(),
                    before_s: None,
                    after_s: None,
                    gain_s: None,
                    cost_s: None,
                    worth_it: false,
                    reason: format!("the policy finds no hosts: {}", refusal.with_task_names(&names)),
                };
            }
        };
        let worth_it = alternative.is_worth(margin);
        let pairs = hosts.iter().zip(&alternative.decision.choice).zip(names);
        let moves = pairs.filter(|((from, to), _)| worth_it && from != to).map(|((&from, &to), task)| {
            let [from, to] = [from, to].map(|host| fabric.host_name(host).to_owned());
            TaskMove { task: task.to_owned(), from, to }
        });
        let (before, after) = (alternative.stays, alternative.cost + alternative.moves);
        ReevaluationRecord {
            moves: moves.collect(),
            before_s: finite(before),
            after_s: finite(after),
            gain_s: finite(before - after),
            cost_s: finite(alternative.cost),
            worth_it,
            reason: alternative.reason(margin),
        }
    }
}

/// Places an app again that runs on `hosts`; the request has its remaining transfers. The context's pool
/// excludes the tasks of the app; this function removes the app's load from the view.
///
/// # Errors
/// [`Refusal`] of the policy; the app then stays on its hosts.
pub fn reevaluate(
    policy: &dyn Policy<AppRequest>,
    remaining: &AppRequest,
    hosts: &[HostId],
    worth: &Worth,
    context: &mut Context<'_, '_>,
) -> Result<Alternative, Refusal> {
    context.view.without(&Owner { kind: OwnerKind::App, id: remaining.id });
    let checkpoint = context.view.checkpoint();
    let decision = policy.place_one(remaining, context)?;
    context.view.rollback(checkpoint);
    let estimate = decision.basis.estimate.unwrap_or_default();
    let completion_on = |on: &[HostId]| completion(context.view, &remaining.transfers, on, estimate).seconds;
    let next = keep_idle_tasks(remaining, hosts, &decision.choice, context.pool);
    let next = next.unwrap_or_else(|| decision.choice.clone());
    let next = return_tasks(remaining, hosts, next, context.pool, completion_on);
    // A moving task is one endpoint on its current host, and another on its new host.
    let tasks = remaining.tasks.len() as u32;
    let moving = (0..tasks).filter(|&task| hosts[task as usize] != next[task as usize]);
    let state = |task: u32| worth.state.unwrap_or(remaining.tasks[task as usize].memory);
    let state_transfers: Vec<Transfer> =
        moving.map(|task| Transfer { from: task, to: tasks + task, bytes: state(task), phase: 0 }).collect();
    let state_seconds =
        completion(context.view, &state_transfers, &[hosts, &next].concat(), estimate).seconds;
    let (stays, moves) = (completion_on(hosts), completion_on(&next));
    let decision = if next == decision.choice {
        decision
    } else {
        let Basis { gaps, estimate, oldest, .. } = decision.basis;
        let notes = transaction::Notes { why: decision.why, gaps, estimate, oldest };
        transaction::decision(decision.basis.policy, remaining, next, notes, context)
    };
    Ok(Alternative {
        stays,
        moves,
        cost: worth.pause.as_secs_f64() + state_seconds,
        moved: state_transfers.len() as u32,
        decision,
    })
}

/// A finite time in seconds as text, with three digits.
fn seconds_text(seconds: f64) -> String {
    let digits = if seconds < 10.0 { 2 } else { usize::from(seconds < 100.0) };
    format!("{seconds:.digits$} s")
}

/// End of transfers as text.
fn end_text(seconds: f64) -> String {
    if seconds.is_finite() { format!("after {}", seconds_text(seconds)) } else { "never".into() }
}

/// Returns `next`, except that tasks with nothing left to send or receive stay on `hosts` if the active tasks leave
/// them room. `None` if one of them has no room on either host.
fn keep_idle_tasks(
    remaining: &AppRequest,
    hosts: &[HostId],
    next: &[HostId],
    pool: &Pool,
) -> Option<Assignment> {
    let mut communicates = vec![false; next.len()];
    for transfer in remaining.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
        communicates[transfer.from as usize] = true;
        communicates[transfer.to as usize] = true;
    }
    let mut capacity = CapacityCheck::new(pool, remaining);
    let (busy, idle): (Vec<u32>, Vec<u32>) =
        (0..next.len() as u32).partition(|&task| communicates[task as usize]);
    for task in busy {
        capacity.take(task, next[task as usize]);
    }
    for task in idle {
        capacity.take_first(task, [hosts[task as usize], next[task as usize]]).ok()?;
    }
    Some(capacity.assignment())
}

/// Returns tasks of `next` to their current hosts, one after another, if the hosts have room and the completion time
/// does not grow.
fn return_tasks(
    remaining: &AppRequest,
    hosts: &[HostId],
    mut next: Assignment,
    pool: &Pool,
    completion_on: impl Fn(&[HostId]) -> f64,
) -> Assignment {
    if next.len() > MOST_TASKS || remaining.transfers.len() > MOST_TRANSFERS {
        return next;
    }
    let mut best = completion_on(&next);
    for task in 0..next.len() {
        let new_host = std::mem::replace(&mut next[task], hosts[task]);
        let mut capacity = CapacityCheck::new(pool, remaining);
        for (other, &host) in (0..).zip(&next).filter(|&(other, _)| other != task as u32) {
            capacity.take(other, host);
        }
        let has_room = new_host != hosts[task] && capacity.refuses(hosts[task], task as u32).is_none();
        let seconds = if has_room { completion_on(&next) } else { f64::INFINITY };
        if has_room && seconds <= best {
            best = seconds;
        } else {
            next[task] = new_host;
        }
    }
    next
}
