//! Answers of policies outside of this crate, for the tasks of an app.

use leeward_fabric::HostId;

use super::capacity_check::CapacityCheck;
use super::given::objections;
use super::{AppRequest, Assignment};
use crate::answer::{by_score, check_hosts, first_objection};
use crate::ties::Ties;
use crate::{AnswerError, Pool, Refusal};

/// Checks the hosts of an answer, one for each task: their number, and the constraints of the request.
///
/// # Errors
/// [`AnswerError`] for the first wrong host.
pub fn check_answer(pool: &Pool, request: &AppRequest, hosts: &[HostId]) -> Result<(), AnswerError> {
    check_hosts(pool.fabric(), hosts, request.tasks.len())?;
    first_objection(hosts, objections(pool, request, hosts))
}

/// Hosts of the tasks by scores: a row for each task with a score for each host of the cluster, or one row for all tasks;
/// more is better. Tasks are placed in their order, each on the host with the highest score which the constraints
/// allow; scores of NaN and of minus infinity exclude a host. `seed` breaks ties.
///
/// # Errors
/// [`Refusal::NoHost`] if no host can take a task.
pub fn best_by_scores(
    pool: &Pool,
    request: &AppRequest,
    scores: &[f64],
    seed: u64,
) -> Result<Assignment, Refusal> {
    let hosts = pool.fabric().host_count();
    let ties = Ties::new(seed, request.id);
    let mut capacity = CapacityCheck::new(pool, request);
    for task in 0..request.tasks.len() {
        let row = scores.get(task * hosts..(task + 1) * hosts).unwrap_or(scores);
        capacity.take_first(task as u32, by_score(&row[..row.len().min(hosts)], ties))?;
    }
    Ok(capacity.assignment())
}

/// For each host of the cluster, true if it may run this task of the request, beside no other task of it.
pub fn eligible(pool: &Pool, request: &AppRequest, task: u32) -> Vec<bool> {
    let capacity = CapacityCheck::new(pool, request);
    pool.fabric().all_hosts().map(|host| capacity.refuses(host, task).is_none()).collect()
}
