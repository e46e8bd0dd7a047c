//! Re-placement: whether an app that runs should go on elsewhere (Choreo section 2.4).
//!
//! The policy places what is left of the app once more, as if the app were not there: its own load is taken out of the
//! view, its tasks out of the pool. Both placements are then judged by one model, when the rest of the transfers would be
//! over ([`super::completion()`]). The paper says that apps are re-evaluated every T minutes and leaves open what a
//! migration is worth; here:
//!
//! ```text
//! cost  = pause + time to carry the memory of every task that moves, all at once, from its host to its next
//! moves if  cost + (the rest, on the new hosts)  <  (1 - margin) * (the rest, where it is)
//! ```
//!
//! A task that has nothing more to send or receive stays where it is, if the others leave it room; and in apps that are not
//! too large so does every other by whose move the rest would be over no earlier. So what is predicted gets shorter with
//! every migration, by `margin` at least, costs included: two placements that are about as good are not exchanged for
//! each other again and again.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::{Owner, OwnerKind};

use super::seats::Seats;
use super::{AppRequest, Assignment, Transfer, change, completion};
use crate::{Basis, Context, Decision, Policy, Pool, Refusal};

/// Apps with more tasks or transfers than these go where the policy says: every task would have to be looked at by itself.
const MOST_TASKS: usize = 256;
const MOST_TRANSFERS: usize = 20_000;

/// What a migration costs besides carrying memory, and what it must save.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Worth {
    /// For how long the app stands still once its memory is carried.
    pub pause: Nanos,
    /// The share of the time left, at least, that must be saved when all costs are paid; 0 to 1.
    pub margin: f64,
}

/// An app placed once more. Times are predictions, in seconds from now; infinite where a link carries nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Again {
    /// Where its tasks would go, and what the ledger would learn of it.
    pub decision: Decision<Assignment>,
    /// When the rest would be over where it is.
    pub stays: f64,
    /// When the rest would be over there, without the cost of going there.
    pub moves: f64,
    /// How long going there takes.
    pub cost: f64,
    /// Tasks that would change hosts.
    pub moved: u32,
}

impl Again {
    /// Whether it should go there.
    pub fn is_worth(&self, margin: f64) -> bool {
        self.moved > 0 && self.cost + self.moves < (1.0 - margin) * self.stays
    }
}

/// Places `left` once more: an app that runs on `hosts`, with what it has still to send. The context's pool is one
/// without the tasks of the app; its own load is taken out of the view here.
///
/// # Errors
/// The policy's refusal, with which an app stays where it is.
pub fn again(
    policy: &dyn Policy<AppRequest>,
    left: &AppRequest,
    hosts: &[HostId],
    pause: Nanos,
    context: &mut Context<'_, '_>,
) -> Result<Again, Refusal> {
    context.view.without(&Owner { kind: OwnerKind::App, id: left.id });
    let mark = context.view.mark();
    let decision = policy.place(std::slice::from_ref(left), context).remove(0)?;
    context.view.back_to(mark);
    let estimate = decision.basis.estimate.unwrap_or_default();
    let over = |on: &[HostId]| completion(context.view, &left.transfers, on, estimate).seconds;
    let next = stay_put(left, hosts, &decision.choice, context.pool);
    let next = next.unwrap_or_else(|| decision.choice.clone());
    let next = go_back(left, hosts, next, context.pool, over);
    // Each task is an end where it is, and another where it goes.
    let tasks = left.tasks.len() as u32;
    let moving = (0..tasks).filter(|&task| hosts[task as usize] != next[task as usize]);
    let memory = |task: u32| left.tasks[task as usize].memory;
    let carried: Vec<Transfer> =
        moving.map(|task| Transfer { from: task, to: tasks + task, bytes: memory(task) }).collect();
    let carrying = completion(context.view, &carried, &[hosts, &next].concat(), estimate).seconds;
    let (stays, moves) = (over(hosts), over(&next));
    let decision = if next == decision.choice {
        decision
    } else {
        let Basis { gap, estimate, oldest, .. } = decision.basis;
        let notes = change::Notes { why: decision.why, gap, estimate, oldest };
        change::decision(decision.basis.policy, left, next, notes, context)
    };
    Ok(Again { stays, moves, cost: pause.as_secs_f64() + carrying, moved: carried.len() as u32, decision })
}

/// `next`, but tasks that have nothing more to send or receive stay on `hosts` where there is room for them beside those
/// that do. `None` if one of them has no room then.
fn stay_put(left: &AppRequest, hosts: &[HostId], next: &[HostId], pool: &Pool) -> Option<Assignment> {
    let mut talks = vec![false; next.len()];
    for transfer in left.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
        talks[transfer.from as usize] = true;
        talks[transfer.to as usize] = true;
    }
    let mut seats = Seats::new(pool, left);
    let (busy, idle): (Vec<u32>, Vec<u32>) = (0..next.len() as u32).partition(|&task| talks[task as usize]);
    for task in busy {
        seats.take(task, next[task as usize]);
    }
    for task in idle {
        seats.take_first(task, [hosts[task as usize], next[task as usize]]).ok()?;
    }
    Some(seats.assignment())
}

/// Sends tasks of `next` back to where they are, one after the other, where they have room and the rest is `over` no later.
fn go_back(
    left: &AppRequest,
    hosts: &[HostId],
    mut next: Assignment,
    pool: &Pool,
    over: impl Fn(&[HostId]) -> f64,
) -> Assignment {
    if next.len() > MOST_TASKS || left.transfers.len() > MOST_TRANSFERS {
        return next;
    }
    let mut best = over(&next);
    for task in 0..next.len() {
        let there = std::mem::replace(&mut next[task], hosts[task]);
        let mut seats = Seats::new(pool, left);
        for (other, &host) in (0..).zip(&next).filter(|&(other, _)| other != task as u32) {
            seats.take(other, host);
        }
        let has_room = there != hosts[task] && seats.refuses(hosts[task], task as u32).is_none();
        let seconds = if has_room { over(&next) } else { f64::INFINITY };
        if has_room && seconds <= best {
            best = seconds;
        } else {
            next[task] = there;
        }
    }
    next
}
